//! Reading frames from the payload of a packet.

use quipu_base::{Bytes, Offset, PathId, StreamDirection, StreamId};
use thiserror::Error;

use super::ack::{self, AckFault};
use super::return_paths::{ReturnPaths, ReturnPathsFault};
use super::{AckFrequency, Frame, FrameType, MAX_STREAMS, NewConnectionId, Stream};
use crate::error::{ErrorCode, TransportError};
use crate::wire::{ConnectionId, EndedEarly, Reader, ResetToken, varint};

/// A frame that the peer must not send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{frame_type}: {fault}")]
pub struct FrameError {
    /// The frame's type; 0 if the bytes end within it.
    pub frame_type: FrameType,
    /// What is wrong.
    pub fault: FrameFault,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameFault {
    /// The payload ends within the frame.
    #[error("the frame ended early")]
    EndedEarly,
    /// No RFC that we speak has the type.
    #[error("unknown frame type")]
    UnknownType,
    /// The type is not in its shortest form.
    #[error("the type takes more bytes than it needs")]
    TypeNotShortest,
    /// A range of an acknowledgement lies below packet number zero.
    #[error("acknowledges a packet number below 0")]
    NegativePacketNumber,
    /// A stream or handshake is longer than can be counted.
    #[error("data end at {0} or later, expected below 2^62")]
    OffsetTooLarge(u64),
    /// A number of streams is larger than stream IDs allow.
    #[error("{0} streams, expected at most 2^60")]
    TooManyStreams(u64),
    /// A NEW_TOKEN frame is empty.
    #[error("the token is empty")]
    EmptyToken,
    /// A connection ID has no bytes or more than 20.
    #[error("connection ID of {0} bytes, expected 1 to 20")]
    ConnectionIdLength(u8),
    /// The connection IDs to be retired include the one that is issued.
    #[error("retire prior to {retire_prior_to}, expected at most the sequence number {sequence}")]
    RetirePriorTo {
        /// The field.
        retire_prior_to: u64,
        /// The sequence number of the connection ID.
        sequence: u64,
    },
    /// A path ID has more than 32 bits.
    #[error("path ID {0}, expected at most 2^32 - 1")]
    PathId(u64),
}

impl From<EndedEarly> for FrameFault {
    fn from(_: EndedEarly) -> Self {
        FrameFault::EndedEarly
    }
}

impl From<AckFault> for FrameFault {
    fn from(fault: AckFault) -> Self {
        match fault {
            AckFault::EndedEarly => FrameFault::EndedEarly,
            AckFault::NegativePacketNumber => FrameFault::NegativePacketNumber,
            AckFault::PathId(value) => FrameFault::PathId(value),
        }
    }
}

impl From<ReturnPathsFault> for FrameFault {
    fn from(fault: ReturnPathsFault) -> Self {
        match fault {
            ReturnPathsFault::EndedEarly => FrameFault::EndedEarly,
            ReturnPathsFault::PathId(value) => FrameFault::PathId(value),
        }
    }
}

impl FrameFault {
    /// The code that tells the peer.
    pub const fn code(self) -> ErrorCode {
        match self {
            // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
            //# An endpoint MAY treat the receipt of a frame type that uses a longer encoding than
            //# necessary as a connection error of type PROTOCOL_VIOLATION.
            FrameFault::TypeNotShortest => ErrorCode::PROTOCOL_VIOLATION,
            // None that large was ever allowed.
            // https://www.rfc-editor.org/rfc/rfc10069#section-4
            //# Receipt of multipath-specific frames that use a path ID that is greater than the
            //# announced Maximum Paths value in the MAX_PATH_ID frame or in the
            //# initial_max_path_id transport parameter, if no MAX_PATH_ID frame was received yet,
            //# MUST be treated as a connection error of type PROTOCOL_VIOLATION.
            // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
            //# This value MUST NOT exceed 2^32-1, which is the maximum allowed value for the path
            //# ID due to restrictions on the nonce calculation (see Section 2.4).
            // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
            //# Receipt of an invalid Maximum Path Identifier value MUST be treated as a connection
            //# error of type PROTOCOL_VIOLATION.
            FrameFault::PathId(_) => ErrorCode::PROTOCOL_VIOLATION,
            // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
            //# An endpoint MUST treat the receipt of a frame of unknown type as a connection
            //# error of type FRAME_ENCODING_ERROR.
            _ => ErrorCode::FRAME_ENCODING_ERROR,
        }
    }
}

impl From<FrameError> for TransportError {
    fn from(error: FrameError) -> Self {
        TransportError::new(error.fault.code(), error.fault.to_string()).in_frame(error.frame_type)
    }
}

/// Reads the frames of a payload one after the other; after an error there are no more.
///
/// A payload of no bytes gives no frame; the caller refuses such a packet.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-12.4>
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    reader: Reader<'a>,
}

