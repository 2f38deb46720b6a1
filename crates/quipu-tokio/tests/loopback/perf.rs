//! The measurement of connections.

use std::sync::Arc;
use std::time::Duration;

use quipu_policy::Registry;
use quipu_tokio::identity::{Pin, pinned, self_signed};
use quipu_tokio::perf::{
    ALPN, Amount, DatagramError, DatagramLoad, Direction, Load, measure, measure_datagrams, serve,
};
use quipu_tokio::{
    ClientConfig, ConnectError, DatagramConfig, Endpoint, SendDatagramError, ServerConfig,
    TransportConfig, policies,
};
use tokio::task::JoinHandle;

use crate::setup::{NAME, Pair, Setup, limited};

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

/// A connection whose server measures datagrams, and the task that does.
async fn pair_with_flows() -> (Pair, JoinHandle<()>) {
    let setup = Setup::new();
    let (server, address) = setup.listen();
    let client = Endpoint::client().bind().unwrap();
    let (accepted, there) = tokio::sync::oneshot::channel();
    let serving = server.clone();
    let accepted = Arc::new(std::sync::Mutex::new(Some(accepted)));
    let task = tokio::spawn(async move {
        serve(&serving, move |client| {
            let accepted = accepted.lock().unwrap().take().unwrap();
            accepted.send(client.unwrap().clone()).unwrap();
        })
        .await;
    });
    let here = client.connect(&setup.client, address, NAME).await.unwrap();
    (Pair { server, client, here, there: there.await.unwrap() }, task)
}

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_counted_at_the_end_that_they_came_to() {
    limited(async {
        let (pair, task) = pair_with_flows().await;
        for direction in [Direction::Down, Direction::Up] {
            let amount = Amount::Bytes(1_000_000);
            let load = DatagramLoad { direction, size: Some(1_000), rate: None, amount };
            let outcome = measure_datagrams(&pair.here, &load, SECOND, |_| {}).await.unwrap();
            let flow = outcome.datagrams.unwrap();
            assert_eq!(flow.sent, 1_000);
            let (sender, receiver) = match direction {
                Direction::Down => (&pair.there, &pair.here),
                Direction::Up => (&pair.here, &pair.there),
            };
            let counters = sender.stats().unwrap().datagrams;
            assert_eq!((counters.sent, counters.dropped_unsent), (1_000, 0));
            let counters = receiver.stats().unwrap().datagrams;
            let read = counters.received - counters.dropped_unread;
            assert_eq!((flow.received.datagrams, flow.lost()), (read, 1_000 - read));
            assert_eq!(outcome.bytes, 1_000 * read);
            assert!(read > 0 && outcome.elapsed == flow.received.elapsed);
            assert!(outcome.elapsed > Duration::ZERO && outcome.elapsed < SECOND);
        }
        pair.server.close(0, b"");
        task.await.unwrap();
        let load = DatagramLoad {
            direction: Direction::Down,
            size: None,
            rate: None,
            amount: Amount::Time(SECOND),
        };
        let error = measure_datagrams(&pair.here, &load, SECOND, |_| {}).await.unwrap_err();
        assert!(matches!(error, DatagramError::Lost(_)), "{error:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_keep_a_rate_and_end_in_time() {
    limited(async {
        let (pair, _task) = pair_with_flows().await;
        for direction in [Direction::Down, Direction::Up] {
            let amount = Amount::Time(Duration::from_millis(500));
            let load = DatagramLoad { direction, size: None, rate: Some(8_000_000), amount };
            let mut told = 0;
            let every = Duration::from_millis(100);
            let outcome = measure_datagrams(&pair.here, &load, every, |progress| {
                told += 1;
                assert!(progress.bytes > 0 && progress.paths.len() == 1);
            });
            let outcome = outcome.await.unwrap();
            let flow = outcome.datagrams.unwrap();
            assert!(told >= 4, "{told}");
            // 500 kB, less what a machine that is late leaves out, and more if it stops late.
            let bytes = outcome.bytes;
            let most = 1_000_000 * (outcome.elapsed + every).as_millis() / 1_000;
            assert!(bytes >= 250_000 && u128::from(bytes) < most, "{bytes} of {most}");
            let mean = bytes / flow.received.datagrams;
            assert!((1_100..1_500).contains(&mean), "as large as the path carries: {mean}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_that_no_path_carries_are_an_error_in_both_directions() {
    limited(async {
        let (pair, _task) = pair_with_flows().await;
        let load = |direction| DatagramLoad {
            direction,
            size: Some(60_000),
            rate: None,
            amount: Amount::Bytes(120_000),
        };
        let mut measured = Vec::new();
        for direction in [Direction::Down, Direction::Up] {
            let load = load(direction);
            measured.push(measure_datagrams(&pair.here, &load, SECOND, |_| {}).await.unwrap_err());
        }
        // What the path carries is still being found.
        let (DatagramError::NoneSent { most: down }, DatagramError::Send(too_large)) =
            (&measured[0], &measured[1])
        else {
            unreachable!("{measured:?}")
        };
        let SendDatagramError::TooLarge { length: 60_000, most: up } = too_large else {
            unreachable!("{measured:?}")
        };
        for most in [down, up] {
            assert!((1_100..1_500).contains(most), "{measured:?}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_takes_no_datagrams_is_an_error() {
    limited(async {
        let mut setup = Setup::with(TransportConfig::default());
        let with = TransportConfig {
            datagrams: Some(DatagramConfig::default()),
            ..TransportConfig::default()
        };
        setup.client.transport = Arc::new(with);
        let pair = setup.connect().await;
        let load = DatagramLoad {
            direction: Direction::Up,
            size: None,
            rate: None,
            amount: Amount::Bytes(100),
        };
        let error = measure_datagrams(&pair.here, &load, SECOND, |_| {}).await.unwrap_err();
        assert_eq!(error, DatagramError::Send(SendDatagramError::Unsupported));
    })
    .await;
}
