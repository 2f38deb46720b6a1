//! The receiving half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quipu_base::{Instant, StreamId};
use tokio::io::{AsyncRead, ReadBuf};

use crate::engine::Calls;
use crate::entry::Entry;
use crate::error::ReadError;
use crate::holder::Holder;

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
    /// the end of the stream. Cancelling loses none. Only what is read lets the peer send more.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        let mut buffer = ReadBuf::new(buffer);
        std::future::poll_fn(|cx| self.poll_read_some(cx, &mut buffer)).await?;
        let read = buffer.filled().len();
        Ok((read > 0 || self.end != End::Read).then_some(read))
    }

    /// Reads to the end of the stream, of which `limit` bytes at most are kept.
    ///
    /// # Errors
    /// See [`ReadError`]; a longer stream is stopped.
    pub async fn read_to_limit(&mut self, limit: usize) -> Result<Vec<u8>, ReadError> {
        let mut all = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        while let Some(read) = self.read(&mut buffer).await? {
            if all.len() + read > limit {
                self.stop(0)?;
                return Err(ReadError::Stopped);
            }
            all.extend_from_slice(&buffer[..read]);
        }
        Ok(all)
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReadError>> {
        match &self.end {
            End::Read => return Poll::Ready(Ok(())),
            End::Failed(error) => return Poll::Ready(Err(error.clone())),
            End::Open if buffer.remaining() == 0 => return Poll::Ready(Ok(())),
            End::Open => {}
        }
        let read = match self.is_ready(cx) {
            Ok(true) => ready!(self.read_now(cx, buffer)),
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
            let Some(stream) = entry.streams.get_mut(&self.stream) else { return Ok(true) };
            if stream.readable && entry.ended.is_none() {
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
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<(), ReadError>> {
        let stream = self.stream;
        let read = |connection: &mut Calls<'_>, entry: &mut Entry, now: Instant| {
            let room = buffer.remaining() as u64;
            let sink = &mut |piece: &[u8]| buffer.put_slice(piece);
            let read = connection.read_at_most(now, stream, room, sink);
            let state = entry.streams.get_mut(&stream);
            match read {
                Ok(read) if read.end => Poll::Ready(Ok(true)),
                Ok(read) => {
                    if let Some(state) = state
                        && read.bytes < room
                    {
                        // That was all: the engine tells of more.
                        state.readable = false;
                        if read.bytes == 0 {
                            state.reader = Some(cx.waker().clone());
                            return Poll::Pending;
                        }
                    }
                    Poll::Ready(Ok(false))
                }
                Err(_) => {
                    let code = state.and_then(|state| state.reset);
                    Poll::Ready(Err(code.map_or(ReadError::Stopped, ReadError::Reset)))
                }
            }
        };
        let read = self.holder.shared.with_connection(self.holder.handle, read)?;
        if ready!(read)? {
            self.end = End::Read;
        }
        Poll::Ready(Ok(()))
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
        let read = ready!(self.get_mut().poll_read_some(cx, buffer));
        Poll::Ready(read.map_err(io::Error::from))
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
