//! What a protocol above streams calls a connection for.

use super::{Connection, EditError};
use crate::stream::{Read, StreamError};
use bytes::Bytes;
use quipu_base::{Instant, StreamDirection, StreamId};
use quipu_policy::PriorityEdit;

/// A connection, or what stands before one and takes note of each call: for protocols above streams, such
/// as those of HTTP. Each method does what that of
/// [`Connection`] does that has its name.
#[expect(missing_docs, clippy::missing_errors_doc, reason = "see `Connection`")]
pub trait Calls {
    fn connection(&self) -> &Connection;
    fn open_stream(&mut self, now: Instant, direction: StreamDirection) -> Option<StreamId>;
    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> Result<usize, StreamError>;
    fn write_all(&mut self, now: Instant, stream: StreamId, data: Bytes)
    -> Result<(), StreamError>;
    fn finish(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError>;
    fn reset(&mut self, now: Instant, stream: StreamId, code: u64) -> Result<(), StreamError>;
    fn stop_sending(
        &mut self,
        now: Instant,
        stream: StreamId,
        code: u64,
    ) -> Result<(), StreamError>;
    fn read_at_most(
        &mut self,
        now: Instant,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError>;
    fn expect_stream(&mut self, now: Instant, stream: StreamId) -> bool;
    fn set_control(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError>;
    fn edit_priority(&mut self, now: Instant, edit: PriorityEdit) -> Result<(), EditError>;
    fn read_datagram(&mut self, now: Instant) -> Option<Bytes>;
}

impl Calls for Connection {
    fn connection(&self) -> &Connection {
        self
    }

    fn open_stream(&mut self, now: Instant, direction: StreamDirection) -> Option<StreamId> {
        self.open_stream(now, direction)
    }

    fn write(&mut self, now: Instant, stream: StreamId, data: Bytes) -> Result<usize, StreamError> {
        self.write(now, stream, data)
    }

    fn write_all(
        &mut self,
        now: Instant,
        stream: StreamId,
        data: Bytes,
    ) -> Result<(), StreamError> {
        self.write_all(now, stream, data)
    }

    fn finish(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.finish(now, stream)
    }

    fn reset(&mut self, now: Instant, stream: StreamId, code: u64) -> Result<(), StreamError> {
        self.reset(now, stream, code)
    }

    fn stop_sending(
        &mut self,
        now: Instant,
        stream: StreamId,
        code: u64,
    ) -> Result<(), StreamError> {
        self.stop_sending(now, stream, code)
    }

    fn read_at_most(
        &mut self,
        now: Instant,
        stream: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        self.read_at_most(now, stream, max, sink)
    }

    fn expect_stream(&mut self, now: Instant, stream: StreamId) -> bool {
        self.expect_stream(now, stream)
    }

    fn set_control(&mut self, now: Instant, stream: StreamId) -> Result<(), StreamError> {
        self.set_control(now, stream)
    }

    fn edit_priority(&mut self, now: Instant, edit: PriorityEdit) -> Result<(), EditError> {
        self.edit_priority(now, edit)
    }

    fn read_datagram(&mut self, _now: Instant) -> Option<Bytes> {
        self.read_datagram()
    }
}
