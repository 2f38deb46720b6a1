//! Servers that share an address: each has a task, an engine and a lock of its own, so that they use as many
//! processors.
//!
//! The kernel gives each socket of a port the datagrams of some addresses (SO_REUSEPORT on Linux). So a client
//! that moves may come to another shard than the one that has its connection, which its connection ID names.
//! That shard takes the datagram from the one that received it.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.2>

use std::sync::{Arc, Weak};

use quipu_quic::Arrival;
use quipu_quic::connection_ids::RandomIds;

use crate::engine::Engine;
use crate::state::Shared;

/// The shards of one address, as one of them sees them.
pub(crate) struct Shards {
    /// Which connection IDs are whose.
    ids: RandomIds,
    own: usize,
    /// Each ends when nobody holds it any more.
    all: Arc<[Weak<Shared>]>,
}

impl Shards {
    pub(crate) fn new(ids: RandomIds, own: usize, all: Arc<[Weak<Shared>]>) -> Self {
        Shards { ids, own, all }
    }

    /// The other shard that is to have a datagram which none of our connections is addressed by; `None`: it
    /// is for us, or for nobody.
    pub(crate) fn owner(&self, engine: &Engine, datagram: &[u8]) -> Option<Arc<Shared>> {
        let shard = usize::from(self.ids.shard_of(&engine.destination(datagram)?)?);
        if shard == self.own { None } else { self.all.get(shard)?.upgrade() }
    }
}

/// Gives a datagram to the shard that it is addressed to by connection ID: that of one of its connections, or
/// of one that it may have had. False if neither: the client chose it, and any shard may take it.
pub(crate) fn give(other: &Shared, arrival: Arrival, datagram: &mut [u8]) -> bool {
    other.act(|state, now| {
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        let takes = !state.is_gone() && (is_short || state.engine.holds(datagram));
        if takes {
            state.counters.datagrams_given += 1;
            state.engine.handle_datagram(now, arrival, datagram);
        }
        takes
    })
}
