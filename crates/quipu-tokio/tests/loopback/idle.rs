//! Nothing is done while there is nothing to do.

use std::time::Duration;

use quipu_tokio::Endpoint;

use crate::setup::{NAME, Setup, limited};

#[tokio::test]
async fn a_hundred_idle_connections_wake_their_endpoints_rarely() {
    limited(async {
        let setup = Setup::new();
        let (server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();
        let mut held = Vec::new();
        for _ in 0..100 {
            let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
            let connect = async { client.connect(&setup.client, address, NAME).await.unwrap() };
            held.push(tokio::join!(accept, connect));
        }
        // Sizes of datagrams are found, and acknowledged.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = (client.stats().wakeups, server.stats().wakeups);
        tokio::time::sleep(Duration::from_millis(700)).await;
        let after = (client.stats().wakeups, server.stats().wakeups);
        let woken = (after.0 - before.0, after.1 - before.1);
        assert!(woken.0 <= 5 && woken.1 <= 5, "woken {woken:?} times in 0.7 s");
        assert_eq!(client.stats().connections, 100);
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_without_connections_sleeps() {
    limited(async {
        let (server, _) = Setup::new().listen();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = server.stats().wakeups;
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(server.stats().wakeups, before);
    })
    .await;
}
