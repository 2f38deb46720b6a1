//! The pace of BBR, and how much it sends at a time.

use quipu_base::{Bytes, Duration, Rate};

/// How much is sent at a time. The window leaves room for three of it; how large bursts really are
/// is the engine's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantum {
    /// A packet, as in the ns-3 module.
    Packet,
    /// A packet below 1.2 Mbit/s, two below 24 Mbit/s, else what goes in 1 ms, at most 64 kB.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.2>
    Rate,
}

impl Quantum {
    /// Its names, by which [`Quantum::read`] finds it.
    pub(crate) const NAMES: [&str; 2] = ["packet", "rate"];

    pub(crate) fn read(name: &str) -> Self {
        if name == Self::NAMES[1] { Quantum::Rate } else { Quantum::Packet }
    }

    pub(super) fn bytes(self, pace: Rate, datagram_size: Bytes) -> Bytes {
        const SLOW: Rate = Rate::from_bits_per_sec(1_200_000);
        const FAST: Rate = Rate::from_mbit_per_sec(24);
        match self {
            Quantum::Rate if pace >= FAST => {
                pace.bytes_in(Duration::from_millis(1)).min(Bytes(64_000))
            }
            Quantum::Rate if pace >= SLOW => datagram_size.saturating_mul(2),
            Quantum::Rate | Quantum::Packet => datagram_size,
        }
    }
}

/// The pace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rate: Rate,
    /// The rate was made with a round-trip time that was measured.
    measured: bool,
}

impl Pace {
    /// The initial window in 1 ms, times the gain: nothing is measured yet.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.1>
    pub(super) fn new(initial: Bytes, gain: f64) -> Self {
        let rate = gained(rate_over(initial, Duration::from_millis(1)), gain);
        Pace { rate, measured: false }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// Follows `gain` times the `bandwidth`; until that is `found` it does not fall.
    ///
    /// The first round-trip time replaces the guess of 1 ms.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.1>
    pub(super) fn on_acked(
        &mut self,
        srtt: Option<Duration>,
        initial: Bytes,
        bandwidth: Option<Rate>,
        gain: f64,
        found: bool,
    ) {
        if let Some(srtt) = srtt
            && !self.measured
        {
            self.measured = true;
            self.rate = gained(rate_over(initial, srtt), gain);
        }
        if let Some(bandwidth) = bandwidth {
            let rate = gained(bandwidth, gain);
            if found || rate > self.rate {
                self.rate = rate;
            }
        }
    }

    /// The pace is the `bandwidth`.
    pub(super) fn set(&mut self, bandwidth: Rate) {
        self.rate = bandwidth;
    }
}

/// A window in each round-trip time; one of nothing counts as a microsecond.
fn rate_over(window: Bytes, rtt: Duration) -> Rate {
    let rtt = rtt.max(Duration::from_micros(1));
    Rate::from_bytes_over(window, rtt).unwrap_or(Rate::ZERO)
}

/// At least 1 bit/s: no pace at all would be none to the pacer. The conversion saturates.
fn gained(rate: Rate, gain: f64) -> Rate {
    Rate::from_bits_per_sec(((rate.bits_per_sec() as f64 * gain) as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantum_is_a_packet_or_a_millisecond_of_the_rate() {
        let size = Bytes(1_200);
        for (kbit, bytes) in
            [(1_199, 1_200), (1_200, 2_400), (23_999, 2_400), (24_000, 3_000), (600_000, 64_000)]
        {
            let pace = Rate::from_bits_per_sec(kbit * 1_000);
            assert_eq!(Quantum::Rate.bytes(pace, size), Bytes(bytes), "{kbit}");
            assert_eq!(Quantum::Packet.bytes(pace, size), size);
        }
        assert_eq!(Quantum::NAMES.map(Quantum::read), [Quantum::Packet, Quantum::Rate]);
    }

    #[test]
    fn the_pace_is_guessed_then_measured_then_rises_and_falls_once_bandwidth_is_found() {
        let mut pace = Pace::new(Bytes(10_000), 2.0);
        assert_eq!(pace.rate(), Rate::from_mbit_per_sec(160));
        let srtt = Some(Duration::from_millis(100));
        let mut acked = |mbit: u64, gain, found| {
            let bandwidth = Some(Rate::from_bits_per_sec(mbit * 100_000));
            pace.on_acked(srtt, Bytes(10_000), bandwidth, gain, found);
            pace.rate().bits_per_sec()
        };
        assert_eq!(acked(1, 2.0, false), 1_600_000);
        assert_eq!(acked(10, 2.0, false), 2_000_000);
        assert_eq!(acked(5, 2.0, false), 2_000_000);
        assert_eq!(acked(5, 1.0, true), 500_000);
    }
}
