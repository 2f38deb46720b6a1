//! A page from a server in the same process, over loopback.
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderValue, Response};
use quipu_base::{Bytes as Size, Duration};
use quipu_lab::loading::Loading;
use quipu_lab::pages::RunPage;
use quipu_live::{Client, Clock, Http2Tree, LoadError, Loaded, load, warm_up};
use quipu_policy::{NodeId, PriorityEdit, Registry};
use quipu_scenario::Scenario;
use quipu_tokio::http3::{
    ALPN, HTTP2_ALPN, Http2ClientConfig, Http3Client, Http3Request, Http3Server,
};
use quipu_tokio::identity::{ServerIdentity, pinned};
use quipu_tokio::replay::{Call, Input, Recording};
use quipu_tokio::{ClientConfig, Endpoint, ServerConfig, TransportConfig, policies};
use quipu_web::page::{Blocking, Discovery, Object, ObjectId, ObjectKind, Page};
use quipu_web::scheme::BrowserScheme;

/// What the server saw of a request: its path, and how urgent it said it was.
type Seen = Arc<Mutex<Vec<(String, String)>>>;

/// Answers with as many bytes as the path's last part says; `/missing/` is not there, `/never` is not
/// answered.
async fn answer(request: Http3Request, seen: Seen) {
    let (head, mut body, mut responder) = request.into_parts();
    let path = head.uri().path().to_owned();
    let priority = head.headers().get("priority").map(|value| value.to_str().unwrap().to_owned());
    let mut uploaded = 0;
    while let Some(octets) = body.data(1 << 16).await.unwrap() {
        uploaded += octets.len();
    }
    let told = match uploaded {
        0 => priority.unwrap_or_default(),
        bytes => format!("{} {bytes}", head.method()),
    };
    seen.lock().unwrap().push((path.clone(), told));
    if path == "/never" {
        std::future::pending::<()>().await;
    }
    let status = if path.starts_with("/missing/") { 404 } else { 200 };
    let length: usize = path.rsplit('/').next().unwrap().parse().unwrap();
    let response = Response::builder().status(status).header("x", HeaderValue::from(length as u64));
    responder.respond(&response.body(()).unwrap(), length > 0).unwrap();
    if length > 0 {
        responder.send_data(Bytes::from(vec![7; length])).await.unwrap();
        responder.finish(None).unwrap();
    }
}

struct Setup {
    client: Client,
    seen: Seen,
    _ends: [Endpoint; 2],
}

impl Setup {
    async fn new() -> Setup {
        Setup::speaking(ALPN, &Recording::default()).await
    }

    /// Over HTTP/2 the server knows the browser's tree. What the server's connection is told goes into `recording`.
    async fn speaking(alpn: &[u8], recording: &Recording) -> Setup {
        let is_http2 = alpn == HTTP2_ALPN;
        let identity = ServerIdentity::generate("quipu.test").unwrap();
        let transport = Arc::new(TransportConfig::default());
        let chosen = || policies(&Registry::builtin(), "").unwrap();
        let tls = Arc::new(identity.tls(&[alpn]).unwrap());
        let config = ServerConfig::new(tls, Arc::clone(&transport), chosen());
        let any = "127.0.0.1:0".parse().unwrap();
        let server = Endpoint::server(config).record_inputs(recording);
        let server = server.listen(any).bind().unwrap();
        let tls = Arc::new(pinned(identity.pin(), &[alpn]).unwrap());
        let config = ClientConfig::new(tls, transport, chosen());
        let client = Endpoint::client().bind().unwrap();
        let address = server.local_addresses()[0];
        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let connect = async { client.connect(&config, address, "quipu.test").await.unwrap() };
        let (there, here) = tokio::join!(accept, connect);
        let seen = Seen::default();
        let told = Arc::clone(&seen);
        tokio::spawn(async move {
            let server = match is_http2 {
                true => Http3Server::http2(there, Default::default()),
                false => Http3Server::new(there, Default::default()),
            };
            let server = server.unwrap();
            while let Ok(request) = server.accept().await {
                tokio::spawn(answer(request, Arc::clone(&told)));
            }
        });
        let here: Client = if is_http2 {
            let config = Http2ClientConfig { tree: true, ..Default::default() };
            let here = Http3Client::http2(here, config).unwrap();
            (&Http2Tree::new(here, &browser()).unwrap()).into()
        } else {
            (&Http3Client::new(here, Default::default()).unwrap()).into()
        };
        Setup { client: here, seen, _ends: [server, client] }
    }

    async fn load(&self, page: Page, limit: Duration) -> Result<Loaded, LoadError> {
        let scenario = Scenario { reprioritise: Default::default(), ..Scenario::default() };
        let loading = Loading::new(RunPage { page: Arc::new(page) }, &scenario);
        load(self.client.clone(), loading, &browser(), Clock::start(), limit).await
    }

    fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }
}

fn browser() -> BrowserScheme {
    BrowserScheme::builtin("chrome").unwrap()
}

const LIMIT: Duration = Duration::from_secs(20);

fn object(id: u32, path: &str, kind: ObjectKind, bytes: u64) -> Object {
    // Not the server's own name: it is asked for the objects of all hosts.
    let url = format!("https://a.example{path}");
    Object::new(ObjectId(id), url, kind, Size(bytes))
}

