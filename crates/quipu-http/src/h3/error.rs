//! Why a connection cannot go on.

use quipu_base::StreamId;
use thiserror::Error;

use super::ErrorCode;
use super::frame::FrameError;
use crate::qpack::{DecodeError, DecoderStreamError, EncoderStreamError};
use crate::transport::StreamError;

/// Why a connection cannot go on. The connection closes with its [code](ConnectionError::code).
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// A frame breaks the rules.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The control stream begins with another frame than SETTINGS.
    #[error("the control stream begins with a frame of type {kind:#x}, not with SETTINGS")]
    MissingSettings {
        /// The frame's type.
        kind: u64,
    },
    /// Settings that contradict those that this end remembered from the last connection, and used, or
    /// what the transport said.
    #[error("setting {setting}: {problem}")]
    Settings {
        /// Its name.
        setting: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// The peer ended, reset or stopped its control stream or one of QPACK's.
    #[error("the peer closed {stream}, the {name} stream")]
    CriticalStreamClosed {
        /// The stream.
        stream: StreamId,
        /// What it is for.
        name: &'static str,
    },
    /// A stream that the peer may not open.
    #[error("the peer opened {stream}, {problem}")]
    StreamCreation {
        /// The stream.
        stream: StreamId,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A stream or push identifier that cannot be.
    #[error("{frame} with identifier {id}: {problem}")]
    Id {
        /// The frame that has it.
        frame: &'static str,
        /// The identifier.
        id: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A field section does not decode.
    #[error("field section: {0}")]
    Decompression(#[from] DecodeError),
    /// The peer's encoder stream does not decode.
    #[error("encoder stream: {0}")]
    EncoderStream(#[from] EncoderStreamError),
    /// The peer's decoder stream does not decode.
    #[error("decoder stream: {0}")]
    DecoderStream(#[from] DecoderStreamError),
    /// A datagram that belongs to no request that could be.
    #[error("a datagram {problem}")]
    Datagram {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The client cancelled more requests than anyone needs, or made the server cancel them: see
    /// CVE-2023-44487 and CVE-2025-8671.
    #[error("more than {burst} requests cancelled or malformed at once")]
    TooManyResets {
        /// How many may be cancelled or malformed at once.
        burst: u32,
    },
    /// The peer sent more frames that mean nothing than anyone needs.
    #[error("more than {limit} octets of frames without a meaning")]
    TooMuchGrease {
        /// Octets that are allowed in all.
        limit: u64,
    },
    /// The peer does not let this end open the streams that HTTP/3 needs.
    #[error("the peer allows fewer than three unidirectional streams")]
    NoStreams,
    /// This end cannot use a stream of its own.
    #[error("a stream of the connection: {0}")]
    Stream(#[from] StreamError),
}

impl ConnectionError {
    /// The code that closes the connection.
    pub const fn code(&self) -> ErrorCode {
        match self {
            ConnectionError::Frame(error) => error.code(),
            ConnectionError::MissingSettings { .. } => ErrorCode::MISSING_SETTINGS,
            ConnectionError::Settings { .. } => ErrorCode::SETTINGS_ERROR,
            ConnectionError::CriticalStreamClosed { .. } => ErrorCode::CLOSED_CRITICAL_STREAM,
            ConnectionError::StreamCreation { .. } => ErrorCode::STREAM_CREATION_ERROR,
            ConnectionError::Id { .. } => ErrorCode::ID_ERROR,
            ConnectionError::Decompression(_) => ErrorCode::QPACK_DECOMPRESSION_FAILED,
            ConnectionError::EncoderStream(_) => ErrorCode::QPACK_ENCODER_STREAM_ERROR,
            ConnectionError::DecoderStream(_) => ErrorCode::QPACK_DECODER_STREAM_ERROR,
            ConnectionError::Datagram { .. } => ErrorCode::DATAGRAM_ERROR,
            ConnectionError::TooManyResets { .. } | ConnectionError::TooMuchGrease { .. } => {
                ErrorCode::EXCESSIVE_LOAD
            }
            ConnectionError::NoStreams => ErrorCode::GENERAL_PROTOCOL_ERROR,
            ConnectionError::Stream(_) => ErrorCode::INTERNAL_ERROR,
        }
    }
}
