//! The end of a connection that leaves nothing behind.
//!
//! A socket that is closed while bytes of the peer are unread, or come later, is reset by the kernel, and the peer loses
//! what it has not received yet: the end of a response, while it still acknowledges the beginning.
//! <https://www.rfc-editor.org/rfc/rfc9112#section-9.6>

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a client that was told the end may go on sending, at most; our choice.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// Bytes that are read from it at a time, and at most; our choice.
const CHUNK: usize = 4 * 1_024;
const MOST: usize = 1_024 * 1_024;

/// A stream that is given back when whoever it was lent to drops it.
#[derive(Debug)]
pub(super) struct Lent<T> {
    /// There until it is dropped.
    stream: Option<T>,
    back: Option<oneshot::Sender<T>>,
}

/// Lends `stream`.
pub(super) fn lent<T>(stream: T) -> (Lent<T>, oneshot::Receiver<T>) {
    let (back, given_back) = oneshot::channel();
    (Lent { stream: Some(stream), back: Some(back) }, given_back)
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let (Some(stream), Some(back)) = (self.stream.take(), self.back.take()) {
            // Else nobody waits for it.
            let _ = back.send(stream);
        }
    }
}

/// Ends the connection of a stream that was given back: what was written arrives, and what the client still sends is
/// read, until it ends the connection, too, or `patience` is over.
pub(super) async fn linger(mut given_back: oneshot::Receiver<TcpStream>, patience: Duration) {
    let Ok(mut stream) = given_back.try_recv() else { return };
    let read = async {
        let mut scrap = vec![0; CHUNK];
        let mut left = MOST;
        stream.shutdown().await?;
        while left > 0 {
            match stream.read(&mut scrap).await? {
                0 => break,
                count => left = left.saturating_sub(count),
            }
        }
        io::Result::Ok(())
    };
    // However it ends, the connection is over.
    let _ = timeout(patience, read).await;
}

impl<T: Unpin> Lent<T> {
    fn stream(&mut self) -> io::Result<Pin<&mut T>> {
        let stream = self.stream.as_mut().map(Pin::new);
        stream.ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Lent<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream()?.poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Lent<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What a client gets of a megabyte that was written, if it has sent bytes that nobody has read.
    async fn received(lingers: bool) -> io::Result<usize> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut client = TcpStream::connect(listener.local_addr()?).await?;
        let (server, _) = listener.accept().await?;
        client.write_all(&[1; 1_000]).await?;
        let (mut stream, given_back) = lent(server);
        let serving = tokio::spawn(async move {
            stream.write_all(&vec![7; 1 << 20]).await.unwrap();
            drop(stream);
            if lingers {
                linger(given_back, Duration::from_secs(60)).await;
            }
        });
        let mut all = Vec::new();
        let read = client.read_to_end(&mut all).await;
        drop(client);
        serving.await.unwrap();
        read.map(|_| all.len())
    }

    #[tokio::test]
    async fn a_client_that_still_sends_gets_all_that_was_written() {
        assert_eq!(received(true).await.unwrap(), 1 << 20);
        assert!(received(false).await.is_err(), "the kernel resets connections");
    }

    #[tokio::test]
    async fn patience_with_a_client_that_does_not_end_is_over_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let _client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let (stream, given_back) = lent(server);
        drop(stream);
        linger(given_back, Duration::from_millis(10)).await;
    }
}
