//! Servers that share an address: each has a task, an engine and a lock of its own, so that they use as many
//! processors.
//!
//! The kernel gives each socket of a port the datagrams of some addresses (SO_REUSEPORT on Linux). So a client
//! that moves may come to another shard than the one that has its connection, which its connection ID names.
//! That shard takes the datagram from the one that received it.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.2>

use std::sync::{Arc, Weak};

use quipu_quic::connection_ids::RandomIds;

use crate::engine::Engine;

/// The shards of one address, as one of them sees them; each is an `S`.
pub(crate) struct Shards<S> {
    /// Which connection IDs are whose.
    ids: RandomIds,
    own: usize,
    /// Each ends when nobody holds it any more.
    all: Arc<[Weak<S>]>,
}

impl<S> Shards<S> {
    pub(crate) fn new(ids: RandomIds, own: usize, all: Arc<[Weak<S>]>) -> Self {
        Shards { ids, own, all }
    }

    /// The other shard that is to have a datagram which none of our connections is addressed by; `None`: it
    /// is for us, or for nobody.
    pub(crate) fn owner(&self, engine: &Engine, datagram: &[u8]) -> Option<Arc<S>> {
        let shard = usize::from(self.ids.shard_of(&engine.destination(datagram)?)?);
        if shard == self.own { None } else { self.all.get(shard)?.upgrade() }
    }
}
