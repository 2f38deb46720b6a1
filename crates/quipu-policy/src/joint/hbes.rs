//! HBES: the path on which the last byte arrives first, by rate.
//!
//! Source: Xing et al., "HBES" (IEEE Transactions on Wireless Communications, 2023), read in the
//! code of `ytxing/mpquic-hbes`.

use quipu_base::Bytes;

use super::Pair;
use super::by_stream::ByStream;
use crate::key::PathKey;
use crate::path::{Choice, Parcel, PathPolicy, can_wait, eligible, rest_unless_stuck};
use crate::path::{IdleProbe, MinRtt};
use crate::reinject::ResendRules;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, Kind, PathView, View};
use crate::stream::{Pack, StreamPolicy};

mod rounds;

pub use rounds::PriorityRounds;

/// The path layer of `hbes`.
///
/// With `q` the bytes planned for a path, `L` a packet and `BW = cwnd/srtt`, the packet arrives
/// after `(L + q)/BW + srtt/2`, its window open or not; ties go to the lower identifier. A packet
/// that arrives first on a full path is planned for it and keeps its place in the order of bytes;
/// the plans are sent first of all when the path opens. At most one window of every path is
/// planned. As published, plans stand whatever comes, unless it `rebinds`; those of a path that
/// fails are always made anew.
///
/// Nothing goes while no path is open. Not planned for: paths that do not answer (a probe timeout
/// passed). A path without a sample is used as soon as no probed path is open. The published client
/// takes the path of least round-trip time for what it sends; here both ends do the same.
#[derive(Clone, Debug)]
pub struct HbesPaths {
    /// A stream stays on its last path while that beats the best one at its round-trip time plus
    /// deviation.
    stay: bool,
    rebinds: bool,
    probe: IdleProbe,
    /// The path of each stream's last packet.
    last: ByStream<PathKey>,
}

impl HbesPaths {
    /// The policy. `stay`: with the hysteresis that the published code has commented out.
    pub fn new(stay: bool, rebinds: bool, probe: IdleProbe) -> Self {
        HbesPaths { stay, rebinds, probe, last: ByStream::default() }
    }

    /// Seconds until a packet arrives behind `planned` bytes; `deviating`: with the deviation of
    /// the round-trip time added to it. `None` without a sample or window.
    pub fn arrival(planned: Bytes, path: &PathView, deviating: bool) -> Option<f64> {
        let rtt = path.srtt.filter(|srtt| !srtt.is_zero() && !path.cwnd.is_zero())?.as_secs_f64();
        let queue = (path.payload.0 + planned.0) as f64;
        let delay = if deviating { rtt + path.rttvar.as_secs_f64() } else { rtt };
        Some(queue * rtt / path.cwnd.0 as f64 + delay / 2.0)
    }

    fn best<'v>(
        &self,
        parcel: &Parcel<'_>,
        view: &View<'v>,
        notes: &mut Notes,
    ) -> Option<&'v PathView> {
        let planned =
            |path: &PathView| parcel.committed.get(path.key.index()).copied().unwrap_or_default();
        let counts = |path: &PathView| path.is_open(view.now) || can_wait(path);
        let mut best: Option<(f64, &PathView)> = None;
        for path in eligible(view.paths).filter(|path| counts(path)) {
            let Some(arrival) = HbesPaths::arrival(planned(path), path, false) else { continue };
            notes.add(|| Note {
                label: "arrival in seconds",
                path: Some(path.key),
                stream: Some(parcel.stream),
                score: arrival,
            });
            if best.is_none_or(|(least, _)| arrival < least) {
                best = Some((arrival, path));
            }
        }
        let (_, best) = best?;
        let last = self.last.get(parcel.stream).filter(|_| self.stay);
        let last = last
            .and_then(|last| eligible(view.paths).find(|path| path.key == last && counts(path)));
        let stays = last.and_then(|last| {
            let stayed = HbesPaths::arrival(planned(last), last, false)?;
            let moved = HbesPaths::arrival(planned(best), best, true)?;
            (stayed < moved).then_some(last)
        });
        Some(stays.unwrap_or(best))
    }
}

impl PathPolicy for HbesPaths {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(open) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        if matches!(parcel.class, Class::Lost { .. }) || open.srtt.is_none() {
            return Choice::Now(open.key);
        }
        match self.best(parcel, view, notes) {
            Some(best) if !best.is_open(view.now) => Choice::Later(best.key),
            Some(best) => Choice::Now(best.key),
            None => Choice::Now(open.key),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
        if let Event::Placed { path, piece } = event
            && self.stay
            && piece.kind == Kind::Fresh
        {
            self.last.set(piece.stream, *path);
        }
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        eligible(view.paths).map(|path| path.cwnd).sum()
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }

    fn rebinds(&self) -> bool {
        self.rebinds
    }
}

