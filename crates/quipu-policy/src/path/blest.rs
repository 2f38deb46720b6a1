//! BLEST: no packet on a slow path that would block the send window of the fast one.

use quipu_base::{Bytes, Duration, Instant};

use super::choose::{rest_unless_stuck, wait_for};
use super::{Choice, Ecf, IdleProbe, MinRtt, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};

/// How many bytes the fast path could send meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimate {
    /// As in the paper: the window grows by half a packet per round trip.
    #[default]
    Paper,
    /// As in Linux: whole round trips, from the extremes of the round-trip time seen; slow start
    /// doubles.
    Linux,
}

/// How λ moves, in the Linux form.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lambda {
    /// At the start.
    pub start: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
    /// Added if connection credit stopped data since the last step.
    pub up: f64,
    /// Taken off else.
    pub down: f64,
}

/// `blest`: a slow path is used only if that leaves window for the fast one.
///
/// With `f` the usable path of least round-trip time, `s` the open one that [`MinRtt`] would take and
/// `r = srtt_s/srtt_f`, the fast path could send `X = (cwnd_f + mss·(r − 1)/2)·r` bytes while a packet
/// on `s` is under way. Wait for `f` if `λ·X > M − (in_flight_s + mss)`.
///
/// `M`, the window that both share, is in MPTCP the connection's send window. Our form for QUIC:
/// connection credit left and bytes in flight on all paths; stream credit instead, if it is less and
/// one stream alone has something to send.
///
/// λ stays in the paper's form. In the Linux form it moves once per least round-trip time of the
/// slow path; Linux's sign of a blocked window is a retransmission, ours that connection credit
/// stopped data ([`ConnView::window_blocked`](crate::ConnView::window_blocked)).
///
/// It sends without waiting in the same cases as [`Ecf`]. With large windows the condition rarely
/// bites, and this is nearly `minrtt`.
///
/// Source: Ferlin et al., "BLEST: Blocking estimation-based MPTCP scheduler for heterogeneous
/// networks", IFIP Networking 2016; Linux `mptcp_blest.c`, read in code; confidence high.
#[derive(Clone, Debug)]
pub struct Blest {
    estimate: Estimate,
    lambda: f64,
    steps: Lambda,
    probe: IdleProbe,
    /// By path slot.
    extremes: Vec<Option<Extremes>>,
    /// The slow path that was weighed since λ moved last.
    weighed: Option<PathKey>,
    moved_at: Instant,
    blocked: u64,
}

/// Least and greatest smoothed round-trip time of a path.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    path: PathKey,
    least: Duration,
    greatest: Duration,
}

impl Lambda {
    /// Values of Linux, but for the start, which is the paper's: 1.
    pub const PAPER: Lambda = Lambda { start: 1.0, min: 1.0, max: 1.3, up: 0.04, down: 0.01 };
    /// Values of Linux.
    pub const LINUX: Lambda = Lambda { start: 1.2, ..Lambda::PAPER };
}

impl Blest {
    /// The policy. In [`Estimate::Paper`] λ stays at its start.
    pub const fn new(estimate: Estimate, lambda: Lambda, probe: IdleProbe) -> Self {
        Blest {
            estimate,
            lambda: lambda.start,
            steps: lambda,
            probe,
            extremes: Vec::new(),
            weighed: None,
            moved_at: Instant::ZERO,
            blocked: 0,
        }
    }

    /// Bytes that the fast path could send while a packet on the slow one is under way. `None`
    /// without samples.
    pub fn overtaking(&self, fast: &PathView, slow: &PathView) -> Option<f64> {
        let mss = fast.payload.0.max(1) as f64;
        let (fast_srtt, slow_srtt) = (fast.srtt?, slow.srtt?);
        match self.estimate {
            Estimate::Paper => {
                let rtt = |srtt: Duration| srtt.as_nanos().max(1) as f64;
                let rounds = rtt(slow_srtt) / rtt(fast_srtt);
                Some((fast.cwnd.0 as f64 + mss * (rounds - 1.0) / 2.0) * rounds)
            }
            Estimate::Linux => {
                let (least, greatest) = self.extremes(fast, fast_srtt);
                let average = ((least + greatest).divided_by(2)).as_nanos();
                let linger = self.linger(slow, slow_srtt).as_nanos();
                let rounds = linger.checked_div(average).map_or(1, |rounds| rounds + 1);
                let packets = match fast.ssthresh {
                    None => fast.cwnd.0 as f64 / mss * ((1u64 << rounds.min(16)) - 1) as f64,
                    Some(ssthresh) => {
                        let window = (fast.cwnd.0 as f64 / mss).max(ssthresh.0 as f64 / mss + 1.0);
                        (window + ((rounds - 1) / 2) as f64) * rounds as f64
                    }
                };
                Some(packets * mss)
            }
        }
    }

