//! The nine octets before each frame. <https://www.rfc-editor.org/rfc/rfc7540#section-4.1>

use super::{FrameStreamId, LARGEST_FRAME_SIZE, flag, kind};

/// What a frame's header says.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Payload octets, below 2^24.
    pub length: usize,
    /// Type of the frame.
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    /// The stream that the frame is about; zero is the connection.
    pub stream: FrameStreamId,
}

impl Header {
    /// Length of a header in octets.
    pub const LEN: usize = 9;

    /// Reads a header. Any nine octets are one.
    pub fn decode(octets: [u8; Self::LEN]) -> Self {
        let [a, b, c, kind, flags, d, e, f, g] = octets;
        Header {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: FrameStreamId::from_wire(u32::from_be_bytes([d, e, f, g])),
        }
    }

    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        debug_assert!(self.length <= LARGEST_FRAME_SIZE as usize);
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        out.extend_from_slice(&[a, b, c, self.kind, self.flags]);
        out.extend_from_slice(&self.stream.value().to_be_bytes());
    }

    /// Whether this is a DATA frame. <https://www.rfc-editor.org/rfc/rfc7540#section-6.1>
    pub const fn is_data(&self) -> bool {
        self.kind == kind::DATA
    }

    /// Whether the payload begins with the number of octets of padding at its end.
    pub const fn is_padded(&self) -> bool {
        self.has(flag::PADDED)
    }

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
