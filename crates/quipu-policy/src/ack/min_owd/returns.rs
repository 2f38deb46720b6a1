//! What a sender of data knows of the ways back of one path's acknowledgements.

use std::collections::VecDeque;

use quipu_base::{Duration, Instant, PacketNumber, SignedDuration};
use smallvec::SmallVec;

use crate::key::PathKey;
use crate::seam::view::{PathState, View};

/// Acknowledgements in a row on another path after which that is the return path; our choice.
const ELSEWHERE: u8 = 3;

/// Acknowledgements remembered for comparison: as many send times as the engine keeps.
const REMEMBERED: usize = 64;

/// The ways back of the acknowledgements of one path's packets.
///
/// An acknowledgement of path `j` that comes on path `r` took the way there over `j` and the way
/// back over `r`. The way there cancels only between copies of one acknowledgement, so the estimate
/// is of the difference `rtt[j][r] - rtt[j][in use]` over copies, and not of either term.
#[derive(Clone, Debug)]
pub(super) struct Returns {
    pub(super) data: PathKey,
    /// The path on which acknowledgements come.
    pub(super) in_use: PathKey,
    /// The path that the peer is to use.
    pub(super) asked: PathKey,
    /// Acknowledgements in a row that told something new on another path than the one in use.
    elsewhere: u8,
    /// The last acknowledgements on the path in use, by ascending packet number.
    recent: VecDeque<Sighting>,
    routes: SmallVec<[Route; 4]>,
}

/// An acknowledgement as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sighting {
    pub(super) largest: PacketNumber,
    /// Time since that packet was sent.
    pub(super) since_sent: Duration,
}

/// One way back.
#[derive(Clone, Copy, Debug)]
struct Route {
    on: PathKey,
    last: Sighting,
    /// How much longer it takes than the way in use, and when that was measured.
    longer: Option<(SignedDuration, Instant)>,
}

impl Route {
    fn measure(&mut self, now: Instant, took: Duration, in_use_took: Duration) {
        let sample = took.signed_sub(in_use_took).as_nanos();
        let mean = match self.longer {
            // Half of each: a sample comes once in three seconds. Our choice.
            Some((before, _)) => (before.as_nanos() / 2).saturating_add(sample / 2),
            None => sample,
        };
        self.longer = Some((SignedDuration::from_nanos(mean), now));
    }
}

impl Returns {
    pub(super) fn new(data: PathKey) -> Self {
        Returns {
            data,
            in_use: data,
            asked: data,
            elsewhere: 0,
            recent: VecDeque::new(),
            routes: SmallVec::new(),
        }
    }

    /// An acknowledgement came on a path; `advances` if it told something new.
    pub(super) fn on_ack(&mut self, now: Instant, on: PathKey, seen: Sighting, advances: bool) {
        // One that others overtook on its own way says nothing of the way's delay.
        match self.routes.iter_mut().find(|route| route.on == on) {
            Some(route) if route.last.largest >= seen.largest => return,
            Some(route) => route.last = seen,
            None => self.routes.push(Route { on, last: seen, longer: None }),
        }
        let copied = self.compare(now, on, seen);
        if copied || advances && on == self.in_use {
            self.elsewhere = 0;
        } else if advances {
            self.elsewhere += 1;
            if self.elsewhere >= ELSEWHERE {
                self.adopt(on);
            }
        }
    }

    /// Measures what came both on the path in use and on another one; true if something did.
    fn compare(&mut self, now: Instant, on: PathKey, seen: Sighting) -> bool {
        let mut copied = false;
        if on == self.in_use {
            if self.recent.len() >= REMEMBERED {
                self.recent.pop_front();
            }
            self.recent.push_back(seen);
            for route in self.routes.iter_mut().filter(|route| route.on != on) {
                if route.last.largest == seen.largest {
                    route.measure(now, route.last.since_sent, seen.since_sent);
                    copied = true;
                }
            }
        } else if let Ok(at) = self.recent.binary_search_by_key(&seen.largest, |seen| seen.largest)
            && let Some(base) = self.recent.get(at)
            && let Some(route) = self.routes.iter_mut().find(|route| route.on == on)
        {
            route.measure(now, seen.since_sent, base.since_sent);
            copied = true;
        }
        copied
    }

    /// How much longer a way takes than the one in use, as measured last.
    #[cfg(test)]
    pub(super) fn longer(&self, on: PathKey) -> Option<SignedDuration> {
        let route = self.routes.iter().find(|route| route.on == on)?;
        route.longer.map(|(longer, _)| longer)
    }

    /// Acknowledgements return on another path: what was measured against the former is void.
    fn adopt(&mut self, on: PathKey) {
        self.in_use = on;
        self.asked = on;
        self.elsewhere = 0;
        self.recent.clear();
        for route in &mut self.routes {
            route.longer = None;
        }
    }

    /// Asks for the way back that is faster than the one in use by more than `margin` and the
    /// variation of the path's round-trip time, if there is one; the fastest, ties by path
    /// identifier. Estimates older than `lifetime` do not count. True if the peer is to be asked.
    pub(super) fn improve(
        &mut self,
        view: &View<'_>,
        margin: Duration,
        lifetime: Duration,
    ) -> bool {
        if self.asked != self.in_use {
            return false;
        }
        let Some(path) = view.paths.get(self.data) else { return false };
        let gain = SignedDuration::ZERO
            .as_nanos()
            .saturating_sub_unsigned(margin.max(path.rttvar).as_nanos());
        let usable = |on: PathKey| {
            let path = view.paths.get(on);
            path.is_some_and(|path| path.state == PathState::Usable && path.pto_count == 0)
        };
        let best = self
            .routes
            .iter()
            .filter_map(|route| route.longer.map(|(longer, at)| (longer, route.on, at)))
            .filter(|&(longer, on, at)| {
                longer.as_nanos() < gain && view.now - at < lifetime && usable(on)
            })
            .min_by_key(|&(longer, on, _)| (longer, on));
        if let Some((_, on, _)) = best {
            self.asked = on;
        }
        best.is_some()
    }

    /// The peer is to return to the path itself if it was asked to use `path`; true if it was.
    pub(super) fn withdraw(&mut self, path: PathKey) -> bool {
        let withdrawn = self.asked == path && path != self.data;
        if withdrawn {
            self.asked = self.data;
        }
        if let Some(route) = self.routes.iter_mut().find(|route| route.on == path) {
            route.longer = None;
        }
        withdrawn
    }

    /// A path is gone.
    pub(super) fn forget(&mut self, path: PathKey) {
        self.routes.retain(|route| route.on != path);
        if self.in_use == path {
            self.adopt(self.data);
        }
        self.withdraw(path);
    }
}
