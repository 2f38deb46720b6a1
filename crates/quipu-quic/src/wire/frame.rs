//! Frames: what the payload of a packet consists of.
//!
//! [`Frames`] reads a payload as borrowed [`Frame`]s and checks what a frame alone can show: that
//! it is complete and that its numbers are possible. [`Frame::size`] and [`Frame::write`] are the
//! way back; STREAM, CRYPTO and acknowledgements, which fit themselves to the space in a packet,
//! also have writers of their own: [`stream`] and [`ack`]. [`FrameType`] knows in which packets a
//! frame may travel and whether it asks for an acknowledgement.
//!
//! <https://www.rfc-editor.org/rfc/rfc9000#section-19>; the multipath frames are those of
//! <https://www.rfc-editor.org/rfc/rfc10069#section-4>.

pub mod ack;
mod read;
pub mod return_paths;
pub mod stream;
mod write;

use quipu_base::{Bytes, Offset, PathId, StreamDirection, StreamId};

pub use ack::{Ack, AckRange, AckRanges, EcnCounts, write_ack};
pub use read::{FrameError, FrameFault, Frames};
pub use return_paths::{ReturnPaths, write_return_paths};
pub use stream::{CryptoLayout, StreamLayout};

use super::{ConnectionId, ResetToken};
pub use crate::kinds::FrameType;

/// The most streams of one kind that a connection can have: 2^60.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-4.6>
pub const MAX_STREAMS: u64 = 1 << 60;

