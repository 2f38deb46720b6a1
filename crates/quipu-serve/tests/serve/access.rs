//! Logs and metrics of requests.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::BodyExt;
use quipu_serve::access::{AccessLog, Format, LogWriter};
use quipu_serve::files::Files;
use quipu_serve::metrics::Scrape;
use quipu_serve::tcp::{Limits, Listener, Server};
use quipu_serve::{Client, Metrics, Recorded};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tower_service::Service;

use crate::client::{Running, loopback, soon};
use crate::setup::Site;

/// Bytes that are written and can be read.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(&mut *self.0.lock().unwrap(), bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A recorded site, and what is recorded.
struct Noted {
    service: Recorded<Files>,
    metrics: Metrics,
    writer: LogWriter,
    sink: Sink,
}

fn noted(site: &Site) -> Noted {
    let (sink, metrics) = (Sink::default(), Metrics::new());
    let (log, writer) = AccessLog::start(Format::Json, sink.clone()).unwrap();
    let service = Recorded::new(site.files.clone()).log(log).metrics(metrics.clone());
    Noted { service, metrics, writer, sink }
}

impl Noted {
    /// The lines, once all is written, and the metrics.
    fn end(self) -> (Vec<Value>, String) {
        drop(self.service);
        self.writer.finish().unwrap();
        let text = String::from_utf8(self.sink.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (lines.collect(), self.metrics.render())
    }
}

#[tokio::test]
async fn each_response_has_a_line_when_it_has_ended() {
    let site = Site::of(&[("a.txt", "abc")]);
    let mut noted = noted(&site);
    let mut ask = async |method: Method, path: &str| {
        let mut request = Request::builder().method(method).uri(path).body(()).unwrap();
        request.extensions_mut().insert(Client("192.0.2.7:5".parse().unwrap()));
        noted.service.call(request).await.unwrap()
    };
    ask(Method::GET, "/a.txt?b").await.into_body().collect().await.unwrap();
    // Dropped unread, as listeners do.
    drop(ask(Method::HEAD, "/a.txt").await);
    drop(ask(Method::GET, "/a.txt").await);
    ask(Method::POST, "/a.txt").await.into_body().collect().await.unwrap();
    let (lines, metrics) = noted.end();
    let field = |name: &str| -> Vec<&Value> { lines.iter().map(|line| &line[name]).collect() };
    assert_eq!(field("client"), ["192.0.2.7"; 4]);
    assert_eq!(field("method"), ["GET", "HEAD", "GET", "POST"]);
    assert_eq!(field("target"), ["/a.txt?b", "/a.txt", "/a.txt", "/a.txt"]);
    assert_eq!(field("status"), [200, 200, 200, 405]);
    let refusal = "405 Method Not Allowed: only GET and HEAD\n".len();
    assert_eq!(field("bytes"), [3, 0, 0, refusal]);
    assert_eq!(field("complete"), [true, true, false, true]);
    assert!(metrics.contains("quipu_http_requests_total{version=\"1.1\",status=\"2xx\"} 3"));
    let bytes = format!("quipu_http_response_bytes_total{{version=\"1.1\"}} {}\n", 3 + refusal);
    assert!(metrics.contains(&bytes), "{metrics}");
}

#[tokio::test]
async fn a_request_whose_client_goes_before_the_response_has_a_line() {
    let site = Site::of(&[("a.txt", "abc")]);
    let mut noted = noted(&site);
    drop(noted.service.call(Request::get("/a.txt").body(()).unwrap()));
    let (lines, metrics) = noted.end();
    assert_eq!((&lines[0]["status"], &lines[0]["complete"]), (&Value::Null, &false.into()));
    assert!(metrics.contains("quipu_http_requests_total{version=\"1.1\",status=\"none\"} 1"));
}

#[tokio::test]
async fn requests_over_tcp_are_noted_with_client_and_version() {
    let text = "x".repeat(1 << 20);
    let site = Site::of(&[("a.txt", &text)]);
    let noted = noted(&site);
    let metrics = noted.metrics.clone();
    let server = Running::start(noted.service.clone(), |server| server.metrics(metrics));
    let (mut first, mut second) = (server.http1().await, server.http2().await);
    for _ in 0..2 {
        first.get("/a.txt").await.is(200, &text);
        second.get("/a.txt").await.is(200, &text);
    }
    let missing = first.get("/missing").await.body.len() as u64;
    let open = noted.metrics.render();
    assert!(open.contains("quipu_connections{transport=\"tcp\"} 2"), "{open}");
    drop((first, second));
    server.stop().await;
    let (lines, metrics) = noted.end();
    assert_eq!(lines.len(), 5);
    for line in &lines {
        assert_eq!(
            (&line["client"], &line["complete"]),
            (&"127.0.0.1".into(), &true.into()),
            "{line}"
        );
        assert!(line["host"].as_str().is_some_and(|host| host == "localhost"), "{line}");
    }
    let of = |version: &str| {
        let of_version = lines.iter().filter(|line| line["version"] == version);
        of_version.map(|line| line["bytes"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(of("HTTP/1.1"), [1 << 20, 1 << 20, missing]);
    assert_eq!(of("HTTP/2.0"), [1 << 20, 1 << 20]);
    assert!(metrics.contains("quipu_connections{transport=\"tcp\"} 0"), "{metrics}");
    assert!(metrics.contains("quipu_http_request_duration_seconds_count{version=\"2\"} 2"));
}

#[tokio::test]
async fn a_response_that_is_cut_off_is_not_complete() {
    let text = "x".repeat(30 << 20);
    let site = Site::of(&[("a.txt", &text)]);
    let noted = noted(&site);
    let server = Running::start(noted.service.clone(), |server| server);
    let mut stream = server.tls(&[b"http/1.1"]).await;
    stream.write_all(b"GET /a.txt HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    soon(stream.read_exact(&mut [0; 1_000])).await.unwrap();
    drop(stream);
    server.stop().await;
    let (lines, _) = noted.end();
    assert_eq!((&lines[0]["status"], &lines[0]["complete"]), (&200.into(), &false.into()));
    assert!(lines[0]["bytes"].as_u64().is_some_and(|bytes| bytes < 30 << 20), "{}", lines[0]);
}

#[tokio::test]
async fn a_connection_that_is_cut_leaves_no_response_behind() {
    let text = "x".repeat(30 << 20);
    let site = Site::of(&[("a.txt", &text)]);
    let noted = noted(&site);
    let limits = Limits { stop: Duration::from_millis(50), ..Limits::default() };
    let server = Running::within(noted.service.clone(), limits);
    let mut client = server.http2().await;
    let responses = [client.begin("/a.txt").await, client.begin("/a.txt").await];
    assert_eq!(server.stop().await.cut, 1);
    // Waits until nobody holds the log any more.
    let (lines, _) = soon(tokio::task::spawn_blocking(|| noted.end())).await.unwrap();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["complete"] == false), "{lines:?}");
    drop((client, responses));
}

#[tokio::test]
async fn a_sink_that_fails_ends_the_log_and_nothing_else() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let site = Site::of(&[("a.txt", "abc")]);
    let (log, writer) = AccessLog::start(Format::Combined, Full).unwrap();
    let mut service = Recorded::new(site.files.clone()).log(log.clone());
    soon(async {
        // The first is the one that fails.
        while log.lost() == 0 {
            let response = service.call(Request::get("/a.txt").body(()).unwrap()).await.unwrap();
            response.into_body().collect().await.unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(writer.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[tokio::test]
async fn metrics_are_answered_on_an_address_of_their_own() {
    let metrics = Metrics::new();
    let listener = Listener::bind(loopback()).unwrap();
    let address = listener.local_address();
    let server = Server::plain(listener, Scrape(metrics.clone()));
    let server = tokio::spawn(server.run(std::future::pending()));
    let ask = async |line: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{line} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        soon(stream.read_to_string(&mut text)).await.unwrap();
        text
    };
    let text = ask("GET /metrics").await;
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{text}");
    assert!(text.contains("quipu_connections{transport=\"quic\"} 0\n"), "{text}");
    assert!(ask("GET /").await.starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics").await.starts_with("HTTP/1.1 405 "));
    server.abort();
}
