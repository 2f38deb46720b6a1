//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quipu_base::{Instant, StreamId};
use quipu_quic::connection::Calls as _;
use tokio::io::{AsyncRead, ReadBuf};

use crate::engine::Calls;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::holder::Holder;

/// Bytes that one read takes, at most, where all are wanted: it copies them while it holds the endpoint.
/// Our choice.
const MAX_READ: usize = 1 << 16;

/// The receiving half of a stream. Dropped before its end was read, the peer is asked to stop, with
/// code 0.
pub struct RecvStream {
    holder: Arc<Holder>,
    stream: StreamId,
    end: End,
}

/// How far a stream is over.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Open,
    Read,
    Failed(ReadError),
}

impl RecvStream {
    pub(crate) fn new(holder: Arc<Holder>, stream: StreamId) -> Self {
        RecvStream { holder, stream, end: End::Open }
    }

    /// Its identifier.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Reads bytes into `buffer`, as many as are there and fit; waits while there are none. `None` at
    /// the end of the stream. Cancelling loses none. Only what is read lets the peer send more. What had come
    /// before the peer closed the connection is read after it, too.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let mut buffer = ReadBuf::new(buffer);
        let room = buffer.remaining();
        self.read_with(room, &mut |piece| buffer.put_slice(piece)).await
    }

    /// The same into `sink`, piece by piece, `max` bytes at most.
    async fn read_with(
        &mut self,
        max: usize,
        sink: &mut (dyn FnMut(&[u8]) + Send),
    ) -> Result<Option<usize>, ReadError> {
        let read = std::future::poll_fn(|cx| self.poll_read_some(cx, max, sink)).await?;
        Ok((read > 0 || self.end != End::Read).then_some(read))
    }

    /// Reads to the end of the stream, of which `limit` bytes at most are kept.
    ///
    /// # Errors
    /// See [`ReadError`]; a longer stream is stopped.
    pub async fn read_to_limit(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        loop {
            // One more tells whether there is more.
            let max = (limit - all.len()).saturating_add(1).min(MAX_READ);
            let read = self.read_with(max, &mut |piece| all.extend_from_slice(piece)).await?;
            if all.len() > limit {
                self.stop(0)?;
                return Err(ReadError::Stopped);
            }
            if read.is_none() {
                return Ok(all);
            }
        }
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<usize, ReadError>> {
        match &self.end {
            End::Read => return Poll::Ready(Ok(0)),
            End::Failed(error) => return Poll::Ready(Err(error.clone())),
            End::Open if max == 0 => return Poll::Ready(Ok(0)),
            End::Open => {}
        }
        let read = match self.is_ready(cx) {
            Ok(true) => ready!(self.read_now(cx, max as u64, sink)),
            Ok(false) => return Poll::Pending,
            Err(error) => Err(error),
        };
        if let Err(error) = &read {
            self.end = End::Failed(error.clone());
        }
        Poll::Ready(read)
    }

    /// True if the engine is to be asked; otherwise the task is woken when it is.
    fn is_ready(&self, cx: &Context<'_>) -> Result<bool, ReadError> {
        let look = |entry: &mut Entry| {
            let end_of_reading = entry.end_of_reading().cloned();
            let Some(stream) = entry.streams.get_mut(&self.stream) else { return Ok(true) };
            // Also after the peer closed.
            if stream.readable && end_of_reading.is_none() {
                return Ok(true);
            }
            if let Some(code) = stream.reset {
                return Err(ReadError::Reset(code));
            }
            if let Some(error) = &entry.ended {
                return Err(ReadError::Lost(error.clone()));
            }
            stream.reader = Some(cx.waker().clone());
            Ok(false)
        };
        self.holder.shared.with_entry(self.holder.handle, look)?
    }

    fn read_now(
        &mut self,
        cx: &mut Context<'_>,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Poll<Result<usize, ReadError>> {
        let stream = self.stream;
        let read = |connection: &mut Calls<'_>, entry: &mut Entry, now: Instant| {
            let read = connection.read_at_most(now, stream, max, sink);
            let state = entry.streams.get_mut(&stream);
            match read {
                Ok(read) if read.end => Poll::Ready(Ok(read)),
                Ok(read) => {
                    if let Some(state) = state
                        && read.bytes < max
                    {
                        // That was all: the engine tells of more.
                        state.readable = false;
                        if let Some(error) = entry.ended.as_ref().filter(|_| read.bytes == 0) {
                            return Poll::Ready(Err(ReadError::Lost(error.clone())));
                        }
                        if read.bytes == 0 {
                            state.reader = Some(cx.waker().clone());
                            return Poll::Pending;
                        }
                    }
                    Poll::Ready(Ok(read))
                }
                Err(_) => {
                    let code = state.and_then(|state| state.reset);
                    Poll::Ready(Err(code.map_or(ReadError::Stopped, ReadError::Reset)))
                }
            }
        };
        let read = self.holder.shared.with_readable(self.holder.handle, read)?;
        let read = ready!(read)?;
        if read.end {
            self.end = End::Read;
        }
        // No more than `max`.
        Poll::Ready(Ok(read.bytes as usize))
    }

    /// Asks the peer to send no more; it is told `code`. What came and was not read is dropped.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn stop(&mut self, code: u64) -> Result<(), ReadError> {
        let stream = self.stream;
        self.holder.shared.with_connection(self.holder.handle, |connection, _, now| {
            connection.stop_sending(now, stream, code).map_err(|_| ReadError::Stopped)
        })??;
        self.end = End::Failed(ReadError::Stopped);
        Ok(())
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let room = buffer.remaining();
        let sink = &mut |piece: &[u8]| buffer.put_slice(piece);
        let read = ready!(self.get_mut().poll_read_some(cx, room, sink));
        Poll::Ready(read.map(|_| ()).map_err(io::Error::from))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        let (stream, open) = (self.stream, self.end == End::Open);
        self.holder.shared.forget_stream(self.holder.handle, stream, |connection, state, now| {
            state.receiving = false;
            state.reader = None;
            if open {
                // It may be over: reset by the peer.
                let _ = connection.stop_sending(now, stream, 0);
            }
        });
    }
}

impl std::fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.stream).finish_non_exhaustive()
    }
}
