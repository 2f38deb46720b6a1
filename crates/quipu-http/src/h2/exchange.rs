//! What client and server share of one request and its response.

use quipu_base::StreamId;
use quipu_policy::PriorityEdit;

use super::ErrorCode;
use crate::exchange::{Body, Failure};
use crate::message::MessageError;
use crate::transport::{ReadState, StreamError, Transport};

/// Sends what there is of `body` on `stream`, and tells the transport how large it is: its own octets, or
/// else as many as were `announced`.
pub(super) fn send<T: Transport>(
    transport: &mut T,
    stream: StreamId,
    body: Body,
    announced: Option<u64>,
) -> Result<(), StreamError> {
    let size = match &body {
        Body::Empty => None,
        Body::Whole(octets) => Some(octets.len() as u64),
        Body::Streamed => announced,
    };
    if let Some(size) = size {
        transport.edit_priority(PriorityEdit::Size { stream, size: quipu_base::Bytes(size) });
    }
    match body {
        Body::Empty => transport.finish(stream),
        Body::Whole(octets) => {
            transport.write(stream, octets)?;
            transport.finish(stream)
        }
        Body::Streamed => Ok(()),
    }
}

/// The code for the peer, of what failed.
pub(super) const fn failure_code(failure: &Failure) -> ErrorCode {
    match failure {
        Failure::Reset(_) | Failure::Refused => ErrorCode::CANCEL,
        // https://www.rfc-editor.org/rfc/rfc9113#section-8.1.1
        //# Malformed requests or responses that are detected MUST be treated as a stream
        //# error (Section 5.4.2) of type PROTOCOL_ERROR.
        Failure::Malformed(_) | Failure::NoHead => ErrorCode::PROTOCOL_ERROR,
        Failure::FieldsTooLarge { .. } => ErrorCode::ENHANCE_YOUR_CALM,
    }
}

/// How far a message was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Its head has not come. The body, if it came, waits in the transport.
    AwaitHead,
    /// Its head waits in the queue of events. The body waits, so that it is not told before the head.
    HeadQueued,
    /// The application has the head, and gets the body as it comes.
    Body,
    /// All came, or nothing more will.
    Done,
}

/// The receiving half of an exchange.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) phase: Phase,
    /// Octets that the body must have.
    expected: Option<u64>,
    received: u64,
}

/// What a reading led to.
#[derive(Debug)]
pub(super) enum Progress {
    /// More will come.
    Pending,
    /// The body is complete.
    Finished,
    /// The message will not be complete.
    Failed(Failure),
}

impl Receiving {
    pub(super) const fn new() -> Self {
        Receiving { phase: Phase::AwaitHead, expected: None, received: 0 }
    }

    /// The head came: it states `content_length`, and has `END_STREAM` or not. `bodiless` messages have
    /// no body, whatever length they state.
    pub(super) fn on_head(
        &mut self,
        content_length: Option<u64>,
        end_stream: bool,
        bodiless: bool,
    ) -> Result<(), MessageError> {
        match content_length {
            Some(expected) if end_stream && !bodiless && expected > 0 => {
                return Err(MessageError::BodyLength { expected, received: 0 });
            }
            _ if end_stream || bodiless => self.expected = Some(0),
            _ => self.expected = content_length,
        }
        self.phase = Phase::HeadQueued;
        Ok(())
    }

    /// Whether the head said that the body is empty.
    pub(super) fn is_bodiless(&self) -> bool {
        self.expected == Some(0)
    }

    /// Hands what `read` reads on `stream` to `sink`, but no octet beyond the stated length.
    pub(super) fn read(
        &mut self,
        read: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<ReadState, StreamError>,
        stream: StreamId,
        sink: &mut dyn FnMut(StreamId, &[u8]),
    ) -> Progress {
        let limit = self.expected.unwrap_or(u64::MAX);
        let received = &mut self.received;
        let state = read(&mut |octets| {
            *received = received.saturating_add(octets.len() as u64);
            if *received <= limit {
                sink(stream, octets);
            }
        });
        let wrong_length = |expected| {
            Failure::Malformed(MessageError::BodyLength { expected, received: self.received })
        };
        if self.received > limit {
            return Progress::Failed(wrong_length(limit));
        }
        match (state, self.expected) {
            (Ok(ReadState::Finished), Some(expected)) if self.received < expected => {
                Progress::Failed(wrong_length(expected))
            }
            (Ok(ReadState::Finished), _) => Progress::Finished,
            // An error means a reset or the end of the connection, which the transport tells by itself.
            (Ok(ReadState::Blocked) | Err(_), _) => Progress::Pending,
        }
    }
}

/// Abandons both directions of a stream. Directions that are over already need nothing, so that errors
/// say nothing.
pub(super) fn abandon<T: Transport>(transport: &mut T, stream: StreamId, code: ErrorCode) {
    let _ = transport.stop_sending(stream, code.to_quic());
    let _ = transport.reset(stream, code.to_quic());
}
