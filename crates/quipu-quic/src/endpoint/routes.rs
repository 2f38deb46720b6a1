//! Which connection and path a connection ID belongs to.

use std::collections::BTreeMap;

use quipu_base::PathId;

use super::slab::ConnectionHandle;
use crate::wire::ConnectionId;

/// Where the datagrams of a connection ID go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) handle: ConnectionHandle,
    pub(super) path: PathId,
}

/// Connection IDs that peers may send to.
#[derive(Default)]
pub(super) struct Routes {
    // A hash table would need a key that clients do not know: they choose the connection IDs of
    // their first packets.
    targets: BTreeMap<ConnectionId, Target>,
    /// What was looked up of late, one for each path of a busy connection: most datagrams are for these
    /// again.
    recent: [Option<(ConnectionId, Target)>; RECENT],
    /// Which of them is replaced next.
    oldest: usize,
}

const RECENT: usize = 4;

impl Routes {
    /// Datagrams to `cid` go to `target`. `false` if the connection ID is taken.
    pub(super) fn insert(&mut self, cid: ConnectionId, target: Target) -> bool {
        match self.targets.entry(cid) {
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert(target);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }

    pub(super) fn remove(&mut self, cid: &ConnectionId) {
        self.targets.remove(cid);
        self.recent = [None; RECENT];
    }

    pub(super) fn contains(&self, cid: &ConnectionId) -> bool {
        self.targets.contains_key(cid)
    }

    pub(super) fn get(&mut self, cid: &ConnectionId) -> Option<Target> {
        if let Some((_, target)) = self.recent.iter().flatten().find(|(recent, _)| recent == cid) {
            return Some(*target);
        }
        let target = *self.targets.get(cid)?;
        if let Some(replaced) = self.recent.get_mut(self.oldest) {
            *replaced = Some((*cid, target));
        }
        self.oldest = (self.oldest + 1) % RECENT;
        Some(target)
    }

    /// Connection IDs that are known.
    pub(super) fn len(&self) -> usize {
        self.targets.len()
    }
}

/// The destination connection ID of a datagram's first packet. `local_length`: that of the
/// connection IDs that this endpoint issues, in bytes.
pub(super) fn destination(datagram: &[u8], local_length: usize) -> Option<ConnectionId> {
    let (&first, rest) = datagram.split_first()?;
    if first & 0x80 == 0 {
        return ConnectionId::new(rest.get(..local_length)?);
    }
    let length = usize::from(*datagram.get(5)?);
    ConnectionId::new(datagram.get(6..6 + length)?)
}
