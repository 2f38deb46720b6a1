//! What clients may cost, and how a server stops.

use std::time::Duration;

use http::Request;
use http_body_util::Empty;
use quipu_base::Bytes;
use quipu_serve::tcp::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{NAME, Running, read, soon};
use crate::setup::Site;

/// Long enough for a request on a busy machine, short enough for a test.
const SHORT: Duration = Duration::from_millis(300);

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3_600);

/// Limits of which none is reached by time.
fn patient() -> Limits {
    Limits { handshake: LONG, header: LONG, idle: LONG, stop: LONG, ..Limits::default() }
}

/// More than what sockets and windows hold.
fn large() -> Site {
    Site::of(&[("large.bin", &"x".repeat(30 << 20)), ("a.txt", "abc")])
}

#[tokio::test]
async fn headers_that_are_too_large_are_refused() {
    let site = Site::of(&[("a.txt", "abc")]);
    let limits = Limits { header_size: Bytes(2_048), header_count: 20, ..patient() };
    let server = Running::within(site.files.clone(), limits);
    let long = "x".repeat(4_000);
    let request = |path: &str| {
        let request = Request::get(path).header("host", NAME).header("long", &long);
        request.body(Empty::new()).unwrap()
    };
    let answer = soon(server.http1().await.sender.send_request(request("/a.txt"))).await.unwrap();
    assert_eq!(answer.status(), 431);
    let uri = format!("https://{NAME}/a.txt");
    let answer = soon(server.http2().await.sender.send_request(request(&uri))).await;
    // Where the header is known to be too long before all of it is read, the stream is reset.
    assert!(answer.as_ref().map_or(true, |answer| answer.status() == 431), "{answer:?}");
    let mut many = Request::get("/a.txt").header("host", NAME);
    for number in 0..20 {
        many = many.header(format!("x-{number}"), "1");
    }
    let many = many.body(Empty::new()).unwrap();
    let answer = soon(server.http1().await.sender.send_request(many)).await.unwrap();
    assert_eq!(answer.status(), 431);
    server.http1().await.get("/a.txt").await.is(200, "abc");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_ended() {
    let site = Site::of(&[]);
    let server = Running::within(site.files.clone(), Limits { handshake: SHORT, ..patient() });
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(soon(stream.read(&mut [0; 1])).await.unwrap_or(0), 0);
}

#[tokio::test]
async fn headers_that_take_too_long_end_the_connection() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::within(site.files.clone(), Limits { header: SHORT, ..patient() });
    let mut stream = server.tls(&[b"http/1.1"]).await;
    stream.write_all(b"GET /a.txt HTTP/1.1\r\nhost: local").await.unwrap();
    let mut text = Vec::new();
    // An end without the close_notify of TLS is an error.
    let _ = soon(stream.read_to_end(&mut text)).await;
    assert_eq!(text, b"");
}

#[tokio::test]
async fn connections_on_which_nothing_moves_are_ended() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::within(site.files.clone(), Limits { idle: SHORT, ..patient() });
    let mut first = server.http1().await;
    first.get("/a.txt").await.is(200, "abc");
    let mut second = server.http2().await;
    second.get("/a.txt").await.is(200, "abc");
    // Both without an error: the server closes the one, and sends GOAWAY on the other.
    soon(first.ended).await.unwrap().unwrap();
    soon(second.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut() {
    let site = large();
    let server = Running::within(site.files.clone(), Limits { idle: SHORT, ..patient() });
    let mut stream = server.tls(&[b"http/1.1"]).await;
    stream.write_all(b"GET /large.bin HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    tokio::time::sleep(8 * SHORT).await;
    let mut text = Vec::new();
    // An end without the close_notify of TLS is an error.
    let _ = soon(stream.read_to_end(&mut text)).await;
    assert!(text.len() < 30 << 20, "{} bytes", text.len());
}

#[tokio::test]
async fn further_connections_wait_for_a_place() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::within(site.files.clone(), Limits { connections: 1, ..patient() });
    let mut first = server.http1().await;
    first.get("/a.txt").await.is(200, "abc");
    let mut second = std::pin::pin!(server.http1());
    assert!(tokio::time::timeout(SHORT, second.as_mut()).await.is_err());
    drop(first);
    soon(second).await.get("/a.txt").await.is(200, "abc");
}

#[tokio::test]
async fn a_server_that_stops_ends_resting_connections() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::within(site.files.clone(), patient());
    let untouched = server.tls(&[b"http/1.1"]).await;
    let handshake = TcpStream::connect(server.address).await.unwrap();
    let mut first = server.http1().await;
    first.get("/a.txt").await.is(200, "abc");
    let mut second = server.http2().await;
    second.get("/a.txt").await.is(200, "abc");
    assert_eq!(server.stop().await.cut, 0);
    soon(first.ended).await.unwrap().unwrap();
    soon(second.ended).await.unwrap().unwrap();
    drop((untouched, handshake));
}

#[tokio::test]
async fn a_server_that_stops_finishes_responses_and_takes_no_more() {
    let site = large();
    let server = Running::within(site.files.clone(), patient());
    let address = server.address;
    let (mut first, mut second) = (server.http1().await, server.http2().await);
    let path = "/large.bin";
    let request = Request::get(path).header("host", NAME).body(Empty::new()).unwrap();
    let over_http1 = soon(first.sender.send_request(request)).await.unwrap();
    let over_http2 = second.begin(path).await.unwrap();
    let stopped = server.begin_to_stop();
    // No more connections, and no more requests on those that there are.
    soon(async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        while second.begin("/a.txt").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    for response in [over_http1, over_http2] {
        assert_eq!(read(response).await.body.len(), 30 << 20);
    }
    drop((first, second));
    assert_eq!(soon(stopped).await.unwrap().cut, 0);
}

#[tokio::test]
async fn connections_that_do_not_end_in_time_are_cut_and_counted() {
    let site = large();
    let server = Running::within(site.files.clone(), Limits { stop: SHORT, ..patient() });
    let mut client = server.http2().await;
    let response = client.begin("/large.bin").await.unwrap();
    assert_eq!(server.stop().await.cut, 1);
    drop(response);
}
