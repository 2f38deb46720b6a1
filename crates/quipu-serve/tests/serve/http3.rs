//! The services over HTTP/3, and over HTTP/2 on QUIC streams by the same port.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use quipu_policy::Registry;
use quipu_serve::access::{AccessLog, Format};
use quipu_serve::body::text;
use quipu_serve::http3::{ALPNS, RequestBody, Server};
use quipu_serve::{Body, Certificates, Client, Metrics, Recorded};
use quipu_tokio::http3::{ALPN, ErrorCode, HTTP2_ALPN, Http3Client, Http3Error, Http3Exchange};
use quipu_tokio::identity::pinned;
use quipu_tokio::{ClientConfig, ConnectError, Endpoint, ServerConfig, TransportConfig, policies};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower_service::Service;

use crate::setup::Site;

/// A server that runs, and its clients.
struct Running {
    /// One of HTTP/3, and one of HTTP/2.
    clients: [Http3Client; 2],
    /// Keeps the client's sockets.
    _endpoint: Endpoint,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    server: JoinHandle<usize>,
}

async fn run<S>(service: S, metrics: Option<Metrics>) -> Running
where
    S: Service<Request<RequestBody>, Response = Response<Body>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
{
    let certificates = Arc::new(Certificates::generate("localhost").unwrap());
    let choose = || policies(&Registry::builtin(), "").unwrap();
    let transport = Arc::new(TransportConfig::default());
    let tls = Arc::new(certificates.quic(&ALPNS).unwrap());
    let config = ServerConfig::new(tls, Arc::clone(&transport), choose());
    let endpoint = Endpoint::server(config).listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
    let address = endpoint.local_addresses()[0];
    let (stop, stops) = oneshot::channel::<()>();
    let mut server = Server::new(endpoint, service).stop_within(Duration::from_secs(5));
    if let Some(metrics) = metrics {
        server = server.metrics(metrics);
    }
    let server = tokio::spawn(server.run(async { drop(stops.await) }));
    let endpoint = Endpoint::client().bind().unwrap();
    let connect = async |alpn| {
        let tls = pinned(certificates.pin(), &[alpn]).unwrap();
        let config = ClientConfig::new(Arc::new(tls), Arc::clone(&transport), choose());
        endpoint.connect(&config, address, "localhost").await.unwrap()
    };
    let clients = [
        Http3Client::new(connect(ALPN).await, Default::default()).unwrap(),
        Http3Client::http2(connect(HTTP2_ALPN).await, Default::default()).unwrap(),
    ];
    Running { clients, _endpoint: endpoint, address, stop, server }
}

fn request(method: Method, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("https://localhost{path}")).body(()).unwrap()
}

async fn rest(exchange: &mut Http3Exchange) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(octets) = exchange.data(65_536).await.unwrap() {
        body.extend_from_slice(&octets);
    }
    body
}

async fn limited<R>(test: impl Future<Output = R>) -> R {
    tokio::time::timeout(Duration::from_secs(20), test).await.expect("the test ends in time")
}

