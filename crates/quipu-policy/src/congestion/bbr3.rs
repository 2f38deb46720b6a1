//! BBRv3: a model of the path, fed by delivery rates, round-trip times and losses, sets pace and
//! window.

use quipu_base::{Bytes, Duration, Instant, Random, Rate};

use super::full_pipe::FullPipe;
use super::round::RoundCounter;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, RateSample, SentInfo};

mod aggregation;
mod bandwidth;
mod bounds;
mod control;
mod loss_ranges;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod recovery;
mod signals;
mod state;
mod undo;
mod window_use;

use aggregation::{Aggregation, Pipe};
use bandwidth::MaxBandwidth;
use bounds::{Limits, LongTerm, ShortTerm, in_flight_at_loss};
use control::Pace;
use loss_ranges::LossRanges;
use min_rtt::MinRtt;
use probe_bw::{Answer, Cycle};
use probe_rtt::{HeldBack, ProbeRtt};
use recovery::Recovery;
use signals::Signals;
use state::State;
use undo::BeforeLoss;
use window_use::WindowUse;

/// BBRv3 as draft-ietf-ccwg-bbr-06 states it.
///
/// The window is at most a multiple of what the path holds, bandwidth times least round-trip time;
/// the pace is a multiple of the bandwidth. Startup doubles until the path is full; then, every 2 to
/// 3 s or as often as a Reno flow would cause loss, the path is asked for more. A probe that loses
/// more than 2 % sets a long-term limit of what may be in flight; loss at other times sets
/// short-term ones, which the next probe lifts. Each 5 s little is sent for 200 ms, unless a lower
/// round-trip time came by itself.
///
/// Where the draft leaves open, or cannot be taken word for word:
///
/// - It demands that ECN-CE marks count as congestion, not how. A packet marked counts as one lost,
///   except that no recovery period begins.
/// - Persistent congestion takes the place of a retransmission timeout: the window falls to its
///   minimum, as RFC 9002 demands, and grows from there with what is acknowledged. Nothing is
///   restored after it; the short-term limits start from the window before it, as in Linux.
/// - The window does not grow while it is not what limits sending (RFC 9002, section 7.8); the draft
///   lets it. It does return to the saved one after ProbeRTT and recovery.
/// - Losses that turn out to be none are undone for a whole round of losses, as the engine tells of
///   them; the window returns too, as in Linux.
/// - Losses found by an acknowledgement are told after it, so the draft's steps for them come last.
/// - The window saved on entering ProbeRTT is the one before it; the pseudocode sets the state
///   first, so that an older, larger one may stay.
/// - At least 4 round trips lie between probes, as in Linux, and a pace is at least a packet per
///   second.
///
/// Source: draft-ietf-ccwg-bbr-06; confidence high.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06>
#[derive(Clone, Debug)]
pub(crate) struct Bbr3 {
    tuning: Tuning,
    random: Random,
    state: State,
    /// Largest datagram.
    packet: Bytes,
    initial_packets: u32,
    cwnd: Bytes,
    pace: Pace,
    /// Bytes acknowledged so far.
    delivered: Bytes,
    last_sample: Option<RateSample>,

    rounds: RoundCounter,
    window_use: WindowUse,
    max_bandwidth: MaxBandwidth,
    /// The bandwidth to be used: the greatest, or the short-term limit.
    bandwidth: Rate,
    min_rtt: MinRtt,
    aggregation: Aggregation,

    signals: Signals,
    short_term: ShortTerm,
    long_term: LongTerm,
    recovery: Recovery,
    before_loss: Option<BeforeLoss>,

    full_pipe: FullPipe,
    /// True if it was ever found full.
    was_full: bool,
    loss_ranges: LossRanges,
    /// The round trip in which Drain began.
    drain_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    held_back: HeldBack,
    /// True from the first packet after silence until an acknowledgement.
    idle_restart: bool,
}

/// What a researcher may change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tuning {
    /// Share of bytes whose loss shows that a probe went too high.
    pub(crate) loss_threshold: f64,
    /// What a round trip with loss leaves at least of the short-term limits.
    pub(crate) beta: f64,
    /// Share of the long-term limit that is left to others between probes.
    pub(crate) headroom: f64,
    /// How far the pace stays below the bandwidth, as a share of it.
    pub(crate) pacing_margin: f64,
}

impl Tuning {
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.8>
    pub(crate) const DEFAULT: Tuning =
        Tuning { loss_threshold: 0.02, beta: 0.7, headroom: 0.15, pacing_margin: 0.01 };
}

