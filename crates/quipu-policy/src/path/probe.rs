//! Probing of idle paths, so that their round-trip time does not go stale.

use quipu_base::{Duration, Instant};

use super::choose::eligible;
use crate::key::PathKey;
use crate::seam::event::Event;
use crate::seam::view::{PathView, View};

/// Names idle paths to send a PING on: one per path and interval, standby paths included, while
/// data flows elsewhere.
///
/// "Least round-trip time" otherwise lets an idle path keep a stale value. The interval of two
/// seconds is our choice.
#[derive(Clone, Debug)]
pub struct IdleProbe {
    interval: Duration,
    /// No path falls due before this, unless one comes or revives.
    quiet_until: Instant,
}

impl IdleProbe {
    /// The interval of the built-in policies.
    pub const INTERVAL: Duration = Duration::from_secs(2);

    /// Probes paths that were idle for `interval`; zero: never.
    pub const fn new(interval: Duration) -> Self {
        IdleProbe { interval, quiet_until: Instant::ZERO }
    }

    /// To be told every event.
    pub fn on_event(&mut self, event: &Event<'_>) {
        if matches!(event, Event::PathUp(_) | Event::PathRevived(_)) {
            self.quiet_until = Instant::ZERO;
        }
    }

    /// The open path of least identifier that is due and that the next bytes, by least round-trip
    /// time, would not take. A connection of one usable path is never probed.
    pub fn due(&mut self, view: &View<'_>) -> Option<PathKey> {
        if self.interval.is_zero() || view.now < self.quiet_until {
            return None;
        }
        let due_at =
            |path: &PathView| path.last_sent_at.map_or(Instant::ZERO, |last| last + self.interval);
        let quiet_until = view.paths.usable().map(due_at).min()?;
        if quiet_until > view.now {
            self.quiet_until = quiet_until;
            return None;
        }
        let busy = eligible(view.paths)
            .filter(|path| path.is_open(view.now))
            .min_by_key(|path| (path.srtt.is_none(), path.srtt, path.packets_sent, path.key))?;
        view.paths
            .open(view.now)
            .find(|path| path.key != busy.key && due_at(path) <= view.now)
            .map(|path| path.key)
    }
}

impl Default for IdleProbe {
    fn default() -> Self {
        IdleProbe::new(Self::INTERVAL)
    }
}
