//! Nothing is done while there is nothing to do.

use std::time::Duration;

use crate::setup::{Setup, limited};

#[tokio::test]
async fn an_idle_connection_wakes_its_endpoints_rarely() {
    limited(async {
        let pair = Setup::new().connect().await;
        pair.here.confirmed().await.unwrap();
        // Sizes of datagrams are found, and acknowledged.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let before = (pair.client.stats().wakeups, pair.server.stats().wakeups);
        tokio::time::sleep(Duration::from_millis(700)).await;
        let after = (pair.client.stats().wakeups, pair.server.stats().wakeups);
        let woken = (after.0 - before.0, after.1 - before.1);
        assert!(woken.0 <= 5 && woken.1 <= 5, "woken {woken:?} times in 0.7 s");
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
