//! Sessions that are resumed, and 0-RTT.

use quipu_base::Bytes;

use super::*;
use crate::tls::EarlyData;
use crate::transport_parameters::{TransportParameters, VersionInformation};

/// A client that resumes sessions, and its server.
fn resuming() -> (RustlsClient, RustlsServer) {
    let (client, server) = pair(ALPN, ALPN);
    (client.with_resumption(10), server)
}

fn limits(data: u64) -> RememberedLimits {
    RememberedLimits { data: Bytes(data), ..RememberedLimits::default() }
}

/// What a server of that version declares.
fn declared(version: Version) -> Vec<u8> {
    let available = Version::KNOWN.into_iter().collect();
    let information = VersionInformation { chosen: version, available };
    let parameters = TransportParameters {
        initial_max_data: Bytes(9),
        version_information: Some(information),
        ..TransportParameters::default()
    };
    parameters.encode()
}

/// How a handshake went.
#[derive(Debug, PartialEq, Eq)]
struct Went {
    resumed: bool,
    early_data: EarlyData,
}

/// Makes a handshake in `version`; a server of these limits, and both ends with 0-RTT if they want.
fn shake_hands(
    (client, client_early): (&RustlsClient, bool),
    (server, server_early): (&RustlsServer, bool),
    version: Version,
    data: u64,
) -> Went {
    let to = ClientStart { version, early_data: client_early, ..to("localhost", b"") };
    let declared = declared(version);
    let with =
        ServerStart { version, limits: limits(data), early_data: server_early, ..with(&declared) };
    let (mut client, mut server) = start((client, &to), (server, &with));
    let sealing = client.session.zero_rtt_keys();
    let offered = client.session.early_data() == EarlyData::Offered;
    assert_eq!(sealing.is_some(), offered);
    assert_eq!(client.session.remembered_parameters().is_some(), offered);
    let answer = server.answer(&client.flight(), 10_000).unwrap();
    let opening = server.session.zero_rtt_keys();
    assert_eq!(server.session.early_data() == EarlyData::Accepted, opening.is_some());
    if let (Some(sealing), Some(opening)) = (&sealing, &opening) {
        assert!(crosses(&*sealing.packet, &*opening.packet, PathId::ZERO, 0));
    }
    let finished = client.answer(&answer, 10_000).unwrap();
    let tickets = server.answer(&finished, 10_000).unwrap();
    client.answer(&tickets, 10_000).unwrap();
    let early_data = client.session.early_data();
    assert_eq!(early_data == EarlyData::Accepted, opening.is_some());
    let negotiated = client.session.negotiated().unwrap();
    assert_eq!(server.session.negotiated(), Some(negotiated));
    assert_eq!(client.session.peer_certificates().map(<[_]>::len), Some(1));
    Went { resumed: negotiated.resumed, early_data }
}

#[test]
fn a_second_connection_resumes_and_sends_early_if_both_ends_want() {
    for (of_client, of_server, early_data) in [
        (false, false, EarlyData::NotOffered),
        (true, false, EarlyData::NotOffered),
        (false, true, EarlyData::NotOffered),
        (true, true, EarlyData::Accepted),
    ] {
        let (client, server) = resuming();
        let again = || shake_hands((&client, of_client), (&server, of_server), Version::V1, 5);
        assert_eq!(again(), Went { resumed: false, early_data: EarlyData::NotOffered });
        assert_eq!(again(), Went { resumed: true, early_data });
        assert_eq!(again(), Went { resumed: true, early_data });
    }
}

#[test]
fn a_server_that_allows_no_early_data_any_more_rejects_it() {
    let (client, server) = resuming();
    shake_hands((&client, true), (&server, true), Version::V1, 5);
    let went = shake_hands((&client, true), (&server, false), Version::V1, 5);
    assert_eq!(went, Went { resumed: true, early_data: EarlyData::Rejected });
}

#[test]
fn limits_that_shrank_end_a_session() {
    let (client, server) = resuming();
    shake_hands((&client, true), (&server, true), Version::V1, 5);
    let went = shake_hands((&client, true), (&server, true), Version::V1, 4);
    assert_eq!(went, Went { resumed: false, early_data: EarlyData::Rejected });
    let went = shake_hands((&client, true), (&server, true), Version::V1, 6);
    assert_eq!(went, Went { resumed: true, early_data: EarlyData::Accepted });
}

/// <https://www.rfc-editor.org/rfc/rfc9369#section-5>
#[test]
fn a_session_of_one_version_is_not_resumed_in_another() {
    let (client, server) = resuming();
    let both = |version| shake_hands((&client, true), (&server, true), version, 5);
    both(Version::V1);
    let fresh = Went { resumed: false, early_data: EarlyData::NotOffered };
    assert_eq!(both(Version::V2), fresh);
    assert_eq!(both(Version::V2), Went { resumed: true, early_data: EarlyData::Accepted });
}

#[test]
fn a_ticket_is_good_once() {
    let (client, server) = resuming();
    let both = || shake_hands((&client, true), (&server, true), Version::V1, 5);
    both();
    let to = ClientStart { early_data: true, ..to("localhost", b"") };
    let mut hello = Vec::new();
    client.start(&to).unwrap().write(&mut hello);
    let mut accepted = [false; 2];
    for accepted in &mut accepted {
        let declared = declared(Version::V1);
        let with = ServerStart { limits: limits(5), early_data: true, ..with(&declared) };
        let mut replayed = server.start(&with).unwrap();
        replayed.read(Level::Initial, &hello).unwrap();
        *accepted = replayed.early_data() == EarlyData::Accepted;
    }
    assert_eq!(accepted, [true, false]);
}

#[test]
fn another_server_knows_nothing_of_a_session() {
    let (client, server) = resuming();
    shake_hands((&client, true), (&server, true), Version::V1, 5);
    let forgetful = RustlsServer {
        config: Arc::new({
            let mut config = (*server.config).clone();
            config.session_storage = tls::server::ServerSessionMemoryCache::new(32);
            config
        }),
        bound: Arc::default(),
        initial: server.initial,
    };
    let went = shake_hands((&client, true), (&forgetful, true), Version::V1, 5);
    assert_eq!(went, Went { resumed: false, early_data: EarlyData::Rejected });
}

/// Sealed tickets could be shown again and again, so nothing is read early for them.
#[test]
fn a_ticket_that_the_client_keeps_allows_no_early_data() {
    let (client, server) = resuming();
    let mut config = (*server.config).clone();
    config.ticketer = tls::crypto::ring::Ticketer::new().unwrap();
    let server = RustlsServer::new(Arc::new(config)).unwrap();
    let both = || shake_hands((&client, true), (&server, true), Version::V1, 5);
    both();
    let went = both();
    assert!(went.resumed);
    assert_ne!(went.early_data, EarlyData::Accepted);
}
