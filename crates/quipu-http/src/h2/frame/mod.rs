//! HTTP/2 frames. <https://www.rfc-editor.org/rfc/rfc7540#section-4>
//!
//! [`FrameDecoder`] reads those that the control stream carries from octets in any chunks; the
//! `encode_*` functions append frames to a buffer. Those with bodies, credit and cancellations, which
//! only a [byte stream](crate::byte_stream) carries, are read there.

mod decode;
mod encode;
mod error;
mod header;
mod settings;
#[cfg(test)]
mod tests;

use bytes::Bytes;

pub use decode::{FrameDecoder, MAX_CONTINUATIONS};
pub use encode::{
    encode_data_header, encode_go_away, encode_headers, encode_ping_ack, encode_priority,
    encode_priority_update, encode_push_promise, encode_reset, encode_settings,
    encode_settings_ack, encode_window_update,
};
pub use error::FrameError;
pub use header::Header;
pub use settings::Settings;

use super::{ErrorCode, FrameStreamId};

/// Payload octets that a frame may have before any setting is exchanged, and the least that an end may
/// set. <https://www.rfc-editor.org/rfc/rfc7540#section-4.2>
pub const DEFAULT_FRAME_SIZE: u32 = 16_384;
/// Most payload octets that a frame's header can state.
pub const LARGEST_FRAME_SIZE: u32 = (1 << 24) - 1;

/// A frame as received; HEADERS and PUSH_PROMISE with their CONTINUATION frames joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Settings of the peer. <https://www.rfc-editor.org/rfc/rfc7540#section-6.5>
    Settings(Settings),
    /// The peer applied our settings.
    SettingsAck,
    /// Head of a request or a response. <https://www.rfc-editor.org/rfc/rfc7540#section-6.2>
    Headers {
        /// The stream, not zero.
        stream: FrameStreamId,
        /// Place in the dependency tree, if stated.
        priority: Option<StreamPriority>,
        /// Whether the body is empty.
        end_stream: bool,
        /// The whole header block.
        block: Bytes,
    },
    /// A request that the server expects, and answers unasked.
    /// <https://www.rfc-editor.org/rfc/rfc9113#section-6.6>
    PushPromise {
        /// The request whose response this belongs to, not zero.
        stream: FrameStreamId,
        /// The stream of the pushed response, not zero.
        promised: FrameStreamId,
        /// The whole header block, of a request.
        block: Bytes,
    },
    /// Place of a node in the dependency tree. <https://www.rfc-editor.org/rfc/rfc7540#section-6.3>
    Priority {
        /// The node, not zero.
        stream: FrameStreamId,
        /// Its place.
        priority: StreamPriority,
    },
    /// Another urgency for a request. <https://www.rfc-editor.org/rfc/rfc9218#section-7.1>
    PriorityUpdate {
        /// The stream that is prioritised, not zero.
        stream: FrameStreamId,
        /// As in a `priority` field.
        value: Bytes,
    },
    /// The peer takes no streams above `last_stream`.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-6.8>
    GoAway {
        /// The last stream that was or will be processed.
        last_stream: FrameStreamId,
        /// Why.
        code: ErrorCode,
    },
}

/// A place in the dependency tree. <https://www.rfc-editor.org/rfc/rfc7540#section-5.3>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPriority {
    /// The stream or group that this one depends on; zero is the root.
    pub parent: FrameStreamId,
    /// 1 to 256; the wire carries one less. Out-of-range values are clamped.
    pub weight: u16,
    /// Whether the parent's other children become this one's.
    pub exclusive: bool,
}

impl Default for StreamPriority {
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-5.3.5>
    fn default() -> Self {
        StreamPriority { parent: FrameStreamId::ZERO, weight: 16, exclusive: false }
    }
}

impl StreamPriority {
    const LEN: usize = 5;
    const EXCLUSIVE: u32 = 1 << 31;

    fn decode(octets: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, weight] = octets;
        let parent = u32::from_be_bytes([a, b, c, d]);
        StreamPriority {
            parent: FrameStreamId::from_wire(parent),
            weight: u16::from(weight) + 1,
            exclusive: parent & Self::EXCLUSIVE != 0,
        }
    }

    fn encode(self, out: &mut Vec<u8>) {
        let exclusive = if self.exclusive { Self::EXCLUSIVE } else { 0 };
        out.extend_from_slice(&(self.parent.value() | exclusive).to_be_bytes());
        // Clamped to 0..=255 first.
        out.push((self.weight.clamp(1, 256) - 1) as u8);
    }
}

/// Frame types. <https://www.rfc-editor.org/rfc/rfc7540#section-11.2>
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0x0;
    pub(crate) const HEADERS: u8 = 0x1;
    pub(crate) const PRIORITY: u8 = 0x2;
    pub(crate) const RST_STREAM: u8 = 0x3;
    pub(crate) const SETTINGS: u8 = 0x4;
    pub(crate) const PUSH_PROMISE: u8 = 0x5;
    pub(crate) const PING: u8 = 0x6;
    pub(crate) const GO_AWAY: u8 = 0x7;
    pub(crate) const WINDOW_UPDATE: u8 = 0x8;
    pub(crate) const CONTINUATION: u8 = 0x9;
    /// <https://www.rfc-editor.org/rfc/rfc9218#section-7.1>
    pub(crate) const PRIORITY_UPDATE: u8 = 0x10;

    /// Whether a frame of this type is more than skipped.
    pub(crate) const fn is_known(kind: u8) -> bool {
        kind <= CONTINUATION || kind == PRIORITY_UPDATE
    }

    /// The name for messages.
    pub(crate) const fn name(kind: u8) -> &'static str {
        match kind {
            DATA => "DATA",
            HEADERS => "HEADERS",
            PRIORITY => "PRIORITY",
            RST_STREAM => "RST_STREAM",
            SETTINGS => "SETTINGS",
            PUSH_PROMISE => "PUSH_PROMISE",
            PING => "PING",
            GO_AWAY => "GOAWAY",
            WINDOW_UPDATE => "WINDOW_UPDATE",
            CONTINUATION => "CONTINUATION",
            PRIORITY_UPDATE => "PRIORITY_UPDATE",
            _ => "unknown",
        }
    }
}

/// Frame flags.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}
