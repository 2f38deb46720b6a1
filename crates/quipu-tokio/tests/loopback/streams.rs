//! Streams and datagrams.

use bytes::Bytes;
use quipu_tokio::{ReadError, WriteError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::setup::{Setup, limited, narrow, noise};

#[tokio::test]
async fn several_streams_echo_what_was_written() {
    limited(async {
        let pair = Setup::new().connect().await;
        let there = pair.there.clone();
        let echo = tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = there.accept_bidirectional().await {
                tokio::spawn(async move {
                    tokio::io::copy(&mut receive, &mut send).await.unwrap();
                    send.shutdown().await.unwrap();
                    send.delivered().await.unwrap();
                });
            }
        });
        let mut clients = tokio::task::JoinSet::new();
        for nth in 0..8 {
            let here = pair.here.clone();
            clients.spawn(async move {
                let data = noise(nth, 100_000 * nth as usize + 7);
                let (mut send, mut receive) = here.open_bidirectional().await.unwrap();
                let written = data.clone();
                let write = async {
                    send.write_all(&written).await.unwrap();
                    send.finish().unwrap();
                };
                let mut read = Vec::new();
                let (_, result) = tokio::join!(write, receive.read_to_end(&mut read));
                result.unwrap();
                assert!(read == data, "stream {nth} came back changed");
            });
        }
        while let Some(done) = clients.join_next().await {
            done.unwrap();
        }
        pair.here.close(0, b"");
        echo.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_download_arrives_whole_in_batches() {
    limited(async {
        const SIZE: usize = 24 << 20;
        let pair = Setup::new().connect().await;
        let data = Bytes::from(noise(3, SIZE));
        let (there, sent) = (pair.there.clone(), data.clone());
        let server = tokio::spawn(async move {
            let mut send = there.open_unidirectional().await.unwrap();
            send.write_bytes(sent).await.unwrap();
            send.finish().unwrap();
            send.delivered().await.unwrap();
        });
        let mut receive = pair.here.accept_unidirectional().await.unwrap();
        let mut read = Vec::with_capacity(SIZE);
        receive.read_to_end(&mut read).await.unwrap();
        assert!(read == data, "the download arrived changed");
        server.await.unwrap();
        let sent = pair.server.stats().sent;
        assert!(sent.bytes > SIZE as u64);
        assert!(sent.datagrams > 3 * sent.calls, "no batches: {sent:?}");
    })
    .await;
}

#[tokio::test]
async fn writing_stops_when_windows_are_full_and_goes_on_as_the_peer_reads() {
    limited(async {
        let pair = Setup::with(narrow(20_000)).connect().await;
        let mut send = pair.here.open_unidirectional().await.unwrap();
        let data = noise(1, 300_000);
        let mut written = 0;
        while let Ok(took) = tokio::time::timeout(
            std::time::Duration::from_millis(100),
            send.write(&data[written..]),
        )
        .await
        {
            written += took.unwrap();
        }
        assert!((20_000..100_000).contains(&written), "{written} bytes were taken");
        let mut receive = pair.there.accept_unidirectional().await.unwrap();
        let rest = async {
            send.write_all(&data[written..]).await.unwrap();
            send.shutdown().await.unwrap();
        };
        let mut read = Vec::new();
        let (_, result) = tokio::join!(rest, receive.read_to_end(&mut read));
        result.unwrap();
        assert!(read == data);
    })
    .await;
}

#[tokio::test]
async fn opening_waits_while_the_peer_allows_no_more() {
    limited(async {
        let transport = quipu_tokio::TransportConfig { max_streams: 1, ..Default::default() };
        let pair = Setup::with(transport).connect().await;
        let mut first = pair.here.open_unidirectional().await.unwrap();
        first.write_all(b"one").await.unwrap();
        let second = pair.here.open_unidirectional();
        tokio::pin!(second);
        let soon = std::time::Duration::from_millis(50);
        assert!(tokio::time::timeout(soon, &mut second).await.is_err());
        first.finish().unwrap();
        let mut receive = pair.there.accept_unidirectional().await.unwrap();
        assert_eq!(receive.read_to_limit(10).await.unwrap(), b"one");
        drop(receive);
        second.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_reset_and_a_stop_tell_their_codes() {
    limited(async {
        let pair = Setup::new().connect().await;
        let (mut send, mut receive) = pair.here.open_bidirectional().await.unwrap();
        send.write_all(b"hello").await.unwrap();
        let (mut answer, mut question) = pair.there.accept_bidirectional().await.unwrap();
        let mut five = [0; 5];
        question.read_exact(&mut five).await.unwrap();
        send.reset(7).unwrap();
        assert_eq!(question.read(&mut five).await, Err(ReadError::Reset(7)));
        receive.stop(9).unwrap();
        let stopped = loop {
            if let Err(error) = answer.write(b"x").await {
                break error;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(stopped, WriteError::Stopped(9));
        assert_eq!(send.write(b"more").await, Err(WriteError::Finished));
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_read_loses_nothing() {
    limited(async {
        let pair = Setup::new().connect().await;
        let data = noise(5, 200_000);
        let sent = data.clone();
        let here = pair.here.clone();
        let writer = tokio::spawn(async move {
            let mut send = here.open_unidirectional().await.unwrap();
            for piece in sent.chunks(4_000) {
                send.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            send.finish().unwrap();
            send.delivered().await.unwrap();
        });
        let mut receive = pair.there.accept_unidirectional().await.unwrap();
        let mut read = Vec::new();
        let mut buffer = [0; 3_000];
        loop {
            tokio::select! {
                biased;
                got = receive.read(&mut buffer) => match got.unwrap() {
                    Some(got) => read.extend_from_slice(&buffer[..got]),
                    None => break,
                },
                () = tokio::task::yield_now() => {}
            }
        }
        assert!(read == data);
        writer.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn datagrams_go_both_ways() {
    limited(async {
        let pair = Setup::new().connect().await;
        pair.here.confirmed().await.unwrap();
        assert!(pair.here.max_datagram_size().unwrap() > 1_000);
        for nth in 0..100_u32 {
            pair.here.send_datagram(Bytes::copy_from_slice(&nth.to_be_bytes())).unwrap();
            let question = pair.there.receive_datagram().await.unwrap();
            assert_eq!(question[..], nth.to_be_bytes());
            pair.there.send_datagram(question).unwrap();
            assert_eq!(pair.here.receive_datagram().await.unwrap()[..], nth.to_be_bytes());
        }
        let stats = pair.here.stats().unwrap();
        assert!(stats.totals.packets_sent >= 100);
        let large = Bytes::from(vec![0; 70_000]);
        assert!(pair.here.send_datagram(large).is_err());
    })
    .await;
}
