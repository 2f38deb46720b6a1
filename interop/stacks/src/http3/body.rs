//! The body of a request, as services read it.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::quic::RecvStream;
use h3::server::RequestStream;
use http_body::{Body, Frame};

/// Octets as they come; trailers are not read.
pub(super) struct RequestBody<S>(pub(super) RequestStream<S, Bytes>);

impl<S: RecvStream + Unpin> Body for RequestBody<S> {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let polled = self.0.poll_recv_data(cx);
        polled.map(|octets| {
            let octets = octets.transpose()?;
            Some(octets.map(|mut octets| Frame::data(octets.copy_to_bytes(octets.remaining()))))
        })
    }
}
