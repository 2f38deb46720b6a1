//! Frames that close the connection.

use thiserror::Error;

use super::super::{ErrorCode, FrameStreamId};

/// Why the control stream, or the byte stream, cannot go on. Each is a connection error with an [`ErrorCode`]; where RFC 7540
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
    #[error("{padding} octets of padding in a {kind} frame of {length} octets")]
    Padding {
        /// Type of the frame.
        kind: &'static str,
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
    /// What a client sends first is no HTTP/2.
    #[error("the connection does not begin with HTTP/2's preface")]
    NotPreface,
    /// A frame on a stream whose state does not allow it.
    #[error("a {kind} frame on stream {stream}, {problem}")]
    State {
        /// Type of the frame.
        kind: &'static str,
        /// The stream.
        stream: FrameStreamId,
        /// What is wrong with it.
        problem: &'static str,
        /// The code that RFC 9113 gives for it.
        code: ErrorCode,
    },
    /// More body than credit was given for.
    #[error("a DATA frame on stream {stream} of more octets than its credit, or the connection's")]
    BeyondCredit {
        /// The stream.
        stream: FrameStreamId,
    },
    /// Credit that was raised by nothing.
    #[error("a WINDOW_UPDATE frame on stream {stream} that adds nothing")]
    NoIncrement {
        /// The stream, or zero for the connection.
        stream: FrameStreamId,
    },
    /// Credit beyond 2^31 - 1.
    #[error("more credit on stream {stream} than 2147483647 octets")]
    TooMuchCredit {
        /// The stream, or zero for the connection.
        stream: FrameStreamId,
    },
    /// More of something than anyone needs.
    #[error("more {what} than anyone needs")]
    Excess {
        /// Of what.
        what: &'static str,
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
            // https://www.rfc-editor.org/rfc/rfc9113#section-4.2
            //# An endpoint MUST send an error code of FRAME_SIZE_ERROR if a frame exceeds the
            //# size defined in SETTINGS_MAX_FRAME_SIZE, exceeds any limit defined for the frame
            //# type, or is too small to contain mandatory frame data. A frame size error in a
            //# frame that could alter the state of the entire connection MUST be treated as a
            //# connection error (Section 5.4.1); this includes any frame carrying a field block
            //# (Section 4.3) (that is, HEADERS, PUSH_PROMISE, and CONTINUATION), a SETTINGS
            //# frame, and any frame with a stream identifier of 0.
            FrameError::TooLarge { .. } | FrameError::Length { .. } => ErrorCode::FRAME_SIZE_ERROR,
            FrameError::Stream { .. }
            | FrameError::Padding { .. }
            | FrameError::Unexpected { .. }
            | FrameError::NotPreface
            | FrameError::NoIncrement { .. }
            | FrameError::NotSettings { .. }
            | FrameError::Continuation { .. } => ErrorCode::PROTOCOL_ERROR,
            FrameError::BeyondCredit { .. } | FrameError::TooMuchCredit { .. } => {
                ErrorCode::FLOW_CONTROL_ERROR
            }
            FrameError::BlockTooLarge { .. } | FrameError::Excess { .. } => {
                ErrorCode::ENHANCE_YOUR_CALM
            }
            FrameError::Setting { code, .. } | FrameError::State { code, .. } => *code,
        }
    }
}
