//! The rates of 802.11a: which signal each needs, how long a frame takes, and how often it fails.

use quipu_base::{Bytes, Duration, Rate};

/// Times that a frame is sent before it is given up: 7, the standard's dot11ShortRetryLimit.
pub const MOST_ATTEMPTS: u32 = 7;

/// IEEE 802.11-2020, table 17-21: characteristics of the OFDM PHY with channels of 20 MHz.
const SLOT: u64 = 9;
const SIFS: u64 = 16;
/// SIFS and two slots.
const DIFS: u64 = SIFS + 2 * SLOT;
/// The shortest and the longest range of backoffs, in slots, less one.
const CW_MIN: u64 = 15;
const CW_MAX: u64 = 1_023;
const SYMBOL: u64 = 4;
/// Training sequences and the SIGNAL field.
const PREAMBLE: u64 = 16 + 4;
/// Bits of the SERVICE field and of the tail.
const SERVICE_AND_TAIL: u64 = 16 + 6;
/// Bytes around an IP packet: 24 of the MAC header, 8 of LLC and SNAP, 4 of the checksum.
const FRAMING: u64 = 24 + 8 + 4;
/// Bytes of an acknowledgement.
const ACK: u64 = 14;

/// A rate of 802.11a.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PhyRate {
    /// BPSK, 1/2.
    Mbit6,
    /// BPSK, 3/4.
    Mbit9,
    /// QPSK, 1/2.
    Mbit12,
    /// QPSK, 3/4.
    Mbit18,
    /// 16-QAM, 1/2.
    Mbit24,
    /// 16-QAM, 3/4.
    Mbit36,
    /// 64-QAM, 2/3.
    Mbit48,
    /// 64-QAM, 3/4.
    Mbit54,
}

/// How the time that a frame takes is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// As in the standard: each attempt takes DIFS, a backoff evenly drawn from 0 to CW slots, where
    /// CW is 15 and then doubles up to 1,023, the frame, SIFS, and the acknowledgement at the highest rate
    /// of 6, 12 and 24 Mbit/s that is not above the frame's. One that fails takes as long.
    #[default]
    Standard,
    /// As wmediumd counts it: DIFS and the frame. A frame that fails takes the time of an
    /// acknowledgement at 6 Mbit/s more, and each attempt but the first half of CW slots, where CW is 15
    /// and then doubles. One that arrives is acknowledged in no time.
    Wmediumd,
}

impl PhyRate {
    /// All, the slowest first.
    pub const ALL: [PhyRate; 8] = [
        PhyRate::Mbit6,
        PhyRate::Mbit9,
        PhyRate::Mbit12,
        PhyRate::Mbit18,
        PhyRate::Mbit24,
        PhyRate::Mbit36,
        PhyRate::Mbit48,
        PhyRate::Mbit54,
    ];

    /// Mbit/s.
    pub const fn mbit(self) -> u64 {
        match self {
            PhyRate::Mbit6 => 6,
            PhyRate::Mbit9 => 9,
            PhyRate::Mbit12 => 12,
            PhyRate::Mbit18 => 18,
            PhyRate::Mbit24 => 24,
            PhyRate::Mbit36 => 36,
            PhyRate::Mbit48 => 48,
            PhyRate::Mbit54 => 54,
        }
    }

    /// The least power in dBm with which at most a tenth of the frames of 1,000 bytes fail: IEEE
    /// 802.11-2020, table 17-18, for channels of 20 MHz.
    pub const fn sensitivity(self) -> f64 {
        match self {
            PhyRate::Mbit6 => -82.0,
            PhyRate::Mbit9 => -81.0,
            PhyRate::Mbit12 => -79.0,
            PhyRate::Mbit18 => -77.0,
            PhyRate::Mbit24 => -74.0,
            PhyRate::Mbit36 => -70.0,
            PhyRate::Mbit48 => -66.0,
            PhyRate::Mbit54 => -65.0,
        }
    }

    /// The same as decibels above the noise of -91 dBm: 9 to 26.
    pub const fn required_snr(self) -> f64 {
        self.sensitivity() + 91.0
    }

    /// The rate of a sender whose signal is `snr` decibels above the noise: the highest that needs
    /// no more than `snr - margin`. The lowest needs no margin; `None`: not even that.
    pub fn chosen(snr: f64, margin: f64) -> Option<PhyRate> {
        let fits = |rate: &&PhyRate| rate.required_snr() + margin <= snr;
        let lowest = PhyRate::Mbit6;
        let associated = (lowest.required_snr() <= snr).then_some(lowest);
        Self::ALL.iter().rev().find(fits).copied().or(associated)
    }