/// One frame, borrowing its bytes from the payload that it was read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// PADDING: a run of zero bytes.
    Padding {
        /// Bytes of the run, at least 1.
        length: usize,
    },
    /// PING.
    Ping,
    /// ACK, or PATH_ACK if it names a path.
    Ack(Ack<'a>),
    /// RESET_STREAM: the sender abandons its part of a stream.
    ResetStream {
        /// Which stream.
        stream: StreamId,
        /// The application's reason.
        error_code: u64,
        /// Length of the stream in bytes, sent or not.
        final_size: Offset,
    },
    /// STOP_SENDING: the receiver wants no more of a stream.
    StopSending {
        /// Which stream.
        stream: StreamId,
        /// The application's reason.
        error_code: u64,
    },
    /// CRYPTO: bytes of the TLS handshake at one encryption level.
    Crypto {
        /// Where the bytes belong.
        offset: Offset,
        /// The bytes; offset and length together stay below 2^62.
        data: &'a [u8],
    },
    /// NEW_TOKEN: a token for the Initial packets of a later connection.
    NewToken {
        /// The token, not empty.
        token: &'a [u8],
    },
    /// STREAM.
    Stream(Stream<'a>),
    /// MAX_DATA: credit of the connection.
    MaxData {
        /// Bytes that may be sent on all streams together, from the connection's start.
        maximum: Bytes,
    },
    /// MAX_STREAM_DATA: credit of a stream.
    MaxStreamData {
        /// Which stream.
        stream: StreamId,
        /// Where the credit ends.
        maximum: Offset,
    },
    /// MAX_STREAMS: how many streams the peer may open.
    MaxStreams {
        /// Of which kind.
        direction: StreamDirection,
        /// Streams from the connection's start, at most [`MAX_STREAMS`].
        maximum: u64,
    },
    /// DATA_BLOCKED: the sender is held up by the connection's credit.
    DataBlocked {
        /// The credit that it knows.
        limit: Bytes,
    },
    /// STREAM_DATA_BLOCKED: the sender is held up by a stream's credit.
    StreamDataBlocked {
        /// Which stream.
        stream: StreamId,
        /// Where the credit that it knows ends.
        limit: Offset,
    },
    /// STREAMS_BLOCKED: the sender cannot open another stream.
    StreamsBlocked {
        /// Of which kind.
        direction: StreamDirection,
        /// The number that it knows, at most [`MAX_STREAMS`].
        limit: u64,
    },
    /// NEW_CONNECTION_ID, or PATH_NEW_CONNECTION_ID if it names a path.
    NewConnectionId(NewConnectionId),
    /// RETIRE_CONNECTION_ID, or PATH_RETIRE_CONNECTION_ID if it names a path.
    RetireConnectionId {
        /// The path that the connection ID belongs to; `None` is written as the frame of RFC 9000
        /// and means path 0.
        path: Option<PathId>,
        /// Which of the path's connection IDs.
        sequence: u64,
    },
    /// PATH_CHALLENGE.
    PathChallenge {
        /// What the answer has to repeat.
        data: [u8; 8],
    },
    /// PATH_RESPONSE.
    PathResponse {
        /// What the challenge held.
        data: [u8; 8],
    },
    /// CONNECTION_CLOSE of type 0x1c: the transport ends the connection.
    ConnectionClose {
        /// Why; the codes are in [`crate::error::ErrorCode`].
        error_code: u64,
        /// The frame at fault; 0 if none or unknown.
        frame_type: FrameType,
        /// A reason for people, in UTF-8 if the peer is honest.
        reason: &'a [u8],
    },
    /// CONNECTION_CLOSE of type 0x1d: the application ends the connection.
    ApplicationClose {
        /// The application's reason.
        error_code: u64,
        /// A reason for people, in UTF-8 if the peer is honest.
        reason: &'a [u8],
    },
    /// HANDSHAKE_DONE: the server confirms the handshake.
    HandshakeDone,
    /// DATAGRAM: bytes of the application that are not sent again.
    /// <https://www.rfc-editor.org/rfc/rfc9221#section-4>
    Datagram {
        /// The bytes; there may be none.
        data: &'a [u8],
        /// A Length field is there. Without one the frame reaches to the end of the packet: nothing,
        /// not even padding, may follow it.
        has_length: bool,
    },
    /// ACK_FREQUENCY: how the sender wants its packets to be acknowledged.
    AckFrequency(AckFrequency),
    /// IMMEDIATE_ACK: the sender wants an acknowledgement at once.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-5>
    ImmediateAck,
    /// PATH_ABANDON: the sender gives up a path.
    PathAbandon {
        /// Which path.
        path: PathId,
        /// Why; the codes are in [`crate::error::ErrorCode`].
        error_code: u64,
    },
    /// PATH_STATUS_BACKUP: the sender asks not to use a path while another is available.
    PathStatusBackup {
        /// Which path.
        path: PathId,
        /// Number of this statement about the path: an older one is ignored.
        sequence: u64,
    },
    /// PATH_STATUS_AVAILABLE: the sender allows use of a path.
    PathStatusAvailable {
        /// Which path.
        path: PathId,
        /// Number of this statement about the path: an older one is ignored.
        sequence: u64,
    },
    /// MAX_PATH_ID: the largest path ID that the peer may use.
    MaxPathId {
        /// That path ID.
        maximum: PathId,
    },
    /// PATHS_BLOCKED: the sender wants another path than the maximum allows.
    PathsBlocked {
        /// The maximum that it knows.
        maximum: PathId,
    },
    /// PATH_CIDS_BLOCKED: the sender lacks a connection ID for a path.
    PathCidsBlocked {
        /// Which path.
        path: PathId,
        /// Sequence number of the connection ID that it expects next.
        next_sequence: u64,
    },
    /// ACK_RETURN_PATHS of our private extension: see [`return_paths`].
    ReturnPaths(ReturnPaths<'a>),
}

/// Bytes of a stream.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.8>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Which stream.
    pub stream: StreamId,
    /// Where the bytes belong.
    pub offset: Offset,
    /// True if the stream ends behind the bytes.
    pub fin: bool,
    /// The bytes; offset and length together stay below 2^62.
    pub data: &'a [u8],
}

/// A connection ID that the sender issues to its peer.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.15>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewConnectionId {
    /// The path that it belongs to; `None` is written as the frame of RFC 9000 and means path 0.
    pub path: Option<PathId>,
    /// Its number among the path's connection IDs.
    pub sequence: u64,
    /// Connection IDs of the path below this number are to be retired; at most `sequence`.
    pub retire_prior_to: u64,
    /// The connection ID, 1 to 20 bytes.
    pub id: ConnectionId,
    /// What a packet that resets the connection ends in.
    pub reset_token: ResetToken,
}