fn child(id: u32, path: &str, kind: ObjectKind, bytes: u64) -> Object {
    let discovery = Discovery::ParserOffset { parent: ObjectId(0), offset: Size(bytes.min(9)) };
    object(id, path, kind, bytes).discovered(discovery)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_asked_for_as_the_browser_would_and_measured() {
    let setup = Setup::new().await;
    let mut style = child(1, "/50000", ObjectKind::Stylesheet, 50_000);
    style.blocking = Blocking::Render;
    let image = child(2, "/300000", ObjectKind::Image, 300_000);
    let mut ping = child(3, "/0", ObjectKind::Fetch, 0);
    ping.request.body = Size(100_000);
    let page = Page::new(
        "page",
        vec![object(0, "/20000", ObjectKind::Document, 20_000), style, image, ping],
    );
    let loaded = setup.load(page.unwrap(), LIMIT).await.unwrap();
    let seen = setup.seen();
    assert_eq!(seen[0], ("/20000".to_owned(), "u=0, i".to_owned()));
    let mut later = seen[1..].to_vec();
    later.sort();
    let expected = [("/0", "POST 100000"), ("/300000", "u=2, i"), ("/50000", "u=0")];
    assert_eq!(later, expected.map(|(path, told)| (path.to_owned(), told.to_owned())));
    let record = &loaded.record;
    assert_eq!(loaded.differences, []);
    assert_eq!(record.objects.iter().map(|object| object.body.0).sum::<u64>(), 370_000);
    for object in &record.objects {
        assert!(object.requested_at <= object.first_byte_at, "{object:?}");
        assert!(object.first_byte_at <= object.completed_at, "{object:?}");
        assert!(object.since_page_start <= record.page_time, "{object:?}");
    }
    // What the document's body names is asked for after its first byte.
    let named = &record.objects[1..3];
    assert!(named.iter().all(|it| it.requested_at >= record.objects[0].first_byte_at));
    assert!(record.critical_time >= record.objects[1].since_page_start);
    assert_eq!(record.paths.len(), 1);
    assert!(record.paths[0].datagrams_received > 0);
    assert!(loaded.paths[0].sample.counters.bytes_received > 370_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_differs_from_the_page_is_taken_and_told() {
    let setup = Setup::new().await;
    let page = Page::new(
        "page",
        vec![
            object(0, "/20000", ObjectKind::Document, 20_000),
            child(1, "/missing/10", ObjectKind::Image, 10),
            child(2, "/7000", ObjectKind::Script, 5_000),
            child(3, "/9", ObjectKind::Script, 90),
        ],
    );
    let loaded = setup.load(page.unwrap(), LIMIT).await.unwrap();
    let told = loaded.differences.iter().map(|it| (it.object.0, it.status, it.received.0));
    assert_eq!(told.collect::<Vec<_>>(), [(1, 404, 10), (2, 200, 7_000), (3, 200, 9)]);
    assert_eq!(loaded.record.objects.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_that_does_not_come_in_time_and_a_server_that_goes_are_errors() {
    let setup = Setup::new().await;
    let page = || {
        let objects = vec![
            object(0, "/10", ObjectKind::Document, 10),
            child(1, "/never", ObjectKind::Image, 9),
        ];
        Page::new("page", objects).unwrap()
    };
    let error = setup.load(page(), Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, LoadError::Unfinished { open: 1, objects: 2, .. }), "{error}");
    let closing = async {
        while setup.seen().len() < 4 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        setup._ends[0].close(7, b"gone");
    };
    let (result, ()) = tokio::join!(setup.load(page(), LIMIT), closing);
    let error = result.unwrap_err();
    assert!(
        matches!(&error, LoadError::Exchange { url, .. } if url.ends_with("/never")),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_http_2_the_servers_tree_is_the_browsers_also_of_a_warm_connection() {
    let recording = Recording::default();
    let setup = Setup::speaking(HTTP2_ALPN, &recording).await;
    let authority = "a.example".parse().unwrap();
    warm_up(setup.client.clone(), &browser(), (&authority, "/700"), 2).await.unwrap();
    let objects = vec![
        object(0, "/20000", ObjectKind::Document, 20_000),
        child(1, "/50000", ObjectKind::Stylesheet, 50_000),
        child(2, "/300000", ObjectKind::Image, 300_000),
    ];
    setup.load(Page::new("page", objects).unwrap(), LIMIT).await.unwrap();
    let seen = setup.seen();
    assert_eq!(seen.len(), 5);
    assert!(seen.iter().all(|(_, priority)| priority.is_empty()), "{seen:?}");
    // What each request, by its stream, was said to be: weight and parent, as Chrome has them.
    let inserted: Vec<(u64, u64, u16, bool)> = recording
        .take()
        .steps
        .into_iter()
        .filter_map(|step| match step.input {
            Input::Call(
                _,
                Call::EditPriority(PriorityEdit::Insert { node, parent, weight, exclusive }),
            ) => Some((node.0, parent.0, weight, exclusive)),
            _ => None,
        })
        .collect();
    let of = |node: u64| inserted.iter().find(|it| it.0 == node).map(|it| (it.1, it.2, it.3));
    let (document, style, image) = (of(12), of(16), of(20));
    assert_eq!(document, Some((NodeId::ROOT.0, 256, true)), "{inserted:?}");
    assert_eq!(style, Some((12, 256, true)), "{inserted:?}");
    assert_eq!(image.map(|(parent, ..)| parent), Some(16), "{inserted:?}");
    assert!(image.unwrap().1 < 256, "{inserted:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_what_warms_a_connection_up_is_told() {
    let setup = Setup::new().await;
    let authority = "a.example".parse().unwrap();
    let place = (&authority, "/missing/3");
    let error = warm_up(setup.client.clone(), &browser(), place, 1).await.unwrap_err();
    assert!(error.to_string().starts_with("/missing/3: status 404, expected"), "{error}");
}
