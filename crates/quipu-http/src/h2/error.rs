//! Error codes of HTTP/2.

use std::fmt;

/// An HTTP/2 error code. It travels in GOAWAY frames, as application error code of QUIC's RESET_STREAM
/// and STOP_SENDING, and as the code that closes the QUIC connection.
/// <https://www.rfc-editor.org/rfc/rfc7540#section-7>
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// No error: a graceful end.
    pub const NO_ERROR: ErrorCode = ErrorCode(0x0);
    /// The peer broke the protocol in a way that no other code names.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(0x1);
    /// This end failed.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(0x2);
    /// A flow-control value is impossible.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(0x3);
    /// SETTINGS were not acknowledged in time.
    pub const SETTINGS_TIMEOUT: ErrorCode = ErrorCode(0x4);
    /// A frame came for a stream that was over.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(0x5);
    /// A frame has an impossible length.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(0x6);
    /// The stream was not processed; the request may be sent again.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(0x7);
    /// The stream is no longer wanted.
    pub const CANCEL: ErrorCode = ErrorCode(0x8);
    /// A header block does not decode.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(0x9);
    /// A tunnel's other side failed.
    pub const CONNECT_ERROR: ErrorCode = ErrorCode(0xa);
    /// The peer asks for more than this end is ready to spend.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(0xb);
    /// The transport is not secure enough.
    pub const INADEQUATE_SECURITY: ErrorCode = ErrorCode(0xc);
    /// The peer should use HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: ErrorCode = ErrorCode(0xd);

    /// The code as QUIC carries it.
    pub const fn to_quic(self) -> u64 {
        self.0 as u64
    }

    fn name(self) -> Option<&'static str> {
        let name = match self {
            Self::NO_ERROR => "NO_ERROR",
            Self::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
            Self::STREAM_CLOSED => "STREAM_CLOSED",
            Self::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
            Self::REFUSED_STREAM => "REFUSED_STREAM",
            Self::CANCEL => "CANCEL",
            Self::COMPRESSION_ERROR => "COMPRESSION_ERROR",
            Self::CONNECT_ERROR => "CONNECT_ERROR",
            Self::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
            Self::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
            Self::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
            _ => return None,
        };
        Some(name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
