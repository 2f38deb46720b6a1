//! Packets that came before their keys.
//!
//! Datagrams of the handshake may overtake each other, so that a Handshake packet comes before the
//! Initial packet whose message its keys are made of.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-5.7>

use quipu_base::PathId;

use super::Space;
use super::receive::Arrival;

/// Packets kept at most: a peer can make them grow. Our choice.
const MAX_KEPT: usize = 16;

/// A packet as it came, still protected.
#[derive(Debug)]
pub(super) struct KeptPacket {
    pub(super) arrival: Arrival,
    /// The path that its connection ID names.
    pub(super) path: PathId,
    /// The space whose keys it needs.
    pub(super) space: Space,
    pub(super) bytes: Vec<u8>,
}

/// Packets that came before their keys, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct KeptPackets {
    packets: Vec<KeptPacket>,
}

impl KeptPackets {
    /// True if one more packet may be kept.
    pub(super) fn has_room(&self) -> bool {
        self.packets.len() < MAX_KEPT
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps a packet if there is room.
    pub(super) fn keep(&mut self, packet: KeptPacket) {
        if self.has_room() {
            self.packets.push(packet);
        }
    }

    /// Takes out the first packet whose space is `ready`: its keys came, or never will.
    pub(super) fn take(&mut self, ready: impl Fn(Space) -> bool) -> Option<KeptPacket> {
        let at = self.packets.iter().position(|packet| ready(packet.space))?;
        Some(self.packets.remove(at))
    }
}
