//! The nine octets before each frame. <https://www.rfc-editor.org/rfc/rfc7540#section-4.1>

use super::{FrameStreamId, LARGEST_FRAME_SIZE};

/// What a frame's header says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    /// Payload octets, below 2^24.
    pub(crate) length: usize,
    /// Type of the frame.
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: FrameStreamId,
}

impl Header {
    /// Length of a header in octets.
    pub(crate) const LEN: usize = 9;

    pub(crate) fn decode(octets: [u8; Self::LEN]) -> Self {
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

    pub(crate) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}