/// `hbes`: an order of streams by weight, over [`HbesPaths`].
pub fn hbes(
    order: Box<dyn StreamPolicy>,
    paths: HbesPaths,
    resend: ResendRules,
    pack: Pack,
) -> Pair {
    Pair::new(order, Box::new(paths), resend, pack)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::key::{Span, StreamKey};
    use crate::seam::view::Piece;
    use quipu_base::{Duration, Offset, PathId, StreamId};

    const STREAM: StreamKey = StreamKey { slot: 0, id: StreamId(0) };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// Windows of 12,000 and 24,000 bytes, round-trip times of 20 and 100 ms.
    fn world() -> (World, PathKey, PathKey) {
        let mut world = World::new(Bytes(1_000_000));
        let fast = world.add_path(PathId(0)).unwrap();
        let slow = world.add_path(PathId(1)).unwrap();
        world.set_path(fast, |path| path.srtt = Some(ms(20)));
        world.set_path(slow, |path| {
            path.srtt = Some(ms(100));
            path.cwnd = Bytes(24_000);
        });
        (world, fast, slow)
    }

    fn select(policy: &mut HbesPaths, world: &World, planned: &[Bytes], class: Class) -> Choice {
        let parcel = Parcel {
            stream: STREAM,
            len: Bytes(1_200),
            class,
            back_fits: false,
            committed: planned,
        };
        policy.select(&parcel, &world.view(), &mut Notes::off())
    }

    #[test]
    fn arrival_is_transmission_behind_the_plans_and_half_a_round_trip() {
        let (world, fast, _) = world();
        let path = world.paths.get(fast).unwrap();
        // 600,000 bytes per second: 2 ms for a packet.
        for (planned, expected) in [(0, 0.012), (4_800, 0.020), (12_000, 0.032)] {
            let arrival = HbesPaths::arrival(Bytes(planned), path, false).unwrap();
            assert!((arrival - expected).abs() < 1e-12, "{planned}: {arrival}");
        }
    }

    #[test]
    fn a_full_path_is_planned_for_until_a_slow_open_one_is_as_early() {
        let (mut world, fast, slow) = world();
        let mut policy = HbesPaths::new(false, false, IdleProbe::default());
        assert_eq!(select(&mut policy, &world, &[], Class::Fresh), Choice::Now(fast));
        world.set_path(fast, |path| path.in_flight = path.cwnd);
        // On the slow path a packet takes 5 + 50 ms; on the fast one 2 + 10 and 2 ms per packet
        // planned.
        let planned = |packets: u64| [Bytes(packets * 1_200)];
        assert_eq!(select(&mut policy, &world, &planned(21), Class::Fresh), Choice::Later(fast));
        assert_eq!(select(&mut policy, &world, &planned(22), Class::Fresh), Choice::Now(slow));
    }

    #[test]
    fn lost_bytes_take_the_open_path_of_least_round_trip_time() {
        let (mut world, fast, slow) = world();
        let mut policy = HbesPaths::new(false, false, IdleProbe::default());
        world.set_path(fast, |path| path.in_flight = path.cwnd);
        let lost = Class::Lost { origin: slow };
        assert_eq!(select(&mut policy, &world, &[], lost), Choice::Now(slow));
    }

    #[test]
    fn nothing_goes_while_no_path_is_open() {
        let (mut world, fast, slow) = world();
        for path in [fast, slow] {
            world.set_path(path, |path| path.in_flight = path.cwnd);
        }
        let mut policy = HbesPaths::new(false, false, IdleProbe::default());
        assert_eq!(select(&mut policy, &world, &[], Class::Fresh), Choice::None);
    }

    #[test]
    fn a_stream_that_stays_needs_more_than_the_deviation_to_move() {
        let (mut world, fast, slow) = world();
        let mut policy = HbesPaths::new(true, false, IdleProbe::default());
        let span = Span::new(Offset(0), Offset(1_200));
        let piece = Piece { stream: STREAM, span, kind: Kind::Fresh };
        policy.on_event(&Event::Placed { path: slow, piece }, &world.view());
        // 12 ms against 55 ms.
        assert_eq!(select(&mut policy, &world, &[], Class::Fresh), Choice::Now(fast));
        world.set_path(slow, |path| path.srtt = Some(ms(24)));
        // 13.2 ms: behind 12, before 12 and half the deviation.
        world.set_path(fast, |path| path.rttvar = ms(2));
        assert_eq!(select(&mut policy, &world, &[], Class::Fresh), Choice::Now(fast));
        world.set_path(fast, |path| path.rttvar = ms(3));
        assert_eq!(select(&mut policy, &world, &[], Class::Fresh), Choice::Now(slow));
        let mut plain = HbesPaths::new(false, false, IdleProbe::default());
        assert_eq!(select(&mut plain, &world, &[], Class::Fresh), Choice::Now(fast));
    }
}
