//! Energy of a phone's radios: a published model of power, and the clock of one radio.
//!
//! The model is that of Huang, Qian, Gerber, Mao, Sen and Spatscheck, "A Close Examination of Performance
//! and Power Characteristics of 4G LTE Networks" (MobiSys 2012), Tables 3 and 4. `docs/energy.md` has the
//! formulas and what is not modelled.

use quipu_base::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

/// Gaps between datagrams up to this count as transfer: LTE's inactivity timer of 100 ms (Huang et al.,
/// Table 3, T_i). The same for Wi-Fi is our choice; there power differs little between transfer and tail.
pub const INACTIVITY: Duration = Duration::from_millis(100);

/// What a radio takes in each of its states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerModel {
    /// Power while it wakes up, in microwatts.
    pub promotion_power: u64,
    /// How long it takes to wake up.
    pub promotion_time: Duration,
    /// Power after a transfer, in microwatts.
    pub tail_power: u64,
    /// How long it stays awake after a transfer.
    pub tail_time: Duration,
    /// Power of a transfer at any rate, in microwatts: β.
    pub base_power: u64,
    /// Energy of a bit sent, in picojoules: α_u, a thousandth of which is the power in mW per Mb/s.
    pub up_bit: u64,
    /// Energy of a bit received, in picojoules: α_d.
    pub down_bit: u64,
}

/// LTE of Huang et al.: promotion 1210.7 mW for 260.1 ms, tail 1060.0 mW for 11,576 ms, α_u 438.39 and
/// α_d 51.97 mW per Mb/s, β 1288.04 mW.
pub const LTE: PowerModel = PowerModel {
    promotion_power: 1_210_700,
    promotion_time: Duration::from_micros(260_100),
    tail_power: 1_060_000,
    tail_time: Duration::from_millis(11_576),
    base_power: 1_288_040,
    up_bit: 438_390,
    down_bit: 51_970,
};

/// Wi-Fi of Huang et al.: promotion 124.4 mW for 79.1 ms, tail 119.3 mW for 238.1 ms, α_u 283.17 and α_d
/// 137.01 mW per Mb/s, β 132.86 mW.
pub const WIFI: PowerModel = PowerModel {
    promotion_power: 124_400,
    promotion_time: Duration::from_micros(79_100),
    tail_power: 119_300,
    tail_time: Duration::from_micros(238_100),
    base_power: 132_860,
    up_bit: 283_170,
    down_bit: 137_010,
};

/// What one path cost a client, from the client's first datagram on it to the end of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RadioRecord {
    /// Position of the path in the network.
    pub path: u32,
    /// Bytes that came to the client, with what each datagram has above its UDP payload.
    pub bytes_down: Bytes,
    /// Bytes that the client sent, in the same way.
    pub bytes_up: Bytes,
    /// Time in which it carried something: gaps of up to [`INACTIVITY`] included.
    pub active: Duration,
    /// Times that the radio woke up; 0 without a model.
    pub wakeups: u64,
    /// Time in tails, that after the last datagram in full; 0 without a model.
    pub tail: Duration,
    /// Energy in microjoules; `None` without a model.
    pub energy: Option<u64>,
    /// Millionths of the unit in which the scenario has prices; `None` without a price.
    pub cost: Option<u64>,
}

impl RadioRecord {
    /// What was counted since `earlier`, a record of the same path. A tail that the later record cut short
    /// is the earlier one's no longer.
    pub fn since(self, earlier: &RadioRecord) -> RadioRecord {
        let less = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or_default()))
        };
        RadioRecord {
            path: self.path,
            bytes_down: self.bytes_down.saturating_sub(earlier.bytes_down),
            bytes_up: self.bytes_up.saturating_sub(earlier.bytes_up),
            active: self.active.saturating_sub(earlier.active),
            wakeups: self.wakeups.saturating_sub(earlier.wakeups),
            tail: self.tail.saturating_sub(earlier.tail),
            energy: less(self.energy, earlier.energy),
            cost: less(self.cost, earlier.cost),
        }
    }
}

impl PowerModel {
    /// Energy of what `of` counts, in microjoules, rounded down: wake-ups, transfer at β, bits and tails.
    pub fn energy(&self, of: &RadioRecord) -> u64 {
        // Microwatts times nanoseconds, and thousandths of picojoules: femtojoules.
        let state = |power: u64, time: Duration| u128::from(power) * u128::from(time.as_nanos());
        let bits = |bytes: Bytes, bit: u64| u128::from(bytes.0) * 8 * u128::from(bit) * 1_000;
        let femtojoules = u128::from(of.wakeups) * state(self.promotion_power, self.promotion_time)
            + state(self.base_power, of.active)
            + state(self.tail_power, of.tail)
            + bits(of.bytes_up, self.up_bit)
            + bits(of.bytes_down, self.down_bit);
        u64::try_from(femtojoules / 1_000_000_000).unwrap_or(u64::MAX)
    }
}

/// The clock of one radio: is told of every datagram, in order of time.
#[derive(Clone, Copy, Debug)]
pub struct RadioClock {
    model: Option<PowerModel>,
    /// Millionths of a unit of price for a megabyte (10^6 bytes) in either direction.
    price: Option<u64>,
    counted: RadioRecord,
    last: Option<Instant>,
}

impl RadioClock {
    /// A radio that sleeps, of path `path`; `price` is in millionths of a unit for a megabyte.
    pub fn new(path: u32, model: Option<PowerModel>, price: Option<u64>) -> RadioClock {
        let counted = RadioRecord { path, ..RadioRecord::default() };
        RadioClock { model, price, counted, last: None }
    }

    /// Bytes came to the client at `now`.
    pub fn on_received(&mut self, now: Instant, bytes: Bytes) {
        self.on_datagram(now);
        self.counted.bytes_down += bytes;
    }

    /// The client sends bytes at `now`.
    pub fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.on_datagram(now);
        self.counted.bytes_up += bytes;
    }

    fn on_datagram(&mut self, now: Instant) {
        let wakes = match self.last {
            None => true,
            Some(last) => {
                let gap = now.saturating_since(last);
                let tail_time = self.model.map_or(Duration::ZERO, |model| model.tail_time);
                if gap <= INACTIVITY {
                    self.counted.active += gap;
                } else {
                    self.counted.tail += gap.min(tail_time);
                }
                gap > INACTIVITY && gap > tail_time
            }
        };
        self.counted.wakeups += u64::from(wakes && self.model.is_some());
        self.last = Some(now);
    }

    /// What was counted so far, as if nothing followed.
    pub fn record(&self) -> RadioRecord {
        let mut record = self.counted;
        if let (Some(model), Some(_)) = (self.model, self.last) {
            record.tail += model.tail_time;
        }
        record.energy = self.model.map(|model| model.energy(&record));
        record.cost = self.price.map(|price| {
            let bytes = u128::from(record.bytes_down.0) + u128::from(record.bytes_up.0);
            u64::try_from(bytes * u128::from(price) / 1_000_000).unwrap_or(u64::MAX)
        });
        record
    }
}

#[cfg(test)]
mod tests;