    /// How long a packet on the slow path is under way: the more of its window is in flight, the
    /// nearer to the longest time seen.
    fn linger(&self, slow: &PathView, srtt: Duration) -> Duration {
        let (least, greatest) = self.extremes(slow, srtt);
        let in_flight = slow.in_flight + slow.payload;
        let estimate = if in_flight >= slow.cwnd {
            greatest
        } else {
            let spread = greatest.saturating_sub(least);
            least + spread.scaled(in_flight.0, slow.cwnd.0.max(1))
        };
        estimate.max(srtt)
    }

    fn extremes(&self, path: &PathView, srtt: Duration) -> (Duration, Duration) {
        let known = self.extremes.get(path.key.index()).copied().flatten();
        match known.filter(|known| known.path == path.key) {
            Some(known) => (known.least.min(srtt), known.greatest.max(srtt)),
            None => (srtt, srtt),
        }
    }

    fn measured(&mut self, path: PathKey, view: &View<'_>) {
        let Some((path, srtt)) = view.paths.get(path).and_then(|path| Some((path, path.srtt?)))
        else {
            return;
        };
        let (least, greatest) = self.extremes(path, srtt);
        if self.extremes.len() <= path.key.index() {
            self.extremes.resize(path.key.index() + 1, None);
        }
        if let Some(entry) = self.extremes.get_mut(path.key.index()) {
            *entry = Some(Extremes { path: path.key, least, greatest });
        }
    }

    /// Moves λ if it is time.
    fn adapt(&mut self, view: &View<'_>) {
        let Some(slow) = self.weighed.and_then(|slow| view.paths.get(slow)) else { return };
        let Some(srtt) = slow.srtt else { return };
        let (least, _) = self.extremes(slow, srtt);
        if view.now < self.moved_at + least {
            return;
        }
        let Lambda { min, max, up, down, .. } = self.steps;
        let blocked = view.conn.window_blocked != self.blocked;
        self.lambda = (self.lambda + if blocked { up } else { -down }).min(max).max(min);
        self.blocked = view.conn.window_blocked;
        self.moved_at = view.now;
        self.weighed = None;
    }

    /// The window that all paths share, from the oldest byte not delivered.
    fn window(parcel: &Parcel<'_>, view: &View<'_>) -> Bytes {
        let stream = view.streams.get(parcel.stream).filter(|_| view.conn.ready == 1);
        let credit = stream.map_or(view.conn.credit, |stream| {
            view.conn.credit.min(stream.credit_end.since(stream.high_sent))
        });
        credit + view.conn.in_flight
    }

    /// Whether a packet on `slow` would leave too little window for `fast`.
    fn blocks(&self, fast: &PathView, slow: &PathView, window: Bytes, notes: &mut Notes) -> bool {
        let Some(overtaking) = self.overtaking(fast, slow) else { return false };
        let wanted = self.lambda * overtaking;
        let left = window.saturating_sub(slow.in_flight + slow.payload).0 as f64;
        let scores = [("fast could send, bytes", fast, wanted), ("window left, bytes", slow, left)];
        for (label, path, score) in scores {
            notes.add(|| Note { label, path: Some(path.key), stream: None, score });
        }
        wanted > left
    }
}

impl Default for Blest {
    fn default() -> Self {
        Blest::new(Estimate::Paper, Lambda::PAPER, IdleProbe::default())
    }
}

impl PathPolicy for Blest {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let Some(slow) = MinRtt::pick(view, notes) else { return rest_unless_stuck(parcel, view) };
        if matches!(parcel.class, Class::Lost { .. }) {
            return Choice::Now(slow.key);
        }
        let Some(fast) = Ecf::faster_than(slow, view) else { return Choice::Now(slow.key) };
        self.weighed = Some(slow.key);
        if self.blocks(fast, slow, Blest::window(parcel, view), notes) {
            wait_for(fast, view)
        } else {
            Choice::Now(slow.key)
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        if self.estimate == Estimate::Linux {
            match event {
                Event::PathMeasured(path) => self.measured(*path, view),
                Event::Placed { .. } | Event::Drained => self.adapt(view),
                _ => {}
            }
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

#[cfg(test)]
mod tests;
