//! Packets that came before their keys.
//!
//! Datagrams of the handshake may overtake each other, so that a Handshake packet comes before the
//! Initial packet whose message its keys are made of.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-5.7>

use crate::connection::receive::Origin;
use crate::tls::Level;

/// Packets kept at most: a peer can make them grow. Our choice.
const MAX_KEPT: usize = 16;

/// A packet as it came, still protected.
#[derive(Debug)]
pub(in crate::connection) struct KeptPacket {
    pub(in crate::connection) origin: Origin,
    /// Whose keys open it.
    pub(in crate::connection) level: Level,
    pub(in crate::connection) bytes: Vec<u8>,
}

/// Packets that came before their keys, in order of arrival.
#[derive(Debug, Default)]
pub(super) struct KeptPackets {
    packets: Vec<KeptPacket>,
}

impl KeptPackets {
    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// Keeps a packet; `false` if there is no room for it.
    pub(super) fn keep(&mut self, packet: KeptPacket) -> bool {
        let room = self.packets.len() < MAX_KEPT;
        if room {
            self.packets.push(packet);
        }
        room
    }

    /// Takes out the first packet whose level is `ready`: its keys came, or never will.
    pub(super) fn take(&mut self, ready: impl Fn(Level) -> bool) -> Option<KeptPacket> {
        let at = self.packets.iter().position(|packet| ready(packet.level))?;
        Some(self.packets.remove(at))
    }
}
