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
    targets: Targets,
    /// What was looked up of late, one for each path of a busy connection: most datagrams are for these
    /// again.
    recent: [Option<(ConnectionId, Target)>; RECENT],
    /// Which of them is replaced next.
    oldest: usize,
}

const RECENT: usize = 4;

/// Targets by connection ID. A hash table would need a key that clients do not know: they choose the
/// connection IDs of their first packets.
#[derive(Default)]
struct Targets {
    /// Of the usual length, as numbers: many connections have many of them, which take less memory
    /// this way, and less time to compare.
    of_eight: BTreeMap<u64, Target>,
    others: BTreeMap<ConnectionId, Target>,
}

/// A connection ID of eight bytes as a number.
fn as_number(cid: &ConnectionId) -> Option<u64> {
    cid.as_bytes().try_into().ok().map(u64::from_be_bytes)
}

impl Targets {
    fn get(&self, cid: &ConnectionId) -> Option<&Target> {
        match as_number(cid) {
            Some(number) => self.of_eight.get(&number),
            None => self.others.get(cid),
        }
    }

    fn insert(&mut self, cid: &ConnectionId, target: Target) {
        match as_number(cid) {
            Some(number) => self.of_eight.insert(number, target),
            None => self.others.insert(*cid, target),
        };
    }

    fn remove(&mut self, cid: &ConnectionId) {
        match as_number(cid) {
            Some(number) => self.of_eight.remove(&number),
            None => self.others.remove(cid),
        };
    }
}

impl Routes {
    /// Datagrams to `cid` go to `target`. `false` if the connection ID is taken.
    pub(super) fn insert(&mut self, cid: ConnectionId, target: Target) -> bool {
        let is_free = !self.contains(&cid);
        if is_free {
            self.targets.insert(&cid, target);
        }
        is_free
    }

    /// Datagrams to `cid` are not for `owner` any more, if they were.
    pub(super) fn remove(&mut self, cid: &ConnectionId, owner: ConnectionHandle) {
        if self.targets.get(cid).is_some_and(|target| target.handle == owner) {
            self.targets.remove(cid);
            self.recent = [None; RECENT];
        }
    }

    pub(super) fn contains(&self, cid: &ConnectionId) -> bool {
        self.targets.get(cid).is_some()
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
        self.targets.of_eight.len() + self.targets.others.len()
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two handles.
    fn handles() -> [ConnectionHandle; 2] {
        let mut slab = super::super::slab::Slab::new();
        [slab.insert(()).unwrap(), slab.insert(()).unwrap()]
    }

    #[test]
    fn connection_ids_of_every_length_lead_to_their_connection() {
        let [own, other] = handles();
        let mut routes = Routes::default();
        let ids: Vec<ConnectionId> =
            (4..=20).map(|length| ConnectionId::new(&[0; 20][..length]).unwrap()).collect();
        for (path, cid) in (0..).map(PathId).zip(&ids) {
            assert_eq!(routes.get(cid), None);
            assert!(routes.insert(*cid, Target { handle: own, path }));
            assert!(!routes.insert(*cid, Target { handle: other, path }), "it is taken");
        }
        for (path, cid) in (0..).map(PathId).zip(&ids) {
            assert_eq!(routes.get(cid), Some(Target { handle: own, path }));
        }
        assert_eq!(routes.len(), ids.len());
        for cid in &ids {
            routes.remove(cid, other);
            assert!(routes.contains(cid), "only its owner gives it up");
            assert!(routes.get(cid).is_some());
            routes.remove(cid, own);
            assert_eq!(routes.get(cid), None);
        }
        assert_eq!(routes.len(), 0);
    }
}
