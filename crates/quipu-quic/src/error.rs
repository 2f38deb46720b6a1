//! Errors in three families, which never mix:
//!
//! - **The peer broke the protocol**: [`TransportError`], which goes on the wire as an
//!   [`ErrorCode`] with the frame at fault and a reason.
//! - **The caller misused the API**: an enum beside each operation, never on the wire.
//! - **The environment failed**: the variants of [`CloseReason`] that no frame caused, such as
//!   [`CloseReason::IdleTimeout`].
//!
//! [`CloseReason`] tells the application why its connection is over.
//!
//! [`CloseReason`]: crate::connection::CloseReason
//! [`CloseReason::IdleTimeout`]: crate::connection::CloseReason::IdleTimeout

use std::borrow::Cow;
use std::fmt;

use thiserror::Error;

use crate::kinds::FrameType;

/// An error code of the transport, below 2^62.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-20.1>
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub u64);

macro_rules! error_codes {
    ($($name:ident = $value:literal, $text:literal;)*) => {
        impl ErrorCode {
            $(
                #[doc = concat!($text, ".")]
                pub const $name: ErrorCode = ErrorCode($value);
            )*

            /// The name that the RFCs give; `None` for a crypto error and for a code that is not
            /// known here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)*
                    _ => None,
                }
            }

            /// What the code means; `None` as with [`ErrorCode::name`].
            pub const fn description(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

error_codes! {
    NO_ERROR = 0x00, "the connection ends without an error";
    INTERNAL_ERROR = 0x01, "the endpoint met an internal error";
    CONNECTION_REFUSED = 0x02, "the server refuses new connections";
    FLOW_CONTROL_ERROR = 0x03, "more data than the credit allowed";
    STREAM_LIMIT_ERROR = 0x04, "more streams than the limit allowed";
    STREAM_STATE_ERROR = 0x05, "a frame that the stream's state does not permit";
    FINAL_SIZE_ERROR = 0x06, "the stream's final size changed or lies below its data";
    FRAME_ENCODING_ERROR = 0x07, "a badly formed frame";
    TRANSPORT_PARAMETER_ERROR = 0x08, "a wrong transport parameter";
    CONNECTION_ID_LIMIT_ERROR = 0x09, "more connection IDs than the limit allowed";
    PROTOCOL_VIOLATION = 0x0a, "a violation that no other code names";
    INVALID_TOKEN = 0x0b, "an invalid Retry token";
    APPLICATION_ERROR = 0x0c, "the application ended the connection";
    CRYPTO_BUFFER_EXCEEDED = 0x0d, "more handshake data than can be held";
    KEY_UPDATE_ERROR = 0x0e, "a wrong key update";
    AEAD_LIMIT_REACHED = 0x0f, "the keys' limit of use is reached";
    NO_VIABLE_PATH = 0x10, "no path can carry QUIC";
    VERSION_NEGOTIATION_ERROR = 0x11, "the version was not negotiated honestly";
    APPLICATION_ABANDON_PATH = 0x3e, "the application abandoned the path";
    PATH_RESOURCE_LIMIT_REACHED = 0x3e75, "no resources for the path";
    PATH_UNSTABLE_OR_POOR = 0x3e76, "the path is unstable or poor";
    NO_CID_AVAILABLE_FOR_PATH = 0x3e77, "no connection ID for the path";
}

impl ErrorCode {
    /// The code of a TLS alert: 0x100 plus the alert's description.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-4.8>
    pub const fn crypto(alert: u8) -> ErrorCode {
        ErrorCode(0x100 | alert as u64)
    }

    /// The TLS alert, if the code stands for one.
    pub const fn alert(self) -> Option<TlsAlert> {
        match self.0 {
            0x100..=0x1ff => Some(TlsAlert((self.0 & 0xff) as u8)),
            _ => None,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.alert()) {
            (Some(name), _) => f.write_str(name),
            (None, Some(alert)) => write!(f, "CRYPTO_ERROR ({alert})"),
            (None, None) => write!(f, "error {:#x}", self.0),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ErrorCode({self})")
    }
}

/// An alert of TLS, by its description.
/// <https://www.rfc-editor.org/rfc/rfc8446#section-6>
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TlsAlert(pub u8);

impl TlsAlert {
    /// The name that TLS gives; `None` for a description that is not known here.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self.0 {
            0 => "close_notify",
            10 => "unexpected_message",
            20 => "bad_record_mac",
            22 => "record_overflow",
            40 => "handshake_failure",
            42 => "bad_certificate",
            43 => "unsupported_certificate",
            44 => "certificate_revoked",
            45 => "certificate_expired",
            46 => "certificate_unknown",
            47 => "illegal_parameter",
            48 => "unknown_ca",
            49 => "access_denied",
            50 => "decode_error",
            51 => "decrypt_error",
            70 => "protocol_version",
            71 => "insufficient_security",
            80 => "internal_error",
            86 => "inappropriate_fallback",
            90 => "user_canceled",
            109 => "missing_extension",
            110 => "unsupported_extension",
            112 => "unrecognized_name",
            113 => "bad_certificate_status_response",
            115 => "unknown_psk_identity",
            116 => "certificate_required",
            120 => "no_application_protocol",
            _ => return None,
        })
    }
}