impl<'a> Frames<'a> {
    /// The frames of `payload`, a packet's plaintext.
    pub const fn new(payload: &'a [u8]) -> Self {
        Frames { reader: Reader::new(payload) }
    }

    /// Number of bytes not yet read.
    pub const fn remaining(&self) -> usize {
        self.reader.remaining()
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, FrameError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let before = self.reader.remaining();
        let Ok(value) = self.reader.varint() else {
            return Some(Err(self.fail(FrameType(0), FrameFault::EndedEarly)));
        };
        let frame_type = FrameType(value);
        if before - self.reader.remaining() != varint::size(value) {
            return Some(Err(self.fail(frame_type, FrameFault::TypeNotShortest)));
        }
        // What nearly every packet holds comes first.
        let frame = match frame_type {
            _ if frame_type.is_stream() => stream(frame_type, &mut self.reader),
            FrameType::ACK | FrameType::ACK_ECN | FrameType::PATH_ACK | FrameType::PATH_ACK_ECN => {
                acknowledgement(frame_type, &mut self.reader)
            }
            _ => read(frame_type, &mut self.reader),
        };
        Some(frame.map_err(|fault| self.fail(frame_type, fault)))
    }
}

impl Frames<'_> {
    #[cold]
    fn fail(&mut self, frame_type: FrameType, fault: FrameFault) -> FrameError {
        self.reader.take_rest();
        FrameError { frame_type, fault }
    }
}

#[inline]
fn stream<'a>(frame_type: FrameType, reader: &mut Reader<'a>) -> Result<Frame<'a>, FrameFault> {
    let stream = StreamId(reader.varint()?);
    let offset = if frame_type.0 & FrameType::STREAM_OFFSET != 0 { reader.varint()? } else { 0 };
    let data = if frame_type.0 & FrameType::STREAM_LENGTH != 0 {
        reader.length_prefixed()?
    } else {
        reader.take_rest()
    };
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.8
    //# Receipt of a frame that exceeds this limit MUST be treated as a connection error of type
    //# FRAME_ENCODING_ERROR or FLOW_CONTROL_ERROR.
    check_end(offset, data)?;
    let fin = frame_type.0 & FrameType::STREAM_FIN != 0;
    Ok(Frame::Stream(Stream { stream, offset: Offset(offset), fin, data }))
}

#[inline]
fn acknowledgement<'a>(
    frame_type: FrameType,
    reader: &mut Reader<'a>,
) -> Result<Frame<'a>, FrameFault> {
    let names_path = matches!(frame_type, FrameType::PATH_ACK | FrameType::PATH_ACK_ECN);
    let ecn = matches!(frame_type, FrameType::ACK_ECN | FrameType::PATH_ACK_ECN);
    Ok(Frame::Ack(ack::read(reader, names_path, ecn)?))
}

/// Checks where the data of a STREAM or CRYPTO frame end.
#[inline]
fn check_end(offset: u64, data: &[u8]) -> Result<(), FrameFault> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.8
    //# The largest offset delivered on a stream -- the sum of the offset and data length -- cannot
    //# exceed 2^62-1
    if offset + data.len() as u64 > varint::MAX {
        return Err(FrameFault::OffsetTooLarge(offset));
    }
    Ok(())
}

