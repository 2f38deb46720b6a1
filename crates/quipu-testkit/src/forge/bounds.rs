//! What no attack may make a victim do.

use quipu_base::{Bytes, Instant};

use super::moves::spoofed;
use super::peer::Forge;

/// Bounds of one victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of memory, where they are counted.
    pub held: i64,
    /// Connections at a time.
    pub connections: usize,
}

impl Default for Bounds {
    /// Those of a victim of [`Hostility::drawn`](super::Hostility::drawn): a peer may open 64 streams
    /// of each kind, fill windows of 256 kB, and the application writes some megabytes.
    fn default() -> Self {
        Bounds { held: 6 << 20, connections: 2 }
    }
}

/// A bound that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Breach {
    /// A deadline was served, nothing was sent, and the next is no later: a driver spins.
    #[error("the deadline of {0} stands")]
    Stuck(Instant),
    /// More memory is held than may be.
    #[error("{held} bytes of memory held, expected at most {most}")]
    Memory {
        /// Bytes held.
        held: i64,
        /// The bound.
        most: i64,
    },
    /// More went to an address that proved nothing than three times what came from it.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-8>
    #[error("{sent} went to a spoofed address from which {received} came")]
    Amplified {
        /// From the address.
        received: Bytes,
        /// To the address.
        sent: Bytes,
    },
    /// There are more connections than may be.
    #[error("{0} connections")]
    Connections(usize),
}

impl Bounds {
    /// The first bound that the victim of `forge` passed.
    ///
    /// # Errors
    /// That bound.
    pub fn check(&self, forge: &Forge) -> Result<(), Breach> {
        if let Some(at) = forge.victim().stuck() {
            return Err(Breach::Stuck(at));
        }
        let held = forge.work().held;
        if held > self.held {
            return Err(Breach::Memory { held, most: self.held });
        }
        for number in 0..4 {
            let [received, sent] = forge.flow(spoofed(number));
            if sent > 3 * received {
                return Err(Breach::Amplified { received: Bytes(received), sent: Bytes(sent) });
            }
        }
        let connections = forge.victim().endpoint().handles().count();
        if connections > self.connections {
            return Err(Breach::Connections(connections));
        }
        Ok(())
    }
}
