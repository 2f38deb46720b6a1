//! HTTP/3, and HTTP/2 over QUIC streams where both do the same: requests and responses over sockets.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quipu_policy::Urgency;
use quipu_quic::tls::rustls::RustlsClient;
use quipu_tokio::http3::http::{HeaderMap, HeaderValue, Request, Response, Version};
use quipu_tokio::http3::{
    ALPN, ClientConfig, ErrorCode, HTTP2_ALPN, Http3Client, Http3Error, Http3Server, ServerConfig,
};
use quipu_tokio::{Endpoint, TransportConfig};
use tokio::net::UdpSocket;
use tokio::sync::Notify;

use crate::setup::{NAME, Pair, Setup, limited, narrow, noise};

pub(crate) struct Http {
    pub(crate) client: Http3Client,
    pub(crate) server: Http3Server,
    pub(crate) pair: Pair,
}

/// What the tests are done over.
const BOTH: [Version; 2] = [Version::HTTP_3, Version::HTTP_2];

async fn http_over(version: Version, transport: TransportConfig) -> Http {
    let alpn = if version == Version::HTTP_2 { HTTP2_ALPN } else { ALPN };
    let pair = Setup::speaking(transport, alpn, alpn).connect().await;
    let (there, here) = (pair.there.clone(), pair.here.clone());
    let (server, client) = if version == Version::HTTP_2 {
        let server = Http3Server::http2(there, Default::default()).unwrap();
        (server, Http3Client::http2(here, Default::default()).unwrap())
    } else {
        let server = Http3Server::new(there, ServerConfig::default()).unwrap();
        (server, Http3Client::new(here, ClientConfig::default()).unwrap())
    };
    assert_eq!((server.version(), client.version()), (version, version));
    Http { client, server, pair }
}

async fn http(version: Version) -> Http {
    http_over(version, TransportConfig::default()).await
}

pub(crate) fn get(path: &str) -> Request<()> {
    Request::get(format!("https://quipu.test{path}")).body(()).unwrap()
}

/// Answers each request with what its path says: so many octets.
pub(crate) fn serve_sizes(server: Http3Server) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        while let Ok(request) = server.accept().await {
            tokio::spawn(async move {
                let (head, _, mut request) = request.into_parts();
                let size: usize = head.uri().path()[1..].parse().unwrap();
                let length = HeaderValue::from(size as u64);
                let response = Response::builder()
                    .header("server", "quipu")
                    .header("content-length", length)
                    .body(())
                    .unwrap();
                request.respond(&response, size > 0).unwrap();
                if size > 0 {
                    request.send_data(Bytes::from(noise(size as u64, size))).await.unwrap();
                    request.finish(None).unwrap();
                }
            });
        }
    })
}