/// Reads every frame but STREAM frames and acknowledgements.
fn read<'a>(frame_type: FrameType, reader: &mut Reader<'a>) -> Result<Frame<'a>, FrameFault> {
    use StreamDirection::{Bidirectional, Unidirectional};
    Ok(match frame_type {
        FrameType::PADDING => padding(reader),
        FrameType::PING => Frame::Ping,
        FrameType::RESET_STREAM => Frame::ResetStream {
            stream: StreamId(reader.varint()?),
            error_code: reader.varint()?,
            final_size: Offset(reader.varint()?),
        },
        FrameType::STOP_SENDING => {
            Frame::StopSending { stream: StreamId(reader.varint()?), error_code: reader.varint()? }
        }
        FrameType::CRYPTO => {
            let offset = reader.varint()?;
            let data = reader.length_prefixed()?;
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.6
            //# Receipt of a frame that exceeds this limit MUST be treated as a connection error
            //# of type FRAME_ENCODING_ERROR or CRYPTO_BUFFER_EXCEEDED.
            check_end(offset, data)?;
            Frame::Crypto { offset: Offset(offset), data }
        }
        FrameType::NEW_TOKEN => match reader.length_prefixed()? {
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.7
            //# A client MUST treat receipt of a NEW_TOKEN frame with an empty Token field as a
            //# connection error of type FRAME_ENCODING_ERROR.
            [] => return Err(FrameFault::EmptyToken),
            token => Frame::NewToken { token },
        },
        FrameType::MAX_DATA => Frame::MaxData { maximum: Bytes(reader.varint()?) },
        FrameType::MAX_STREAM_DATA => Frame::MaxStreamData {
            stream: StreamId(reader.varint()?),
            maximum: Offset(reader.varint()?),
        },
        FrameType::MAX_STREAMS_BIDIRECTIONAL => {
            Frame::MaxStreams { direction: Bidirectional, maximum: streams(reader)? }
        }
        FrameType::MAX_STREAMS_UNIDIRECTIONAL => {
            Frame::MaxStreams { direction: Unidirectional, maximum: streams(reader)? }
        }
        FrameType::DATA_BLOCKED => Frame::DataBlocked { limit: Bytes(reader.varint()?) },
        FrameType::STREAM_DATA_BLOCKED => Frame::StreamDataBlocked {
            stream: StreamId(reader.varint()?),
            limit: Offset(reader.varint()?),
        },
        FrameType::STREAMS_BLOCKED_BIDIRECTIONAL => {
            Frame::StreamsBlocked { direction: Bidirectional, limit: streams(reader)? }
        }
        FrameType::STREAMS_BLOCKED_UNIDIRECTIONAL => {
            Frame::StreamsBlocked { direction: Unidirectional, limit: streams(reader)? }
        }
        FrameType::NEW_CONNECTION_ID => new_connection_id(None, reader)?,
        FrameType::PATH_NEW_CONNECTION_ID => {
            let path = path(reader)?;
            new_connection_id(Some(path), reader)?
        }
        FrameType::RETIRE_CONNECTION_ID => {
            Frame::RetireConnectionId { path: None, sequence: reader.varint()? }
        }
        FrameType::PATH_RETIRE_CONNECTION_ID => {
            Frame::RetireConnectionId { path: Some(path(reader)?), sequence: reader.varint()? }
        }
        FrameType::PATH_CHALLENGE => Frame::PathChallenge { data: reader.array()? },
        FrameType::PATH_RESPONSE => Frame::PathResponse { data: reader.array()? },
        FrameType::CONNECTION_CLOSE => Frame::ConnectionClose {
            error_code: reader.varint()?,
            frame_type: FrameType(reader.varint()?),
            reason: reader.length_prefixed()?,
        },
        FrameType::APPLICATION_CLOSE => Frame::ApplicationClose {
            error_code: reader.varint()?,
            reason: reader.length_prefixed()?,
        },
        FrameType::HANDSHAKE_DONE => Frame::HandshakeDone,
        FrameType::DATAGRAM => Frame::Datagram { data: reader.take_rest(), has_length: false },
        FrameType::DATAGRAM_LENGTH => {
            Frame::Datagram { data: reader.length_prefixed()?, has_length: true }
        }
        FrameType::ACK_FREQUENCY => Frame::AckFrequency(AckFrequency {
            sequence: reader.varint()?,
            threshold: reader.varint()?,
            max_delay: reader.varint()?,
            reordering: reader.varint()?,
        }),
        FrameType::IMMEDIATE_ACK => Frame::ImmediateAck,
        FrameType::PATH_ABANDON => {
            Frame::PathAbandon { path: path(reader)?, error_code: reader.varint()? }
        }
        FrameType::PATH_STATUS_BACKUP => {
            Frame::PathStatusBackup { path: path(reader)?, sequence: reader.varint()? }
        }
        FrameType::PATH_STATUS_AVAILABLE => {
            Frame::PathStatusAvailable { path: path(reader)?, sequence: reader.varint()? }
        }
        FrameType::MAX_PATH_ID => Frame::MaxPathId { maximum: path(reader)? },
        FrameType::PATHS_BLOCKED => Frame::PathsBlocked { maximum: path(reader)? },
        FrameType::PATH_CIDS_BLOCKED => {
            Frame::PathCidsBlocked { path: path(reader)?, next_sequence: reader.varint()? }
        }
        FrameType::ACK_RETURN_PATHS => Frame::ReturnPaths(ReturnPaths::read(reader)?),
        _ => return Err(FrameFault::UnknownType),
    })
}

