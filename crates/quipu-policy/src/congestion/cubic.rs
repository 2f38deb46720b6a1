//! CUBIC: the window follows a cubic function of the time since the last reduction.

use quipu_base::{Bytes, Duration, Instant};

use super::reno::RenoWindow;
use super::slow_start::SlowStartExit;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// CUBIC.
///
/// As the standard states it, with these choices:
///
/// - A reduction takes 0.7 of the window, not of the bytes in flight: the window does not grow while
///   it is not what limits sending, as section 4.6 asks of those that do so.
/// - The window never shrinks to the estimate of the Reno-friendly region; it waits for it.
/// - The time of the cubic function passes from acknowledgement to acknowledgement. It stands still
///   up to one that finds the path limited otherwise, and up to the first packet after idleness.
/// - A reduction for losses that turn out to be none is undone, the function with it; its time
///   stands still meanwhile.
///
/// Source: RFC 9438; confidence high. <https://www.rfc-editor.org/rfc/rfc9438>
#[derive(Clone, Debug)]
pub struct Cubic {
    window: RenoWindow,
    curve: Curve,
    /// The function before the last reduction.
    before: Curve,
}

impl Cubic {
    /// A controller with a window of `initial_packets` (at least 2) datagrams of `datagram_size`
    /// bytes, whose slow start ends by `exit`.
    pub fn new(initial_packets: u32, datagram_size: Bytes, exit: SlowStartExit) -> Self {
        let window = RenoWindow::new(initial_packets, datagram_size, exit);
        Cubic { window, curve: Curve::default(), before: Curve::default() }
    }

    /// What a congestion event leaves of the window.
    /// <https://www.rfc-editor.org/rfc/rfc9438#section-4.6>
    fn kept(&self) -> Bytes {
        self.window.part(BETA)
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        self.window.on_sent(sent);
        if sent.in_flight <= sent.bytes {
            self.curve.skip_to(sent.now);
        }
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        if acked.limited {
            self.curve.skip_to(acked.now);
        }
        let srtt = acked.srtt.or(acked.latest_rtt).unwrap_or(Duration::ZERO);
        let curve = &mut self.curve;
        self.window.on_acked(acked, |window, bytes| {
            match curve.on_acked(acked.now, srtt, bytes, window) {
                Growth::Share(share) => {
                    window.grow_in_avoidance(bytes.min(window.cwnd()), share);
                }
                Growth::To(bytes) => window.raise_to(bytes),
            }
        });
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        let before = self.window.cwnd();
        if self.window.on_lost(lost, self.kept()) {
            self.before = self.curve.clone();
            self.curve.on_reduced(before);
        }
        if lost.persistent {
            self.curve.on_timeout();
        }
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9438#section-4.9
        if let PathChange::SpuriousLoss { since, now } = change {
            if self.window.undo(since) {
                self.curve = std::mem::take(&mut self.before);
                self.curve.skip_to(now);
            }
            return;
        }
        let before = self.window.cwnd();
        if self.window.on_change(change, self.kept()) {
            self.curve.on_reduced(before);
        }
        if let PathChange::DatagramSize(_) | PathChange::PathMtu(_) = change {
            // The scale of the function is datagrams; it starts anew from the window.
            self.curve.stage = None;
            self.before.stage = None;
        }
    }

    fn published(&self) -> Published {
        self.window.published()
    }
}

/// C, in datagrams per cubic second. <https://www.rfc-editor.org/rfc/rfc9438#section-5>
const C: f64 = 0.4;
/// What a reduction leaves. <https://www.rfc-editor.org/rfc/rfc9438#section-4.6>
const BETA: f64 = 0.7;
/// Growth in datagrams per window with which a flow that falls to [`BETA`] takes as much as Reno.
/// <https://www.rfc-editor.org/rfc/rfc9438#section-4.3>
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// What the function asks of the window.
#[derive(Clone, Copy, Debug)]
enum Growth {
    /// That many datagrams for each window acknowledged.
    Share(f64),
    /// At least that much.
    To(Bytes),
}

