//! Endpoints with policies that clients choose.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use quipu_policy::Registry;
use quipu_serve::experiments::{Chosen, Experiments, Limits, PATH, Policies};
use quipu_serve::files::Files;
use quipu_serve::{Body, Certificates};
use quipu_tokio::http3::{ALPN, Http3Client};
use quipu_tokio::identity::{Pin, pinned};
use quipu_tokio::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, policies};
use tower_service::Service;

use crate::setup::Site;

/// Endpoints that serve `files`, and the pin of their certificate.
fn experiments(files: &Files, limits: Limits) -> (Experiments<Files>, Pin) {
    let certificates = Arc::new(Certificates::generate("localhost").unwrap());
    let pin = certificates.pin();
    let choose = move |asked: &Policies| {
        let text: Vec<String> =
            asked.iter().map(|(layer, name)| format!("{layer}={name}")).collect();
        let factory =
            policies(&Registry::builtin(), &text.join(" ")).map_err(|it| it.to_string())?;
        let tls = Arc::new(certificates.quic(&[ALPN]).unwrap());
        let config = ServerConfig::new(tls, Arc::new(TransportConfig::default()), factory);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let bind = move || Endpoint::server(config).listen(any).bind();
        Ok(Chosen { policies: asked.clone(), bind: Box::new(bind) })
    };
    (Experiments::new(files.clone(), limits, choose), pin)
}

/// What is answered to a question.
async fn ask(
    experiments: &Experiments<Files>,
    files: &Files,
    method: Method,
    body: impl Into<String>,
) -> (StatusCode, String) {
    let request = Request::builder().method(method).uri(format!("https://localhost{PATH}"));
    let request = request.body(Full::new(bytes::Bytes::from(body.into()))).unwrap();
    let response = experiments.beside(files.clone()).call(request).await.unwrap();
    let (head, body): (_, Body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

/// The port that is told for policies.
async fn port(experiments: &Experiments<Files>, files: &Files, asked: &str) -> u16 {
    let (status, answer) = ask(experiments, files, Method::POST, asked).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    answer["port"].as_u64().unwrap().try_into().unwrap()
}

async fn connect(endpoint: &Endpoint, pin: Pin, port: u16) -> Connection {
    let tls = Arc::new(pinned(pin, &[ALPN]).unwrap());
    let choose = policies(&Registry::builtin(), "").unwrap();
    let config = ClientConfig::new(tls, Arc::new(TransportConfig::default()), choose);
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    endpoint.connect(&config, address, "localhost").await.unwrap()
}

/// Waits, for as long as a busy machine takes, until so many endpoints are open.
async fn until(experiments: &Experiments<Files>, open: usize) {
    let waiting = async {
        while experiments.open() != open {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("endpoints close");
}

#[tokio::test]
async fn equal_policies_have_one_endpoint_which_serves_the_same() {
    let site = Site::of(&[("a.txt", "hello")]);
    let (experiments, pin) = experiments(&site.files, Limits::default());
    let first = port(&experiments, &site.files, "{\"path\": \"ecf\"}").await;
    let other = port(&experiments, &site.files, "{\"path\": \"minrtt\", \"stream\": \"rr\"}").await;
    assert_eq!(port(&experiments, &site.files, "{\"path\": \"ecf\"}").await, first);
    assert!(first != other && experiments.open() == 2);
    let endpoint = Endpoint::client().bind().unwrap();
    let client =
        Http3Client::new(connect(&endpoint, pin, first).await, Default::default()).unwrap();
    let request = Request::get("https://localhost/a.txt").body(()).unwrap();
    let mut exchange = client.request(request, false).await.unwrap();
    assert_eq!(exchange.response().await.unwrap().status(), StatusCode::OK);
    assert_eq!(exchange.data(100).await.unwrap().as_deref(), Some(&b"hello"[..]));
    client.connection().close(0, b"");
    assert_eq!(experiments.finish().await, 0);
    assert_eq!(experiments.open(), 0);
}

#[tokio::test]
async fn an_endpoint_that_is_idle_for_long_is_closed() {
    let site = Site::of(&[]);
    let limits = Limits { idle: Duration::from_millis(50), ..Limits::default() };
    let (experiments, _) = experiments(&site.files, limits);
    for path in ["blest", "ecf"] {
        port(&experiments, &site.files, &format!("{{\"path\": \"{path}\"}}")).await;
    }
    until(&experiments, 0).await;
}

#[tokio::test]
async fn an_idle_endpoint_gives_way_and_one_in_use_does_not() {
    let site = Site::of(&[]);
    let (experiments, pin) = experiments(&site.files, Limits { endpoints: 1, ..Limits::default() });
    port(&experiments, &site.files, "{\"path\": \"blest\"}").await;
    let second = port(&experiments, &site.files, "{\"path\": \"ecf\"}").await;
    assert_eq!(experiments.open(), 1, "the first gave way");
    let endpoint = Endpoint::client().bind().unwrap();
    let connection = connect(&endpoint, pin, second).await;
    let (status, told) = ask(&experiments, &site.files, Method::POST, "{}").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(told.contains("all 1 endpoints are in use"), "{told}");
    connection.close(0, b"");
    assert_eq!(experiments.finish().await, 0);
}

#[tokio::test]
async fn questions_that_are_none_are_refused_in_words() {
    let site = Site::of(&[("a.txt", "hello")]);
    let (experiments, _) = experiments(&site.files, Limits::default());
    let long = "x".repeat(20_000);
    for (body, status, part) in [
        ("{\"path\": \"minrt\"}", 400, "minrtt"),
        ("{\"path\": 7}", 400, "expected a JSON object"),
        ("", 400, "expected a JSON object"),
        (long.as_str(), 413, "expected at most 16384 bytes"),
    ] {
        let (found, told) = ask(&experiments, &site.files, Method::POST, body).await;
        assert_eq!(found.as_u16(), status, "{told}");
        assert!(told.contains(part), "{told}");
    }
    let (status, _) = ask(&experiments, &site.files, Method::GET, "").await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(experiments.open(), 0);
    let other =
        Request::get("https://localhost/a.txt").body(Full::new(bytes::Bytes::new())).unwrap();
    let response = experiments.beside(site.files.clone()).call(other).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK, "all else is passed on");
}
