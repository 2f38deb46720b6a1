//! ProbeBW: when to ask the path for more, and what its answer says.

use quipu_base::{Bytes, Duration, Instant, Random, Rate};
use rand_core::Rng;

use super::bounds::{is_too_high, scaled};
use super::{Ack, Bbr3, State};
use crate::congestion::RateSample;

/// The least wait between probes; up to [`RANDOM_WAIT`] is added.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.8.3>
const LEAST_WAIT: Duration = Duration::from_secs(2);
const RANDOM_WAIT: Duration = Duration::from_secs(1);
/// Round trips between probes are at most these, so that 1 % of random loss is borne.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.8.3>
const MOST_ROUNDS: u64 = 63;
/// Round trips between probes are at least these: with fewer, on paths that hold less than two
/// packets, a cycle would end before its samples are in and the bandwidth would never be forgotten.
/// The draft states none; that of Linux (the least window in packets).
const LEAST_ROUNDS: u64 = 4;

/// Where acknowledgements stand with respect to a probe.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.14>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Feedback {
    /// They tell of none.
    #[default]
    Absent,
    /// The path is being filled.
    Refilling,
    /// A probe began; they are still of what left before.
    Starting,
    /// They tell of the probe.
    Coming,
    /// The probe is over; they still tell of it.
    Stopping,
}

/// The cycle of probes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    began_at: Instant,
    wait: Duration,
    /// Round trips since the last probe, one more or not by chance.
    rounds: u64,
    feedback: Feedback,
    /// True from the start of a probe until its answer was judged, or the samples of it are over.
    awaits_answer: bool,
    /// True if the last probe lost too much.
    went_too_high: bool,
    /// True if the last probe turned back early since the one before had gone too high.
    turned_back: bool,
}

impl Cycle {
    /// A round trip begins.
    pub(super) fn on_round(&mut self) {
        self.rounds = self.rounds.saturating_add(1);
    }

    /// The samples of a probe end with the round trip.
    pub(super) fn end_feedback(&mut self) {
        self.feedback = Feedback::Stopping;
    }

    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.8.3>
    fn pick_wait(&mut self, random: &mut Random) {
        self.rounds = random.next_u64() & 1;
        let nanos = u128::from(random.next_u64()) * u128::from(RANDOM_WAIT.as_nanos() + 1);
        self.wait = LEAST_WAIT + Duration::from_nanos((nanos >> 64) as u64);
    }
}

/// The answer to a probe: what was in flight when a packet left, and what was lost since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) in_flight: Bytes,
    pub(super) lost: Bytes,
    /// True if the path was application-limited then: the probe asked for less than it might have.
    pub(super) limited: bool,
}

impl Answer {
    /// What a sample tells, with so many bytes marked as if they were lost.
    pub(super) fn of(sample: &RateSample, marked: Bytes) -> Self {
        Answer {
            in_flight: sample.in_flight_at_send,
            lost: sample.lost + marked,
            limited: sample.limited,
        }
    }

    pub(super) fn is_too_high(&self, threshold: f64) -> bool {
        is_too_high(self.lost, self.in_flight, threshold)
    }
}

/// The phases. <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.9>
impl Bbr3 {
    pub(super) fn enter_down(&mut self, now: Instant) {
        self.signals.forget();
        self.long_term.stop_growth();
        self.cycle.pick_wait(&mut self.random);
        self.cycle.began_at = now;
        self.cycle.end_feedback();
        self.rounds.restart(self.delivered);
        self.state = State::Down;
    }

    fn enter_refill(&mut self) {
        self.short_term.forget();
        self.long_term.prepare_growth();
        self.cycle.turned_back = false;
        self.cycle.feedback = Feedback::Refilling;
        self.rounds.restart(self.delivered);
        self.state = State::Refill;
    }

    pub(super) fn enter_up(&mut self, rate: Rate) {
        self.cycle.feedback = Feedback::Starting;
        self.cycle.awaits_answer = true;
        self.rounds.restart(self.delivered);
        self.full_pipe.restart(rate);
        self.state = State::Up;
        self.long_term.speed_up(self.cwnd, self.packet);
    }