/// The cubic function across reductions. Windows in bytes.
#[derive(Clone, Debug, Default)]
struct Curve {
    /// `W_max`: the window before the last reduction, or less by fast convergence; `None` if slow
    /// start ended without loss, or after a timeout.
    w_max: Option<f64>,
    /// `cwnd_prior`: the window before the last reduction.
    prior: Option<f64>,
    /// The present stage of congestion avoidance; begins with its first acknowledgement.
    stage: Option<Stage>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Stage {
    w_max: f64,
    /// Time in seconds at which the function reaches `w_max`.
    k: f64,
    /// `W_est`: what Reno's window would be.
    w_est: f64,
    /// Time of the function at `counted_until`.
    elapsed: Duration,
    counted_until: Instant,
}

impl Curve {
    /// Bytes were acknowledged in congestion avoidance.
    fn on_acked(
        &mut self,
        now: Instant,
        srtt: Duration,
        acked: Bytes,
        window: &RenoWindow,
    ) -> Growth {
        let cwnd = window.cwnd().0.max(1) as f64;
        let datagram = window.datagram_size().0.max(1) as f64;
        let mut stage = match self.stage {
            Some(stage) => stage,
            None => Stage::new(now, self.w_max, cwnd, datagram),
        };
        stage.elapsed += now - stage.counted_until;
        stage.counted_until = stage.counted_until.max(now);

        // https://www.rfc-editor.org/rfc/rfc9438#section-4.3
        let alpha = if stage.w_est >= self.prior.unwrap_or(0.0) { 1.0 } else { ALPHA };
        stage.w_est += alpha * datagram * (acked.0 as f64 / cwnd).min(1.0);
        self.stage = Some(stage);
        let time = stage.elapsed.as_secs_f64();
        if stage.at(time, datagram) < stage.w_est {
            return Growth::To(Bytes(stage.w_est as u64));
        }
        // https://www.rfc-editor.org/rfc/rfc9438#section-4.2
        let target = stage.at(time + srtt.as_secs_f64(), datagram).clamp(cwnd, 1.5 * cwnd);
        Growth::Share((target - cwnd) / datagram)
    }

    /// The window was reduced from `before`.
    fn on_reduced(&mut self, before: Bytes) {
        let before = before.0 as f64;
        // Fast convergence: https://www.rfc-editor.org/rfc/rfc9438#section-4.7
        let gives_way = self.w_max.is_some_and(|w_max| before < w_max);
        self.w_max = Some(if gives_way { before * (1.0 + BETA) / 2.0 } else { before });
        self.prior = Some(before);
        self.stage = None;
    }

    /// <https://www.rfc-editor.org/rfc/rfc9438#section-4.8>
    fn on_timeout(&mut self) {
        self.w_max = None;
        self.stage = None;
    }

    /// Time until `now` does not count: the window was not what limited sending.
    /// <https://www.rfc-editor.org/rfc/rfc9438#section-5.8>
    fn skip_to(&mut self, now: Instant) {
        if let Some(stage) = &mut self.stage {
            stage.counted_until = stage.counted_until.max(now);
        }
    }
}

impl Stage {
    /// A stage that begins with a window of `cwnd`. Without a greater `w_max` the function rises at
    /// once. <https://www.rfc-editor.org/rfc/rfc9438#section-4.2>
    fn new(now: Instant, w_max: Option<f64>, cwnd: f64, datagram: f64) -> Self {
        let w_max = w_max.unwrap_or(cwnd).max(cwnd);
        Stage {
            w_max,
            k: libm::cbrt((w_max - cwnd) / (C * datagram)),
            w_est: cwnd,
            elapsed: Duration::ZERO,
            counted_until: now,
        }
    }

    /// `W_cubic` at that time in seconds.
    fn at(&self, time: f64, datagram: f64) -> f64 {
        let from_plateau = time - self.k;
        C * datagram * from_plateau * from_plateau * from_plateau + self.w_max
    }
}

#[cfg(test)]
mod tests;