/// An acknowledgement as the model takes it.
#[derive(Clone, Copy, Debug)]
struct Ack {
    now: Instant,
    newly_acked: Bytes,
    /// Bytes in flight before it.
    prior_in_flight: Bytes,
    /// Bytes in flight after it.
    in_flight: Bytes,
    delivered: Bytes,
    /// True if the window was not what limited sending.
    limited: bool,
    rtt: Option<Duration>,
    srtt: Option<Duration>,
    /// Limited also if the sender itself held back.
    sample: Option<RateSample>,
}

impl Ack {
    fn rate(&self) -> Rate {
        self.sample.map_or(Rate::ZERO, |sample| sample.rate)
    }
}

impl Bbr3 {
    /// A controller with a window of `initial_packets` (at least 4) datagrams of `packet` bytes.
    pub(crate) fn new(initial_packets: u32, packet: Bytes, tuning: Tuning, random: Random) -> Self {
        let initial_packets = initial_packets.max(control::LEAST_PACKETS);
        let cwnd = packet.saturating_mul(u64::from(initial_packets));
        Bbr3 {
            tuning,
            random,
            state: State::Startup,
            packet,
            initial_packets,
            cwnd,
            pace: Pace::initial(cwnd),
            delivered: Bytes::ZERO,
            last_sample: None,
            rounds: RoundCounter::default(),
            window_use: WindowUse::default(),
            max_bandwidth: MaxBandwidth::new(),
            bandwidth: Rate::ZERO,
            min_rtt: MinRtt::default(),
            aggregation: Aggregation::new(),
            signals: Signals::default(),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            recovery: Recovery::default(),
            before_loss: None,
            full_pipe: FullPipe::default(),
            was_full: false,
            loss_ranges: LossRanges::default(),
            drain_round: 0,
            cycle: Cycle::default(),
            probe_rtt: ProbeRtt::default(),
            held_back: HeldBack::default(),
            idle_restart: false,
        }
    }

    /// Updates the model, then the state.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.2.3>
    fn update_model(&mut self, ack: &Ack) {
        self.take_sample(ack);
        let pipe = Pipe {
            bandwidth: self.bandwidth,
            cwnd: self.cwnd,
            round: self.rounds.count(),
            was_full: self.was_full,
        };
        self.aggregation.on_acked(ack.now, ack.newly_acked, &pipe);
        if let Some(sample) = ack.sample.filter(|sample| !sample.limited)
            && self.rounds.started()
        {
            self.full_pipe.on_round(sample.rate);
            self.was_full |= self.full_pipe.is_full();
        }
        self.check_startup(ack);
        self.check_drain(ack);
        self.update_cycle(ack);
        self.min_rtt.on_acked(ack.now, ack.rtt);
        self.check_probe_rtt(ack);
        if let Some(sample) = &ack.sample {
            self.signals.advance(sample);
        }
        let greatest = self.max_bandwidth.get();
        self.bandwidth = self.short_term.rate().map_or(greatest, |limit| limit.min(greatest));
    }

    fn take_sample(&mut self, ack: &Ack) {
        if self.rounds.on_acked(ack.sample.as_ref(), ack.delivered) {
            self.window_use.on_round();
            self.cycle.on_round();
        }
        let Some(sample) = &ack.sample else {
            self.signals.without_sample();
            return;
        };
        self.last_sample = ack.sample;
        self.signals.on_sample(sample, ack.delivered);
        self.max_bandwidth.note(sample.rate, sample.limited);
        if self.signals.round_ended() && self.signals.take_congestion() {
            self.obey_loss();
        }
    }

    /// A round trip with loss ended: unless the sender looks for more, it turns to what was
    /// delivered in it.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.3>
    fn obey_loss(&mut self) {
        if self.state.looks_for_more() {
            return;
        }
        self.short_term.begin(self.limits_at_first());
        self.short_term.reduce(self.signals.seen(), self.tuning.beta);
    }

    /// The short-term limits before loss lowers them.
    fn limits_at_first(&self) -> Limits {
        Limits { rate: self.max_bandwidth.get(), in_flight: self.cwnd }
    }

    /// Startup is over when the path is full: by its rate, or by the losses of a round trip.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.1.3>
    fn check_startup(&mut self, ack: &Ack) {
        let marked = self.signals.marked();
        if self.signals.round_ended()
            && self.loss_ranges.end_round()
            && !self.was_full
            && let Some(sample) = &ack.sample
            && Answer::of(sample, marked).is_too_high(self.tuning.loss_threshold)
        {
            self.full_pipe.set_full();
            self.was_full = true;
            let held = self.path_holds(self.bandwidth, 1.0);
            self.long_term.set(held.max(self.signals.seen().in_flight));
        }
        if self.state == State::Startup && self.was_full {
            self.state = State::Drain;
            self.drain_round = self.rounds.count();
        }
    }

    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.2>
    fn check_drain(&mut self, ack: &Ack) {
        const MOST_ROUNDS: u64 = 3;
        let drained = ack.in_flight <= self.in_flight_for(self.bandwidth, 1.0);
        let overdue = self.rounds.count() > self.drain_round.saturating_add(MOST_ROUNDS);
        if self.state == State::Drain && (drained || overdue) {
            self.enter_down(ack.now);
        }
    }

