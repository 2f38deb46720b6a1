//! Ends of connections and endpoints.

use std::time::Duration;

use quipu_quic::connection::CloseReason;
use quipu_tokio::{ConnectionError, Endpoint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{ALPN, NAME, Pair, Setup, limited};

#[tokio::test]
async fn a_close_tells_code_and_reason_and_endpoints_become_idle() {
    limited(async {
        let Pair { server, client, here, there } = Setup::new().connect().await;
        assert_eq!(here.alpn().as_deref(), Some(ALPN));
        assert_eq!(there.server_name().as_deref(), Some(NAME));
        assert_eq!(here.peer_certificates().map(|chain| chain.len()), Some(1));
        assert_eq!(here.negotiated(), there.negotiated());
        here.close(42, b"enough");
        let reason = CloseReason::PeerApplication { code: 42, reason: "enough".to_owned() };
        assert_eq!(there.closed().await, ConnectionError::Closed(reason));
        assert_eq!(here.closed().await.application_code(), Some(42));
        assert!(here.open_unidirectional().await.is_err());
        client.wait_idle().await;
        server.wait_idle().await;
        assert_eq!((client.stats().connections, server.stats().connections), (0, 0));
    })
    .await;
}

#[tokio::test]
async fn a_graceful_close_delivers_everything_first() {
    limited(async {
        let pair = Setup::new().connect().await;
        let mut send = pair.here.open_unidirectional().await.unwrap();
        send.write_all(&vec![5; 500_000]).await.unwrap();
        send.finish().unwrap();
        pair.here.close_when_delivered(quipu_base::Duration::from_secs(10), 3, b"done");
        let mut receive = pair.there.accept_unidirectional().await.unwrap();
        let mut read = Vec::new();
        receive.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), 500_000);
        assert_eq!(pair.there.closed().await.application_code(), Some(3));
    })
    .await;
}

/// Waits until the peer's close was heard, and this end's engine has forgotten the connection.
async fn forgotten(endpoint: &Endpoint, connection: &quipu_tokio::Connection) {
    assert_eq!(connection.closed().await.application_code(), Some(3));
    endpoint.wait_idle().await;
}

#[tokio::test]
async fn what_came_before_the_peer_closed_can_be_read_whenever() {
    limited(async {
        let Pair { server, client, here, there } = Setup::new().connect().await;
        let mut whole = there.open_unidirectional().await.unwrap();
        whole.write_all(&vec![5; 200_000]).await.unwrap();
        whole.finish().unwrap();
        let mut part = there.open_unidirectional().await.unwrap();
        part.write_all(b"half a").await.unwrap();
        there.send_datagram("last words".into()).unwrap();
        let mut begun = here.accept_unidirectional().await.unwrap();
        let mut first = [0; 1_000];
        assert_eq!(begun.read(&mut first).await.unwrap(), Some(1_000));
        whole.delivered().await.unwrap();
        // Nobody reads, so that nothing but that has been acknowledged matters.
        there.close_when_delivered(quipu_base::Duration::from_secs(1), 3, b"done");
        forgotten(&client, &here).await;
        drop((client, server));
        assert_eq!(begun.read_to_limit(1_000_000).await.unwrap(), vec![5; 199_000]);
        let mut other = here.accept_unidirectional().await.unwrap();
        let mut bytes = [0; 100];
        assert_eq!(other.read(&mut bytes).await.unwrap(), Some(6));
        let cut = other.read(&mut bytes).await.unwrap_err();
        assert!(matches!(cut, quipu_tokio::ReadError::Lost(_)), "{cut:?}");
        assert_eq!(here.receive_datagram().await.unwrap(), "last words");
        assert_eq!(here.receive_datagram().await.unwrap_err().application_code(), Some(3));
        let none = here.accept_unidirectional().await.unwrap_err();
        assert_eq!(none.application_code(), Some(3));
    })
    .await;
}

