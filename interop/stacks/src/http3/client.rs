//! The client: requests in their order, and their responses.

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::StreamError;
use h3::quic::{BidiStream, Connection, OpenStreams};
use http::Request;
use quipu_live::foreign::{Doing, ForeignClient, ForeignExchange, ForeignFailure};

use crate::Failure;

/// Octets of a request's body that are sent at a time, at most; our choice.
const CHUNK: usize = 1 << 16;

/// Closes a connection.
type Close = Box<dyn Fn() + Send + Sync>;

struct Client<O: OpenStreams<Bytes>> {
    requests: SendRequest<O, Bytes>,
    close: Close,
}

/// The client of HTTP/3 on `connection`, which `close` ends.
pub(crate) async fn client<C>(
    connection: C,
    close: Close,
) -> Result<Box<dyn ForeignClient>, Failure>
where
    C: Connection<Bytes> + Send + 'static,
    C::OpenStreams: OpenStreams<Bytes> + Clone + Send + Sync + 'static,
    <C::OpenStreams as OpenStreams<Bytes>>::BidiStream: BidiStream<Bytes> + Send + 'static,
    C::SendStream: Send,
    C::RecvStream: Send,
    C::BidiStream: Send,
{
    let (mut driver, requests) = h3::client::new(connection).await?;
    // It ends with the connection.
    tokio::spawn(async move { driver.wait_idle().await });
    Ok(Box::new(Client { requests, close }))
}

impl<O> ForeignClient for Client<O>
where
    O: OpenStreams<Bytes> + Clone + Send + Sync + 'static,
    O::BidiStream: BidiStream<Bytes> + Send + 'static,
{
    fn request(&self, head: Request<()>, body: u64) -> Doing<'_, Box<dyn ForeignExchange>> {
        let mut requests = self.requests.clone();
        Box::pin(async move {
            let stream = requests.send_request(head).await.map_err(ForeignFailure::new)?;
            Ok(Box::new(Exchange { stream, body }) as Box<dyn ForeignExchange>)
        })
    }
}

impl<O: OpenStreams<Bytes>> Drop for Client<O> {
    fn drop(&mut self) {
        (self.close)();
    }
}

struct Exchange<S> {
    stream: RequestStream<S, Bytes>,
    /// Octets of the request's body.
    body: u64,
}

impl<S: BidiStream<Bytes> + Send> Exchange<S> {
    async fn send(&mut self) -> Result<(), StreamError> {
        let zeros = Bytes::from(vec![0; usize::try_from(self.body).unwrap_or(CHUNK).min(CHUNK)]);
        let mut left = self.body;
        while left > 0 {
            let next = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            self.stream.send_data(zeros.slice(..next)).await?;
            left -= next as u64;
        }
        self.stream.finish().await
    }
}

impl<S: BidiStream<Bytes> + Send> ForeignExchange for Exchange<S> {
    fn response(&mut self) -> Doing<'_, u16> {
        Box::pin(async move {
            match self.send().await {
                // A server that has its answer ready may stop the request.
                Ok(()) | Err(StreamError::RemoteTerminate { .. }) => {}
                Err(error) => return Err(ForeignFailure::new(error)),
            }
            let head = self.stream.recv_response().await.map_err(ForeignFailure::new)?;
            Ok(head.status().as_u16())
        })
    }

    fn data(&mut self) -> Doing<'_, Option<Bytes>> {
        Box::pin(async move {
            let octets = self.stream.recv_data().await.map_err(ForeignFailure::new)?;
            Ok(octets.map(|mut octets| octets.copy_to_bytes(octets.remaining())))
        })
    }
}
