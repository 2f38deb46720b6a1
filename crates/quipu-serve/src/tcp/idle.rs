//! Detects connections on which no byte moves.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// When a byte last arrived or left.
#[derive(Clone, Debug)]
struct Moved {
    start: Instant,
    /// Nanoseconds since the start.
    last: Arc<AtomicU64>,
}

impl Moved {
    fn now(&self) {
        let nanos = self.start.elapsed().as_nanos();
        self.last.store(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_nanos(self.last.load(Ordering::Relaxed))
    }
}

/// A stream that records when bytes move.
#[derive(Debug)]
pub(super) struct Watched<T> {
    stream: T,
    moved: Moved,
}

/// A timer that fires when no byte has moved for some time.
#[derive(Debug)]
pub(super) struct Idle {
    moved: Moved,
    after: Duration,
    /// The earliest instant at which the connection can be idle.
    sleep: Pin<Box<Sleep>>,
}

/// Wraps `stream`, with a timer that fires when no byte has moved on it for `after`.
pub(super) fn watch<T>(stream: T, after: Duration) -> (Watched<T>, Idle) {
    let moved = Moved { start: Instant::now(), last: Arc::default() };
    let sleep = Box::pin(sleep_until(moved.start + after));
    (Watched { stream, moved: moved.clone() }, Idle { moved, after, sleep })
}

impl Idle {
    /// Ready when no byte has moved for the whole time since the last byte, or since this was last ready.
    pub(super) fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(cx));
            let ends = self.moved.last() + self.after;
            if ends <= Instant::now() {
                self.sleep.as_mut().reset(Instant::now() + self.after);
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(ends);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Watched<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            self.moved.now();
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Watched<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
        self.moved.now();
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, parts))?;
        self.moved.now();
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