#[tokio::test]
async fn a_hundred_requests_at_once_are_answered_whole() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair: _pair } = http(version).await;
            serve_sizes(server.clone());
            let mut requests = tokio::task::JoinSet::new();
            for nth in 0..100_usize {
                let client = client.clone();
                requests.spawn(async move {
                    let size = nth * 1_717;
                    let mut request = get(&format!("/{size}"));
                    let urgency = HeaderValue::from_str(&format!("u={}", nth % 8)).unwrap();
                    request.headers_mut().insert("priority", urgency);
                    let mut exchange = client.request(request, false).await.unwrap();
                    let response = exchange.response().await.unwrap();
                    assert_eq!(response.headers()["content-length"], size.to_string());
                    let mut body = Vec::new();
                    while let Some(octets) = exchange.data(10_000).await.unwrap() {
                        body.extend_from_slice(&octets);
                    }
                    assert!(body == noise(size as u64, size), "{nth}");
                });
            }
            while let Some(done) = requests.join_next().await {
                done.unwrap();
            }
            if version == Version::HTTP_3 {
                assert!(client.table_use().received > 0, "responses use the dynamic table");
                assert!(client.peer_settings().is_some());
            }
            while server.active() > 0 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn bodies_trailers_and_hints_cross_over_small_windows() {
    limited(async {
        let Http { client, server, pair: _pair } = http_over(Version::HTTP_3, narrow(4_096)).await;
        let echo = tokio::spawn(async move {
            let (_, mut body, mut request) = server.accept().await.unwrap().into_parts();
            let hints =
                Response::builder().status(103).header("link", "</a.css>").body(()).unwrap();
            request.inform(&hints).unwrap();
            request.respond(&Response::new(()), true).unwrap();
            while let Some(octets) = body.data(777).await.unwrap() {
                request.send_data(octets).await.unwrap();
            }
            let trailers = body.trailers().unwrap().unwrap();
            request.finish(Some(&trailers)).unwrap();
        });
        let request = Request::post("https://quipu.test/echo").body(()).unwrap();
        let mut exchange = client.request(request, true).await.unwrap();
        assert_eq!(exchange.next_response().await.unwrap().status(), 103);
        assert_eq!(exchange.response().await.unwrap().status(), 200);
        let sent = noise(5, 50_000);
        let mut received = Vec::new();
        for part in sent.chunks(1_000) {
            exchange.send_data(Bytes::copy_from_slice(part)).await.unwrap();
            received.extend_from_slice(&exchange.data(5_000).await.unwrap().unwrap());
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("checksum", HeaderValue::from_static("abc"));
        exchange.finish(Some(&trailers)).unwrap();
        while let Some(octets) = exchange.data(5_000).await.unwrap() {
            received.extend_from_slice(&octets);
        }
        assert!(received == sent);
        assert_eq!(exchange.trailers().unwrap(), Some(trailers));
        echo.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn what_is_not_read_holds_the_sender_back() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair: _pair } = http_over(version, narrow(10_000)).await;
            let serving = tokio::spawn(async move {
                let (_, _body, mut request) = server.accept().await.unwrap().into_parts();
                request.respond(&Response::new(()), true).unwrap();
                let mut sent = 0;
                let mut part = 0;
                loop {
                    let octets = Bytes::from(noise(part, 1_000));
                    let wait = std::time::Duration::from_millis(300);
                    match tokio::time::timeout(wait, request.send_data(octets)).await {
                        Ok(result) => result.unwrap(),
                        Err(_) => return sent,
                    }
                    sent += 1_000;
                    part += 1;
                }
            });
            let mut exchange = client.request(get("/"), false).await.unwrap();
            exchange.response().await.unwrap();
            let sent = serving.await.unwrap();
            assert!(sent <= 40_000, "{sent} octets were taken though none was read");
        })
        .await;
    }
}

#[tokio::test]
async fn dropped_exchanges_tell_the_other_end() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair: _pair } = http(version).await;
            // The client drops it.
            let exchange = client.request(get("/1"), false).await.unwrap();
            let (_, body, mut request) = server.accept().await.unwrap().into_parts();
            request.respond(&Response::new(()), true).unwrap();
            drop(exchange);
            let stopped = loop {
                match request.send_data(Bytes::from_static(b"x")).await {
                    Ok(()) => tokio::task::yield_now().await,
                    Err(error) => break error,
                }
            };
            assert!(
                matches!(stopped, Http3Error::Stopped(ErrorCode::REQUEST_CANCELLED)),
                "{stopped}"
            );
            drop((request, body));
            // The server drops it without an answer.
            let mut exchange = client.request(get("/2"), false).await.unwrap();
            drop(server.accept().await.unwrap());
            let failed = exchange.response().await.unwrap_err();
            let code = if version == Version::HTTP_2 { "code 0x2" } else { "code 0x102" };
            assert!(failed.to_string().contains(code), "{failed}");
            // The server answers without reading: the response arrives whole.
            let upload = Request::post("https://quipu.test/3").body(()).unwrap();
            let mut exchange = client.request(upload, true).await.unwrap();
            let (_, body, mut request) = server.accept().await.unwrap().into_parts();
            request.respond(&Response::new(()), true).unwrap();
            request.send_data(Bytes::from(noise(1, 100_000))).await.unwrap();
            request.finish(None).unwrap();
            drop((request, body));
            assert_eq!(exchange.response().await.unwrap().status(), 200);
            let mut length = 0;
            while let Some(octets) = exchange.data(65_536).await.unwrap() {
                length += octets.len();
            }
            assert_eq!(length, 100_000);
            drop(exchange);
            assert_eq!(server.active(), 0);
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upload_that_the_server_stops_is_never_told_as_a_stream_that_is_not_open() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair: _pair } = http(version).await;
            for _ in 0..400 {
                let upload = Request::post("https://quipu.test/").body(()).unwrap();
                let mut exchange = client.request(upload, true).await.unwrap();
                let (_, body, mut request) = server.accept().await.unwrap().into_parts();
                request.respond(&Response::new(()), true).unwrap();
                request.finish(None).unwrap();
                drop((request, body));
                let stopped = loop {
                    match exchange.send_data(Bytes::from_static(b"x")).await {
                        Ok(()) => tokio::task::yield_now().await,
                        Err(error) => break error,
                    }
                };
                assert!(matches!(stopped, Http3Error::Stopped(_)), "{stopped}");
                assert_eq!(exchange.response().await.unwrap().status(), 200);
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_server_that_goes_away_answers_what_came() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair: _pair } = http(version).await;
            let mut exchange = client.request(get("/1"), false).await.unwrap();
            let (_, _body, mut request) = server.accept().await.unwrap().into_parts();
            server.go_away().unwrap();
            let refused = loop {
                match client.request(get("/2"), false).await {
                    // On its way before the client heard: refused by the server.
                    Ok(mut late) => drop(late.response().await.unwrap_err()),
                    Err(error) => break error,
                }
            };
            assert!(refused.to_string().contains("goes away"), "{refused}");
            request.respond(&Response::new(()), false).unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), 200);
            assert!(exchange.data(1).await.unwrap().is_none());
        })
        .await;
    }
}

