//! What requests carry: as many bytes as on the page, whatever they are.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::body::CHUNK;

/// A body of zeros.
#[derive(Debug)]
pub(super) struct Zeros {
    left: u64,
    part: Bytes,
}

impl Zeros {
    pub(super) fn new(left: u64) -> Zeros {
        let part = usize::try_from(left).map_or(CHUNK, |all| all.min(CHUNK));
        Zeros { left, part: Bytes::from(vec![0; part]) }
    }
}

impl Body for Zeros {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let next = usize::try_from(self.left).map_or(CHUNK, |left| left.min(CHUNK));
        self.left -= next as u64;
        Poll::Ready(Some(Ok(Frame::data(self.part.slice(..next)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
