//! STMS: slow paths send ahead, so that bytes arrive in order.

use quipu_base::{Bytes, Offset};

use super::choose::{can_wait, eligible, rest_unless_stuck};
use super::drift::Drift;
use super::forecast::{arrival, earliest, head_start, one_way, windows};
use super::{Choice, IdleProbe, MinRtt, Parcel, PathPolicy, TakeBack};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, Kind, PathView, SentPacket, View};

/// Most bytes planned, in sums of all windows; our choice, as for `pats`.
const LOOKAHEAD: u64 = 2;

/// `stms`: a slow path sends so far ahead of the fast ones that its bytes arrive when theirs do.
///
/// Path `s` takes the first byte that is at least `Gap_s = Σ bw_f·(owd_s − owd_f)` ahead of the
/// first one not sent, over the faster paths `f`; what lies before it is planned for those, for each
/// packet the one on which it arrives first. If fewer bytes are left, `s` sends nothing. `owd` is
/// half the smoothed round-trip time unless differences were measured on every path. The order is
/// that of the stream policy over all streams, so a gap may span several short streams.
///
/// The published receiver reports the order of arrival. Our reconstruction from acknowledgements:
/// if bytes of a slow path are acknowledged while lower ones of their stream are in flight, they
/// came early, and the gap grows by a packet; if higher ones were acknowledged already, they came
/// late, and it shrinks by one. It stays between zero and twice its estimate.
///
/// Lost bytes take the open path of least round-trip time. An open path without a sample is used as
/// soon as no probed path is open; paths that do not answer (a probe timeout passed) are not
/// planned for. Plans are made anew when a round-trip time or window moved by 1/8. A stream needs a
/// receive window of about `Σ bw·owd`.
///
/// Source: Shi et al., "STMS: Improving MPTCP throughput under heterogeneous networks", USENIX ATC
/// 2018, known by summaries only; confidence medium to low.
#[derive(Clone, Debug)]
pub struct Stms {
    probe: IdleProbe,
    drift: Drift,
    /// By path slot.
    gaps: Vec<Option<Gap>>,
}

/// What was learned of a path's gap.
#[derive(Clone, Copy, Debug)]
struct Gap {
    path: PathKey,
    /// Last estimate, bytes.
    estimate: f64,
    /// Bytes to add to the estimate.
    adjusted: f64,
}

impl Gap {
    fn effective(self) -> f64 {
        (self.estimate + self.adjusted).clamp(0.0, 2.0 * self.estimate)
    }
}

impl Stms {
    /// The policy.
    pub const fn new(probe: IdleProbe) -> Self {
        Stms { probe, drift: Drift::EIGHTH, gaps: Vec::new() }
    }

    /// The paths faster than `slow` that may be planned for.
    fn faster<'v>(
        slow: &'v PathView,
        view: &View<'v>,
    ) -> impl Iterator<Item = &'v PathView> + Clone {
        let is_faster = move |path: &&PathView| {
            path.key != slow.key
                && can_wait(path)
                && one_way(path).is_some_and(|delay| one_way(slow).is_some_and(|slow| delay < slow))
        };
        eligible(view.paths).filter(is_faster)
    }

    fn gap(&mut self, path: PathKey) -> &mut Gap {
        let fresh = Gap { path, estimate: 0.0, adjusted: 0.0 };
        if self.gaps.len() <= path.index() {
            self.gaps.resize(path.index() + 1, None);
        }
        let entry = &mut self.gaps[path.index()];
        if entry.is_some_and(|gap| gap.path != path) {
            *entry = None;
        }
        entry.get_or_insert(fresh)
    }

    /// Learns from the acknowledgement of a packet that was sent ahead.
    fn acknowledged(&mut self, packet: &SentPacket<'_>, view: &View<'_>) {
        let Some(path) = view.paths.get(packet.path) else { return };
        let gap = self.gap(packet.path);
        if gap.estimate <= 0.0 {
            return;
        }
        for piece in packet.pieces.iter().filter(|piece| piece.kind == Kind::Fresh) {
            let lowest = view.streams.unacked_from(piece.stream, Offset::ZERO);
            let early = lowest.is_some_and(|lowest| lowest.start < piece.span.start);
            let high_sent = view.streams.get(piece.stream).map(|stream| stream.high_sent);
            let next = view.streams.unacked_from(piece.stream, piece.span.end);
            let late = high_sent.is_some_and(|high_sent| {
                next.map_or(high_sent, |next| next.start) > piece.span.end
            });
            let packet = path.payload.0 as f64;
            if early {
                gap.adjusted += packet;
            } else if late {
                gap.adjusted -= packet;
            }
            gap.adjusted = gap.adjusted.clamp(-gap.estimate, gap.estimate);
        }
    }
}

