//! What TLS tells the application.

use quipu_base::Role;
use quipu_quic::connection::CloseReason;
use quipu_quic::tls::{CipherSuite, KeyExchangeGroup};
use quipu_testkit::forge::{Pair, Setup};
use quipu_testkit::{Identity, SERVER_NAME, SharedTls, Tls};

use crate::{DELAY, each};

#[test]
fn both_ends_know_what_was_agreed_on_and_with_whom() {
    each(&Setup::default(), |setup| {
        let mut pair = Pair::connected(setup, DELAY);
        for role in [Role::Client, Role::Server] {
            let connection = pair.end(role).connection().expect("it is connected");
            let negotiated = connection.negotiated().expect("it is connected");
            assert_eq!(negotiated.cipher_suite, CipherSuite::AES_256_GCM_SHA384);
            assert_eq!(negotiated.group, Some(KeyExchangeGroup::X25519));
            assert!(!negotiated.resumed);
            assert_eq!(connection.alpn(), Some(quipu_testkit::ALPN));
            let name = (!role.is_client()).then_some(SERVER_NAME);
            assert_eq!(connection.server_name(), name);
            let shown = role.is_client() && matches!(setup.tls, Tls::Rustls(_));
            assert_eq!(connection.peer_certificates().map(<[_]>::len), shown.then_some(1));
        }
    });
}

#[test]
fn a_failure_of_tls_is_told_as_its_alert_at_both_ends() {
    let identity = || Identity::generate().expect("a certificate");
    let [known, other] = [identity(), identity()]
        .map(|identity| SharedTls::new(&identity, false).expect("a valid identity"));
    let tls = Tls::Shared(SharedTls { client: known.client, server: other.server });
    let setup = Setup { tls, ..Setup::default() };
    let mut pair = Pair::new(&setup, DELAY);
    pair.run(quipu_base::Duration::from_secs(1));
    let alert = |reason: Option<&CloseReason>| reason.and_then(CloseReason::tls_alert);
    let of_client = alert(pair.client().close_reason()).expect("it closed for an alert");
    assert_eq!(of_client.name(), Some("decrypt_error"));
    let of_server = alert(pair.server().close_reason()).expect("it closed for an alert");
    assert_eq!(of_server, of_client);
}