impl fmt::Display for TlsAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "TLS alert {name}"),
            None => write!(f, "TLS alert {}", self.0),
        }
    }
}

impl fmt::Debug for TlsAlert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TlsAlert({self})")
    }
}

/// The peer broke the protocol: what its connection is closed with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{code} in {frame}: {reason}", frame = FrameName(*.frame_type))]
pub struct TransportError {
    /// The code that tells the peer.
    pub code: ErrorCode,
    /// The frame at fault; `None` if no frame is, or the packet could not be read.
    pub frame_type: Option<FrameType>,
    /// What happened, for people; goes on the wire.
    pub reason: Cow<'static, str>,
}

struct FrameName(Option<FrameType>);

impl fmt::Display for FrameName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(frame_type) => frame_type.fmt(f),
            None => f.write_str("no frame"),
        }
    }
}

impl TransportError {
    /// An error without a frame at fault.
    pub fn new(code: ErrorCode, reason: impl Into<Cow<'static, str>>) -> Self {
        TransportError { code, frame_type: None, reason: reason.into() }
    }

    /// The same error, caused by a frame of this type.
    pub fn in_frame(self, frame_type: FrameType) -> Self {
        TransportError { frame_type: Some(frame_type), ..self }
    }

    /// A PROTOCOL_VIOLATION.
    pub fn protocol_violation(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::PROTOCOL_VIOLATION, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_number_and_name_of_its_rfc() {
        let table = [
            (0x00, "NO_ERROR"),
            (0x01, "INTERNAL_ERROR"),
            (0x02, "CONNECTION_REFUSED"),
            (0x03, "FLOW_CONTROL_ERROR"),
            (0x04, "STREAM_LIMIT_ERROR"),
            (0x05, "STREAM_STATE_ERROR"),
            (0x06, "FINAL_SIZE_ERROR"),
            (0x07, "FRAME_ENCODING_ERROR"),
            (0x08, "TRANSPORT_PARAMETER_ERROR"),
            (0x09, "CONNECTION_ID_LIMIT_ERROR"),
            (0x0a, "PROTOCOL_VIOLATION"),
            (0x0b, "INVALID_TOKEN"),
            (0x0c, "APPLICATION_ERROR"),
            (0x0d, "CRYPTO_BUFFER_EXCEEDED"),
            (0x0e, "KEY_UPDATE_ERROR"),
            (0x0f, "AEAD_LIMIT_REACHED"),
            (0x10, "NO_VIABLE_PATH"),
            (0x11, "VERSION_NEGOTIATION_ERROR"),
            (0x3e, "APPLICATION_ABANDON_PATH"),
            (0x3e75, "PATH_RESOURCE_LIMIT_REACHED"),
            (0x3e76, "PATH_UNSTABLE_OR_POOR"),
            (0x3e77, "NO_CID_AVAILABLE_FOR_PATH"),
        ];
        for (value, name) in table {
            assert_eq!(ErrorCode(value).name(), Some(name));
            assert_eq!(ErrorCode(value).to_string(), name);
            assert!(ErrorCode(value).description().is_some());
            assert_eq!(ErrorCode(value).alert(), None);
        }
        assert_eq!(ErrorCode(0x12).name(), None);
        assert_eq!(ErrorCode(0x12).to_string(), "error 0x12");
    }

    #[test]
    fn a_tls_alert_becomes_a_crypto_error_and_back() {
        for alert in 0..=u8::MAX {
            let code = ErrorCode::crypto(alert);
            assert_eq!(code.0, 0x100 + u64::from(alert));
            assert_eq!(code.alert(), Some(TlsAlert(alert)));
        }
        let text = ErrorCode::crypto(120).to_string();
        assert_eq!(text, "CRYPTO_ERROR (TLS alert no_application_protocol)");
        assert_eq!(ErrorCode::crypto(7).to_string(), "CRYPTO_ERROR (TLS alert 7)");
    }

    #[test]
    fn an_error_names_its_frame() {
        let error = TransportError::protocol_violation("two is too many").in_frame(FrameType::PING);
        assert_eq!(error.to_string(), "PROTOCOL_VIOLATION in PING: two is too many");
    }
}