    /// There was loss, or a mark.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.5.10.2>
    fn note_congestion(&mut self) {
        if self.signals.on_congestion(self.delivered) {
            self.save_window();
        }
    }

    fn save_window(&mut self) {
        self.recovery.save(self.cwnd, self.state == State::ProbeRtt);
    }

    /// The first packet after silence leaves.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.4.1>
    fn restart_from_idle(&mut self, now: Instant) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.is_probe_bandwidth() {
            self.set_pace(1.0);
        } else if self.state == State::ProbeRtt {
            self.end_probe_rtt_if_due(now);
        }
    }

    /// Packets were marked: they count as lost.
    fn on_marked(&mut self, now: Instant, marks: u64) {
        self.note_congestion();
        self.loss_ranges.on_marked(marks);
        self.signals.on_marked(self.packet.saturating_mul(marks));
        if let Some(sample) = &self.last_sample {
            let answer = Answer::of(sample, self.signals.marked());
            self.judge_probe(now, &answer, || answer.in_flight);
        }
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        let was_idle = sent.in_flight <= sent.bytes;
        if was_idle && (sent.limited || self.held_back.covers(sent.now)) {
            self.restart_from_idle(sent.now);
        }
        self.window_use.on_sent(sent.in_flight + self.packet > self.cwnd);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        let Some(newest) = acked.packets.last() else { return };
        self.delivered = acked.delivered;
        self.held_back.on_acked(acked.now, acked.delivered);
        let held_back = self.held_back.covers(newest.sent_at);
        let ack = Ack {
            now: acked.now,
            newly_acked: acked.packets.iter().map(|packet| packet.bytes).sum(),
            prior_in_flight: acked.prior_in_flight,
            in_flight: acked.in_flight,
            delivered: acked.delivered,
            limited: acked.limited,
            rtt: acked.latest_rtt,
            srtt: acked.srtt.or(acked.latest_rtt),
            sample: acked
                .rate
                .map(|sample| RateSample { limited: sample.limited || held_back, ..sample }),
        };
        if self.recovery.on_acked(newest.sent_at) {
            self.cwnd = self.recovery.restored(self.cwnd);
        }
        self.update_model(&ack);
        self.update_control(&ack);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        self.keep_before_loss(lost);
        self.note_congestion();
        let mut lost_bytes = lost.lost.saturating_sub(lost.bytes);
        for packet in lost.packets {
            lost_bytes += packet.bytes;
            self.loss_ranges.on_lost(packet.pn);
            let lost_since = lost_bytes.saturating_sub(packet.lost_at_send);
            let answer = Answer {
                in_flight: packet.in_flight_at_send,
                lost: lost_since,
                limited: packet.limited || self.held_back.covers(packet.sent_at),
            };
            let threshold = self.tuning.loss_threshold;
            self.judge_probe(lost.now, &answer, || {
                in_flight_at_loss(packet.bytes, answer.in_flight, lost_since, threshold)
            });
        }
        self.save_window();
        self.recovery.on_lost(lost.now, lost.newest_sent_at);
        if lost.persistent {
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.6.2
            //# When persistent congestion is declared, the sender's congestion
            //# window MUST be reduced to the minimum congestion window
            if !self.state.looks_for_more() {
                self.short_term.begin(self.limits_at_first());
            }
            self.cwnd = self.least_window();
            self.recovery.cancel();
        }
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        match change {
            PathChange::EcnCongestion { marks, now, .. } => {
                self.before_loss = None;
                self.on_marked(now, marks);
            }
            PathChange::SpuriousLoss { since, .. } => self.undo_loss(since),
            PathChange::DatagramSize(size) => self.resize(size),
            PathChange::PathMtu(size) => self.set_packet(size),
            PathChange::ReturnRoute => self.min_rtt.forget(),
            PathChange::Pto | PathChange::ApplicationLimited => {}
        }
    }

    fn published(&self) -> Published {
        Published {
            cwnd: self.cwnd,
            pacing_rate: Some(self.pace.rate()),
            bandwidth: (self.bandwidth > Rate::ZERO).then_some(self.bandwidth),
            state: self.state.name(),
            ..Published::default()
        }
    }
}

#[cfg(test)]
mod tests;
