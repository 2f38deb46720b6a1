//! The states of BBR, and when each ends.

use quipu_base::{Bytes, Duration, Instant, Random};
use rand_core::Rng;

use super::super::{AckedInfo, SentInfo};
use super::model::Model;
use super::window::Window;

/// Gains of the pace in the cycle that probes for bandwidth.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.1>
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Gain of the window while the pace probes for bandwidth.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.3>
const WINDOW_GAIN: f64 = 2.0;
/// How long at least a probe of the round-trip time keeps little in flight.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.5>
const RTT_PROBE: Duration = Duration::from_millis(200);

/// What BBR does at present.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// Raises the pace until bandwidth stops growing.
    Startup,
    /// Lets the queue of startup go.
    Drain,
    /// Goes through [`CYCLE`]; in its `phase` since then.
    ProbeBandwidth { phase: usize, since: Instant },
    /// Keeps next to nothing in flight, so that the queue shows the bare round-trip time: until
    /// then, once that little is in flight, and until a round trip is over.
    ProbeRtt { until: Option<Instant>, round_over: bool },
}

/// The state with what moves it.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    state: State,
    startup_gain: f64,
    /// The cycle may begin where it drains.
    drain_first: bool,
    random: Random,
    /// Sending began again after idleness; until something is acknowledged.
    after_idle: bool,
    /// Bytes lost by the last acknowledgement.
    lost: Bytes,
}

impl Machine {
    pub(super) fn new(startup_gain: f64, drain_first: bool, random: Random) -> Self {
        Machine {
            state: State::Startup,
            startup_gain,
            drain_first,
            random,
            after_idle: false,
            lost: Bytes::ZERO,
        }
    }

    pub(super) fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => self.startup_gain,
            State::Drain => 1.0 / self.startup_gain,
            State::ProbeBandwidth { phase, .. } => CYCLE[phase],
            State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn window_gain(&self) -> f64 {
        match self.state {
            State::Startup | State::Drain => self.startup_gain,
            State::ProbeBandwidth { .. } => WINDOW_GAIN,
            State::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) fn probes_rtt(&self) -> bool {
        matches!(self.state, State::ProbeRtt { .. })
    }

    /// Its name, as published.
    pub(super) fn name(&self) -> &'static str {
        match self.state {
            State::Startup => "startup",
            State::Drain => "drain",
            State::ProbeBandwidth { .. } => "probe bandwidth",
            State::ProbeRtt { .. } => "probe rtt",
        }
    }

    /// A packet left. True if the pace is to be that of the path alone, as sending begins again
    /// after idleness.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.4>
    pub(super) fn on_sent(&mut self, sent: &SentInfo) -> bool {
        if sent.in_flight > sent.bytes || !sent.limited {
            return false;
        }
        self.after_idle = true;
        matches!(self.state, State::ProbeBandwidth { .. })
    }

    /// An acknowledgement moves the model, then the state.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-3.5.2>
    pub(super) fn on_acked(
        &mut self,
        acked: &AckedInfo<'_>,
        model: &mut Model,
        window: &mut Window,
    ) {
        model.update_bandwidth(acked);
        self.check_cycle(acked, model);
        model.check_full_pipe(acked);
        self.check_drain(acked, model);
        model.update_min_rtt(acked);
        self.check_rtt_probe(acked, model, window);
        self.lost = acked.lost;
    }

    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.3>
    fn check_cycle(&mut self, acked: &AckedInfo<'_>, model: &Model) {
        let State::ProbeBandwidth { phase, since } = self.state else { return };
        let in_flight = acked.prior_in_flight;
        let long = model.min_rtt().is_some_and(|rtt| acked.now - since > rtt);
        let gain = CYCLE[phase];
        let over = if gain > 1.0 {
            long && (acked.lost > self.lost || in_flight >= model.in_flight(gain))
        } else if gain < 1.0 {
            long || in_flight <= model.in_flight(1.0)
        } else {
            long
        };
        if over {
            let phase = (phase + 1) % CYCLE.len();
            self.state = State::ProbeBandwidth { phase, since: acked.now };
        }
    }

    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.3>
    fn check_drain(&mut self, acked: &AckedInfo<'_>, model: &Model) {
        if self.state == State::Startup && model.pipe_is_full() {
            self.state = State::Drain;
        }
        if self.state == State::Drain && acked.in_flight <= model.in_flight(1.0) {
            self.probe_bandwidth(acked.now);
        }
    }

    /// The cycle begins anywhere but where it drains, with equal chances.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.4.2>
    fn probe_bandwidth(&mut self, now: Instant) {
        // The last one drawn is the one that drains.
        let choices = CYCLE.len() - usize::from(!self.drain_first);
        let drawn = (u128::from(self.random.next_u64()) * choices as u128) >> 64;
        let phase = (CYCLE.len() - drawn as usize) % CYCLE.len();
        self.state = State::ProbeBandwidth { phase, since: now };
    }

    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.5>
    fn check_rtt_probe(&mut self, acked: &AckedInfo<'_>, model: &mut Model, window: &mut Window) {
        let begins = !self.probes_rtt() && model.min_rtt_expired() && !self.after_idle;
        if begins {
            window.save();
            self.state = State::ProbeRtt { until: None, round_over: false };
        }
        self.after_idle = false;
        let State::ProbeRtt { until, round_over } = &mut self.state else { return };
        model.mark_probed(acked, begins);
        match *until {
            None if acked.in_flight <= window.minimum() => {
                *until = Some(acked.now + RTT_PROBE);
                model.restart_round(acked.delivered);
            }
            None => {}
            Some(end) => {
                *round_over |= model.rounds().started();
                if *round_over && acked.now >= end {
                    self.end_rtt_probe(acked.now, model, window);
                }
            }
        }
    }

    fn end_rtt_probe(&mut self, now: Instant, model: &mut Model, window: &mut Window) {
        model.renew_min_rtt(now);
        window.restore();
        if model.pipe_is_full() {
            self.probe_bandwidth(now);
        } else {
            self.state = State::Startup;
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    /// How often of 8,000 times the cycle begins with each phase.
    fn begins(drain_first: bool) -> [u32; 8] {
        let mut machine = Machine::new(2.885, drain_first, Seed::new(1).stream("bbr", 0));
        let mut counts = [0; 8];
        for _ in 0..8_000 {
            machine.probe_bandwidth(Instant::ZERO);
            if let State::ProbeBandwidth { phase, .. } = machine.state {
                counts[phase] += 1;
            }
        }
        counts
    }

    #[test]
    fn the_cycle_begins_anywhere_but_where_it_drains() {
        for (phase, count) in begins(false).into_iter().enumerate() {
            let expected = if CYCLE[phase] < 1.0 { 0..=0 } else { 1_040..=1_250 };
            assert!(expected.contains(&count), "{phase}: {count}");
        }
        assert!(begins(true).into_iter().all(|count| (900..=1_100).contains(&count)));
    }
}
