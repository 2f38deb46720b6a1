//! Paths.

use std::net::UdpSocket;

use http::Request;
use noq::PathId;
use quipu_lab::pages::{LoadedPage, Reading};
use quipu_scenario::Scenario;
use quipu_serve::{Certificates, Replay, Site};

use super::*;

#[tokio::test]
async fn responses_come_by_all_paths() {
    // Free a moment ago.
    let port = UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
    let certificates = Arc::new(Certificates::generate("quipu.test").unwrap());
    let pin = certificates.pin();
    let loaded = LoadedPage::load("wikipedia", Reading::of(&Scenario::default())).unwrap();
    let page = loaded.page.page;
    let site = Site::Replay(Replay::new(&page));
    let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
    let server = Noq.serve(Listening::new(everywhere, certificates, site)).unwrap();
    let server = tokio::spawn(server);
    let way = |last| {
        let local = IpAddr::from([127, 0, 0, last]);
        Way { local, server: SocketAddr::new(local, port) }
    };
    let connection = dial(&Connecting::new(vec![way(1), way(2), way(3)], pin)).await.unwrap();
    let remote = |path: u32| connection.path(PathId::from(path)).unwrap().remote_address().unwrap();
    assert_eq!([0, 1, 2].map(remote), [1, 2, 3].map(|last| way(last).server));
    let client = client(connection.clone()).await.unwrap();
    let before = [0, 1, 2].map(|path| received(&connection, path));
    for object in page.objects().iter().filter(|object| object.response_bytes.0 > 50_000) {
        let request = Request::get(&object.url).body(()).unwrap();
        let mut exchange = client.request(request, 0).await.unwrap();
        assert_eq!(exchange.response().await.unwrap(), 200);
        while exchange.data().await.unwrap().is_some() {}
    }
    let after = [0, 1, 2].map(|path| received(&connection, path));
    // The last one has what the windows of the others do not let pass.
    let more: Vec<u64> = after.iter().zip(before).map(|(after, before)| after - before).collect();
    assert!(more[0] > 50_000 && more[1] > 5_000, "{more:?}");
    server.abort();
}

/// Octets that came by a path.
fn received(connection: &Connection, path: u32) -> u64 {
    connection.path_stats(PathId::from(path)).unwrap().udp_rx.bytes
}
