//! Bytes without end: a source that always has more to send, and a sink that counts.

use quipu_base::{Bytes, Instant, StreamDirection, StreamId};
use quipu_quic::{Connection, StreamError};
use quipu_web::page::ObjectId;

use crate::pages::body_parts;
use quipu_scenario::FlowSpec;

/// What is always ready to be sent, at the least. Our choice: more than any burst.
const LEAST_READY: Bytes = Bytes(512 << 10);
/// The same at the most, however large windows become.
const MOST_READY: Bytes = Bytes(64 << 20);

/// Writes to the streams of a connection, so that unsent bytes never run out and stay few.
pub(super) struct Source {
    streams_to_open: u32,
    streams: Vec<Writing>,
    /// Bytes that are yet to be written; `None`: without end.
    left: Option<Bytes>,
    finished: bool,
}

struct Writing {
    stream: StreamId,
    written: Bytes,
}

impl Source {
    pub(super) fn new(flow: &FlowSpec) -> Source {
        Source {
            streams_to_open: flow.streams,
            streams: Vec::new(),
            left: flow.bytes,
            finished: false,
        }
    }

    /// Opens streams and writes as far as there is room for more.
    pub(super) fn top_up(
        &mut self,
        connection: &mut Connection,
        now: Instant,
    ) -> Result<(), StreamError> {
        if self.finished || !connection.is_connected() {
            return Ok(());
        }
        while self.streams_to_open > 0
            && let Some(stream) = connection.open_stream(now, StreamDirection::Unidirectional)
        {
            self.streams_to_open -= 1;
            self.streams.push(Writing { stream, written: Bytes::ZERO });
        }
        let (unsent, ready) = (connection.unsent(), ready(connection));
        if unsent >= ready || self.streams.is_empty() {
            return Ok(());
        }
        // Half of it may go before this is looked at again.
        let each = (ready.saturating_mul(2) - unsent).0.div_ceil(self.streams.len() as u64);
        for Writing { stream, written } in &mut self.streams {
            let len = self.left.map_or(Bytes(each), |left| left.min(Bytes(each)));
            for part in body_parts(ObjectId(0), *written, len) {
                connection.write_all(now, *stream, part)?;
            }
            *written += len;
            self.left = self.left.map(|left| left - len);
        }
        if self.left == Some(Bytes::ZERO) && self.streams_to_open == 0 {
            self.finished = true;
            for Writing { stream, .. } in &self.streams {
                connection.finish(now, *stream)?;
            }
        }
        Ok(())
    }
}

/// Unsent bytes that are enough: twice what all windows hold, so that no path finds nothing to send.
fn ready(connection: &Connection) -> Bytes {
    let windows: Bytes = connection.path_views().map(|path| path.cwnd).sum();
    windows.saturating_mul(2).clamp(LEAST_READY, MOST_READY)
}

/// Reads everything.
pub(super) struct Sink {
    received: Bytes,
    expected: Option<Bytes>,
}

impl Sink {
    pub(super) fn new(flow: &FlowSpec) -> Sink {
        Sink { received: Bytes::ZERO, expected: flow.bytes }
    }

    /// Reads what is there on `stream`.
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
        now: Instant,
    ) -> Result<(), StreamError> {
        let received = &mut self.received;
        connection.read(now, stream, &mut |data| *received += Bytes(data.len() as u64))?;
        Ok(())
    }

    /// Bytes read so far, in order on each stream.
    pub(super) fn received(&self) -> Bytes {
        self.received
    }

    /// True once all bytes are there.
    pub(super) fn is_complete(&self) -> bool {
        self.expected.is_some_and(|expected| self.received >= expected)
    }
}