    /// Moves on in the cycle, if an acknowledgement says so.
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        if !self.was_full || self.adapt_long_term(ack) {
            return;
        }
        match self.state {
            State::Down => {
                if self.is_time_to_probe(ack.now) {
                    self.enter_refill();
                } else if self.is_time_to_cruise(ack.in_flight) {
                    self.state = State::Cruise;
                }
            }
            State::Cruise => {
                if self.is_time_to_probe(ack.now) {
                    self.enter_refill();
                }
            }
            State::Refill => {
                if self.rounds.started() {
                    self.enter_up(ack.rate());
                }
            }
            State::Up => {
                if self.is_time_to_go_down(ack) {
                    // Its answer is still to come.
                    self.cycle.went_too_high = false;
                    self.enter_down(ack.now);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    fn is_time_to_probe(&self, now: Instant) -> bool {
        now > self.cycle.began_at + self.cycle.wait || self.cycle.rounds >= self.reno_rounds()
    }

    /// Round trips in which a Reno flow with this window would cause loss once.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.8.2>
    fn reno_rounds(&self) -> u64 {
        let packets = self.target_in_flight().0 / self.packet.0.max(1);
        packets.clamp(LEAST_ROUNDS, MOST_ROUNDS)
    }

    fn is_time_to_cruise(&self, in_flight: Bytes) -> bool {
        self.limit_with_headroom().is_none_or(|limit| in_flight <= limit)
            && in_flight <= self.in_flight_for(self.max_bandwidth.get(), 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        let limit = self.long_term.limit();
        // Reached means that not a packet more fits: in flight are whole packets.
        let most = ack.prior_in_flight + self.packet;
        if self.cycle.went_too_high && limit.is_some_and(|limit| most > limit) {
            self.cycle.turned_back = true;
            return true;
        }
        if self.window_use.is_full() && limit.is_some_and(|limit| self.cwnd >= limit) {
            // It is the limit that holds the rate.
            self.full_pipe.restart(ack.rate());
            return false;
        }
        self.full_pipe.is_full()
    }

    /// Follows the answer to a probe, and raises the long-term limit where there is no harm. True if
    /// that led to another state.
    fn adapt_long_term(&mut self, ack: &Ack) -> bool {
        let Some(sample) = &ack.sample else { return false };
        let round_begins = self.rounds.started();
        if self.cycle.feedback == Feedback::Starting && round_begins {
            self.cycle.feedback = Feedback::Coming;
        }
        if self.cycle.feedback == Feedback::Stopping && round_begins {
            self.cycle.awaits_answer = false;
            self.cycle.feedback = Feedback::Absent;
            if self.state.is_probe_bandwidth() {
                if !sample.limited {
                    self.max_bandwidth.end_cycle();
                }
                if self.cycle.turned_back && !self.cycle.went_too_high {
                    // No harm was done at the limit: now beyond it.
                    self.enter_refill();
                    return true;
                }
            }
        }
        if Answer::of(sample, self.signals.marked()).is_too_high(self.tuning.loss_threshold) {
            return false;
        }
        self.long_term.raise_to(sample.in_flight_at_send);
        let limit_in_use = self.window_use.is_full()
            && self.long_term.limit().is_some_and(|limit| self.cwnd >= limit);
        if self.state == State::Up && limit_in_use {
            self.long_term.grow(ack.newly_acked, self.packet);
            if round_begins {
                self.long_term.speed_up(self.cwnd, self.packet);
            }
        }
        false
    }

    /// Judges what is known of a probe: if it lost too much, `in_flight` bytes are the limit, and it
    /// is over. Once per probe.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.2>
    pub(super) fn judge_probe(
        &mut self,
        now: Instant,
        answer: &Answer,
        in_flight: impl FnOnce() -> Bytes,
    ) {
        if !self.cycle.awaits_answer || !answer.is_too_high(self.tuning.loss_threshold) {
            return;
        }
        self.cycle.went_too_high = true;
        self.cycle.awaits_answer = false;
        if !answer.limited {
            let least = scaled(self.target_in_flight(), self.tuning.beta);
            self.long_term.set(in_flight().max(least));
        }
        if self.state == State::Up {
            self.enter_down(now);
        }
    }
}