/// Takes the whole run of zero bytes whose first was the type.
fn padding<'a>(reader: &mut Reader<'a>) -> Frame<'a> {
    let rest = reader.rest();
    let zeros = rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len());
    // As many bytes as `zeros` are there, so the read cannot fail.
    let _ = reader.bytes(zeros);
    Frame::Padding { length: 1 + zeros }
}

/// The number of streams that a MAX_STREAMS or STREAMS_BLOCKED frame states.
fn streams(reader: &mut Reader<'_>) -> Result<u64, FrameFault> {
    let count = reader.varint()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
    //# If either is received, the connection MUST be closed immediately with a connection error
    //# of type TRANSPORT_PARAMETER_ERROR if the offending value was received in a transport
    //# parameter or of type FRAME_ENCODING_ERROR if it was received in a frame; see Section 10.2.
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.11
    //# Receipt of a frame that permits opening of a stream larger than this limit MUST be treated
    //# as a connection error of type FRAME_ENCODING_ERROR.
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.14
    //# Receipt of a frame that encodes a larger stream ID MUST be treated as a connection error
    //# of type STREAM_LIMIT_ERROR or FRAME_ENCODING_ERROR.
    if count > MAX_STREAMS { Err(FrameFault::TooManyStreams(count)) } else { Ok(count) }
}

fn path(reader: &mut Reader<'_>) -> Result<PathId, FrameFault> {
    let value = reader.varint()?;
    u32::try_from(value).map(PathId).map_err(|_| FrameFault::PathId(value))
}

/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.15>
fn new_connection_id<'a>(
    path: Option<PathId>,
    reader: &mut Reader<'a>,
) -> Result<Frame<'a>, FrameFault> {
    let sequence = reader.varint()?;
    let retire_prior_to = reader.varint()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
    //# Receiving a value in the Retire Prior To field that is greater than that in the Sequence
    //# Number field MUST be treated as a connection error of type FRAME_ENCODING_ERROR.
    if retire_prior_to > sequence {
        return Err(FrameFault::RetirePriorTo { retire_prior_to, sequence });
    }
    let length = reader.u8()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
    //# Values less than 1 and greater than 20 are invalid and MUST be treated as a connection
    //# error of type FRAME_ENCODING_ERROR.
    if length == 0 || usize::from(length) > ConnectionId::MAX_LENGTH {
        return Err(FrameFault::ConnectionIdLength(length));
    }
    let id = ConnectionId::new(reader.bytes(usize::from(length))?)
        .ok_or(FrameFault::ConnectionIdLength(length))?;
    let reset_token = ResetToken::new(reader.array()?);
    let issued = NewConnectionId { path, sequence, retire_prior_to, id, reset_token };
    Ok(Frame::NewConnectionId(issued))
}
