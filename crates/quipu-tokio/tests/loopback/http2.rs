//! HTTP/2 over QUIC streams: what it does otherwise than HTTP/3.

use bytes::Bytes;
use quipu_policy::{PriorityEdit, Urgency};
use quipu_tokio::Endpoint;
use quipu_tokio::Via;
use quipu_tokio::http3::http::{HeaderMap, HeaderValue, Request, Response};
use quipu_tokio::http3::{
    HTTP2_ALPN, Http2ClientConfig, Http2ServerConfig, Http3Client, Http3Server, StreamPriority,
};
use quipu_tokio::replay::{Call, Input, Recording};
use quipu_tokio::{ConnectError, TransportConfig};

use crate::http3::{Http, get, serve_sizes};
use crate::setup::{NAME, Pair, Setup, limited, narrow, noise};

fn over(pair: Pair, client: Http2ClientConfig, server: Http2ServerConfig) -> Http {
    let server = Http3Server::http2(pair.there.clone(), server).unwrap();
    let client = Http3Client::http2(pair.here.clone(), client).unwrap();
    Http { client, server, pair }
}

async fn http2(transport: TransportConfig, server: Http2ServerConfig) -> Http {
    let pair = Setup::speaking(transport, HTTP2_ALPN, HTTP2_ALPN).connect().await;
    over(pair, Http2ClientConfig::default(), server)
}

async fn read_whole(client: &Http3Client, path: &str) -> usize {
    let mut exchange = client.request(get(path), false).await.unwrap();
    exchange.response().await.unwrap();
    let mut length = 0;
    while let Some(octets) = exchange.data(65_536).await.unwrap() {
        length += octets.len();
    }
    length
}

