//! Window and pace, as the model asks for them.

use quipu_base::{Bytes, Duration, Rate};

use super::bounds::{scaled, scaled_rate};
use super::{Ack, Bbr3, State};

/// Least window in packets.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-2.8>
pub(super) const LEAST_PACKETS: u32 = 4;
/// What stands for the round-trip time in the first pace.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.2>
const NOMINAL_RTT: Duration = Duration::from_millis(1);
/// What goes at once: as much as the pace gives in a millisecond, between these.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.3>
const QUANTUM_TIME: Duration = Duration::from_millis(1);
const MOST_QUANTUM: Bytes = Bytes(64 * 1024);
const LEAST_QUANTUM_PACKETS: u64 = 2;
/// What Up adds to the window, in packets.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.2>
const UP_PACKETS: u64 = 2;

/// The pace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Rate,
    /// True if it is still that of a nominal round-trip time.
    is_nominal: bool,
}

impl Pace {
    /// The first one, for an initial window.
    pub(super) fn initial(window: Bytes) -> Self {
        Pace { rate: Self::of_startup(window, NOMINAL_RTT), is_nominal: true }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    fn of_startup(window: Bytes, rtt: Duration) -> Rate {
        let rate = Rate::from_bytes_over(window, rtt).unwrap_or(Rate::ZERO);
        scaled_rate(rate, State::Startup.pacing_gain())
    }
}

impl Bbr3 {
    /// The least window.
    pub(super) fn least_window(&self) -> Bytes {
        self.packet.saturating_mul(u64::from(LEAST_PACKETS))
    }

    fn initial_window(&self) -> Bytes {
        self.packet.saturating_mul(u64::from(self.initial_packets))
    }

    /// What the path holds at a rate, times `gain`.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.2>
    pub(super) fn path_holds(&self, rate: Rate, gain: f64) -> Bytes {
        match self.min_rtt.get() {
            Some(min_rtt) => scaled(rate.bytes_in(min_rtt), gain),
            None => self.initial_window(),
        }
    }

    /// The same, and no less than what goes at once and the least window.
    pub(super) fn in_flight_for(&self, rate: Rate, gain: f64) -> Bytes {
        self.with_budget(self.path_holds(rate, gain))
    }

    fn with_budget(&self, in_flight: Bytes) -> Bytes {
        let least = in_flight.max(self.quantum()).max(self.least_window());
        match self.state {
            State::Up => least + self.packet.saturating_mul(UP_PACKETS),
            _ => least,
        }
    }

    fn quantum(&self) -> Bytes {
        let least = self.packet.saturating_mul(LEAST_QUANTUM_PACKETS);
        self.pace.rate.bytes_in(QUANTUM_TIME).min(MOST_QUANTUM).max(least)
    }

    /// What should be in flight: what the path holds, unless congestion made the window smaller.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.3.8.3>
    pub(super) fn target_in_flight(&self) -> Bytes {
        self.path_holds(self.bandwidth, 1.0).min(self.cwnd)
    }

    pub(super) fn limit_with_headroom(&self) -> Option<Bytes> {
        self.long_term.with_headroom(self.tuning.headroom, self.packet, self.least_window())
    }

    /// The window of ProbeRTT.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.5>
    pub(super) fn probe_rtt_window(&self) -> Bytes {
        let gain = State::ProbeRtt.window_gain();
        self.path_holds(self.bandwidth, gain).max(self.least_window())
    }

    /// Sets pace and window after an acknowledgement.
    pub(super) fn update_control(&mut self, ack: &Ack) {
        if self.pace.is_nominal
            && let Some(srtt) = ack.srtt.filter(|srtt| !srtt.is_zero())
        {
            let rate = Pace::of_startup(self.initial_window(), srtt);
            self.pace = Pace { rate: rate.max(self.least_pace()), is_nominal: false };
        }
        self.set_pace(self.state.pacing_gain());
        self.set_window(ack);
    }

    /// Until the path was full the pace only rises.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.2>
    pub(super) fn set_pace(&mut self, gain: f64) {
        let rate = scaled_rate(self.bandwidth, gain * (1.0 - self.tuning.pacing_margin));
        if self.bandwidth > Rate::ZERO && (self.was_full || rate > self.pace.rate) {
            self.pace.rate = rate.max(self.least_pace());
        }
    }

    /// A packet per second: without any pace nothing would show that there is bandwidth. Our choice.
    fn least_pace(&self) -> Rate {
        Rate::from_bytes_per_sec(self.packet.0)
    }

    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.6>
    fn set_window(&mut self, ack: &Ack) {
        let held = self.path_holds(self.bandwidth, self.state.window_gain());
        let target = self.with_budget(held + self.aggregation.excess());
        let growth = if ack.limited { Bytes::ZERO } else { ack.newly_acked };
        if self.was_full {
            self.cwnd = (self.cwnd + growth).min(target);
        } else if self.cwnd < target || ack.delivered < self.initial_window() {
            self.cwnd += growth;
        }
        self.cwnd = self.cwnd.max(self.least_window());
        if self.state == State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.4.7>
    fn bound_window(&mut self) {
        let long_term = match self.state {
            State::Startup | State::Drain => None,
            State::Down | State::Refill | State::Up => self.long_term.limit(),
            State::Cruise | State::ProbeRtt => self.limit_with_headroom(),
        };
        let limits = [long_term, self.short_term.in_flight()];
        if let Some(limit) = limits.into_iter().flatten().min() {
            self.cwnd = self.cwnd.min(limit.max(self.least_window()));
        }
    }

    /// The largest datagram changed.
    pub(super) fn resize(&mut self, packet: Bytes) {
        self.set_packet(packet);
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.2
        //# If the maximum datagram size changes during the connection, the
        //# initial congestion window SHOULD be recalculated with the new size.
        if self.state == State::Startup {
            self.cwnd = self.cwnd.max(self.initial_window());
        }
    }

    /// The path was found to carry such packets, or to carry no larger ones.
    pub(super) fn set_packet(&mut self, packet: Bytes) {
        self.packet = packet;
        self.cwnd = self.cwnd.max(self.least_window());
    }
}