/// How the sender of the frame wants its packets to be acknowledged.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-quic-ack-frequency#section-4>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrequency {
    /// Number of this request: an older one is ignored.
    pub sequence: u64,
    /// So many ack-eliciting packets may come without an acknowledgement.
    pub threshold: u64,
    /// So long an acknowledgement may be delayed, in microseconds.
    pub max_delay: u64,
    /// By so many packets one may be overtaken before that is told at once; 0: it never is.
    pub reordering: u64,
}

impl Frame<'_> {
    /// The type under which the frame travels. A STREAM frame is given the type without length
    /// field and with the bits that its fields ask for.
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Frame::Padding { .. } => FrameType::PADDING,
            Frame::Ping => FrameType::PING,
            Frame::Ack(ack) => ack.frame_type(),
            Frame::ResetStream { .. } => FrameType::RESET_STREAM,
            Frame::StopSending { .. } => FrameType::STOP_SENDING,
            Frame::Crypto { .. } => FrameType::CRYPTO,
            Frame::NewToken { .. } => FrameType::NEW_TOKEN,
            Frame::Stream(frame) => stream::frame_type(frame.offset, frame.fin, false),
            Frame::MaxData { .. } => FrameType::MAX_DATA,
            Frame::MaxStreamData { .. } => FrameType::MAX_STREAM_DATA,
            Frame::MaxStreams { direction: StreamDirection::Bidirectional, .. } => {
                FrameType::MAX_STREAMS_BIDIRECTIONAL
            }
            Frame::MaxStreams { direction: StreamDirection::Unidirectional, .. } => {
                FrameType::MAX_STREAMS_UNIDIRECTIONAL
            }
            Frame::DataBlocked { .. } => FrameType::DATA_BLOCKED,
            Frame::StreamDataBlocked { .. } => FrameType::STREAM_DATA_BLOCKED,
            Frame::StreamsBlocked { direction: StreamDirection::Bidirectional, .. } => {
                FrameType::STREAMS_BLOCKED_BIDIRECTIONAL
            }
            Frame::StreamsBlocked { direction: StreamDirection::Unidirectional, .. } => {
                FrameType::STREAMS_BLOCKED_UNIDIRECTIONAL
            }
            Frame::NewConnectionId(NewConnectionId { path: None, .. }) => {
                FrameType::NEW_CONNECTION_ID
            }
            Frame::NewConnectionId(_) => FrameType::PATH_NEW_CONNECTION_ID,
            Frame::RetireConnectionId { path: None, .. } => FrameType::RETIRE_CONNECTION_ID,
            Frame::RetireConnectionId { .. } => FrameType::PATH_RETIRE_CONNECTION_ID,
            Frame::PathChallenge { .. } => FrameType::PATH_CHALLENGE,
            Frame::PathResponse { .. } => FrameType::PATH_RESPONSE,
            Frame::ConnectionClose { .. } => FrameType::CONNECTION_CLOSE,
            Frame::ApplicationClose { .. } => FrameType::APPLICATION_CLOSE,
            Frame::HandshakeDone => FrameType::HANDSHAKE_DONE,
            Frame::Datagram { has_length: false, .. } => FrameType::DATAGRAM,
            Frame::Datagram { has_length: true, .. } => FrameType::DATAGRAM_LENGTH,
            Frame::AckFrequency(_) => FrameType::ACK_FREQUENCY,
            Frame::ImmediateAck => FrameType::IMMEDIATE_ACK,
            Frame::PathAbandon { .. } => FrameType::PATH_ABANDON,
            Frame::PathStatusBackup { .. } => FrameType::PATH_STATUS_BACKUP,
            Frame::PathStatusAvailable { .. } => FrameType::PATH_STATUS_AVAILABLE,
            Frame::MaxPathId { .. } => FrameType::MAX_PATH_ID,
            Frame::PathsBlocked { .. } => FrameType::PATHS_BLOCKED,
            Frame::PathCidsBlocked { .. } => FrameType::PATH_CIDS_BLOCKED,
            Frame::ReturnPaths(_) => FrameType::ACK_RETURN_PATHS,
        }
    }

    /// True if a packet that holds the frame has to be acknowledged.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-2>
    pub const fn is_ack_eliciting(&self) -> bool {
        self.frame_type().is_ack_eliciting()
    }
}

#[cfg(test)]
mod tests;