#[tokio::test]
async fn files_come_with_ranges_and_conditions_and_are_logged() {
    limited(async {
        let long = "x".repeat(300_000);
        let site = Site::of(&[("index.html", "<p>"), ("long.txt", &long)]);
        let metrics = Metrics::new();
        let log = tempfile::NamedTempFile::new().unwrap();
        let (access, writer) = AccessLog::start(Format::Json, log.reopen().unwrap()).unwrap();
        let service = Recorded::new(site.files.clone()).log(access).metrics(metrics.clone());
        let running = run(service, Some(metrics.clone())).await;
        for client in &running.clients {
            let mut exchange =
                client.request(request(Method::GET, "/long.txt"), false).await.unwrap();
            let response = exchange.response().await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-length"], "300000");
            let etag = response.headers()["etag"].clone();
            assert_eq!(rest(&mut exchange).await, long.as_bytes());

            let mut part = request(Method::GET, "/long.txt");
            part.headers_mut().insert("range", HeaderValue::from_static("bytes=299995-"));
            let mut exchange = client.request(part, false).await.unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), StatusCode::PARTIAL_CONTENT);
            assert_eq!(rest(&mut exchange).await, b"xxxxx");

            let mut same = request(Method::GET, "/long.txt");
            same.headers_mut().insert("if-none-match", etag);
            let mut exchange = client.request(same, false).await.unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), StatusCode::NOT_MODIFIED);
            assert!(rest(&mut exchange).await.is_empty());

            let mut exchange =
                client.request(request(Method::HEAD, "/long.txt"), false).await.unwrap();
            let response = exchange.response().await.unwrap();
            assert_eq!(response.headers()["content-length"], "300000");
            assert!(rest(&mut exchange).await.is_empty());

            let mut exchange = client.request(request(Method::GET, "/none"), false).await.unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), StatusCode::NOT_FOUND);
            rest(&mut exchange).await;
        }

        let shown = metrics.render();
        assert!(shown.contains("quipu_connections{transport=\"quic\"} 2"), "{shown}");
        for connection in ["1", "2"] {
            let path =
                format!("quipu_path_sent_bytes_total{{connection=\"{connection}\",path=\"0\"");
            assert!(shown.contains(&path), "{shown}");
        }
        for version in ["3", "2"] {
            let requests =
                format!("quipu_http_requests_total{{version=\"{version}\",status=\"2xx\"}} 3");
            assert!(shown.contains(&requests), "{shown}");
        }
        running.stop.send(()).unwrap();
        assert_eq!(running.server.await.unwrap(), 0);
        writer.finish().unwrap();
        let lines = std::fs::read_to_string(log.path()).unwrap();
        let of = |version: &str| {
            let told = format!("\"version\":\"HTTP/{version}\"");
            lines.lines().filter(|line| line.contains(&told)).count()
        };
        assert_eq!((lines.lines().count(), of("3.0"), of("2.0")), (10, 5, 5), "{lines}");
        assert!(lines.lines().all(|line| line.contains("\"client\":\"127.0.0.1\"")), "{lines}");
    })
    .await;
}

/// Answers with what it is sent, and who sent it.
#[derive(Clone)]
struct Echo;

impl Service<Request<RequestBody>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(
        &mut self,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), Infallible>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        Box::pin(async move {
            let client = request.extensions().get::<Client>().copied();
            let collected = request.into_body().collect().await.unwrap();
            let trailer = collected.trailers().map(|trailers| trailers["checksum"].clone());
            let body = collected.to_bytes();
            let mut response = text(StatusCode::OK, String::from_utf8(body.to_vec()).unwrap());
            let from = client.map(|client| client.0.ip().to_string()).unwrap_or_default();
            response.headers_mut().insert("x-client", HeaderValue::from_str(&from).unwrap());
            if let Some(trailer) = trailer {
                response.headers_mut().insert("x-checksum", trailer);
            }
            Ok(response)
        })
    }
}

