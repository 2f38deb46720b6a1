//! HTTP/1.1 and HTTP/2 over TCP.

use std::time::Duration;

use http::header::{ALT_SVC, CONTENT_LENGTH, DATE};
use quipu_serve::tcp::{AltSvc, ListenError, Listener, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Running, loopback, soon};
use crate::setup::Site;

#[tokio::test]
async fn both_versions_answer_and_announce_http3_on_the_same_port() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::start(site.files.clone(), |server| server);
    let announced = format!("h3=\":{}\"; ma=86400", server.address.port());
    let (mut first, mut second) = (server.http1().await, server.http2().await);
    for path in ["/a.txt", "/missing", "/a.txt"] {
        for answer in [first.get(path).await, second.get(path).await] {
            assert_eq!(answer.header(ALT_SVC), Some(announced.as_str()));
            assert!(answer.header(DATE).is_some());
            assert_eq!(answer.headers.get_all(DATE).iter().count(), 1);
            match path {
                "/a.txt" => answer.is(200, "abc"),
                _ => assert_eq!(answer.status, 404),
            }
        }
    }
    drop((first, second));
    assert_eq!(server.stop().await.cut, 0);
}

#[tokio::test]
async fn the_protocol_is_http2_if_the_client_offers_it() {
    let site = Site::of(&[]);
    let server = Running::start(site.files.clone(), |server| server);
    for (offered, taken) in [
        (&[b"http/1.1".as_slice(), b"h2"][..], Some(b"h2".as_slice())),
        (&[b"h2"], Some(b"h2")),
        (&[b"http/1.1"], Some(b"http/1.1")),
        (&[], None),
    ] {
        let stream = server.tls(offered).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), taken);
    }
}

#[tokio::test]
async fn a_client_without_alpn_gets_http1() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::start(site.files.clone(), |server| server);
    let mut stream = server.tls(&[]).await;
    let request = "GET /a.txt HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.ends_with("\r\n\r\nabc"), "{text}");
}

#[tokio::test]
async fn another_port_or_nothing_is_announced_on_request() {
    let site = Site::of(&[("a.txt", "abc")]);
    let other = AltSvc { port: 443, max_age: Duration::from_secs(60) };
    for (set, seen) in [(Some(other), Some("h3=\":443\"; ma=60")), (None, None)] {
        let server = Running::start(site.files.clone(), |server| server.announce(set));
        assert_eq!(server.http2().await.get("/a.txt").await.header(ALT_SVC), seen);
    }
}

#[tokio::test]
async fn many_requests_share_a_connection_of_http2() {
    let text = "x".repeat(300_000);
    let site = Site::of(&[("a.txt", &text)]);
    let server = Running::start(site.files.clone(), |server| server);
    let mut client = server.http2().await;
    let mut begun = Vec::new();
    for _ in 0..20 {
        begun.push(client.begin("/a.txt").await.unwrap());
    }
    for response in begun {
        let answer = crate::client::read(response).await;
        assert_eq!(answer.header(CONTENT_LENGTH), Some("300000"));
        answer.is(200, &text);
    }
}

#[tokio::test]
async fn what_is_no_tls_harms_nobody_else() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::start(site.files.clone(), |server| server);
    let mut other = TcpStream::connect(server.address).await.unwrap();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut rest = Vec::new();
    let _ = soon(other.read_to_end(&mut rest)).await;
    server.http1().await.get("/a.txt").await.is(200, "abc");
}

#[tokio::test]
async fn udp_may_have_the_same_port() {
    let listener = Listener::bind(loopback()).unwrap();
    assert_ne!(listener.local_address().port(), 0);
    // Another program may have it, in which case nothing is shown.
    if let Err(error) = std::net::UdpSocket::bind(listener.local_address()) {
        println!("not tried: {error}");
    }
}

#[tokio::test]
async fn errors_of_binding_say_what_to_do() {
    let listener = Listener::bind(loopback()).unwrap();
    let taken = Listener::bind(listener.local_address()).unwrap_err();
    assert!(matches!(taken, ListenError::InUse(_)));
    assert!(taken.to_string().ends_with("stop the other program, or choose another port"));
    let foreign = Listener::bind("192.0.2.1:0".parse().unwrap()).unwrap_err();
    assert!(matches!(foreign, ListenError::NotOurs(_)), "{foreign}");
    let none = std::thread::spawn(|| Listener::bind(loopback()).unwrap_err()).join().unwrap();
    assert!(matches!(none, ListenError::NoRuntime), "{none}");
}

#[tokio::test]
async fn a_port_is_free_again_once_its_server_has_stopped() {
    let site = Site::of(&[("a.txt", "abc")]);
    let server = Running::start(site.files.clone(), |server| server);
    let address = server.address;
    server.http1().await.get("/a.txt").await.is(200, "abc");
    server.stop().await;
    Listener::bind(address).unwrap();
}

#[tokio::test]
async fn a_plain_server_answers_without_tls_and_announces_nothing() {
    let site = Site::of(&[("a.txt", "abc")]);
    let listener = Listener::bind(loopback()).unwrap();
    let address = listener.local_address();
    let server = Server::plain(listener, site.files.clone());
    let server = tokio::spawn(server.run(std::future::pending()));
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /a.txt HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    soon(stream.read_to_string(&mut text)).await.unwrap();
    assert!(text.ends_with("\r\n\r\nabc") && !text.contains("alt-svc"), "{text}");
    server.abort();
}
