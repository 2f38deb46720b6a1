//! The application's streams: open, write, read, end.

use quipu_base::{Bytes, Instant, StreamDirection, StreamId};

use super::Connection;
use crate::recorder::{StreamSide, StreamState};
use crate::stream::{Read, StreamError};

impl Connection {
    /// Opens a stream; `None` while the peer's limit or the handshake does not allow one, and once the
    /// connection is to [close](Connection::close_when_delivered).
    pub fn open_stream(&mut self, now: Instant, direction: StreamDirection) -> Option<StreamId> {
        let leaves = self.lifecycle.farewell().is_some();
        if !self.handshake.peer().known || !self.lifecycle.is_open() || leaves {
            return None;
        }
        let stream = self.shared.streams.open(direction, now).ok()?;
        self.flush_edges(now);
        Some(stream)
    }

    /// Appends bytes to a stream: as many as there is [room](Self::send_room) for. Returns how many.
    /// If not all were taken, [`ConnectionEvent::Writable`](super::ConnectionEvent::Writable) tells
    /// when there is room for more.
    ///
    /// # Errors
    /// If the stream is not open for sending, or was finished.
    pub fn write(
        &mut self,
        now: Instant,
        stream: StreamId,
        data: bytes::Bytes,
    ) -> Result<usize, StreamError> {
        let taken = self.shared.streams.write(stream, data)?;
        self.flush_edges(now);
        Ok(taken)
    }

    /// Appends all bytes to a stream, whether there is room or not: for those who limit by other means
    /// what they write.
    ///
    /// # Errors
    /// If the stream is not open for sending, or was finished.
    pub fn write_all(
        &mut self,
        now: Instant,
        stream: StreamId,
        data: bytes::Bytes,
    ) -> Result<(), StreamError> {
        self.shared.streams.write_all(stream, data)?;
        self.flush_edges(now);
        Ok(())
    }

    /// Bytes that a [write](Self::write) on a stream takes now, of the
    /// [buffer](crate::TransportConfig::send_buffer) that all streams share; none if it is not open for
    /// sending, all on a control stream.
    pub fn send_room(&self, stream: StreamId) -> usize {
        self.shared.streams.send_room(stream)
    }

    /// Bytes that were written to a stream and never sent; none if it is not open for sending.
    pub fn unsent_on(&self, stream: StreamId) -> Bytes {
        self.shared.streams.unsent(stream)
    }

    /// Ends a stream after what was written.
    ///
    /// # Errors
    /// If the stream is not open for sending.
    pub fn finish(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.shared.streams.finish(stream)?;
        self.flush_edges(now);
        Ok(())
    }

    /// Gives up sending on a stream; the peer is told `code`.
    ///
    /// # Errors
    /// If the stream is not open for sending.
    pub fn reset(&mut self, now: Instant, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.shared.streams.reset(stream, code)?;
        self.record_stream(now, stream, StreamSide::Sending, StreamState::ResetSent);
        self.flush_edges(now);
        Ok(())
    }

    /// Asks the peer to send no more on a stream; what comes is dropped.
    ///
    /// # Errors
    /// If the stream is not open for receiving.
    pub fn stop_sending(
        &mut self,
        now: Instant,
        stream: StreamId,
        code: u64,
    ) -> Result<(), StreamError> {
        self.shared.streams.stop_sending(stream, code)?;
        self.flush_edges(now);
        Ok(())
    }

    /// Reads all bytes that are there in order; `sink` is given them in a few pieces.
    ///
    /// # Errors
    /// If the stream is not open for receiving.
    pub fn read(
        &mut self,
        now: Instant,
        stream: StreamId,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        self.read_at_most(now, stream, u64::MAX, sink)
    }

    /// Reads up to `max` bytes that are there in order; `sink` is given them in a few pieces. Only what
    /// was read gives the peer credit for more.
    ///
    /// # Errors
    /// If the stream is not open for receiving.
    pub fn read_at_most(
        &mut self,
        now: Instant,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        let read = self.shared.streams.read(stream, max, sink)?;
        if read.end {
            self.record_stream(now, stream, StreamSide::Receiving, StreamState::DataRead);
        }
        self.flush_edges(now);
        Ok(read)
    }

    /// Opens a stream on which the peer sends and of which nothing has come, as the application knows that
    /// the peer has opened it: so it can be [stopped](Connection::stop_sending). False if the peer may not
    /// open it, or it is over.
    pub fn expect_stream(&mut self, now: Instant, stream: StreamId) -> bool {
        let is_open = self.shared.streams.ensure_receiving(stream, now);
        self.flush_edges(now);
        is_open
    }

    /// Streams of a direction that the peer may have opened in all by now, as it was told; also those
    /// that are over count.
    pub fn peer_stream_limit(&self, direction: StreamDirection) -> u64 {
        self.shared.streams.peer_stream_limit(direction)
    }

    /// Marks a stream as control stream: hidden from policies, sent before everything else.
    ///
    /// # Errors
    /// If the stream is not open for sending.
    pub fn set_control(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.shared.streams.set_control(stream)?;
        self.flush_edges(now);
        Ok(())
    }

    /// Bytes that were written and never sent, on all streams but the control streams.
    pub fn unsent(&self) -> Bytes {
        self.shared.streams.conn_view().unsent
    }
}
