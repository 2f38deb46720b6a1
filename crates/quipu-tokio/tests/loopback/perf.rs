//! The measurement of connections.

use std::sync::Arc;
use std::time::Duration;

use quipu_policy::Registry;
use quipu_tokio::identity::{Pin, pinned, self_signed};
use quipu_tokio::perf::{ALPN, Amount, Direction, Load, measure, serve};
use quipu_tokio::{ClientConfig, ConnectError, Endpoint, ServerConfig, TransportConfig, policies};

use crate::setup::{NAME, limited};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_moved_both_ways_by_amount_and_by_time() {
    limited(async {
        let (tls, pin) = self_signed(NAME, &[ALPN]).unwrap();
        let policies = policies(&Registry::builtin(), "").unwrap();
        let transport = Arc::new(TransportConfig::default());
        let server =
            ServerConfig::new(Arc::new(tls), Arc::clone(&transport), Arc::clone(&policies));
        let server = Endpoint::server(server).listen("127.0.0.1:0".parse().unwrap());
        let server = server.bind().unwrap();
        let address = server.local_addresses()[0];
        let serving = server.clone();
        let task = tokio::spawn(async move { serve(&serving, |_| {}).await });

        let client = Endpoint::client().bind().unwrap();
        let config = |pin| {
            let tls = Arc::new(pinned(pin, &[ALPN]).unwrap());
            ClientConfig::new(tls, Arc::clone(&transport), Arc::clone(&policies))
        };
        let wrong = client.connect(&config(Pin([7; 32])), address, NAME).await.unwrap_err();
        assert!(matches!(wrong, ConnectError::Certificate { .. }), "{wrong:?}");

        let connection = client.connect(&config(pin), address, "another.name").await.unwrap();
        for direction in [Direction::Down, Direction::Up] {
            let amount = Amount::Bytes(3_000_001);
            let load = Load { direction, streams: 3, amount };
            let outcome = measure(&connection, &load, Duration::from_secs(9), |_| {}).await;
            let outcome = outcome.unwrap();
            assert_eq!(outcome.bytes, 3_000_001);
            assert!(outcome.goodput() > 0.0);
            let count = |paths: &[quipu_tokio::PathInfo]| {
                let counters = paths[0].sample.counters;
                counters.bytes_sent + counters.bytes_received
            };
            assert!(count(&outcome.after) - count(&outcome.before) > 3_000_001);

            let mut told = 0;
            let amount = Amount::Time(Duration::from_millis(300));
            let load = Load { direction, streams: 2, amount };
            let every = Duration::from_millis(100);
            let outcome = measure(&connection, &load, every, |progress| {
                assert_eq!(progress.paths.len(), 1);
                told += 1;
            });
            let outcome = outcome.await.unwrap();
            assert!(told >= 2 && outcome.bytes > 0);
            assert!(outcome.elapsed >= Duration::from_millis(250), "{:?}", outcome.elapsed);
        }
        server.close(0, b"");
        task.await.unwrap();
        let load = Load { direction: Direction::Up, streams: 1, amount: Amount::Bytes(1 << 30) };
        assert!(measure(&connection, &load, Duration::from_secs(9), |_| {}).await.is_err());
    })
    .await;
}
