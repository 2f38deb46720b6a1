//! Several paths: addresses of the loopback interface stand for interfaces.

use quipu_base::PathId;
use quipu_policy::{PathState, PathStatus};
use quipu_tokio::{Connection, PathError, PathEvent, TransportConfig, Via};
use tokio::io::AsyncReadExt;

use crate::setup::{Pair, Setup, limited, narrow, noise};

/// Few bytes in flight, so that no path carries all.
fn setup() -> Setup {
    Setup::with(TransportConfig { max_paths: 4, ..narrow(4 << 20) })
}

async fn usable(connection: &Connection, count: usize) {
    loop {
        let paths = connection.paths();
        if paths.iter().filter(|path| path.state == PathState::Usable).count() == count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

async fn download(pair: &Pair, size: usize) {
    let there = pair.there.clone();
    let data = bytes::Bytes::from(noise(9, size));
    let sent = data.clone();
    let server = tokio::spawn(async move {
        let mut send = there.open_unidirectional().await.unwrap();
        send.write_bytes(sent).await.unwrap();
        send.finish().unwrap();
        send.delivered().await.unwrap();
    });
    let mut receive = pair.here.accept_unidirectional().await.unwrap();
    let mut read = Vec::new();
    receive.read_to_end(&mut read).await.unwrap();
    assert!(read == data, "the download arrived changed");
    server.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_uplinks_of_a_client_carry_data() {
    limited(async {
        let mut setup = setup();
        let policies =
            quipu_tokio::policies(&quipu_policy::Registry::builtin(), "path=path-rr").unwrap();
        setup.server.policies = policies;
        let pair = setup.connect_by(&["127.0.0.1", "127.0.0.2"]).await;
        usable(&pair.here, 2).await;
        usable(&pair.there, 2).await;
        download(&pair, 8 << 20).await;
        let paths = pair.there.paths();
        let mut remotes: Vec<_> =
            paths.iter().map(|path| path.route.remote.ip().to_string()).collect();
        remotes.sort();
        assert_eq!(remotes, ["127.0.0.1", "127.0.0.2"]);
        for path in &paths {
            let sent = path.sample.counters.stream_bytes;
            assert!(sent > 1 << 15, "{sent} bytes by {}", path.route.remote);
        }
    })
    .await;
}

#[tokio::test]
async fn the_second_path_begins_as_soon_as_the_handshake_is_confirmed() {
    limited(async {
        let pair = setup().connect_by(&["127.0.0.1", "127.0.0.2"]).await;
        pair.here.confirmed().await.unwrap();
        // Others that were woken have their turn, but no time to speak of passes.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(pair.here.paths().len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_path_is_added_spared_and_removed() {
    limited(async {
        let pair = setup().connect().await;
        let mut events = pair.here.path_events();
        let path = pair.here.add_path(Via::Address("127.0.0.3".parse().unwrap())).await.unwrap();
        assert_eq!(path, PathId(1));
        let up = async {
            while let Some(event) = events.next().await {
                if event == PathEvent::Up(path) {
                    break;
                }
            }
        };
        up.await;
        let again = pair.here.add_path(Via::Address("127.0.0.3".parse().unwrap())).await;
        assert!(matches!(again, Err(PathError::Open(_))), "{again:?}");
        pair.here.ping(path).unwrap();
        while !matches!(events.next().await, Some(PathEvent::Pong(answered, _)) if answered == path)
        {
        }
        assert!(matches!(pair.here.ping(PathId(9)), Err(PathError::NoPath(_))));
        let mut told = pair.there.path_events();
        pair.here.set_path_status(path, PathStatus::Backup).unwrap();
        while told.next().await != Some(PathEvent::Status(path, PathStatus::Backup)) {}
        assert_eq!(pair.there.paths()[1].status, PathStatus::Backup);
        pair.here.remove_path(path).unwrap();
        while events.next().await != Some(PathEvent::Gone(path)) {}
        usable(&pair.here, 1).await;
        assert!(matches!(pair.here.remove_path(PathId::ZERO), Err(PathError::NoPath(_))));
        download(&pair, 100_000).await;
    })
    .await;
}

#[tokio::test]
async fn only_a_client_adds_paths() {
    limited(async {
        let pair = setup().connect().await;
        let added = pair.there.add_path(Via::Address("127.0.0.4".parse().unwrap())).await;
        let error = added.unwrap_err().to_string();
        assert_eq!(error, "only the client opens paths");
    })
    .await;
}

#[tokio::test]
async fn a_dead_first_uplink_does_not_block_the_handshake() {
    limited(async {
        let setup = setup();
        let (server, address) = setup.listen();
        let mut builder = quipu_tokio::Endpoint::client();
        builder = builder.via(Via::Address("127.0.0.1".parse().unwrap()));
        builder = builder.via(Via::Address("127.0.0.2".parse().unwrap()));
        let client = builder.bind().unwrap();
        let accept = async {
            let first = server.accept().await.unwrap();
            assert_eq!(first.remote_address().ip().to_string(), "127.0.0.1");
            first.ignore();
            loop {
                let next = server.accept().await.unwrap();
                if next.remote_address().ip().to_string() == "127.0.0.2" {
                    break next.accept().await.unwrap();
                }
                next.ignore();
            }
        };
        let connect = client.connect(&setup.client, address, crate::setup::NAME);
        let (there, here) = tokio::join!(accept, connect);
        let here = here.unwrap();
        assert_eq!(here.route().unwrap().local.ip().to_string(), "127.0.0.2");
        assert!(there.close_reason().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_path_that_was_removed_comes_back_on_request_only() {
    limited(async {
        let pair = setup().connect_by(&["127.0.0.1", "127.0.0.2"]).await;
        usable(&pair.here, 2).await;
        let second = pair.here.paths()[1].clone();
        pair.here.remove_path(second.id).unwrap();
        // Uplinks are looked at once a second.
        tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
        assert_eq!(pair.here.paths().len(), 1);
        pair.here.add_path(Via::Address(second.route.local.ip())).await.unwrap();
        assert_eq!(pair.here.paths().len(), 2);
    })
    .await;
}
