//! The sending half of a stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use quipu_base::{Instant, StreamId};
use quipu_policy::PriorityEdit;
use quipu_quic::connection::Calls as _;
use tokio::io::AsyncWrite;

use crate::chunks::MAX_COPY;
use crate::engine::Calls;
use crate::entry::{Entry, Stream};
use crate::error::{EditPriorityError, WriteError};
use crate::holder::Holder;

/// The sending half of a stream. Dropped without [`SendStream::finish`], it is reset with code 0, so
/// that the peer does not take a part for the whole.
pub struct SendStream {
    holder: Arc<Holder>,
    stream: StreamId,
    finished: bool,
}

impl SendStream {
    pub(crate) fn new(holder: Arc<Holder>, stream: StreamId) -> Self {
        SendStream { holder, stream, finished: false }
    }

    /// Its identifier.
    pub fn id(&self) -> StreamId {
        self.stream
    }

    /// Writes as many bytes as there is room for, at least one unless `data` is empty; waits while
    /// there is none. Cancelling writes none.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        std::future::poll_fn(|cx| self.poll_write_some(cx, data)).await
    }

    /// Writes all of `data` without a copy; waits while there is no room. If it is cancelled, a part
    /// may have been written.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn write_bytes(&mut self, mut data: Bytes) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = std::future::poll_fn(|cx| self.poll_write_with(cx, |_| data.clone()));
            let written = written.await?;
            data = data.slice(written..);
        }
        Ok(())
    }

    fn poll_write_some(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_write_with(cx, |room| {
            // Without room, the engine is to tell when there is.
            self.holder.shared.chunks.copy(&data[..data.len().min(room.clamp(1, MAX_COPY))])
        })
    }

    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        data: impl FnOnce(usize) -> Bytes,
    ) -> Poll<Result<usize, WriteError>> {
        if self.finished {
            return Poll::Ready(Err(WriteError::Finished));
        }
        if !self.is_ready(cx, |stream| stream.writable)? {
            return Poll::Pending;
        }
        let stream = self.stream;
        let write = |connection: &mut Calls<'_>, entry: &mut Entry, now: Instant| {
            let state = entry.streams.get_mut(&stream);
            if let Some(code) = state.as_ref().and_then(|state| state.stopped) {
                return Poll::Ready(Err(WriteError::Stopped(code)));
            }
            let data = data(connection.send_room(stream));
            match connection.write(now, stream, data) {
                Ok(0) => {
                    if let Some(state) = state {
                        state.writable = false;
                        state.writer = Some(cx.waker().clone());
                    }
                    Poll::Pending
                }
                Ok(taken) => Poll::Ready(Ok(taken)),
                Err(_) => Poll::Ready(Err(WriteError::Finished)),
            }
        };
        self.holder.shared.with_connection(self.holder.handle, write)?
    }

    /// True if the engine is to be asked; otherwise the task is woken when it is.
    fn is_ready(
        &self,
        cx: &Context<'_>,
        is_ready: impl FnOnce(&Stream) -> bool,
    ) -> Result<bool, WriteError> {
        let look = |entry: &mut Entry| {
            if let Some(error) = &entry.ended {
                return Err(WriteError::Lost(error.clone()));
            }
            let Some(stream) = entry.streams.get_mut(&self.stream) else { return Ok(true) };
            if is_ready(stream) {
                return Ok(true);
            }
            stream.writer = Some(cx.waker().clone());
            Ok(false)
        };
        self.holder.shared.with_entry(self.holder.handle, look)?
    }

    /// Ends the stream after what was written. The peer reads the end once it has read all before.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let stream = self.stream;
        let finish = |connection: &mut Calls<'_>, entry: &mut Entry, now: Instant| {
            if let Some(code) = entry.streams.get(&stream).and_then(|stream| stream.stopped) {
                return Err(WriteError::Stopped(code));
            }
            connection.finish(now, stream).map_err(|_| WriteError::Finished)
        };
        self.holder.shared.with_connection(self.holder.handle, finish)??;
        self.finished = true;
        Ok(())
    }

    /// Waits until the peer has all that was written and the end, which [`SendStream::finish`] has set.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        std::future::poll_fn(|cx| {
            let look = |entry: &mut Entry| {
                let Some(stream) = entry.streams.get_mut(&self.stream) else {
                    return Poll::Ready(Err(WriteError::Finished));
                };
                if stream.delivered {
                    return Poll::Ready(Ok(()));
                }
                if let Some(code) = stream.stopped {
                    return Poll::Ready(Err(WriteError::Stopped(code)));
                }
                if let Some(error) = &entry.ended {
                    return Poll::Ready(Err(WriteError::Lost(error.clone())));
                }
                stream.writer = Some(cx.waker().clone());
                Poll::Pending
            };
            self.holder.shared.with_entry(self.holder.handle, look)?
        })
        .await
    }

    /// Gives up sending; the peer is told `code`.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn reset(&mut self, code: u64) -> Result<(), WriteError> {
        let stream = self.stream;
        self.holder.shared.with_connection(self.holder.handle, |connection, _, now| {
            connection.reset(now, stream, code).map_err(|_| WriteError::Finished)
        })??;
        self.finished = true;
        Ok(())
    }

    /// Sets the urgency of RFC 9218, which policies that look at priorities go by.
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-4>
    ///
    /// `urgency`: 0 (most urgent) to 7. `incremental`: whether parts of the stream are of use.
    ///
    /// # Errors
    /// See [`EditPriorityError`].
    pub fn set_priority(&self, urgency: u8, incremental: bool) -> Result<(), EditPriorityError> {
        let edit = PriorityEdit::Urgency { stream: self.stream, urgency, incremental };
        self.holder.shared.with_connection(self.holder.handle, |connection, _, now| {
            connection.edit_priority(now, edit).map_err(EditPriorityError::from)
        })?
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(self.get_mut().poll_write_some(cx, data));
        Poll::Ready(written.map_err(io::Error::from))
    }

    /// What was written is sent without this.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Ends the stream, as [`SendStream::finish`] does.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        Poll::Ready(if this.finished { Ok(()) } else { this.finish().map_err(io::Error::from) })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let (stream, finished) = (self.stream, self.finished);
        self.holder.shared.forget_stream(self.holder.handle, stream, |connection, state, now| {
            state.sending = false;
            state.writer = None;
            if !finished {
                // It may be over: stopped by the peer.
                let _ = connection.reset(now, stream, 0);
            }
        });
    }
}

impl std::fmt::Debug for SendStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendStream").field("id", &self.stream).finish_non_exhaustive()
    }
}
