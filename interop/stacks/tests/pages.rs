//! Pages of a HAR file over loopback, by each stack.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use quipu_cli::foreign::{Connecting, ForeignStack, Listening, QuicCongestion, Way};
use quipu_lab::loading::Loading;
use quipu_lab::pages::{LoadedPage, Reading, RunPage, browser};
use quipu_live::foreign::{ForeignClient, ForeignFailure};
use quipu_live::{Client, Clock, load};
use quipu_scenario::{Scenario, StackName};
use quipu_serve::{Certificates, Replay, Site};
use quipu_stacks::stacks;
use quipu_tokio::identity::Pin;
use quipu_web::page::{ObjectId, Page};
use tokio::task::JoinHandle;
use tower_service::Service;

/// That comes with the command, as a HAR file.
const PAGE: &str = "wikipedia";

fn page() -> Arc<Page> {
    let loaded = LoadedPage::load(PAGE, Reading::of(&Scenario::default())).unwrap();
    Arc::clone(&loaded.page.page)
}

/// A server of the page, and a client's ways to it: two addresses of loopback for a stack of several paths.
struct Setup {
    stack: Arc<dyn ForeignStack>,
    to: Connecting,
    server: JoinHandle<Result<(), ForeignFailure>>,
}

impl Setup {
    fn new(stack: Arc<dyn ForeignStack>, congestion: QuicCongestion) -> Setup {
        // Free a moment ago.
        let port = UdpSocket::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
        let certificates = Arc::new(Certificates::generate("quipu.test").unwrap());
        let pin = certificates.pin();
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        let site = Site::Replay(Replay::new(&page()));
        let mut at = Listening::new(everywhere, certificates, site);
        at.congestion = congestion;
        let server = tokio::spawn(stack.serve(at).unwrap());
        let way = |last| {
            let local = IpAddr::from([127, 0, 0, last]);
            Way { local, server: SocketAddr::new(local, port) }
        };
        let paths = if stack.name() == StackName::NoqH3 { 2 } else { 1 };
        let mut to = Connecting::new((1..=paths).map(way).collect(), pin);
        to.congestion = congestion;
        Setup { stack, to, server }
    }

    async fn connect(&self) -> Arc<dyn ForeignClient> {
        self.stack.connect(self.to.clone()).await.unwrap()
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        self.server.abort();
    }
}

#[tokio::test]
async fn every_object_of_a_page_arrives_with_its_bytes() {
    for stack in stacks() {
        let name = stack.name();
        let setup = Setup::new(stack, QuicCongestion::Cubic);
        let (page, scenario) = (page(), Scenario::default());
        let client = Client::Foreign(setup.connect().await);
        let loading = Loading::new(RunPage { page: Arc::clone(&page) }, &scenario);
        let browser = browser("chrome").unwrap();
        let limit = quipu_cli::base::Duration::from_secs(60);
        let loaded = load(client, loading, &browser, Clock::start(), limit).await.unwrap();
        // What names others may have more bytes than recorded, which the server knows.
        let served = Replay::new(&page);
        let served = served.differences().iter().map(|it| (it.object, it.served));
        let served: Vec<(ObjectId, u64)> = served.collect();
        let received = loaded.differences.iter().map(|it| (it.object, it.received.0));
        let received: Vec<(ObjectId, u64)> = received.collect();
        assert_eq!(received, served, "{name}");
        let awaited = page.objects().iter().filter(|object| object.holds_load()).count();
        assert_eq!(loaded.record.objects.len(), awaited, "{name}");
    }
}

#[tokio::test]
async fn responses_are_what_the_service_answers_by_each_congestion_control() {
    let page = page();
    let largest = page.objects().iter().max_by_key(|object| object.response_bytes).unwrap();
    let request = || Request::get(&largest.url);
    let mut service = Replay::new(&page);
    let direct = service.call(request().body(Empty::<Bytes>::new()).unwrap()).await.unwrap();
    let direct = direct.into_body().collect().await.unwrap().to_bytes();
    assert!(direct.len() as u64 >= largest.response_bytes.0 && direct.len() > 100_000);
    for stack in stacks() {
        for congestion in [QuicCongestion::Cubic, QuicCongestion::Newreno, QuicCongestion::Bbr] {
            let setup = Setup::new(Arc::clone(&stack), congestion);
            let client = setup.connect().await;
            let mut exchange = client.request(request().body(()).unwrap(), 0).await.unwrap();
            assert_eq!(exchange.response().await.unwrap(), 200);
            let mut received = Vec::new();
            while let Some(octets) = exchange.data().await.unwrap() {
                received.extend_from_slice(&octets);
            }
            let bytes = received.len();
            assert!(received == direct, "{}, {congestion}: {bytes} bytes", stack.name());
        }
    }
}

#[tokio::test]
async fn requests_have_bodies_and_a_server_may_have_no_such_object() {
    for stack in stacks() {
        let setup = Setup::new(stack, QuicCongestion::Cubic);
        let client = setup.connect().await;
        for body in [0, 2_000_000] {
            let missing = Request::post("https://nowhere.example/").body(()).unwrap();
            let mut exchange = client.request(missing, body).await.unwrap();
            assert_eq!(exchange.response().await.unwrap(), 404, "{}", setup.stack.name());
        }
    }
}

#[tokio::test]
async fn a_server_with_another_certificate_is_refused() {
    for stack in stacks() {
        let setup = Setup::new(stack, QuicCongestion::Cubic);
        let to = Connecting::new(setup.to.ways.clone(), Pin([7; 32]));
        let error = setup.stack.connect(to).await.err().unwrap().to_string();
        assert!(error.contains("certificate"), "{}: {error}", setup.stack.name());
    }
}