#[tokio::test]
async fn responses_that_came_before_the_server_closed_are_read_after_it() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair } = http(version).await;
            let mut whole = client.request(get("/whole"), false).await.unwrap();
            let mut part = client.request(get("/part"), false).await.unwrap();
            let mut trailers = HeaderMap::new();
            trailers.insert("checksum", HeaderValue::from_static("abc"));
            let mut held = Vec::new();
            for _ in 0..2 {
                let (head, _, mut request) = server.accept().await.unwrap().into_parts();
                request.respond(&Response::new(()), true).unwrap();
                request.send_data(Bytes::from(noise(1, 50_000))).await.unwrap();
                if head.uri().path() == "/whole" {
                    request.finish(Some(&trailers)).unwrap();
                } else {
                    held.push(request);
                }
            }
            server.close_when_delivered(quipu_base::Duration::from_secs(1));
            client.connection().closed().await;
            pair.client.wait_idle().await;
            assert!(client.request(get("/late"), false).await.is_err());
            assert_eq!(whole.response().await.unwrap().status(), 200);
            let mut body = Vec::new();
            while let Some(octets) = whole.data(7_000).await.unwrap() {
                body.extend_from_slice(&octets);
            }
            assert!(body == noise(1, 50_000));
            let kept = (version == Version::HTTP_3).then_some(trailers);
            assert_eq!(whole.trailers().unwrap(), kept);
            part.response().await.unwrap();
            let mut read = 0;
            let cut = loop {
                match part.data(7_000).await {
                    Ok(octets) => read += octets.unwrap().len(),
                    Err(error) => break error,
                }
            };
            assert_eq!(read, 50_000);
            assert!(matches!(cut, Http3Error::Connection(_)), "{cut:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn requests_wait_for_a_free_stream() {
    for version in BOTH {
        limited(async {
            let transport = TransportConfig { max_streams: 4, ..TransportConfig::default() };
            let Http { client, server, pair: _pair } = http_over(version, transport).await;
            serve_sizes(server);
            let mut requests = tokio::task::JoinSet::new();
            for _ in 0..40 {
                let client = client.clone();
                requests.spawn(async move {
                    let mut exchange = client.request(get("/3000"), false).await.unwrap();
                    exchange.response().await.unwrap();
                    while exchange.data(1_000).await.unwrap().is_some() {}
                });
            }
            while let Some(done) = requests.join_next().await {
                done.unwrap();
            }
        })
        .await;
    }
}

#[tokio::test]
async fn urgencies_are_told_again_and_the_end_of_the_connection_is_heard() {
    for version in BOTH {
        limited(async {
            let Http { client, server, pair } = http(version).await;
            let mut exchange = client.request(get("/1"), false).await.unwrap();
            let request = server.accept().await.unwrap();
            exchange.update_priority(Urgency { level: 1, incremental: true }).unwrap();
            pair.there.close(ErrorCode::NO_ERROR.0, b"bye");
            let ended = exchange.response().await.unwrap_err();
            assert!(matches!(ended, Http3Error::Connection(_)), "{ended}");
            assert!(matches!(server.accept().await, Err(Http3Error::Connection(_))));
            assert!(matches!(
                client.request(get("/"), false).await,
                Err(Http3Error::Connection(_))
            ));
            drop(request);
        })
        .await;
    }
}

