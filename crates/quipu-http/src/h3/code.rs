//! Error codes of HTTP/3.

use std::fmt;

/// An error code of HTTP/3: of RESET_STREAM and STOP_SENDING, and the one that closes the connection.
/// <https://www.rfc-editor.org/rfc/rfc9114#section-8.1>
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub u64);

/// Defines the codes with their names.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl ErrorCode {
            $($(#[$doc])* pub const $name: ErrorCode = ErrorCode($value);)*

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// No error: a graceful end.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// The peer broke the protocol in a way that no other code names.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// This end failed.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// The peer opened a stream that this end does not take.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A stream that lives as long as the connection ended.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame where it may not be.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame of a wrong layout or size.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer asks for more than this end is ready to spend.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// A stream or push identifier that cannot be.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// A SETTINGS frame that cannot be.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The server did not look at the request.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is no longer wanted.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The client's stream ended before the request was whole.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A message breaks the rules of HTTP.
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The other side of a tunnel failed.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The peer should use HTTP/1.1.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// An HTTP datagram that cannot be. <https://www.rfc-editor.org/rfc/rfc9297#section-5.2>
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// A field section does not decode. <https://www.rfc-editor.org/rfc/rfc9204#section-6>
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// The peer's encoder stream does not decode.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// The peer's decoder stream does not decode.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
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