    /// The share of frames with `bytes` of IP that fail, one attempt each, with a signal `snr`
    /// decibels above the noise.
    ///
    /// At the sensitivity a tenth of the frames of 1,000 bytes fail, as the standard defines it. Each
    /// decibel more divides the odds by ten, each one less multiplies them by ten: our choice, near what
    /// 802.11's convolutional codes do. The bytes of a frame fail independently of each other.
    pub fn error_share(self, snr: f64, bytes: Bytes) -> f64 {
        let above = snr - self.required_snr();
        let survive = 1.0 - 1.0 / (1.0 + 9.0 * libm::pow(10.0, above.clamp(-20.0, 20.0)));
        1.0 - libm::pow(survive, frame_bytes(bytes) as f64 / 1_000.0)
    }

    /// How long the frame alone is on the air, with `bytes` of IP: preamble and whole symbols.
    pub fn frame_time(self, bytes: Bytes) -> Duration {
        Duration::from_micros(self.on_air(frame_bytes(bytes)))
    }

    /// Microseconds of `bytes` of MAC.
    fn on_air(self, bytes: u64) -> u64 {
        let bits = bytes.saturating_mul(8).saturating_add(SERVICE_AND_TAIL);
        // A symbol of 4 us carries 4 bits for each Mbit/s.
        PREAMBLE + bits.div_ceil(self.mbit() * SYMBOL).saturating_mul(SYMBOL)
    }

    /// Microseconds of SIFS and the acknowledgement of a frame.
    fn acknowledgement(self) -> u64 {
        let rate = match self.mbit() {
            24.. => PhyRate::Mbit24,
            12.. => PhyRate::Mbit12,
            _ => PhyRate::Mbit6,
        };
        SIFS + rate.on_air(ACK)
    }

    /// The airtime of the attempt of that number, from 0, to send `bytes` of IP. `number` decides on
    /// the backoff: it is a part of 2^64 of the choices there are.
    pub fn attempt_time(
        self,
        timing: Timing,
        bytes: Bytes,
        attempt: u32,
        failed: bool,
        number: u64,
    ) -> Duration {
        let frame = self.on_air(frame_bytes(bytes));
        let micros = match timing {
            Timing::Standard => {
                let choices = u128::from(contention(attempt)) + 1;
                // The product is below 2^74.
                let slots = ((u128::from(number) * choices) >> 64) as u64;
                (DIFS + slots * SLOT + self.acknowledgement()).saturating_add(frame)
            }
            Timing::Wmediumd => {
                let backoff = match attempt {
                    0 => 0,
                    later => contention(later - 1) * SLOT / 2,
                };
                let ack = if failed { PhyRate::Mbit6.acknowledgement() } else { 0 };
                (DIFS + backoff + ack).saturating_add(frame)
            }
        };
        Duration::from_micros(micros)
    }

    /// Bits per second of IP at most that a sender gets through in any time, if no packet has more
    /// than `bytes`: nothing fails, and each backoff is of zero slots.
    pub fn payload_bound(self, timing: Timing, bytes: Bytes) -> Rate {
        let bits = bytes.0.saturating_mul(8);
        // Symbols count in parts here, so that no shorter packet does better.
        let mbit = self.mbit();
        let payload = frame_bytes(bytes).saturating_mul(8).saturating_add(SERVICE_AND_TAIL);
        let fixed = match timing {
            Timing::Standard => DIFS + PREAMBLE + self.acknowledgement(),
            Timing::Wmediumd => DIFS + PREAMBLE,
        };
        // In bits at the rate of the PHY: Mbit/s are bits per microsecond.
        let all = u128::from(payload) + u128::from(fixed * mbit);
        let rate = (u128::from(bits) * u128::from(mbit) * 1_000_000).div_ceil(all.max(1));
        Rate::from_bits_per_sec(u64::try_from(rate).unwrap_or(u64::MAX))
    }
}

/// Bytes of the frame around `bytes` of IP.
fn frame_bytes(bytes: Bytes) -> u64 {
    bytes.0.saturating_add(FRAMING)
}