#[tokio::test]
async fn who_closes_reads_no_more() {
    limited(async {
        let Pair { server: _server, client: _client, here, there } = Setup::new().connect().await;
        let mut send = there.open_unidirectional().await.unwrap();
        send.write_all(b"abcdef").await.unwrap();
        let mut receive = here.accept_unidirectional().await.unwrap();
        let mut bytes = [0; 2];
        assert_eq!(receive.read(&mut bytes).await.unwrap(), Some(2));
        here.close(9, b"");
        let lost = receive.read(&mut bytes).await.unwrap_err();
        assert!(matches!(lost, quipu_tokio::ReadError::Lost(_)), "{lost:?}");
    })
    .await;
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    limited(async {
        let Pair { server, client, here, there } = Setup::new().connect().await;
        let (send, receive) = here.open_bidirectional().await.unwrap();
        drop(here);
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert_eq!(there.close_reason(), None, "streams keep it open");
        drop(receive);
        drop(send);
        assert_eq!(there.closed().await.application_code(), Some(0));
        client.wait_idle().await;
        drop(server);
    })
    .await;
}

#[tokio::test]
async fn things_may_be_dropped_in_any_order() {
    limited(async {
        for order in 0..24_usize {
            let Pair { server, client, here, there } = Setup::new().connect().await;
            let (mut send, receive) = here.open_bidirectional().await.unwrap();
            send.write_all(b"abc").await.unwrap();
            let streams = there.accept_bidirectional().await.unwrap();
            let mut parts: Vec<Box<dyn std::any::Any>> = vec![
                Box::new((server, streams)),
                Box::new(client),
                Box::new((here, receive)),
                Box::new((there, send)),
            ];
            // Every permutation of four.
            let mut rest = order;
            for left in (1..=4).rev() {
                drop(parts.remove(rest % left));
                rest /= left;
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
}

#[tokio::test]
async fn an_endpoint_that_is_dropped_serves_its_connections_on() {
    limited(async {
        let Pair { server, client, here, there } = Setup::new().connect().await;
        drop((server, client));
        let mut send = here.open_unidirectional().await.unwrap();
        send.write_all(b"still here").await.unwrap();
        send.finish().unwrap();
        let mut receive = there.accept_unidirectional().await.unwrap();
        assert_eq!(receive.read_to_limit(100).await.unwrap(), b"still here");
    })
    .await;
}

#[tokio::test]
async fn closing_an_endpoint_ends_its_connections_and_its_accepting() {
    limited(async {
        let setup = Setup::new();
        let Pair { server, client, here, there } = setup.connect().await;
        let waits = {
            let server = server.clone();
            tokio::spawn(async move { server.accept().await.is_none() })
        };
        tokio::task::yield_now().await;
        server.close(8, b"maintenance");
        assert!(waits.await.unwrap());
        assert_eq!(here.closed().await.application_code(), Some(8));
        assert_eq!(there.closed().await.application_code(), Some(8));
        client.close(0, b"");
        let address = "127.0.0.1:9".parse().unwrap();
        let refused = client.connect(&setup.client, address, NAME).await.unwrap_err();
        assert_eq!(refused.to_string(), "the endpoint is closed");
        assert!(server.wait_idle_for(quipu_base::Duration::from_secs(5)).await);
    })
    .await;
}

#[test]
fn a_runtime_that_ends_ends_the_connections() {
    let setup = Setup::new();
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (driving, waiting) = (runtime(), runtime());
    let pair = driving.block_on(limited(setup.connect()));
    driving.shutdown_background();
    let ended = waiting.block_on(limited(pair.here.closed()));
    assert_eq!(ended, ConnectionError::EndpointGone);
    let opened = waiting.block_on(limited(pair.here.open_unidirectional()));
    assert_eq!(opened.unwrap_err(), ConnectionError::EndpointGone);
    assert!(matches!(Endpoint::client().bind(), Err(quipu_tokio::BindError::NoRuntime)));
}
