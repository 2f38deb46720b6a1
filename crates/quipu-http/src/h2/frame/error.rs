//! Frames that close the connection.

use thiserror::Error;

use super::super::{ErrorCode, FrameStreamId};

/// Why the control stream cannot go on. Each is a connection error with an [`ErrorCode`]; where RFC 7540
/// asks for a stream error only, the connection error it allows instead is used
/// (<https://www.rfc-editor.org/rfc/rfc7540#section-5.4.1>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame larger than this end allows.
    #[error("a {kind} frame of {length} octets, where {limit} are allowed")]
    TooLarge {
        /// Type of the frame.
        kind: &'static str,
        /// Payload length, in octets.
        length: usize,
        /// The limit, in octets.
        limit: u32,
    },
    /// A frame whose length does not fit its type.
    #[error("a {kind} frame of {length} octets; {expected}")]
    Length {
        /// Type of the frame.
        kind: &'static str,
        /// Payload length, in octets.
        length: usize,
        /// Which lengths are valid.
        expected: &'static str,
    },
    /// A frame on a stream that its type cannot have.
    #[error("a {kind} frame on stream {stream}; {expected}")]
    Stream {
        /// Type of the frame.
        kind: &'static str,
        /// The stream.
        stream: FrameStreamId,
        /// Which streams are valid.
        expected: &'static str,
    },
    /// More padding than payload.
    #[error("{padding} octets of padding in a HEADERS frame of {length} octets")]
    Padding {
        /// Octets of padding.
        padding: u8,
        /// Payload length, in octets.
        length: usize,
    },
    /// A frame type that this mapping leaves to QUIC, or that no peer may send.
    #[error("a {kind} frame, which the control stream does not carry")]
    Unexpected {
        /// Type of the frame.
        kind: &'static str,
    },
    /// Another frame than SETTINGS came first.
    #[error("the first frame is {kind}, not SETTINGS")]
    NotSettings {
        /// Type of the frame.
        kind: &'static str,
    },
    /// Another frame came before the header block was complete, or a CONTINUATION without one.
    #[error("a {kind} frame on stream {stream} interrupts or continues no header block")]
    Continuation {
        /// Type of the frame.
        kind: &'static str,
        /// Its stream.
        stream: FrameStreamId,
    },
    /// A header block larger, or in more parts, than this end allows.
    #[error("a header block of more than {limit} octets or in more than {} parts", super::MAX_CONTINUATIONS + 1)]
    BlockTooLarge {
        /// The limit, in octets.
        limit: usize,
    },
    /// A setting with a value that it cannot have.
    #[error("setting {name} = {value}; expected {expected}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// The value received.
        value: u32,
        /// Which values are valid.
        expected: &'static str,
        /// The code that RFC 7540 gives for it.
        code: ErrorCode,
    },
}

impl FrameError {
    /// The code that closes the connection.
    pub const fn code(&self) -> ErrorCode {
        match self {
            FrameError::TooLarge { .. } | FrameError::Length { .. } => ErrorCode::FRAME_SIZE_ERROR,
            FrameError::Stream { .. }
            | FrameError::Padding { .. }
            | FrameError::Unexpected { .. }
            | FrameError::NotSettings { .. }
            | FrameError::Continuation { .. } => ErrorCode::PROTOCOL_ERROR,
            FrameError::BlockTooLarge { .. } => ErrorCode::ENHANCE_YOUR_CALM,
            FrameError::Setting { code, .. } => *code,
        }
    }
}
