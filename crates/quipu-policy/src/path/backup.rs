//! Standby paths by quality, as in xquic.

use quipu_base::Duration;

use super::choose::{keeps_backups_idle, rest_unless_stuck};
use super::{Choice, IdleProbe, Parcel, PathPolicy, PathQuality};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{PathStatus, PathView, View};

/// When a standby path, one of [`PathStatus::Backup`], carries data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standby {
    /// Only if it is of a better class than every available path, open or not: `backup` of xquic.
    #[default]
    Better,
    /// Also if no available path of its class or a better one is open: `minrtt` of xquic.
    Open,
    /// Only if no available path exists: `interop` of xquic.
    Last,
    /// Like any other path: `rap` of xquic, which looks at no classes either.
    Equal,
}

/// `backup` and `rap`: the open path of least round-trip time in the best class that has one.
///
/// Classes in order: available and [high](PathQuality::High), standby and high, available and mid,
/// standby and mid, and so on. Within a class the path of least smoothed round-trip time, unprobed
/// ones last. [`Standby`] tells when standby paths count.
///
/// An available path keeps a standby idle only if its window holds a packet, the anti-amplification
/// limit is met, and no two probe timeouts passed in a row: our choice, so that no connection waits
/// for a path that cannot carry data. `interop` of xquic compares a standby's round-trip time with
/// the best available one's by mistake; ours does not. Frozen paths, a third status of xquic, do not
/// exist on the wire.
///
/// Copies of a reinjection are placed by that part itself, and may go on standby paths if told so.
///
/// Source: alibaba/xquic, schedulers `backup`, `minrtt`, `interop` and `rap`, read in code; confidence
/// high.
#[derive(Clone, Debug)]
pub struct Classes {
    standby: Standby,
    probe: IdleProbe,
}

impl Classes {
    /// The policy.
    pub const fn new(standby: Standby, probe: IdleProbe) -> Self {
        Classes { standby, probe }
    }

    fn class(&self, path: &PathView, least_rtt: Option<Duration>) -> (PathQuality, bool) {
        let is_standby = path.status == PathStatus::Backup;
        match self.standby {
            Standby::Equal => (PathQuality::High, false),
            Standby::Better | Standby::Open | Standby::Last => {
                (PathQuality::of(path, least_rtt), is_standby)
            }
        }
    }

    /// Whether standby paths of that quality stay idle.
    fn skips(&self, quality: PathQuality, best_available: Option<PathQuality>) -> bool {
        match self.standby {
            Standby::Better => best_available.is_some_and(|available| available <= quality),
            Standby::Last => best_available.is_some(),
            Standby::Open | Standby::Equal => false,
        }
    }

    fn pick<'v>(&self, view: &View<'v>, notes: &mut Notes) -> Option<&'v PathView> {
        let least_rtt = PathQuality::least_rtt(view);
        let available = view.paths.usable().filter(|path| keeps_backups_idle(path));
        let best_available = available.map(|path| self.class(path, least_rtt).0).min();
        let mut best: Option<(_, &PathView)> = None;
        for path in view.paths.open(view.now) {
            let (quality, is_standby) = self.class(path, least_rtt);
            if is_standby && self.skips(quality, best_available) {
                continue;
            }
            notes.add(|| Note {
                label: "class, 0 is the best",
                path: Some(path.key),
                stream: None,
                score: f64::from(quality as u8 * 2 + u8::from(is_standby)),
            });
            let rank = (quality, is_standby, path.srtt.is_none(), path.srtt, path.key);
            if best.is_none_or(|(least, _)| rank < least) {
                best = Some((rank, path));
            }
        }
        best.map(|(_, path)| path)
    }
}

impl PathPolicy for Classes {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let pick = self.pick(view, notes);
        pick.map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::path::testing::{MS, fill, fresh, world_of};
    use quipu_base::{Bytes, PerMille};

    /// Wide paths; the last is standby.
    fn scene(rtts: &[u64]) -> (World, Vec<PathKey>) {
        let (mut world, paths) = world_of(rtts);
        for &path in &paths {
            world.set_path(path, |path| path.cwnd = Bytes(10_000_000));
        }
        if let Some(&last) = paths.last() {
            world.set_path(last, |path| path.status = PathStatus::Backup);
        }
        (world, paths)
    }

    fn select(standby: Standby, world: &World) -> Choice {
        let mut policy = Classes::new(standby, IdleProbe::default());
        policy.select(&fresh(&[]), &world.view(), &mut Notes::off())
    }

    #[test]
    fn an_available_path_goes_before_a_faster_standby_of_its_class() {
        let (world, paths) = scene(&[50, 20]);
        for standby in [Standby::Better, Standby::Open, Standby::Last] {
            assert_eq!(select(standby, &world), Choice::Now(paths[0]), "{standby:?}");
        }
        assert_eq!(select(Standby::Equal, &world), Choice::Now(paths[1]));
    }

    #[test]
    fn a_standby_serves_by_class_while_the_available_path_is_full() {
        let (mut world, paths) = scene(&[50, 20]);
        fill(&mut world, paths[0]);
        assert_eq!(select(Standby::Better, &world), Choice::None);
        assert_eq!(select(Standby::Last, &world), Choice::None);
        assert_eq!(select(Standby::Open, &world), Choice::Now(paths[1]));
    }

    #[test]
    fn a_standby_of_a_better_class_goes_before_an_open_available_path() {
        let (mut world, paths) = scene(&[50, 20]);
        world.set_path(paths[0], |path| path.loss = PerMille(150));
        assert_eq!(select(Standby::Better, &world), Choice::Now(paths[1]));
        assert_eq!(select(Standby::Open, &world), Choice::Now(paths[1]));
        assert_eq!(select(Standby::Last, &world), Choice::Now(paths[0]));
        world.set_path(paths[1], |path| path.loss = PerMille(150));
        assert_eq!(select(Standby::Better, &world), Choice::Now(paths[0]));
    }

    #[test]
    fn within_a_class_the_round_trip_time_decides_and_unprobed_paths_come_last() {
        let (mut world, paths) = scene(&[50, 40, 30, 20]);
        assert_eq!(select(Standby::Better, &world), Choice::Now(paths[2]));
        world.set_path(paths[2], |path| path.srtt = None);
        assert_eq!(select(Standby::Better, &world), Choice::Now(paths[1]));
    }

    #[test]
    fn an_available_path_that_cannot_carry_data_keeps_no_standby_idle() {
        let (world, paths) = scene(&[50, 2_100]);
        let changes: [fn(&mut PathView); 3] = [
            |path| path.cwnd = Bytes::ZERO,
            |path| path.amplification_limited = true,
            |path| (path.pto_count, path.in_flight) = (2, path.cwnd),
        ];
        for change in changes {
            let mut world = world.clone();
            world.set_path(paths[0], change);
            for standby in [Standby::Better, Standby::Last] {
                assert_eq!(select(standby, &world), Choice::Now(paths[1]), "{standby:?}");
            }
        }
    }

    #[test]
    fn a_paced_path_is_waited_for_if_nothing_is_in_flight() {
        let (mut world, paths) = scene(&[50, 20]);
        let until = world.now + MS;
        world.set_path(paths[0], |path| path.release_at = until);
        let expected = Choice::Wait { until, on: Some(paths[0]) };
        assert_eq!(select(Standby::Better, &world), expected);
    }
}
