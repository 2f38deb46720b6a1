//! One request over TCP and its response.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use quipu_policy::Urgency;
use tokio::sync::watch;

use super::TcpFailure;
use super::body::Zeros;
use super::pool::{Lease, Waiting};

type Answer = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

/// One request and its response.
pub(crate) struct TcpExchange {
    state: State,
    /// The connection of HTTP/1.1, until the response is there.
    lease: Option<Lease>,
}

enum State {
    /// For a connection of HTTP/1.1.
    Waiting(Waiting, Option<Box<Request<Zeros>>>),
    Sent(Answer),
    Body(Incoming),
    Ended,
}

impl TcpExchange {
    /// A request that waits for a connection.
    pub(super) fn waiting(waiting: Waiting, request: Request<Zeros>) -> TcpExchange {
        TcpExchange { state: State::Waiting(waiting, Some(Box::new(request))), lease: None }
    }

    /// A request that was sent.
    pub(super) fn sent(
        answer: impl Future<Output = hyper::Result<Response<Incoming>>> + Send + 'static,
    ) -> TcpExchange {
        TcpExchange { state: State::Sent(Box::pin(answer)), lease: None }
    }

    /// The status of the response. Until the request is sent it may become as urgent as `urgency` says. To be called
    /// once.
    pub(crate) async fn response(
        &mut self,
        urgency: &mut watch::Receiver<Option<Urgency>>,
    ) -> Result<u16, TcpFailure> {
        if let State::Waiting(waiting, request) = &mut self.state {
            let mut lease = waiting.lease(urgency).await?;
            let sender = lease.sender().ok_or(TcpFailure::Ended)?;
            let request = request.take().ok_or(TcpFailure::Ended)?;
            self.state = State::Sent(Box::pin(sender.send_request(*request)));
            self.lease = Some(lease);
        }
        let State::Sent(answer) = &mut self.state else { return Err(TcpFailure::Ended) };
        let response = answer.await?;
        let status = response.status().as_u16();
        self.state = State::Body(response.into_body());
        Ok(status)
    }

    /// The next octets of the response's body; `None` at its end. Cancelling loses none.
    pub(crate) async fn data(&mut self) -> Result<Option<Bytes>, TcpFailure> {
        let State::Body(body) = &mut self.state else { return Ok(None) };
        while let Some(frame) = body.frame().await {
            // Others are trailers.
            if let Ok(octets) = frame?.into_data() {
                return Ok(Some(octets));
            }
        }
        self.state = State::Ended;
        if let Some(lease) = self.lease.take() {
            lease.give_back();
        }
        Ok(None)
    }
}
