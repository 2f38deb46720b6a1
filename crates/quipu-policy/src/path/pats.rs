//! Packet arrival time.

use quipu_base::{Bytes, Duration};

use super::choose::{can_wait, eligible, rest_unless_stuck};
use super::drift::Drift;
use super::forecast::windows;
use super::{Choice, IdleProbe, MinRtt, Parcel, PathPolicy, TakeBack};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};

/// When a packet is bound to a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bind {
    /// As late as can be: plans are made anew when a round-trip time or window moved by 1/8.
    #[default]
    Late,
    /// When it is first looked at, as in OTIAS: plans are made anew only when a round-trip time
    /// moved by more than 1/4.
    Early,
    /// Only to paths with open windows, as the paper's loop reads literally: this is `minrtt`.
    Literal,
}

/// `pats`: the path on which a packet arrives first, its window open or not.
///
/// With `Q` the bytes planned for a path and the packet itself, and `C` the window left:
/// `R = 0` if `Q ≤ C`, else `⌈(Q − C)/cwnd⌉`; the packet arrives after `R·srtt + srtt/2`. Ties go to
/// the lower round-trip time, then the lower identifier. A packet that arrives first on a full path
/// is planned for it, and later bytes may go now on a slower one: skipping ahead.
///
/// Our repairs: `Q` includes the packet, else a full path has `R = 0`; a path needs no open window,
/// else `R` is always 0. Lost bytes take the open path of least round-trip time. An open path
/// without a sample is used as soon as no probed path is open; paths that do not answer (a probe
/// timeout passed) are not planned for.
///
/// The estimate ignores the time a window's packets take one after the other: without pacing, a
/// long path's window is filled in one burst.
///
/// Source: OTIAS (Yang, Wang, Amer, 2014); PATS (Gao et al., 2024) after the text of PW-PATS (Du et
/// al., 2026). Confidence: high for the formula, medium for the binding.
#[derive(Clone, Debug)]
pub struct Pats {
    bind: Bind,
    /// Most bytes planned, in sums of all windows.
    lookahead: f64,
    rebinds: bool,
    probe: IdleProbe,
    drift: Drift,
}

impl Pats {
    /// The policy. `lookahead` bounds the plans in sums of all windows; zero takes the default of
    /// the binding, 2 for late, 1 for early. Unless it `rebinds`, plans stand when a more urgent
    /// stream arrives.
    pub const fn new(bind: Bind, lookahead: f64, rebinds: bool, probe: IdleProbe) -> Self {
        let lookahead = match bind {
            _ if lookahead > 0.0 => lookahead,
            Bind::Late => 2.0,
            Bind::Early => 1.0,
            Bind::Literal => 0.0,
        };
        let drift = match bind {
            Bind::Early => Drift::new(4, None),
            _ => Drift::EIGHTH,
        };
        Pats { bind, lookahead, rebinds, probe, drift }
    }

    /// Time until the last of `queue` bytes arrives, if they are all that waits for a path; `None`
    /// without a sample of its round-trip time.
    pub fn arrival(queue: Bytes, path: &PathView) -> Option<Duration> {
        let srtt = path.srtt?;
        let beyond = queue.saturating_sub(path.room());
        if beyond.is_zero() {
            return Some(srtt.divided_by(2));
        }
        let rounds = beyond.0.div_ceil(path.cwnd.0.max(1));
        Some(srtt.saturating_mul(rounds) + srtt.divided_by(2))
    }

    fn best<'v>(parcel: &Parcel<'_>, view: &View<'v>, notes: &mut Notes) -> Option<&'v PathView> {
        let arrivals = eligible(view.paths)
            .filter(|path| path.is_open(view.now) || can_wait(path))
            .filter_map(|path| {
                let planned = parcel.committed.get(path.key.index()).copied().unwrap_or_default();
                let arrival = Pats::arrival(planned + parcel.len, path)?;
                notes.add(|| Note {
                    label: "arrival in seconds",
                    path: Some(path.key),
                    stream: Some(parcel.stream),
                    score: arrival.as_secs_f64(),
                });
                Some((arrival, path))
            });
        let best = arrivals.min_by_key(|(arrival, path)| (*arrival, path.srtt, path.key));
        best.map(|(_, path)| path)
    }
}

impl Default for Pats {
    fn default() -> Self {
        Pats::new(Bind::Late, 0.0, true, IdleProbe::default())
    }
}

impl PathPolicy for Pats {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(open) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        let lost = matches!(parcel.class, Class::Lost { .. });
        if lost || open.srtt.is_none() || self.bind == Bind::Literal {
            return Choice::Now(open.key);
        }
        match Pats::best(parcel, view, notes) {
            Some(best) if !best.is_open(view.now) => {
                if parcel.committed.iter().all(|planned| planned.is_zero()) {
                    self.drift.rest_on(view);
                }
                Choice::Later(best.key)
            }
            Some(best) => Choice::Now(best.key),
            None => Choice::Now(open.key),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        self.probe.on_event(event);
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        Bytes((windows(view).0 as f64 * self.lookahead) as u64)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        if self.drift.moved(view) { TakeBack::All } else { TakeBack::Nothing }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }

    fn rebinds(&self) -> bool {
        self.rebinds
    }
}

#[cfg(test)]
mod tests;
