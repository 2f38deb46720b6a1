//! Frames of HTTP/3: <https://www.rfc-editor.org/rfc/rfc9114#section-7>.

mod header;
mod settings;
#[cfg(test)]
mod tests;

use thiserror::Error;

use super::ErrorCode;

pub use header::{FrameHeader, HeaderReader, HeaderState};
pub use settings::Settings;

/// Types of frames. <https://www.rfc-editor.org/rfc/rfc9114#section-11.2.1>
pub mod kind {
    /// A part of a body.
    pub const DATA: u64 = 0x00;
    /// A field section.
    pub const HEADERS: u64 = 0x01;
    /// A promised response is not wanted, or will not come.
    pub const CANCEL_PUSH: u64 = 0x03;
    /// What an end is ready for.
    pub const SETTINGS: u64 = 0x04;
    /// The head of a request that a server answers unasked.
    pub const PUSH_PROMISE: u64 = 0x05;
    /// An end goes away.
    pub const GOAWAY: u64 = 0x07;
    /// How many responses a server may push.
    pub const MAX_PUSH_ID: u64 = 0x0d;
    /// Another priority for a request. <https://www.rfc-editor.org/rfc/rfc9218#section-7.2>
    pub const PRIORITY_UPDATE: u64 = 0xf_0700;
    /// Another priority for a pushed response.
    pub const PRIORITY_UPDATE_PUSH: u64 = 0xf_0701;

    /// Whether it is a frame of HTTP/2 without a counterpart, which may never be sent.
    /// <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8>
    pub const fn is_of_http2(kind: u64) -> bool {
        matches!(kind, 0x02 | 0x06 | 0x08 | 0x09)
    }
}

/// Why a frame breaks the rules; each is an error of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame where it may not be.
    #[error("a frame of type {kind:#x} {place}")]
    Unexpected {
        /// The frame's type.
        kind: u64,
        /// Where it came.
        place: &'static str,
    },
    /// The payload is not what the type says.
    #[error("a frame of type {kind:#x}: {problem}")]
    Malformed {
        /// The frame's type.
        kind: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// The stream ended inside a frame.
    #[error("the stream ends inside a frame")]
    Truncated,
    /// A frame that must be held as a whole is larger than this end holds.
    #[error("a frame of type {kind:#x} with {length} octets, where {limit} are the limit")]
    TooLarge {
        /// The frame's type.
        kind: u64,
        /// Its length, in octets.
        length: u64,
        /// The limit, in octets.
        limit: u64,
    },
    /// A setting that comes twice.
    #[error("setting {id:#x} comes twice")]
    SettingTwice {
        /// Its identifier.
        id: u64,
    },
    /// A setting that only HTTP/2 has.
    #[error("setting {id:#x}, which only HTTP/2 has")]
    SettingOfHttp2 {
        /// Its identifier.
        id: u64,
    },
    /// A setting with a value that it cannot have.
    #[error("setting {id:#x} with value {value}; expected 0 or 1")]
    SettingValue {
        /// Its identifier.
        id: u64,
        /// Its value.
        value: u64,
    },
}

impl FrameError {
    /// The code that closes the connection.
    pub const fn code(&self) -> ErrorCode {
        match self {
            FrameError::Unexpected { .. } => ErrorCode::FRAME_UNEXPECTED,
            FrameError::Malformed { .. } | FrameError::Truncated => ErrorCode::FRAME_ERROR,
            FrameError::TooLarge { .. } => ErrorCode::EXCESSIVE_LOAD,
            FrameError::SettingTwice { .. }
            | FrameError::SettingOfHttp2 { .. }
            | FrameError::SettingValue { .. } => ErrorCode::SETTINGS_ERROR,
        }
    }
}

/// Appends a variable-length integer, below 2^62.
pub fn put_varint(value: u64, out: &mut Vec<u8>) {
    let mut octets = [0; 8];
    let mut writer = quipu_quic::wire::Writer::new(&mut octets);
    // Eight octets hold each.
    let written = writer.put_varint(value.min(quipu_quic::wire::varint::MAX));
    debug_assert!(written.is_ok());
    out.extend_from_slice(writer.written());
}

/// Appends a frame.
pub fn put_frame(kind: u64, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { kind, length: payload.len() as u64 }.encode(out);
    out.extend_from_slice(payload);
}

/// Appends a frame whose payload is one identifier.
pub fn put_id_frame(kind: u64, id: u64, out: &mut Vec<u8>) {
    FrameHeader { kind, length: quipu_quic::wire::varint::size(id) as u64 }.encode(out);
    put_varint(id, out);
}

/// Reads a payload that is one identifier.
///
/// # Errors
/// If it is anything else.
pub fn read_id(kind: u64, payload: &[u8]) -> Result<u64, FrameError> {
    let mut reader = quipu_quic::wire::Reader::new(payload);
    match reader.varint() {
        Ok(id) if reader.is_empty() => Ok(id),
        // https://www.rfc-editor.org/rfc/rfc9114#section-7.1
        //# A frame payload that contains additional bytes after the identified fields or a frame
        //# payload that terminates before the end of the identified fields MUST be treated as a
        //# connection error of type H3_FRAME_ERROR. In particular, redundant length encodings MUST
        //# be verified to be self-consistent; see Section 10.8.
        // https://www.rfc-editor.org/rfc/rfc9114#section-10.8
        //# An implementation MUST ensure that the length of a frame exactly matches the length of
        //# the fields it contains.
        _ => Err(FrameError::Malformed { kind, problem: "expected one identifier" }),
    }
}

/// A number that says nothing and keeps peers used to what they do not know: `0x1f * n + 0x21`.
/// <https://www.rfc-editor.org/rfc/rfc9114#section-7.2.8>
pub const fn grease(n: u64) -> u64 {
    0x1f * (n % (1 << 56)) + 0x21
}
