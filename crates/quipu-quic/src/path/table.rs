//! All paths of a connection, by slot.

use quipu_base::{Duration, PacketNumber, PathId};
use quipu_policy::congestion::Published;
use quipu_policy::{PathKey, PathView, Paths, SentPacket, SentTable};
use smallvec::SmallVec;

use super::{KnownRtts, PathData, PathMut, PathRef, hosts};
use crate::route::Route;

/// The paths with their views. A slot is used again only after its path is dropped.
#[derive(Default)]
pub(crate) struct PathTable {
    /// What policies see.
    pub(crate) views: Paths,
    data: Vec<Option<Box<PathData>>>,
    /// The slots of those with state, in order of path identifier.
    slots_by_id: SmallVec<[(PathId, u8); 8]>,
    /// What the controllers last published, in order of path identifier.
    pub(crate) published: Vec<(PathKey, Published)>,
    /// Of paths that were given up.
    known: KnownRtts,
}

impl PathTable {
    /// The lowest free slot.
    pub(crate) fn free_slot(&self) -> Option<u8> {
        let free = self.data.iter().position(Option::is_none).unwrap_or(self.data.len());
        (free < Paths::MAX).then_some(free as u8)
    }

    /// The round-trip time that a path between the same hosts had last.
    pub(crate) fn known_rtt(&self, route: &Route) -> Option<Duration> {
        self.known.get(hosts(route))
    }

    pub(crate) fn insert(&mut self, data: PathData, view: PathView) {
        let key = data.key;
        // Most connections have one path.
        if self.data.len() <= key.index() {
            self.data.reserve_exact(key.index() + 1 - self.data.len());
            self.data.resize_with(key.index() + 1, || None);
        }
        let at = self.published.partition_point(|(other, _)| *other < key);
        self.published.reserve_exact(1);
        self.published.insert(at, (key, data.recovery.published()));
        let at = self.slots_by_id.partition_point(|(other, _)| *other < key.id);
        self.slots_by_id.insert(at, (key.id, key.slot));
        self.data[key.index()] = Some(Box::new(data));
        self.views.insert(view);
    }

    /// Hides a path from policies; its state stays until [`PathTable::remove`]. What they saw of it
    /// last, if they did.
    pub(crate) fn hide(&mut self, key: PathKey) -> Option<PathView> {
        self.published.retain(|(other, _)| *other != key);
        let view = self.views.remove(key)?;
        if let (Some(srtt), Some(data)) = (view.srtt, self.get(key.slot)) {
            let hosts = data.measured.hosts;
            self.known.note(hosts, srtt);
        }
        Some(view)
    }

    pub(crate) fn remove(&mut self, key: PathKey) -> Option<Box<PathData>> {
        self.hide(key);
        self.slots_by_id.retain(|(id, _)| *id != key.id);
        self.data.get_mut(key.index())?.take()
    }

    pub(crate) fn get(&self, slot: u8) -> Option<&PathData> {
        self.data.get(usize::from(slot))?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, slot: u8) -> Option<&mut PathData> {
        self.data.get_mut(usize::from(slot))?.as_deref_mut()
    }

    /// The path in that slot.
    pub(crate) fn at(&self, slot: u8) -> Option<PathRef<'_>> {
        let data = self.get(slot)?;
        Some(PathRef { data, view: self.views.get(data.key) })
    }

    /// The path in that slot, to change it.
    pub(crate) fn at_mut(&mut self, slot: u8) -> Option<PathMut<'_>> {
        let data = self.data.get_mut(usize::from(slot))?.as_deref_mut()?;
        let view = self.views.get_mut(data.key);
        Some(PathMut { data, view, published: &mut self.published })
    }

    /// A path and its view, if policies still see it.
    pub(crate) fn pair_mut(&mut self, slot: u8) -> Option<(&mut PathData, &mut PathView)> {
        let data = self.data.get_mut(usize::from(slot))?.as_deref_mut()?;
        let view = self.views.get_mut(data.key)?;
        Some((data, view))
    }

    pub(crate) fn by_id(&self, id: PathId) -> Option<&PathData> {
        self.get(self.slot_of(id)?)
    }

    /// The slot of the path with that identifier: one glance at a list that fits a cache line or
    /// two, since every packet that comes asks for it.
    pub(crate) fn slot_of(&self, id: PathId) -> Option<u8> {
        let found = self.slots_by_id.iter().find(|(other, _)| *other == id);
        found.map(|(_, slot)| *slot)
    }

    /// Paths with state, by slot; those being abandoned too.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PathData> {
        self.data.iter().filter_map(Option::as_deref)
    }

    /// One past the highest slot ever used.
    pub(crate) fn slots(&self) -> u8 {
        self.data.len() as u8
    }
}

impl SentTable for PathTable {
    fn next_sent(&self, path: PathKey, after: Option<PacketNumber>) -> Option<SentPacket<'_>> {
        let data = self.get(path.slot).filter(|data| data.key == path)?;
        data.packets.sent.next_after(after).map(|record| record.as_packet(path))
    }
}
