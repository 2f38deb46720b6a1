//! The body of a request, as services read it.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use quipu_tokio::http3::{Http3Error, Http3RequestBody};

/// Octets that are read at a time, at most; our choice.
const MOST: usize = 65_536;

/// What a reading gives back.
type Reading = Pin<Box<dyn Future<Output = Read> + Send>>;
type Read = (Http3RequestBody, Result<Option<Bytes>, Http3Error>);

/// The body of a request over HTTP/3. What a service does not read gives the client no credit.
pub struct RequestBody(State);

enum State {
    Idle(Http3RequestBody),
    Reading(Reading),
    Over,
}

impl RequestBody {
    pub(super) fn new(body: Http3RequestBody) -> Self {
        RequestBody(State::Idle(body))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Http3Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http3Error>>> {
        let mut reading = match std::mem::replace(&mut self.0, State::Over) {
            State::Idle(mut body) => Box::pin(async move {
                let read = body.data(MOST).await;
                (body, read)
            }) as Reading,
            State::Reading(reading) => reading,
            State::Over => return Poll::Ready(None),
        };
        let Poll::Ready((mut body, read)) = reading.as_mut().poll(cx) else {
            self.0 = State::Reading(reading);
            return Poll::Pending;
        };
        Poll::Ready(match read {
            Ok(Some(octets)) => {
                self.0 = State::Idle(body);
                Some(Ok(Frame::data(octets)))
            }
            Ok(None) => body.trailers().map(|trailers| trailers.map(Frame::trailers)).transpose(),
            Err(error) => Some(Err(error)),
        })
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").finish_non_exhaustive()
    }
}
