//! What goes wrong, and what is said of it.

use std::net::UdpSocket;

use quipu_quic::endpoint::TokenConfig;
use quipu_quic::tls::rustls::token_key;
use quipu_tokio::{BindError, ConnectError, Endpoint, TransportConfig, Via};

use crate::setup::{ALPN, NAME, Setup, limited};

/// What the client of `setup` meets at a server of its own, or of `other`.
async fn refused(setup: &Setup, other: &Setup) -> ConnectError {
    let (server, address) = other.listen();
    let client = Endpoint::client().bind().unwrap();
    let accept = async {
        // It fails, too.
        let _ = server.accept().await.unwrap().accept().await;
    };
    let connect = client.connect(&setup.client, address, NAME);
    tokio::join!(accept, connect).1.unwrap_err()
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted() {
    limited(async {
        let error = refused(&Setup::new(), &Setup::new()).await;
        assert!(matches!(error, ConnectError::Certificate { .. }), "{error:?}");
        assert!(error.to_string().contains("is not trusted"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn no_application_protocol_in_common() {
    limited(async {
        let setup = Setup::speaking(TransportConfig::default(), b"other", ALPN);
        let error = refused(&setup, &setup).await;
        assert!(matches!(error, ConnectError::Alpn(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn no_version_in_common() {
    limited(async {
        let mut setup = Setup::new();
        let versions = vec![quipu_quic::wire::Version::V2];
        let transport = TransportConfig { versions, ..TransportConfig::default() };
        setup.client.transport = std::sync::Arc::new(transport);
        let (_server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();
        let error = client.connect(&setup.client, address, NAME).await.unwrap_err();
        assert!(error.to_string().contains("one version of QUIC"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_port_in_use_and_an_address_of_another_host() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let server = || Endpoint::server(Setup::new().server);
    let error = server().listen(address).bind().unwrap_err();
    assert!(matches!(error, BindError::InUse(other) if other == address), "{error:?}");
    let error = server().listen("192.0.2.1:0".parse().unwrap()).bind().unwrap_err();
    assert!(matches!(error, BindError::NotOurs(_)), "{error:?}");
    let error = Endpoint::client().via(Via::Interface("none0".to_owned())).bind().unwrap_err();
    assert!(error.to_string().contains("there is no interface \"none0\""), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer() {
    limited(async {
        // It has the port and reads nothing.
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut setup = Setup::new();
        setup.client.handshake_timeout = quipu_base::Duration::from_millis(200);
        let client = Endpoint::client().bind().unwrap();
        let address = silent.local_addr().unwrap();
        let error = client.connect(&setup.client, address, NAME).await.unwrap_err();
        assert!(matches!(error, ConnectError::NoAnswer { .. }), "{error:?}");
        assert!(error.to_string().contains("by 127.0.0.1"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_uplink_of_another_family() {
    limited(async {
        let client = Endpoint::client().via(Via::Address("127.0.0.1".parse().unwrap()));
        let client = client.bind().unwrap();
        let server = "[::1]:4433".parse().unwrap();
        let error = client.connect(&Setup::new().client, server, NAME).await.unwrap_err();
        assert!(matches!(error, ConnectError::NoUplink(_)), "{error:?}");
    })
    .await;
}

#[tokio::test]
async fn a_client_is_refused_or_asked_to_prove_its_address() {
    limited(async {
        let mut setup = Setup::new();
        let key = token_key(&quipu_quic::tls::rustls::provider(), &[1; 32]).unwrap();
        setup.server.tokens = TokenConfig::with_key(key);
        let (server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();
        let decide = async {
            let first = server.accept().await.unwrap();
            assert!(first.may_retry() && !first.is_address_proved());
            assert_eq!(first.server_name(), Some(NAME));
            assert!(first.retry());
            let second = server.accept().await.unwrap();
            assert!(second.is_address_proved() && !second.may_retry());
            second.accept().await.unwrap();
            // Whoever is dropped is refused.
            drop(server.accept().await.unwrap());
        };
        let connect = async {
            client.connect(&setup.client, address, NAME).await.unwrap();
            client.connect(&setup.client, address, NAME).await.unwrap_err()
        };
        let (_, error) = tokio::join!(decide, connect);
        assert!(matches!(error, ConnectError::Refused(_)), "{error:?}");
    })
    .await;
}