#[tokio::test]
async fn services_read_bodies_and_trailers() {
    limited(async {
        let running = run(Echo, None).await;
        for client in &running.clients {
            let post = request(Method::POST, "/");
            let mut exchange = client.request(post, true).await.unwrap();
            for part in ["a".repeat(100_000), "b".repeat(100_000)] {
                exchange.send_data(Bytes::from(part)).await.unwrap();
            }
            let mut trailers = http::HeaderMap::new();
            trailers.insert("checksum", HeaderValue::from_static("abc"));
            exchange.finish(Some(&trailers)).unwrap();
            let response = exchange.response().await.unwrap();
            assert_eq!(response.headers()["x-client"], "127.0.0.1");
            // HTTP/2 over QUIC streams carries no trailers.
            let told = response.headers().get("x-checksum").map(HeaderValue::as_bytes);
            let has_trailers = client.version() == Version::HTTP_3;
            assert_eq!(told, has_trailers.then_some(&b"abc"[..]));
            assert_eq!(rest(&mut exchange).await.len(), 200_000);
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_stops_answers_what_came_and_takes_no_more() {
    for version in 0..2 {
        limited(async {
            let running = run(Echo, None).await;
            let client = &running.clients[version];
            let post = request(Method::POST, "/");
            let mut exchange = client.request(post, true).await.unwrap();
            exchange.send_data(Bytes::from_static(b"before")).await.unwrap();
            // It has come for sure once another one is answered.
            let mut other = client.request(request(Method::GET, "/"), false).await.unwrap();
            other.response().await.unwrap();
            running.stop.send(()).unwrap();
            while let Ok(mut late) = client.request(request(Method::GET, "/"), false).await {
                // Answered or refused, according to who was faster.
                drop(late.response().await);
            }
            exchange.send_data(Bytes::from_static(b" and after")).await.unwrap();
            exchange.finish(None).unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), StatusCode::OK);
            assert_eq!(rest(&mut exchange).await, b"before and after");
            assert_eq!(running.server.await.unwrap(), 0);
            assert_ne!(running.address.port(), 0);
        })
        .await;
    }
}

#[tokio::test]
async fn requests_that_are_not_over_are_cut_in_the_end() {
    for version in 0..2 {
        limited(async {
            let running = run(Echo, None).await;
            let client = &running.clients[version];
            let post = request(Method::POST, "/");
            let mut exchange = client.request(post, true).await.unwrap();
            exchange.send_data(Bytes::from_static(b"for ever")).await.unwrap();
            let mut other = client.request(request(Method::GET, "/"), false).await.unwrap();
            other.response().await.unwrap();
            running.stop.send(()).unwrap();
            assert_eq!(running.server.await.unwrap(), 1);
            assert!(exchange.response().await.is_err());
        })
        .await;
    }
}

#[tokio::test]
async fn both_versions_are_served_at_once() {
    limited(async {
        let files: Vec<(String, String)> = (0..100)
            .map(|nth| (format!("{nth}.txt"), format!("{nth} ").repeat(nth * 50)))
            .collect();
        let listed: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let site = Site::of(&listed);
        let running = run(Recorded::new(site.files.clone()), None).await;
        let mut requests = tokio::task::JoinSet::new();
        for (nth, (name, text)) in files.into_iter().enumerate() {
            for client in running.clients.clone() {
                let mut request = request(Method::GET, &format!("/{name}"));
                let urgency = HeaderValue::from_str(&format!("u={}, i", nth % 8)).unwrap();
                request.headers_mut().insert("priority", urgency);
                let text = text.clone();
                requests.spawn(async move {
                    let mut exchange = client.request(request, false).await.unwrap();
                    let response = exchange.response().await.unwrap();
                    assert_eq!(
                        (response.version(), response.status()),
                        (client.version(), StatusCode::OK)
                    );
                    assert_eq!(rest(&mut exchange).await, text.as_bytes());
                });
            }
        }
        while let Some(done) = requests.join_next().await {
            done.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn clients_that_cancel_again_and_again_are_cut_off() {
    for version in 0..2 {
        limited(async {
            let running = run(Echo, None).await;
            let client = &running.clients[version];
            let ended = loop {
                match client.request(request(Method::POST, "/"), true).await {
                    Ok(exchange) => exchange.cancel(ErrorCode::REQUEST_CANCELLED),
                    Err(error) => break error,
                }
            };
            assert!(matches!(ended, Http3Error::Connection(_)), "{ended}");
            // By the limit of QUIC or by that of HTTP.
            assert!(ended.to_string().contains("cancelled"), "{ended}");
        })
        .await;
    }
}

#[tokio::test]
async fn fields_beyond_the_limit_are_not_sent() {
    limited(async {
        let running = run(Echo, None).await;
        for client in &running.clients {
            // The server's settings have come then.
            let mut first = client.request(request(Method::GET, "/"), false).await.unwrap();
            first.response().await.unwrap();
            let mut large = request(Method::GET, "/");
            let value = HeaderValue::from_str(&"x".repeat(65_536)).unwrap();
            large.headers_mut().insert("cookie", value);
            let refused = client.request(large, false).await.err().unwrap().to_string();
            assert!(refused.contains("where the server takes 65536"), "{refused}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_of_another_protocol_is_refused() {
    limited(async {
        let certificates = Arc::new(Certificates::generate("localhost").unwrap());
        let transport = Arc::new(TransportConfig::default());
        let choose = || policies(&Registry::builtin(), "").unwrap();
        let tls = Arc::new(certificates.quic(&ALPNS).unwrap());
        let config = ServerConfig::new(tls, Arc::clone(&transport), choose());
        let server =
            Endpoint::server(config).listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
        let address = server.local_addresses()[0];
        tokio::spawn(Server::new(server, Echo).run(std::future::pending()));
        let client = Endpoint::client().bind().unwrap();
        let tls = pinned(certificates.pin(), &[b"h2"]).unwrap();
        let config = ClientConfig::new(Arc::new(tls), transport, choose());
        let refused = client.connect(&config, address, "localhost").await.unwrap_err();
        assert!(matches!(refused, ConnectError::Alpn(_)), "{refused}");
        assert!(refused.to_string().contains("application protocols (ALPN)"), "{refused}");
    })
    .await;
}