/// A relay before a server. From the server's first answer on it holds back what the client sends, but for
/// datagrams of 0-RTT, until it is opened: the server does not see the end of the handshake.
struct Gate {
    address: SocketAddr,
    opened: Arc<Notify>,
}

impl Gate {
    async fn before(server: SocketAddr) -> Gate {
        let (outer, inner) = (UdpSocket::bind("127.0.0.1:0"), UdpSocket::bind("127.0.0.1:0"));
        let (outer, inner) = (outer.await.unwrap(), inner.await.unwrap());
        inner.connect(server).await.unwrap();
        let gate = Gate { address: outer.local_addr().unwrap(), opened: Arc::default() };
        let opened = Arc::clone(&gate.opened);
        tokio::spawn(async move {
            let (mut client, mut held, mut is_open) = (None, Vec::new(), true);
            let (mut sent, mut answer) = ([0; 2048], [0; 2048]);
            loop {
                tokio::select! {
                    received = outer.recv_from(&mut sent) => {
                        let (bytes, from) = received.unwrap();
                        client = Some(from);
                        let datagram = &sent[..bytes];
                        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
                        if is_open || datagram[0] & 0xf0 == 0xd0 {
                            inner.send(datagram).await.unwrap();
                        } else {
                            held.push(datagram.to_vec());
                        }
                    }
                    received = inner.recv(&mut answer) => {
                        is_open = false;
                        let datagram = &answer[..received.unwrap()];
                        outer.send_to(datagram, client.unwrap()).await.unwrap();
                    }
                    () = opened.notified() => break,
                }
            }
            for datagram in held {
                inner.send(&datagram).await.unwrap();
            }
            loop {
                tokio::select! {
                    received = outer.recv(&mut sent) => {
                        inner.send(&sent[..received.unwrap()]).await.unwrap();
                    }
                    received = inner.recv(&mut answer) => {
                        let datagram = &answer[..received.unwrap()];
                        outer.send_to(datagram, client.unwrap()).await.unwrap();
                    }
                }
            }
        });
        gate
    }
}

#[tokio::test]
async fn requests_in_early_data_are_answered_before_the_handshake_is_complete() {
    limited(async {
        let transport = TransportConfig { early_data: true, ..TransportConfig::default() };
        let setup = Setup::speaking(transport, ALPN, ALPN);
        let tls = RustlsClient::with_roots(setup.roots(), &[ALPN]).unwrap();
        let config = quipu_tokio::ClientConfig {
            tls: Arc::new(tls.with_resumption(1)),
            ..setup.client.clone()
        };
        let (server, address) = setup.listen();
        let client = Endpoint::client().bind().unwrap();

        // The client learns the server's settings, and gets tickets.
        let accept = async { server.accept().await.unwrap().accept_early().await.unwrap() };
        let connect = async { client.connect(&config, address, NAME).await.unwrap() };
        let (there, here) = tokio::join!(accept, connect);
        assert!(!there.is_early(), "without 0-RTT the handshake is waited for");
        serve_sizes(Http3Server::new(there, ServerConfig::default()).unwrap());
        let first = Http3Client::new(here.clone(), ClientConfig::default()).unwrap();
        let mut exchange = first.request(get("/100"), false).await.unwrap();
        exchange.response().await.unwrap();
        while exchange.data(1_000).await.unwrap().is_some() {}
        here.confirmed().await.unwrap();
        let remembered = first.peer_settings();
        assert!(remembered.is_some());
        here.close(ErrorCode::NO_ERROR.0, b"");

        let gate = Gate::before(address).await;
        let here = client.connect_early(&config, gate.address, NAME).await.unwrap();
        let second = ClientConfig { remembered, ..ClientConfig::default() };
        let second = Http3Client::new(here, second).unwrap();
        let mut exchange = second.request(get("/200"), false).await.unwrap();
        let there = server.accept().await.unwrap().accept_early().await.unwrap();
        assert!(there.is_early());
        serve_sizes(Http3Server::new(there.clone(), ServerConfig::default()).unwrap());
        assert_eq!(exchange.response().await.unwrap().headers()["content-length"], "200");
        let mut length = 0;
        while let Some(octets) = exchange.data(1_000).await.unwrap() {
            length += octets.len();
        }
        assert_eq!(length, 200);
        assert!(there.is_early(), "the server answered before it saw the end of the handshake");
        gate.opened.notify_one();
        there.confirmed().await.unwrap();
        assert!(!there.is_early());
    })
    .await;
}
