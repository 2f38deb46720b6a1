//! Streams that last as long as a script, of bytes that both ends know, and when they came.

use bytes::Bytes;
use quipu_base::{Rng, Seed};
use quipu_tokio::{Connection, RecvStream, SendStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Content repeats after so many bytes: a prime, so that no piece passes for its neighbour.
const PERIOD: usize = 65_521;

/// Bytes of the largest write and read.
const MOST: usize = 1 << 17;

/// Data of one direction.
#[derive(Clone)]
pub(crate) struct Way {
    content: Bytes,
    piece: usize,
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    /// When the receiver's application got bytes, one entry for each read.
    progress: Arc<Mutex<Vec<Instant>>>,
}

impl Way {
    pub(crate) fn new(seed: u64, piece: usize) -> Way {
        let mut content = vec![0; PERIOD];
        Seed::new(seed).stream("content", 0).fill_bytes(&mut content);
        while content.len() < PERIOD + MOST {
            content.extend_from_within(..PERIOD);
        }
        Way {
            content: content.into(),
            piece,
            stop: Arc::default(),
            sent: Arc::default(),
            received: Arc::default(),
            progress: Arc::default(),
        }
    }

    /// Senders end their streams.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Bytes that were written and that were read.
    pub(crate) fn moved(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.received.load(Ordering::Relaxed))
    }

    /// The longest time without a byte of which a part is after `begin` and before `end`: from when to
    /// when.
    pub(crate) fn longest_gap(&self, begin: Instant, end: Instant) -> (Instant, Instant) {
        let progress = self.progress.lock().unwrap();
        let first = progress.partition_point(|at| *at <= begin).saturating_sub(1);
        let mut longest = (begin, begin);
        let mut consider = |from: Instant, to: Instant| {
            if to - from > longest.1 - longest.0 {
                longest = (from, to);
            }
        };
        for pair in progress[first..].windows(2) {
            if pair[0] >= end {
                break;
            }
            consider(pair[0], pair[1]);
        }
        if let Some(last) = progress.last().filter(|last| **last < end) {
            consider(*last, end);
        }
        longest
    }

    fn bytes(&self, stream: u64, at: usize, length: usize) -> Bytes {
        let begin = (at + stream as usize * 7_919) % PERIOD;
        self.content.slice(begin..begin + length)
    }

    /// Writes so many streams at a time until [`Way::stop`]; returns when the peer has them.
    pub(crate) async fn send(self, connection: Connection, streams: usize) -> Result<(), String> {
        let mut all = JoinSet::new();
        for _ in 0..streams {
            let stream = connection.open_unidirectional().await.map_err(|e| e.to_string())?;
            all.spawn(self.clone().send_one(stream));
        }
        while let Some(one) = all.join_next().await {
            one.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    async fn send_one(self, mut stream: SendStream) -> Result<(), String> {
        let number = stream.id().index();
        let mut at = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let piece = self.bytes(number, at, self.piece);
            stream.write_bytes(piece).await.map_err(|error| format!("write: {error}"))?;
            at += self.piece;
            self.sent.fetch_add(self.piece as u64, Ordering::Relaxed);
        }
        stream.finish().map_err(|error| error.to_string())?;
        stream.delivered().await.map_err(|error| format!("delivery: {error}"))
    }

    /// Reads so many streams to their ends and compares them with what was written.
    pub(crate) async fn receive(self, from: Connection, streams: usize) -> Result<(), String> {
        let mut all = JoinSet::new();
        for _ in 0..streams {
            let stream = from.accept_unidirectional().await.map_err(|error| error.to_string())?;
            all.spawn(self.clone().receive_one(stream));
        }
        while let Some(one) = all.join_next().await {
            one.map_err(|error| error.to_string())??;
        }
        Ok(())
    }

    async fn receive_one(self, mut stream: RecvStream) -> Result<(), String> {
        let number = stream.id().index();
        let mut buffer = vec![0; MOST];
        let mut at = 0;
        loop {
            let read = stream.read(&mut buffer).await.map_err(|error| format!("read: {error}"))?;
            let Some(length) = read else { return Ok(()) };
            self.progress.lock().unwrap().push(Instant::now());
            if buffer[..length] != self.bytes(number, at, length) {
                return Err(format!("stream {number} came changed at byte {at}"));
            }
            at += length;
            self.received.fetch_add(length as u64, Ordering::Relaxed);
        }
    }
}

#[test]
fn the_longest_gap_counts_from_the_last_byte_before() {
    let way = Way::new(1, 1_000);
    let begin = Instant::now();
    let at = |millis| begin + Duration::from_millis(millis);
    *way.progress.lock().unwrap() = [0, 10, 50, 60, 200].map(at).to_vec();
    assert_eq!(way.longest_gap(at(20), at(55)), (at(10), at(50)));
    assert_eq!(way.longest_gap(at(55), at(70)), (at(60), at(200)));
    assert_eq!(way.longest_gap(at(190), at(900)), (at(200), at(900)));
}