/// The greatest backoff of the attempt of that number, in slots.
fn contention(attempt: u32) -> u64 {
    // 15, 31, …: one less than a power of two.
    let doubled = (CW_MIN + 1) << attempt.min(6);
    (doubled - 1).min(CW_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Bytes = Bytes(1_500);

    #[test]
    fn a_full_frame_takes_what_the_standards_arithmetic_says() {
        // 1,536 bytes of MAC: ceil((16 + 12,288 + 6) / 216) = 57 symbols, 20 + 228 us.
        let fastest = PhyRate::Mbit54;
        assert_eq!(fastest.frame_time(FULL).as_micros(), 248);
        // The acknowledgement: ceil((16 + 112 + 6) / 96) = 2 symbols at 24 Mbit/s, 28 us.
        let time = |number| fastest.attempt_time(Timing::Standard, FULL, 0, false, number);
        assert_eq!(time(0).as_micros(), 34 + 248 + 16 + 28);
        assert_eq!(time(u64::MAX).as_micros(), 34 + 15 * 9 + 248 + 16 + 28);
        // At 6 Mbit/s: 513 symbols, and 6 for the acknowledgement.
        let slowest = PhyRate::Mbit6;
        assert_eq!(slowest.frame_time(FULL).as_micros(), 20 + 513 * 4);
        let time = slowest.attempt_time(Timing::Standard, FULL, 0, false, 0).as_micros();
        assert_eq!(time, 34 + 2_072 + 16 + 44);
    }

    #[test]
    fn saturation_is_near_thirty_megabits_at_fifty_four() {
        // 393.5 us with the mean backoff of 67.5 us, 30.5 Mbit/s of IP.
        let total: u64 = (0..16u64)
            .map(|slot| {
                let number = (slot << 60) + 1;
                PhyRate::Mbit54.attempt_time(Timing::Standard, FULL, 0, false, number).as_nanos()
            })
            .sum();
        assert_eq!(total / 16, 393_500);
        let udp = 1_472.0 * 8.0 / (total as f64 / 16.0 / 1_000.0);
        assert!((29.5..30.5).contains(&udp), "{udp} Mbit/s");
    }

    #[test]
    fn backoffs_double_up_to_the_standards_limit() {
        let most: Vec<u64> = (0..8).map(contention).collect();
        assert_eq!(most, [15, 31, 63, 127, 255, 511, 1_023, 1_023]);
    }

    #[test]
    fn wmediumds_arithmetic_leaves_out_what_succeeds_at_once() {
        let time = |attempt, failed| {
            let rate = PhyRate::Mbit54;
            rate.attempt_time(Timing::Wmediumd, FULL, attempt, failed, 77).as_micros()
        };
        assert_eq!(time(0, false), 34 + 248);
        assert_eq!(time(0, true), 34 + 248 + 16 + 44);
        assert_eq!(time(1, false), 34 + 248 + 15 * 9 / 2);
        assert_eq!(time(2, false), 34 + 248 + 31 * 9 / 2);
    }

    #[test]
    fn rates_follow_the_table_of_sensitivities() {
        let required: Vec<f64> = PhyRate::ALL.iter().map(|rate| rate.required_snr()).collect();
        assert_eq!(required, [9.0, 10.0, 12.0, 14.0, 17.0, 21.0, 25.0, 26.0]);
        let mbit = |snr, margin| PhyRate::chosen(snr, margin).map(PhyRate::mbit);
        let chosen = [8.9, 9.0, 10.9, 16.9, 17.0, 25.5, 26.0, 60.0].map(|snr| mbit(snr, 0.0));
        let expected = [None, Some(6), Some(9), Some(18), Some(24), Some(48), Some(54), Some(54)];
        assert_eq!(chosen, expected);
        // A margin takes no station its last rate.
        assert_eq!(
            (mbit(9.5, 3.0), mbit(28.9, 3.0), mbit(29.0, 3.0)),
            (Some(6), Some(48), Some(54))
        );
    }

    #[test]
    fn a_tenth_of_a_thousand_bytes_fail_at_the_sensitivity() {
        let thousand = Bytes(1_000 - FRAMING);
        for rate in PhyRate::ALL {
            let share = |above| rate.error_share(rate.required_snr() + above, thousand);
            assert!((share(0.0) - 0.1).abs() < 1e-12);
            assert!((share(1.0) - 1.0 / 91.0).abs() < 1e-12);
            assert!((share(-1.0) - 1.0 / 1.9).abs() < 1e-12);
            assert!(share(-30.0) > 0.999_999 && share(30.0) < 1e-12);
        }
        let share = PhyRate::Mbit54.error_share(27.0, FULL);
        assert!((share - 0.016_8).abs() < 0.000_2, "{share}");
    }

    #[test]
    fn no_packet_beats_the_bound() {
        for timing in [Timing::Standard, Timing::Wmediumd] {
            for rate in PhyRate::ALL {
                let bound = rate.payload_bound(timing, FULL).bits_per_sec() as f64;
                for bytes in 1..=1_500u64 {
                    let time = rate.attempt_time(timing, Bytes(bytes), 0, false, 0);
                    let found = bytes as f64 * 8.0 / time.as_secs_f64();
                    assert!(found <= bound, "{rate:?} {bytes} B: {found} above {bound}");
                }
            }
        }
        // 12,000 bits in 326 us are 36.81 Mbit/s.
        let bound = PhyRate::Mbit54.payload_bound(Timing::Standard, FULL).bits_per_sec();
        assert!((36_800_000..36_900_000).contains(&bound), "{bound}");
    }
}