#[tokio::test]
async fn uploads_cross_over_small_windows_without_trailers_and_hints() {
    limited(async {
        let Http { client, server, pair: _pair } =
            http2(narrow(4_096), Http2ServerConfig::default()).await;
        let echo = tokio::spawn(async move {
            let (_, mut body, mut request) = server.accept().await.unwrap().into_parts();
            let hints = Response::builder().status(103).header("link", "</a.css>");
            request.inform(&hints.body(()).unwrap()).unwrap();
            request.respond(&Response::new(()), true).unwrap();
            while let Some(octets) = body.data(777).await.unwrap() {
                request.send_data(octets).await.unwrap();
            }
            assert_eq!(body.trailers().unwrap(), None);
            let mut trailers = HeaderMap::new();
            trailers.insert("checksum", HeaderValue::from_static("abc"));
            request.finish(Some(&trailers)).unwrap();
        });
        let request = Request::post("https://quipu.test/echo").body(()).unwrap();
        let mut exchange = client.request(request, true).await.unwrap();
        assert_eq!(exchange.next_response().await.unwrap().status(), 200);
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
        assert_eq!(exchange.trailers().unwrap(), None);
        echo.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn requests_wait_for_the_limit_that_the_server_stated() {
    limited(async {
        let few = Http2ServerConfig { max_requests: 3, ..Http2ServerConfig::default() };
        let Http { client, server, pair: _pair } = http2(TransportConfig::default(), few).await;
        serve_sizes(server);
        // From here on the client knows the limit.
        assert_eq!(read_whole(&client, "/1").await, 1);
        let mut requests = tokio::task::JoinSet::new();
        for _ in 0..40 {
            let client = client.clone();
            requests.spawn(async move { read_whole(&client, "/3000").await });
        }
        while let Some(done) = requests.join_next().await {
            assert_eq!(done.unwrap(), 3_000);
        }
    })
    .await;
}

#[tokio::test]
async fn a_connection_lasts_for_more_requests_than_the_tree_has_nodes() {
    limited(async {
        // The tree has four nodes for each request at a time.
        let few = Http2ServerConfig { max_requests: 10, ..Http2ServerConfig::default() };
        let Http { client, server, pair: _pair } = http2(TransportConfig::default(), few).await;
        serve_sizes(server.clone());
        for batch in 0..30_usize {
            // Closed streams keep their node for 100 ms.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            for _ in 0..4 {
                assert_eq!(read_whole(&client, &format!("/{batch}")).await, batch);
            }
        }
        while server.active() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn heads_without_bodies_leave_no_request_open() {
    limited(async {
        let Http { client, server, pair: _pair } =
            http2(TransportConfig::default(), Http2ServerConfig::default()).await;
        serve_sizes(server.clone());
        for _ in 0..20 {
            let mut exchange = client.request(get("/0"), false).await.unwrap();
            assert_eq!(exchange.response().await.unwrap().status(), 200);
        }
        while server.active() > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    })
    .await;
}

/// What the policies of a server were told of priorities when a client with those settings had sent a request
/// with a place and an urgency, and changed both.
async fn edits(client: Http2ClientConfig) -> Vec<PriorityEdit> {
    let setup = Setup::speaking(TransportConfig::default(), HTTP2_ALPN, HTTP2_ALPN);
    let recording = Recording::default();
    let server = Endpoint::server(setup.server.clone()).record_inputs(&recording);
    let server = server.listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::client().bind().unwrap();
    let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
    let connect = async { endpoint.connect(&setup.client, address, NAME).await.unwrap() };
    let (there, here) = tokio::join!(accept, connect);
    let pair = Pair { server, client: endpoint, here, there };
    let Http { client, server, pair: _pair } = over(pair, client, Http2ServerConfig::default());
    let mut request = get("/10");
    request.headers_mut().insert("priority", HeaderValue::from_static("u=1"));
    let place = StreamPriority { weight: 42, ..StreamPriority::default() };
    request.extensions_mut().insert(place);
    let mut exchange = client.request(request, false).await.unwrap();
    let (_, _body, mut responder) = server.accept().await.unwrap().into_parts();
    exchange.update_place(StreamPriority { weight: 7, ..place }).unwrap();
    exchange.update_priority(Urgency { level: 6, incremental: true }).unwrap();
    // What was sent before it has come when another request is there.
    let mut second = client.request(get("/1"), false).await.unwrap();
    let (_, _, mut other) = server.accept().await.unwrap().into_parts();
    other.respond(&Response::new(()), false).unwrap();
    responder.respond(&Response::new(()), false).unwrap();
    second.response().await.unwrap();
    exchange.response().await.unwrap();
    let steps = recording.take().steps;
    steps
        .into_iter()
        .filter_map(|step| match step.input {
            Input::Call(_, Call::EditPriority(edit)) => Some(edit),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn places_in_the_tree_and_urgencies_reach_the_policies() {
    limited(async {
        let weights = |edits: &[PriorityEdit]| {
            let text = format!("{edits:?}");
            [text.contains("weight: 42"), text.contains("weight: 7")]
        };
        let has_urgency = |edits: &[PriorityEdit], level| {
            let is_it = |edit: &PriorityEdit| matches!(edit, PriorityEdit::Urgency { urgency, .. } if *urgency == level);
            edits.iter().any(is_it)
        };
        let tree = edits(Http2ClientConfig { tree: true, ..Default::default() }).await;
        assert_eq!(weights(&tree), [true, true], "{tree:?}");
        assert!(has_urgency(&tree, 1), "{tree:?}");
        let urgencies = edits(Http2ClientConfig::default()).await;
        assert_eq!(weights(&urgencies), [false, false], "{urgencies:?}");
        assert!(has_urgency(&urgencies, 1), "{urgencies:?}");
    })
    .await;
}

#[tokio::test]
async fn bodies_come_by_two_paths() {
    limited(async {
        let setup = Setup::speaking(TransportConfig::default(), HTTP2_ALPN, HTTP2_ALPN);
        let pair = setup.connect_by(&["127.0.0.1", "127.0.0.2"]).await;
        while pair.here.paths().len() < 2 {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        let Http { client, server, pair: _pair } =
            over(pair, Default::default(), Default::default());
        serve_sizes(server);
        assert_eq!(read_whole(&client, "/3000000").await, 3_000_000);
        let paths = client.connection().paths();
        assert_eq!(paths.len(), 2);
    })
    .await;
}

#[tokio::test]
async fn a_server_that_speaks_another_version_is_told_apart() {
    limited(async {
        let setup = Setup::speaking(TransportConfig::default(), b"h3", HTTP2_ALPN);
        let (server, address) = setup.listen();
        let client = Endpoint::client().via(Via::Address("127.0.0.1".parse().unwrap()));
        let client = client.bind().unwrap();
        let accepting =
            tokio::spawn(async move { drop(server.accept().await.unwrap().accept().await) });
        let refused = client.connect(&setup.client, address, NAME).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Alpn(_)), "{refused}");
        accepting.await.unwrap();
    })
    .await;
}
