//! What a connection shows of itself: views, counters, controllers.

use quipu_base::{Instant, PathId};
use quipu_policy::congestion::{Published, RateSample};
use quipu_policy::{PathKey, PathView, View};

use super::{Connection, SchedulerCounters};
use crate::counters::PathCounters;
use crate::route::Route;

impl Connection {
    /// What the policies see now.
    pub fn view(&self, now: Instant) -> View<'_> {
        self.shared.view(now)
    }

    /// The paths that live, in order of path identifier.
    pub fn path_views(&self) -> impl Iterator<Item = &PathView> {
        self.shared.paths.views.iter()
    }

    /// The addresses of a path that has state: its present ones, and the interface.
    pub fn route(&self, path: PathId) -> Option<Route> {
        self.shared.paths.by_id(path).map(|data| data.addresses.route())
    }

    /// What the controllers of the paths last published, in order of path identifier.
    pub fn controllers(&self) -> &[(PathKey, Published)] {
        &self.shared.paths.published
    }

    /// The last sample of the delivery rate on the path of `key`, if there was one.
    pub fn rate_sample(&self, key: PathKey) -> Option<&RateSample> {
        let data = self.shared.paths.get(key.slot).filter(|data| data.key == key)?;
        data.recovery.rate_sample()
    }

    /// The counters of the paths that live and of the 64 that went last, in order of path
    /// identifier. [`Connection::totals`] has those of all.
    pub fn path_counters(&self) -> Vec<(PathId, PathCounters)> {
        let live = self.shared.paths.iter().map(|data| (data.id(), data.counters));
        let mut all: Vec<_> = self.plan.past().recent().copied().chain(live).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// How the policies did.
    pub fn scheduler_counters(&self) -> SchedulerCounters {
        self.scheduler.counters
    }

    /// Packets dropped because they could not be opened or made no sense.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped
    }
}
