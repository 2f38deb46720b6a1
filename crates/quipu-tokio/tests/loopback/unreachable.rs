//! What the network says of a handshake: ports of the loopback interface that nobody has.
#![cfg(target_os = "linux")]

use std::net::{SocketAddr, UdpSocket};

use quipu_quic::endpoint::ClientConfig;
use quipu_tokio::{ConnectError, Endpoint, Via};
use tokio::io::AsyncReadExt;

use crate::setup::{NAME, Setup, limited, noise};

/// A client that would wait for ever.
fn patient() -> ClientConfig {
    Setup::new().client.with_handshake_timeout(quipu_base::Duration::from_secs(600))
}

/// A port of UDP that nobody has, and that no other test is given.
fn nobody(ip: &str) -> SocketAddr {
    SocketAddr::new(ip.parse().unwrap(), 1)
}

fn client(vias: &[&str]) -> Endpoint {
    let mut builder = Endpoint::client();
    for via in vias {
        builder = builder.via(Via::Address(via.parse().unwrap()));
    }
    builder.bind().unwrap()
}

#[tokio::test]
async fn a_port_that_nobody_has_is_told_at_once_in_both_families() {
    limited(async {
        for ip in ["127.0.0.1", "::1"] {
            // Not every host has both.
            if UdpSocket::bind((ip, 0)).is_err() {
                continue;
            }
            let server = nobody(ip);
            let error = client(&[]).connect(&patient(), server, NAME).await.unwrap_err();
            assert!(matches!(error, ConnectError::NobodyListens(of) if of == server), "{error:?}");
            let message = error.to_string();
            let begin =
                format!("nothing listens at {server} (UDP port unreachable); is the server");
            assert!(message.starts_with(&begin), "{message}");
        }
    })
    .await;
}

#[tokio::test]
async fn every_uplink_is_tried_before_nobody_listens() {
    limited(async {
        let server = nobody("127.0.0.1");
        let client = client(&["127.0.0.1", "127.0.0.2", "127.0.0.3"]);
        let error = client.connect(&patient(), server, NAME).await.unwrap_err();
        assert!(matches!(error, ConnectError::NobodyListens(_)), "{error:?}");
        assert!(client.stats().sent.datagrams >= 3);
    })
    .await;
}

#[tokio::test]
async fn what_the_host_itself_refuses_explains_a_handshake_without_answer() {
    limited(async {
        let config = Setup::new().client;
        let config = config.with_handshake_timeout(quipu_base::Duration::from_millis(200));
        // The loopback interface does not lead there.
        let server = "192.0.2.1:9".parse().unwrap();
        let error = client(&["127.0.0.1"]).connect(&config, server, NAME).await.unwrap_err();
        assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
        let said = "no answer from 192.0.2.1:9 by 127.0.0.1: network unreachable, says 127.0.0.1;";
        assert!(error.to_string().starts_with(said), "{error}");
    })
    .await;
}

#[tokio::test]
async fn many_refusals_leave_other_connections_of_the_socket_alone() {
    limited(async {
        let setup = Setup::new();
        let (server, address) = setup.listen();
        let client = client(&["127.0.0.1"]);
        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let connect = async { client.connect(&setup.client, address, NAME).await.unwrap() };
        let (there, here) = tokio::join!(accept, connect);
        let data = bytes::Bytes::from(noise(3, 4 << 20));
        let sent = data.clone();
        let sending = tokio::spawn(async move {
            let mut send = there.open_unidirectional().await.unwrap();
            send.write_bytes(sent).await.unwrap();
            send.finish().unwrap();
            send.delivered().await.unwrap();
            there
        });
        let mut receive = here.accept_unidirectional().await.unwrap();
        // More than the failures in a row after which a socket would not be read any more.
        for nth in 1..=100 {
            // Another address each time: over loopback, a batch to one address is answered once, and that
            // would be what the attempt before sends to close.
            let nobody = nobody(&format!("127.0.77.{nth}"));
            let error = client.connect(&patient(), nobody, NAME).await.unwrap_err();
            assert!(matches!(error, ConnectError::NobodyListens(_)), "{nth}: {error:?}");
        }
        let mut read = Vec::new();
        receive.read_to_end(&mut read).await.unwrap();
        assert!(read == data, "the download arrived changed");
        let there = sending.await.unwrap();
        assert!(here.close_reason().is_none() && there.close_reason().is_none());
        assert_eq!(client.local_addresses().len(), 1, "it was one socket");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_gone_does_not_end_a_connection_by_what_its_host_says() {
    limited(async {
        let setup = Setup::new();
        // Its runtime ends without a word, and the port is free.
        let (told, address) = tokio::sync::oneshot::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let config = setup.server.clone();
        let ended = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let connection = runtime.block_on(async {
                let server = Endpoint::server(config).listen("127.0.0.1:0".parse().unwrap());
                let server = server.bind().unwrap();
                told.send(server.local_addresses()[0]).unwrap();
                let connection = server.accept().await.unwrap().accept().await.unwrap();
                stopped.await.unwrap();
                connection
            });
            drop(runtime);
            drop(connection);
        });
        let client = client(&[]);
        let connection = client.connect(&setup.client, address.await.unwrap(), NAME).await.unwrap();
        connection.confirmed().await.unwrap();
        stop.send(()).unwrap();
        ended.join().unwrap();
        let mut stream = connection.open_unidirectional().await.unwrap();
        stream.write_bytes(noise(1, 1000).into()).await.unwrap();
        // Each of its probes is answered.
        let sent = client.stats().sent.datagrams;
        while client.stats().sent.datagrams < sent + 4 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert!(connection.close_reason().is_none());
    })
    .await;
}
