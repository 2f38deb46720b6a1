//! ProbeRTT: now and then little is sent, so that the round-trip time without a queue shows.

use quipu_base::{Bytes, Duration, Instant};

use super::{Ack, Bbr3, State};

/// How long little is in flight. <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.16.2>
const LENGTH: Duration = Duration::from_millis(200);

/// The present ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end; `None` while too much is in flight.
    done_at: Option<Instant>,
    round_done: bool,
}

/// Packets of which the sender itself held back the rate: their samples count as
/// application-limited. The draft marks the connection so; here the marks of packets are the
/// engine's, so this one is kept apart.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-4.1.2.4>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBack {
    since: Instant,
    /// It ends when more than this is delivered; `None`: it ended.
    until_delivered: Option<Bytes>,
    ended_at: Instant,
}

impl HeldBack {
    /// What leaves now, and until all that is in flight is delivered, is held back.
    fn mark(&mut self, now: Instant, delivered: Bytes, in_flight: Bytes) {
        if self.until_delivered.is_none() {
            self.since = now;
        }
        self.until_delivered = Some(delivered + in_flight);
    }

    /// An acknowledgement came, with `delivered` bytes in all.
    pub(super) fn on_acked(&mut self, now: Instant, delivered: Bytes) {
        if self.until_delivered.is_some_and(|end| delivered > end) {
            self.until_delivered = None;
            self.ended_at = now;
        }
    }

    /// True if a packet sent then was held back.
    pub(super) fn covers(&self, sent_at: Instant) -> bool {
        sent_at >= self.since && (self.until_delivered.is_some() || sent_at < self.ended_at)
    }
}

/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.4.3>
impl Bbr3 {
    /// Enters, follows or ends ProbeRTT, if an acknowledgement says so.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack) {
        if self.state != State::ProbeRtt && self.min_rtt.is_expired() && !self.idle_restart {
            self.recovery.save(self.cwnd, false);
            self.state = State::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.cycle.end_feedback();
            self.rounds.restart(self.delivered);
        }
        if self.state == State::ProbeRtt {
            self.follow_probe_rtt(ack);
        }
        if !ack.newly_acked.is_zero() {
            self.idle_restart = false;
        }
    }

    fn follow_probe_rtt(&mut self, ack: &Ack) {
        self.held_back.mark(ack.now, ack.delivered, ack.in_flight);
        if self.probe_rtt.done_at.is_none() {
            if ack.in_flight <= self.probe_rtt_window() {
                self.probe_rtt.done_at = Some(ack.now + LENGTH);
                self.rounds.restart(self.delivered);
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.started();
        if self.probe_rtt.round_done {
            self.end_probe_rtt_if_due(ack.now);
        }
    }

    /// Ends ProbeRTT if it lasted long enough.
    pub(super) fn end_probe_rtt_if_due(&mut self, now: Instant) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.postpone(now);
        self.cwnd = self.recovery.restored(self.cwnd);
        // https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.4.4
        self.short_term.forget();
        if self.was_full {
            self.enter_down(now);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_held_back_until_what_was_in_flight_is_delivered() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let mut held = HeldBack::default();
        assert!(!held.covers(at(0)) && !held.covers(at(99)));
        held.mark(at(100), Bytes(5_000), Bytes(2_000));
        held.on_acked(at(110), Bytes(6_000));
        held.mark(at(110), Bytes(6_000), Bytes(2_000));
        held.on_acked(at(150), Bytes(8_000));
        assert!(held.covers(at(150)), "not more than what was in flight");
        held.on_acked(at(160), Bytes(8_001));
        let covered: Vec<bool> = [99, 100, 159, 160].map(|ms| held.covers(at(ms))).into();
        assert_eq!(covered, [false, true, true, false]);
    }
}
