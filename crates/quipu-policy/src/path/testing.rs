//! What tests of path policies share.

use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId, StreamId};

use super::{Choice, Parcel};
use crate::conformance::World;
use crate::key::{PathKey, Span, StreamKey};
use crate::seam::view::{Class, Kind, Piece, SentPacket};

pub(crate) const MS: Duration = Duration::from_millis(1);

pub(crate) const STREAM: StreamKey = StreamKey { slot: 0, id: StreamId(0) };

/// Open paths of these round-trip times in milliseconds, windows of 12,000 bytes.
pub(crate) fn world_of(rtts: &[u64]) -> (World, Vec<PathKey>) {
    let mut world = World::new(Bytes(1_000_000));
    let paths = rtts.iter().enumerate().map(|(id, rtt)| {
        let key = world.add_path(PathId(id as u32)).unwrap();
        world.set_path(key, |path| path.srtt = Some(MS.saturating_mul(*rtt)));
        key
    });
    let paths = paths.collect();
    (world, paths)
}

/// The window of a path is full.
pub(crate) fn fill(world: &mut World, path: PathKey) {
    world.set_path(path, |path| path.in_flight = path.cwnd);
}

/// A packet's worth of fresh bytes; plans by path slot.
pub(crate) fn fresh(committed: &[Bytes]) -> Parcel<'_> {
    Parcel { stream: STREAM, len: Bytes(1_200), class: Class::Fresh, back_fits: false, committed }
}

/// The same, lost on `origin`.
pub(crate) fn lost(origin: PathKey) -> Parcel<'static> {
    Parcel { class: Class::Lost { origin }, ..fresh(&[]) }
}

/// A frame of fresh bytes.
pub(crate) fn piece(start: u64, end: u64) -> Piece {
    let span = Span::new(Offset(start), Offset(end));
    Piece { stream: STREAM, span, kind: Kind::Fresh }
}

pub(crate) fn sent(path: PathKey, pn: u64, pieces: &[Piece]) -> SentPacket<'_> {
    let (pn, bytes) = (PacketNumber(pn), Bytes(1_240));
    SentPacket { path, pn, bytes, sent_at: Instant::ZERO, pieces }
}

pub(crate) fn waits_on(choice: Choice) -> Option<PathKey> {
    match choice {
        Choice::Wait { on, .. } => on,
        _ => None,
    }
}
