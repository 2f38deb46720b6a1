//! A page from a server in the same process over TCP, by loopback.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response, Version};
use hyper::body::Incoming;
use quipu_base::{Bytes, Duration};
use quipu_lab::loading::Loading;
use quipu_lab::pages::RunPage;
use quipu_live::tcp::{TcpClient, TcpConfig, TcpFailure, TcpHttp};
use quipu_live::{Clock, ExchangeError, LoadError, Loaded, load};
use quipu_scenario::Scenario;
use quipu_serve::tcp::{Listener, Server};
use quipu_serve::{Body, Certificates, Client, Replay};
use quipu_tokio::identity::{Pin, pinned_config};
use quipu_tokio::tcp::{TcpError, TcpOptions, socket};
use quipu_web::page::{Blocking, Discovery, Object, ObjectId, ObjectKind, Page};
use quipu_web::scheme::BrowserScheme;
use tokio::task::JoinHandle;
use tower_service::Service;

/// What the server saw of a request.
#[derive(Clone, Debug)]
struct Asked {
    path: String,
    version: Version,
    client: SocketAddr,
    priority: String,
}

/// A page, and what is asked of it.
#[derive(Clone)]
struct Watched {
    replay: Replay,
    seen: Arc<Mutex<Vec<Asked>>>,
}

impl Service<Request<Incoming>> for Watched {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = <Replay as Service<Request<Incoming>>>::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let priority = request.headers().get("priority");
        self.seen.lock().unwrap().push(Asked {
            path: request.uri().path().to_owned(),
            version: request.version(),
            client: request.extensions().get::<Client>().unwrap().0,
            priority: priority.map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default(),
        });
        self.replay.call(request)
    }
}

struct Setup {
    page: Arc<Page>,
    seen: Arc<Mutex<Vec<Asked>>>,
    address: SocketAddr,
    pin: Pin,
    options: TcpOptions,
    server: JoinHandle<()>,
}

impl Setup {
    async fn new(page: Page, options: TcpOptions) -> Setup {
        let replay = Replay::new(&page);
        assert!(replay.differences().is_empty());
        let seen: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let watched = Watched { replay, seen: Arc::clone(&seen) };
        let certificates = Arc::new(Certificates::generate_for(&["quipu.test"]).unwrap());
        let any = "127.0.0.1:0".parse().unwrap();
        let listener = Listener::bind_with(any, &options).unwrap();
        let address = listener.local_address();
        let server = Server::new(listener, certificates.tcp().unwrap(), watched);
        let server = tokio::spawn(async move {
            server.run(std::future::pending()).await;
        });
        Setup { page: Arc::new(page), seen, address, pin: certificates.pin(), options, server }
    }

    fn config(&self, http: TcpHttp) -> TcpConfig {
        let tls = pinned_config(self.pin, &[]).unwrap();
        TcpConfig { server: self.address, tls, http, options: self.options.clone() }
    }

    async fn load(&self, http: TcpHttp) -> Result<Loaded, LoadError> {
        let client = TcpClient::connect(&self.config(http)).await.unwrap();
        let page = RunPage { page: Arc::clone(&self.page) };
        let loading = Loading::new(page, &Scenario::default());
        let browser = BrowserScheme::builtin("chrome").unwrap();
        load(&client, loading, &browser, Clock::start(), Duration::from_secs(20)).await
    }

    fn seen(&self) -> Vec<Asked> {
        self.seen.lock().unwrap().clone()
    }
}

/// A document, images with a think time, and a style sheet that the document names last; from two hosts.
fn page(images: u32) -> Page {
    let object = |id: u32, path: &str, kind, bytes| {
        let url =
            format!("https://{}.example/{path}{id}", if id.is_multiple_of(2) { "a" } else { "b" });
        Object::new(ObjectId(id), url, kind, Bytes(bytes))
    };
    let child = |object: Object| {
        object.discovered(Discovery::ParserOffset { parent: ObjectId(0), offset: Bytes(9) })
    };
    let mut objects = vec![object(0, "document", ObjectKind::Document, 30_000)];
    objects.extend((1..=images).map(|id| {
        let mut image = child(object(id, "image", ObjectKind::Image, 40_000));
        image.think_time = Duration::from_millis(40);
        image
    }));
    let mut style = child(object(images + 1, "style", ObjectKind::Stylesheet, 20_000));
    style.blocking = Blocking::Render;
    objects.push(style);
    let mut upload = child(object(images + 2, "upload", ObjectKind::Fetch, 1_000));
    upload.request.body = Bytes(200_000);
    objects.push(upload);
    Page::new("page", objects).unwrap()
}

