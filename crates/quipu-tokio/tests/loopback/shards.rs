//! Servers that share an address.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use quipu_quic::endpoint::EndpointConfig;
use quipu_quic::tls::rustls::{provider, reset_key};
use quipu_tokio::error::BindError;
use quipu_tokio::{Connection, Endpoint, Via};

use crate::setup::{NAME, Setup, limited};

const CLIENTS: usize = 16;

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Echoes one message after the other of all clients of a shard.
async fn serve(shard: Endpoint) {
    while let Some(incoming) = shard.accept().await {
        tokio::spawn(async move {
            let connection = incoming.accept().await.unwrap();
            while let Ok((mut send, mut receive)) = connection.accept_bidirectional().await {
                let asked = receive.read_to_limit(100).await.unwrap();
                send.write_bytes(asked.into()).await.unwrap();
                send.finish().unwrap();
            }
        });
    }
}

async fn ask(connection: &Connection, what: &'static str) {
    let (mut send, mut receive) = connection.open_bidirectional().await.unwrap();
    send.write_bytes(what.into()).await.unwrap();
    send.finish().unwrap();
    assert_eq!(receive.read_to_limit(100).await.unwrap(), what.as_bytes());
}

/// By what a client sends after it moved, the kernel may take it for one of another shard.
#[tokio::test]
async fn clients_spread_over_shards_and_are_found_by_their_own_after_they_moved() {
    limited(async {
        let setup = Setup::new();
        let server = Endpoint::server(setup.server.clone()).listen(any());
        let shards = server.bind_shards(2).unwrap();
        let address = shards[0].local_addresses()[0];
        assert!(shards.iter().all(|shard| shard.local_addresses() == [address]));
        for shard in &shards {
            tokio::spawn(serve(shard.clone()));
        }
        let mut held = Vec::new();
        for _ in 0..CLIENTS {
            let client = Endpoint::client().via(Via::Address("127.0.0.1".parse().unwrap()));
            let client = client.bind().unwrap();
            let connection = client.connect(&setup.client, address, NAME).await.unwrap();
            ask(&connection, "before").await;
            held.push((client, connection));
        }
        let connections = |shard: &Endpoint| shard.stats().connections;
        assert_eq!(shards.iter().map(connections).sum::<usize>(), CLIENTS);
        if cfg!(target_os = "linux") {
            assert!(shards.iter().all(|shard| connections(shard) > 0), "the kernel spreads them");
        }
        let path = held[0].1.paths()[0].id;
        for (_, connection) in &held {
            let to = "127.0.0.2".parse().unwrap();
            while connection.migrate_path(path, Via::Address(to)).is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            ask(connection, "after").await;
        }
        let given: u64 = shards.iter().map(|shard| shard.stats().datagrams_given).sum();
        assert!(given > 0 || !cfg!(target_os = "linux"), "no client came to another shard");
        assert_eq!(shards.iter().map(connections).sum::<usize>(), CLIENTS);
    })
    .await;
}

/// Whatever shard it comes to, what is for no connection is answered by the one that knows it has none.
#[tokio::test]
async fn every_shard_resets_connections_of_its_own_that_it_does_not_know() {
    limited(async {
        let config = EndpointConfig {
            reset_key: Some(reset_key(&provider(), &[3; 32]).unwrap()),
            ..EndpointConfig::default()
        };
        let server = Endpoint::server(Setup::new().server).config(config).listen(any());
        let shards = server.bind_shards(3).unwrap();
        for shard in 0..3 {
            let stranger = UdpSocket::bind(any()).unwrap();
            stranger.set_nonblocking(true).unwrap();
            let stranger = tokio::net::UdpSocket::from_std(stranger).unwrap();
            let mut packet = [0x55; 100];
            packet[1] = 30 + shard;
            stranger.send_to(&packet, shards[0].local_addresses()[0]).await.unwrap();
            let mut answer = [0; 200];
            let length = stranger.recv(&mut answer).await.unwrap();
            assert!((21..100).contains(&length), "{length}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_port_is_shared_with_shards_of_the_same_server_alone() {
    let setup = Setup::new();
    let server = |at: SocketAddr| Endpoint::server(setup.server.clone()).listen(at);
    let shards = server(any()).bind_shards(2).unwrap();
    let address = shards[0].local_addresses()[0];
    for result in [server(address).bind().map(drop), server(address).bind_shards(2).map(drop)] {
        let error = result.unwrap_err();
        assert!(matches!(error, BindError::InUse(at) if at == address), "{error}");
    }
    for count in [0, 257] {
        let error = server(any()).bind_shards(count).map(drop).unwrap_err().to_string();
        assert!(error.contains("shard count") && error.contains("1 to 256"), "{error}");
    }
}
