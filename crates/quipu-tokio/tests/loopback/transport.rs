//! What connections agree on, early data, and moving.

use std::sync::Arc;

use quipu_quic::tls::EarlyData;
use quipu_quic::tls::rustls::RustlsClient;
use quipu_quic::wire::Version;
use quipu_tokio::{ClientConfig, Endpoint, PathEvent, TransportConfig, Via};

use crate::setup::{NAME, Setup, limited};

#[tokio::test]
async fn what_is_written_early_arrives_and_both_ends_know_that_it_was_early() {
    limited(async {
        let transport = TransportConfig { early_data: true, ..TransportConfig::default() };
        let setup = Setup::with(transport);
        let tls = RustlsClient::with_roots(setup.roots(), &[crate::setup::ALPN]).unwrap();
        let client_config =
            ClientConfig { tls: Arc::new(tls.with_resumption(1)), ..setup.client.clone() };
        let (server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();

        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let connect = client.connect_early(&client_config, address, NAME);
        let (there, here) = tokio::join!(accept, connect);
        let here = here.unwrap();
        assert_eq!(here.early_data(), Some(EarlyData::NotOffered));
        assert!(!here.negotiated().unwrap().resumed);
        // Its tickets have come once this has.
        let (mut send, _) = there.open_bidirectional().await.unwrap();
        send.write_bytes("x".into()).await.unwrap();
        here.accept_bidirectional().await.unwrap();
        here.close(0, b"");

        let here = client.connect_early(&client_config, address, NAME).await.unwrap();
        assert_eq!(here.early_data(), Some(EarlyData::Offered));
        let (mut send, _) = here.open_bidirectional().await.unwrap();
        send.write_bytes("early".into()).await.unwrap();
        send.finish().unwrap();
        let there = server.accept().await.unwrap().accept().await.unwrap();
        let (_, mut receive) = there.accept_bidirectional().await.unwrap();
        assert_eq!(receive.read_to_limit(10).await.unwrap(), b"early");
        here.confirmed().await.unwrap();
        for end in [&here, &there] {
            assert_eq!(end.early_data(), Some(EarlyData::Accepted));
            assert!(end.negotiated().unwrap().resumed);
        }
    })
    .await;
}

#[tokio::test]
async fn what_is_written_early_arrives_although_the_first_uplink_is_dead() {
    limited(async {
        let transport = TransportConfig { early_data: true, ..TransportConfig::default() };
        let setup = Setup::with(transport);
        let tls = RustlsClient::with_roots(setup.roots(), &[crate::setup::ALPN]).unwrap();
        let config = ClientConfig { tls: Arc::new(tls.with_resumption(1)), ..setup.client.clone() };
        let (server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();
        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let (there, here) = tokio::join!(accept, client.connect(&config, address, NAME));
        let here = here.unwrap();
        let (mut send, _) = there.open_bidirectional().await.unwrap();
        send.write_bytes("x".into()).await.unwrap();
        here.accept_bidirectional().await.unwrap();
        here.close(0, b"");

        let [first, second] = ["127.0.0.1", "127.0.0.2"].map(|text| text.parse().unwrap());
        let via = |address| Via::Address(address);
        let client = Endpoint::client().via(via(first)).via(via(second)).bind().unwrap();
        let here = client.connect_early(&config, address, NAME).await.unwrap();
        assert_eq!(here.early_data(), Some(EarlyData::Offered));
        let (mut send, _) = here.open_bidirectional().await.unwrap();
        send.write_bytes("early".into()).await.unwrap();
        send.finish().unwrap();
        let there = loop {
            let next = server.accept().await.unwrap();
            if next.remote_address().ip() == second {
                break next.accept().await.unwrap();
            }
            next.ignore();
        };
        let (_, mut receive) = there.accept_bidirectional().await.unwrap();
        assert_eq!(receive.read_to_limit(10).await.unwrap(), b"early");
        here.confirmed().await.unwrap();
        assert_eq!(here.early_data(), Some(EarlyData::Accepted));
        assert_eq!(here.route().unwrap().local.ip(), second);
        // The first was only ignored, and becomes a path.
        while here.paths().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(here.paths()[1].route.local.ip(), first);
    })
    .await;
}

#[tokio::test]
async fn keys_are_updated_once_the_handshake_is_confirmed() {
    limited(async {
        let pair = Setup::new().connect().await;
        pair.here.confirmed().await.unwrap();
        assert_eq!(pair.here.version(), Some(Version::V1));
        assert!(pair.here.update_keys());
        assert!(!pair.here.update_keys(), "the phase is not acknowledged yet");
        let (mut send, _) = pair.here.open_bidirectional().await.unwrap();
        send.write_bytes("x".into()).await.unwrap();
        pair.there.accept_bidirectional().await.unwrap();
        assert_eq!(pair.there.key_updates(), Some(1));
    })
    .await;
}

#[tokio::test]
async fn a_client_moves_its_path_to_another_address_and_the_server_follows() {
    limited(async {
        let pair = Setup::new().connect_by(&["127.0.0.1"]).await;
        pair.here.confirmed().await.unwrap();
        let path = pair.here.paths()[0].id;
        let mut events = pair.there.path_events();
        let to = "127.0.0.2".parse().unwrap();
        // The server's connection IDs for other addresses may still be on the way.
        while pair.here.migrate_path(path, Via::Address(to)).is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let moved = loop {
            if let PathEvent::Migrated(moved) = events.next().await.unwrap() {
                break moved;
            }
        };
        assert_eq!(moved.new.remote.ip(), to);
        let (mut send, _) = pair.here.open_bidirectional().await.unwrap();
        send.write_bytes("x".into()).await.unwrap();
        pair.there.accept_bidirectional().await.unwrap();
    })
    .await;
}
