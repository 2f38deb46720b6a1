//! The states, and what each asks of pace and window.

/// A state of the machine. <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.1.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Twice the rate each round trip, until the path is full.
    Startup,
    /// The queue that Startup made is sent down.
    Drain,
    /// ProbeBW: less than what the path delivers, until the queue is gone and there is headroom.
    Down,
    /// ProbeBW: as much as the path delivers.
    Cruise,
    /// ProbeBW: a round trip that fills the path before it is asked for more.
    Refill,
    /// ProbeBW: more than what the path delivers.
    Up,
    /// Half of what the path holds, to see its round-trip time without a queue.
    ProbeRtt,
}

impl State {
    pub(super) const fn name(self) -> &'static str {
        match self {
            State::Startup => "startup",
            State::Drain => "drain",
            State::Down => "probe bandwidth: down",
            State::Cruise => "probe bandwidth: cruise",
            State::Refill => "probe bandwidth: refill",
            State::Up => "probe bandwidth: up",
            State::ProbeRtt => "probe rtt",
        }
    }

    /// Pace, as a multiple of the bandwidth.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.1>
    pub(super) const fn pacing_gain(self) -> f64 {
        match self {
            // 4 ln 2: the least with which the rate doubles each round trip.
            State::Startup => 2.77,
            State::Drain => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
            State::Up => 1.25,
        }
    }

    /// Window, as a multiple of what the path holds.
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.6.1>
    pub(super) const fn window_gain(self) -> f64 {
        match self {
            State::Up => 2.25,
            State::ProbeRtt => 0.5,
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => 2.0,
        }
    }

    /// True for the four phases of ProbeBW.
    pub(super) const fn is_probe_bandwidth(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// True while it looks for more bandwidth: loss is then judged by its rate, not obeyed at once.
    pub(super) const fn looks_for_more(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}
