//! Least round-trip time first.

use quipu_base::Duration;

use super::choose::{eligible, rest_unless_stuck};
use super::{Choice, IdleProbe, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{PathView, View};

/// `minrtt`: the open path of least smoothed round-trip time.
///
/// Probed paths go before unprobed ones; among unprobed ones that of fewest packets sent. Unlike
/// mp-quic, the path of the handshake is a path like any other, and nothing is duplicated on
/// unprobed paths. Backup paths serve only if no available path can. Idle paths are probed
/// ([`IdleProbe`]).
///
/// Source: the default scheduler of mp-quic (De Coninck and Bonaventure, CoNEXT 2017), read in its
/// code; confidence high.
#[derive(Clone, Debug, Default)]
pub struct MinRtt {
    probe: IdleProbe,
}

impl MinRtt {
    /// The policy, probing paths that were idle for `probe_interval`; zero: never.
    pub const fn new(probe_interval: Duration) -> Self {
        MinRtt { probe: IdleProbe::new(probe_interval) }
    }

    /// The path it picks.
    pub(crate) fn pick<'v>(view: &View<'v>, notes: &mut Notes) -> Option<&'v PathView> {
        let mut best: Option<&PathView> = None;
        for path in eligible(view.paths).filter(|path| path.is_open(view.now)) {
            notes.add(|| Note {
                label: "srtt in seconds",
                path: Some(path.key),
                stream: None,
                score: path.srtt.map_or(f64::INFINITY, Duration::as_secs_f64),
            });
            if best.is_none_or(|other| Self::rank(path) < Self::rank(other)) {
                best = Some(path);
            }
        }
        best
    }

    /// What it orders paths by, the first first.
    pub(crate) fn rank(path: &PathView) -> (bool, u64, PathKey) {
        match path.srtt {
            Some(srtt) => (false, srtt.as_nanos(), path.key),
            None => (true, path.packets_sent, path.key),
        }
    }
}

impl PathPolicy for MinRtt {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        match MinRtt::pick(view, notes) {
            Some(path) => Choice::Now(path.key),
            None => rest_unless_stuck(parcel, view),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }

    /// Paths without a round-trip time take turns.
    fn stays_on(&self, path: &PathView) -> bool {
        path.srtt.is_some()
    }
}