fn check(loaded: &Loaded, images: u64) {
    assert_eq!(loaded.differences, []);
    let record = &loaded.record;
    let received = record.objects.iter().map(|object| object.body.0).sum::<u64>();
    assert_eq!(received, 30_000 + images * 40_000 + 20_000 + 1_000);
    for object in &record.objects {
        assert!(object.requested_at <= object.first_byte_at, "{object:?}");
        assert!(object.first_byte_at <= object.completed_at, "{object:?}");
        assert!(object.since_page_start <= record.page_time, "{object:?}");
    }
    assert!(record.page_time >= Duration::from_millis(40), "the server thinks");
    assert!(loaded.paths.is_empty() && record.paths.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_2_has_one_connection_for_all_hosts_and_tells_priorities() {
    let reno = TcpOptions {
        congestion: cfg!(target_os = "linux").then(|| "reno".to_owned()),
        multipath: false,
    };
    let multipath = TcpOptions { multipath: true, ..reno.clone() };
    for options in [reno, multipath] {
        if let Err(error @ TcpError::Multipath(_)) =
            socket("127.0.0.1:0".parse().unwrap(), &options)
        {
            eprintln!("skipped: {error}");
            continue;
        }
        let setup = Setup::new(page(20), options).await;
        let loaded = setup.load(TcpHttp::Http2).await.unwrap();
        check(&loaded, 20);
        let seen = setup.seen();
        assert_eq!(seen.len(), 23);
        assert!(seen.iter().all(|it| it.version == Version::HTTP_2 && it.client == seen[0].client));
        let priority = |path: &str| &seen.iter().find(|it| it.path == path).unwrap().priority;
        assert_eq!(
            (priority("/document0").as_str(), priority("/style21").as_str()),
            ("u=0, i", "u=0")
        );
        assert!(seen[1..].iter().any(|it| it.path == "/image1"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_1_has_a_few_connections_and_the_most_urgent_request_is_the_next() {
    let setup = Setup::new(page(20), TcpOptions::default()).await;
    let loaded = setup.load(TcpHttp::Http1 { connections: 6 }).await.unwrap();
    check(&loaded, 20);
    let seen = setup.seen();
    assert_eq!(seen.len(), 23);
    assert!(seen.iter().all(|it| it.version == Version::HTTP_11), "{seen:?}");
    let clients: BTreeSet<SocketAddr> = seen.iter().map(|it| it.client).collect();
    assert!((2..=6).contains(&clients.len()), "{clients:?}");
    // Without an order it would be the last but one.
    let style = seen.iter().position(|it| it.path == "/style21").unwrap();
    assert!(style <= 8, "{style}: {seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_connection_of_http_1_has_all_requests_one_by_one() {
    let setup = Setup::new(page(3), TcpOptions::default()).await;
    let loaded = setup.load(TcpHttp::Http1 { connections: 1 }).await.unwrap();
    check(&loaded, 3);
    let seen = setup.seen();
    assert!(seen.iter().all(|it| it.client == seen[0].client), "{seen:?}");
    assert!(loaded.record.page_time >= Duration::from_millis(3 * 40));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_certificate_and_a_server_that_goes_are_errors() {
    for http in [TcpHttp::Http2, TcpHttp::Http1 { connections: 6 }] {
        let setup = Setup::new(page(40), TcpOptions::default()).await;
        let other =
            TcpConfig { tls: pinned_config(Pin([7; 32]), &[]).unwrap(), ..setup.config(http) };
        let error = TcpClient::connect(&other).await.unwrap_err();
        assert!(matches!(error, TcpFailure::Connect { server, .. } if server == setup.address));
        let ending = async {
            while setup.seen().len() < 3 {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            setup.server.abort();
        };
        let (loaded, ()) = tokio::join!(setup.load(http), ending);
        let error = loaded.unwrap_err();
        let is_of_tcp = matches!(&error, LoadError::Exchange { source: ExchangeError::Tcp(_), .. });
        assert!(is_of_tcp, "{error}");
        let refused = TcpClient::connect(&setup.config(http)).await.unwrap_err().to_string();
        assert!(refused.contains(&setup.address.to_string()), "{refused}");
    }
}