impl Default for Stms {
    fn default() -> Self {
        Stms::new(IdleProbe::default())
    }
}

impl PathPolicy for Stms {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(open) = earliest(view, |path| path.is_open(view.now))
            .filter(|_| !matches!(parcel.class, Class::Lost { .. }))
        else {
            // Lost bytes, or no open path with a sample.
            let open = MinRtt::pick(view, notes);
            return open
                .map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key));
        };
        let planned =
            |path: &PathView| parcel.committed.get(path.key.index()).copied().unwrap_or_default();
        let faster = Stms::faster(open, view);
        let estimate: f64 = faster.clone().map(|fast| head_start(fast, open)).sum();
        let held: Bytes = faster.clone().map(planned).sum();
        let gap = self.gap(open.key);
        gap.estimate = estimate;
        let gap = gap.effective();
        for (label, score) in [("gap in bytes", gap), ("bytes held ahead", held.0 as f64)] {
            notes.add(|| Note { label, path: Some(open.key), stream: Some(parcel.stream), score });
        }
        if held.0 as f64 >= gap {
            return Choice::Now(open.key);
        }
        let mut best: Option<(f64, &PathView)> = None;
        for path in faster {
            let Some(arrival) = arrival(planned(path), path) else { continue };
            if best.is_none_or(|(least, _)| arrival < least) {
                best = Some((arrival, path));
            }
        }
        let Some((_, path)) = best else { return Choice::Now(open.key) };
        if parcel.committed.iter().all(|planned| planned.is_zero()) {
            self.drift.rest_on(view);
        }
        Choice::Later(path.key)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        if let Event::Acked(packet) = event {
            self.acknowledged(packet, view);
        }
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        windows(view).saturating_mul(LOOKAHEAD)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        if self.drift.moved(view) { TakeBack::All } else { TakeBack::Nothing }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::key::{Span, StreamKey};
    use crate::path::testing::{MS, fill, fresh, lost, sent, world_of};
    use crate::seam::view::Piece;
    use quipu_base::Instant;

    fn select(policy: &mut Stms, world: &World, committed: &[u64]) -> Choice {
        let committed: Vec<Bytes> = committed.iter().copied().map(Bytes).collect();
        policy.select(&fresh(&committed), &world.view(), &mut Notes::off())
    }

    #[test]
    fn a_slow_path_sends_a_gap_ahead_of_the_fast_one() {
        // 12 kB per 20 ms for the 40 ms between the one-way delays: 24 kB.
        let (mut world, paths) = world_of(&[20, 100]);
        let mut stms = Stms::default();
        assert_eq!(select(&mut stms, &world, &[]), Choice::Now(paths[0]));
        fill(&mut world, paths[0]);
        assert_eq!(select(&mut stms, &world, &[0]), Choice::Later(paths[0]));
        assert_eq!(select(&mut stms, &world, &[23_999]), Choice::Later(paths[0]));
        assert_eq!(select(&mut stms, &world, &[24_000]), Choice::Now(paths[1]));
    }

    #[test]
    fn the_gap_of_three_paths_is_held_by_the_two_faster_ones() {
        // 12 kB per 20 ms for 40 ms, and per 60 ms for 20 ms.
        let (mut world, paths) = world_of(&[20, 60, 100]);
        let mut stms = Stms::default();
        fill(&mut world, paths[0]);
        fill(&mut world, paths[1]);
        // Arrival on the first is 10 ms and a byte per 5/3 µs, on the second 30 ms and 5 µs.
        assert_eq!(select(&mut stms, &world, &[11_999, 0]), Choice::Later(paths[0]));
        assert_eq!(select(&mut stms, &world, &[12_001, 0]), Choice::Later(paths[1]));
        assert_eq!(select(&mut stms, &world, &[24_000, 3_999]), Choice::Later(paths[1]));
        assert_eq!(select(&mut stms, &world, &[24_000, 4_000]), Choice::Now(paths[2]));
    }

    #[test]
    fn lost_bytes_and_paths_that_do_not_answer_are_not_planned() {
        let (mut world, paths) = world_of(&[20, 100]);
        fill(&mut world, paths[0]);
        let mut stms = Stms::default();
        let choice = stms.select(&lost(paths[0]), &world.view(), &mut Notes::off());
        assert_eq!(choice, Choice::Now(paths[1]));
        world.set_path(paths[0], |path| path.pto_count = 1);
        assert_eq!(select(&mut stms, &world, &[0]), Choice::Now(paths[1]));
        world.set_path(paths[0], |path| path.pto_count = 0);
        world.set_path(paths[1], |path| path.srtt = None);
        assert_eq!(select(&mut stms, &world, &[0]), Choice::Now(paths[1]), "its first sample");
    }

    #[test]
    fn plans_are_bounded_and_made_anew_when_an_estimate_moved() {
        let (mut world, paths) = world_of(&[20, 100]);
        fill(&mut world, paths[0]);
        let mut stms = Stms::default();
        assert_eq!(stms.commit_limit(&world.view()), Bytes(48_000));
        select(&mut stms, &world, &[0]);
        assert_eq!(stms.take_back(&world.view()), TakeBack::Nothing);
        world.set_path(paths[1], |path| path.srtt = Some(MS.saturating_mul(113)));
        assert_eq!(stms.take_back(&world.view()), TakeBack::All);
    }

    /// A stream of which the fast path sent `0..2_400`, the slow one `2_400..3_600`, the fast one
    /// again up to 4,800.
    fn sent_ahead() -> (World, Vec<PathKey>, StreamKey, Stms) {
        let (mut world, paths) = world_of(&[20, 100]);
        fill(&mut world, paths[0]);
        let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(100_000));
        world.streams.write(stream, Bytes(50_000));
        world.place(stream, Span::new(Offset(0), Offset(4_800)), false);
        let mut stms = Stms::default();
        select(&mut stms, &world, &[0]);
        (world, paths, stream, stms)
    }

    fn acknowledge(world: &mut World, stream: StreamKey, start: u64, end: u64) -> Piece {
        let span = Span::new(Offset(start), Offset(end));
        world.streams.acknowledge(stream, span, false, true);
        Piece { stream, span, kind: Kind::Fresh }
    }

    #[test]
    fn bytes_that_come_early_widen_the_gap_and_late_ones_narrow_it() {
        for (before, expected) in [(&[][..], 25_200), (&[(0, 2_400), (3_600, 4_800)], 22_800)] {
            let (mut world, paths, stream, mut stms) = sent_ahead();
            for &(start, end) in before {
                acknowledge(&mut world, stream, start, end);
            }
            let piece = acknowledge(&mut world, stream, 2_400, 3_600);
            stms.on_event(&Event::Acked(sent(paths[1], 0, &[piece])), &world.view());
            assert_eq!(select(&mut stms, &world, &[expected - 1]), Choice::Later(paths[0]));
            assert_eq!(select(&mut stms, &world, &[expected]), Choice::Now(paths[1]));
        }
    }

    #[test]
    fn bytes_in_time_leave_the_gap_and_it_never_more_than_doubles() {
        let (mut world, paths, stream, mut stms) = sent_ahead();
        acknowledge(&mut world, stream, 0, 2_400);
        let piece = acknowledge(&mut world, stream, 2_400, 3_600);
        stms.on_event(&Event::Acked(sent(paths[1], 0, &[piece])), &world.view());
        assert_eq!(select(&mut stms, &world, &[24_000]), Choice::Now(paths[1]));
        let (mut world, paths, stream, mut stms) = sent_ahead();
        let piece = acknowledge(&mut world, stream, 2_400, 3_600);
        for pn in 0..100 {
            stms.on_event(&Event::Acked(sent(paths[1], pn, &[piece])), &world.view());
        }
        assert_eq!(select(&mut stms, &world, &[47_999]), Choice::Later(paths[0]));
        assert_eq!(select(&mut stms, &world, &[48_000]), Choice::Now(paths[1]));
    }
}
