//! The sending half of a request's stream: DATA frames and trailers.

use bytes::Bytes;
use quipu_base::StreamId;
use quipu_policy::PriorityEdit;

use super::control::Control;
use super::frame::{FrameHeader, kind};
use super::{Body, BodyError};
use crate::field::FieldList;
use crate::message;
use crate::transport::{StreamError, StreamTransport};

/// A body that is being sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sending {
    /// Of stated length: one DATA frame, of which so many octets are to come.
    Known(u64),
    /// Of any length: so many octets are to come of the DATA frame at hand.
    Open(u64),
}

/// Sends a head and what there is of `body`, and tells the transport how many octets the stream will
/// have, if that is known: from `body`, or else as many as were `announced`. Returns what follows.
pub(super) fn send<T: StreamTransport>(
    (transport, stream): (&mut T, StreamId),
    control: &mut Control,
    fields: &FieldList,
    body: Body,
    announced: Option<u64>,
) -> Result<Option<Sending>, StreamError> {
    let length = match &body {
        Body::Empty => Some(0),
        Body::Whole(octets) => Some(octets.len() as u64),
        Body::Streamed => announced,
    };
    let head = control.send_section(transport, stream, fields, length)?;
    if let Some(length) = length.filter(|&length| length > 0) {
        let size = quipu_base::Bytes(head.saturating_add(length));
        transport.edit_priority(PriorityEdit::Size { stream, size });
    }
    match body {
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# After sending a request, a client MUST close the stream for sending.
        // https://www.rfc-editor.org/rfc/rfc9114#section-4.1
        //# After sending a final response, the server MUST close the stream for sending.
        Body::Empty => transport.finish(stream)?,
        Body::Whole(octets) => {
            transport.write(stream, octets)?;
            transport.finish(stream)?;
        }
        Body::Streamed => {
            return Ok(Some(announced.map_or(Sending::Open(0), Sending::Known)));
        }
    }
    Ok(None)
}

impl Sending {
    /// Sends more of the body: as much as the transport has room for. Returns how many octets.
    pub(super) fn send<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        octets: Bytes,
    ) -> Result<usize, BodyError> {
        let sent = octets.len() as u64;
        match self {
            Sending::Known(left) if sent > *left => {
                Err(BodyError::WrongLength { stream, sent, left: *left })
            }
            Sending::Known(left) => {
                let taken = transport.write_some(stream, octets)?;
                *left -= taken as u64;
                Ok(taken)
            }
            Sending::Open(_) if octets.is_empty() => Ok(0),
            Sending::Open(left) => {
                if *left == 0 {
                    let mut header = Vec::with_capacity(9);
                    FrameHeader { kind: kind::DATA, length: sent }.encode(&mut header);
                    transport.write(stream, Bytes::from(header))?;
                    *left = sent;
                }
                // What is left of the frame is no more than what was offered when it began.
                let part = usize::try_from(*left).unwrap_or(usize::MAX).min(octets.len());
                let taken = transport.write_some(stream, octets.slice(..part))?;
                *left -= taken as u64;
                Ok(taken)
            }
        }
    }

    /// Ends the body, and the stream, after `trailers` if there are any.
    pub(super) fn finish<T: StreamTransport>(
        self,
        (transport, stream): (&mut T, StreamId),
        control: &mut Control,
        trailers: Option<&FieldList>,
    ) -> Result<(), BodyError> {
        let (Sending::Known(left) | Sending::Open(left)) = self;
        if left > 0 {
            return Err(BodyError::WrongLength { stream, sent: 0, left });
        }
        if let Some(trailers) = trailers {
            message::check_trailers(trailers).map_err(BodyError::Trailers)?;
            let (size, limit) = (trailers.size(), control.peer().max_field_section);
            if let Some(limit) = limit.filter(|&limit| size > limit) {
                return Err(BodyError::TrailersTooLarge { size, limit });
            }
            control.send_section(transport, stream, trailers, None)?;
        }
        Ok(transport.finish(stream)?)
    }
}
