//! Paths in turn, in proportion to their windows or bandwidths.

use super::choose::{UNKNOWN_RTT, eligible, rest_unless_stuck};
use super::{Choice, IdleProbe, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{PathView, View};

/// What a path's share of the packets is in proportion to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weight {
    /// Its congestion window.
    #[default]
    Window,
    /// Its delivery rate, else its window over its round-trip time; one without a sample counts with
    /// the initial round-trip time of RFC 9002.
    Bandwidth,
}

/// Most packets that a path may be ahead of its share, or behind.
const MOST_CREDIT: f64 = 8.0;

/// `path-wrr`: packets go to open paths in proportion to windows or bandwidths.
///
/// With every packet of stream data each path earns its share of one packet, `w/Σw`, and the path
/// that carries it pays one. The open path of most credit is next; ties go to the lower round-trip
/// time, then the lower identifier. Credit stays within eight packets, so a path that was closed
/// for long catches up by no more.
///
/// Source: our choice, after smooth weighted round robin; confidence high.
#[derive(Clone, Debug, Default)]
pub struct WeightedPaths {
    weight: Weight,
    probe: IdleProbe,
    /// By path slot.
    credit: Vec<Option<(PathKey, f64)>>,
}

impl WeightedPaths {
    /// The policy with that weight.
    pub const fn new(weight: Weight, probe: IdleProbe) -> Self {
        WeightedPaths { weight, probe, credit: Vec::new() }
    }

    fn weight(&self, path: &PathView) -> f64 {
        match self.weight {
            Weight::Window => path.cwnd.0 as f64,
            Weight::Bandwidth => {
                path.bandwidth().unwrap_or_else(|| path.cwnd.0 as f64 / UNKNOWN_RTT.as_secs_f64())
            }
        }
    }

    /// Packets that a path is behind its share.
    fn credit(&self, path: PathKey) -> f64 {
        let entry = self.credit.get(path.index()).copied().flatten();
        entry.filter(|(key, _)| *key == path).map_or(0.0, |(_, credit)| credit)
    }

    /// A packet left on `on`.
    fn charge(&mut self, on: PathKey, view: &View<'_>) {
        let sum: f64 = eligible(view.paths).map(|path| self.weight(path)).sum();
        for path in eligible(view.paths) {
            let share = if sum > 0.0 { self.weight(path) / sum } else { 0.0 };
            let paid = if path.key == on { 1.0 } else { 0.0 };
            let credit = (self.credit(path.key) + share - paid).clamp(-MOST_CREDIT, MOST_CREDIT);
            if self.credit.len() <= path.key.index() {
                self.credit.resize(path.key.index() + 1, None);
            }
            if let Some(entry) = self.credit.get_mut(path.key.index()) {
                *entry = Some((path.key, credit));
            }
        }
    }
}

impl PathPolicy for WeightedPaths {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let sum: f64 = eligible(view.paths).map(|path| self.weight(path)).sum();
        let mut best: Option<(f64, &PathView)> = None;
        for path in eligible(view.paths).filter(|path| path.is_open(view.now)) {
            let credit = self.credit(path.key) + self.weight(path) / sum.max(1.0);
            notes.add(|| Note {
                label: "credit in packets",
                path: Some(path.key),
                stream: None,
                score: credit,
            });
            let rank = |path: &PathView| (path.srtt.is_none(), path.srtt, path.key);
            let better = best.is_none_or(|(most, other)| {
                credit > most || (credit == most && rank(path) < rank(other))
            });
            if better {
                best = Some((credit, path));
            }
        }
        best.map_or_else(|| rest_unless_stuck(parcel, view), |(_, path)| Choice::Now(path.key))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        match event {
            Event::Sent(packet) if !packet.pieces.is_empty() => self.charge(packet.path, view),
            _ => {}
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::testing::{MS, fresh, piece, sent, world_of};
    use crate::seam::view::PathStatus;
    use quipu_base::Bytes;

    /// Packets by path of `count` packets.
    fn shares(
        policy: &mut WeightedPaths,
        world: &crate::conformance::World,
        count: u32,
    ) -> Vec<u32> {
        let mut packets = vec![0; world.paths.len()];
        for _ in 0..count {
            let choice = policy.select(&fresh(&[]), &world.view(), &mut Notes::off());
            let again = policy.select(&fresh(&[]), &world.view(), &mut Notes::off());
            assert_eq!(choice, again, "asking moves nothing");
            let Choice::Now(path) = choice else { panic!("{choice:?}") };
            packets[path.index()] += 1;
            policy.on_event(&Event::Sent(sent(path, 0, &[piece(0, 1_200)])), &world.view());
        }
        packets
    }

    #[test]
    fn packets_follow_the_windows() {
        let (mut world, paths) = world_of(&[20, 100]);
        world.set_path(paths[0], |path| path.cwnd = Bytes(30_000));
        world.set_path(paths[1], |path| path.cwnd = Bytes(10_000));
        assert_eq!(shares(&mut WeightedPaths::default(), &world, 400), [300, 100]);
        assert_eq!(shares(&mut WeightedPaths::default(), &world, 4), [3, 1], "spread evenly");
    }

    #[test]
    fn packets_follow_the_bandwidths() {
        // 30 kB over 20 ms is fifteen times 10 kB over 100 ms.
        let (mut world, paths) = world_of(&[20, 100]);
        world.set_path(paths[0], |path| path.cwnd = Bytes(30_000));
        world.set_path(paths[1], |path| path.cwnd = Bytes(10_000));
        let mut policy = WeightedPaths::new(Weight::Bandwidth, IdleProbe::default());
        assert_eq!(shares(&mut policy, &world, 320), [300, 20]);
    }

    #[test]
    fn a_path_that_was_closed_catches_up_by_eight_packets() {
        let (mut world, paths) = world_of(&[20, 20]);
        let mut policy = WeightedPaths::default();
        world.set_path(paths[1], |path| path.in_flight = path.cwnd);
        assert_eq!(shares(&mut policy, &world, 100), [100, 0]);
        world.set_path(paths[1], |path| path.in_flight = Bytes::ZERO);
        let packets = shares(&mut policy, &world, 100);
        assert_eq!(packets[1] - packets[0], 16, "eight behind on one, eight ahead on the other");
    }

    #[test]
    fn a_slot_used_again_begins_without_credit_and_backups_earn_none() {
        let (mut world, paths) = world_of(&[20, 20]);
        let mut policy = WeightedPaths::default();
        world.set_path(paths[1], |path| path.in_flight = path.cwnd);
        shares(&mut policy, &world, 100);
        world.paths.remove(paths[1]);
        let other = world.add_path(quipu_base::PathId(7)).unwrap();
        assert_eq!(other.slot, paths[1].slot);
        assert_eq!(policy.credit(other), 0.0);
        world.set_path(other, |path| {
            path.srtt = Some(MS);
            path.status = PathStatus::Backup;
        });
        assert_eq!(shares(&mut policy, &world, 10), [10, 0]);
    }
}
