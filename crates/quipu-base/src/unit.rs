//! Units: bytes, rates and shares of a thousand.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::Duration;

/// A number of bytes. Sums saturate; a difference below zero is zero.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

/// A rate in bits per second.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rate(u64);

/// A share in thousandths, 0 to 1,000.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PerMille(pub u16);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// More bytes than there are.
    pub const MAX: Bytes = Bytes(u64::MAX);

    /// True if there are none.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self` less `other`; zero if `other` is more.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }

    /// `self` times `factor`, saturating.
    pub const fn saturating_mul(self, factor: u64) -> Bytes {
        Bytes(self.0.saturating_mul(factor))
    }
}

impl Rate {
    /// No rate: nothing ever moves.
    pub const ZERO: Rate = Rate(0);

    /// `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Rate(bits)
    }

    /// `bytes` bytes per second, saturating.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Rate(bytes.saturating_mul(8))
    }

    /// `mbit` megabits (10^6 bits) per second, saturating.
    pub const fn from_mbit_per_sec(mbit: u64) -> Self {
        Rate(mbit.saturating_mul(1_000_000))
    }

    /// What moves `bytes` in `time`, rounded down, saturating; `None` if `time` is zero.
    pub fn from_bytes_over(bytes: Bytes, time: Duration) -> Option<Self> {
        if time.is_zero() {
            return None;
        }
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(time.as_nanos());
        Some(Rate(u64::try_from(bits).unwrap_or(u64::MAX)))
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// Time to move `bytes`, rounded up; [`Duration::MAX`] at rate zero.
    pub fn time_for(self, bytes: Bytes) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        match bytes.0.checked_mul(8 * 1_000_000_000) {
            Some(bit_nanos) => Duration::from_nanos(bit_nanos.div_ceil(self.0)),
            None => {
                let nanos = (u128::from(bytes.0) * 8_000_000_000).div_ceil(u128::from(self.0));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Bytes that move in `time`, rounded down, saturating.
    pub fn bytes_in(self, time: Duration) -> Bytes {
        let bytes = u128::from(self.0) * u128::from(time.as_nanos()) / 8_000_000_000;
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Add for Bytes {
    type Output = Bytes;

    fn add(self, rhs: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Bytes) {
        *self = *self + rhs;
    }
}

impl Sub for Bytes {
    type Output = Bytes;

    fn sub(self, rhs: Bytes) -> Bytes {
        self.saturating_sub(rhs)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Bytes) {
        *self = *self - rhs;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for Rate {
    /// Megabits per second with up to three decimals, such as `30 Mbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s", (self.0 / 1_000) as f64 / 1_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_bytes_rounds_up_and_bytes_in_time_rounds_down() {
        let rate = Rate::from_mbit_per_sec(10);
        assert_eq!(rate.time_for(Bytes(1250)), Duration::from_millis(1));
        assert_eq!(Rate::from_bits_per_sec(3).time_for(Bytes(1)).as_nanos(), 2_666_666_667);
        assert_eq!(rate.bytes_in(Duration::from_millis(1)), Bytes(1250));
        assert_eq!(Rate::ZERO.time_for(Bytes(1)), Duration::MAX);
        assert_eq!(
            Rate::from_bytes_over(Bytes(1250), Duration::from_millis(1)),
            Some(Rate::from_mbit_per_sec(10))
        );
        assert_eq!(Rate::from_bytes_over(Bytes(1), Duration::ZERO), None);
    }

    #[test]
    fn large_amounts_take_the_wide_way_to_the_same_answer() {
        let rate = Rate::from_bits_per_sec(8);
        assert_eq!(rate.time_for(Bytes(5_000_000_000)), Duration::from_secs(5_000_000_000));
        assert_eq!(rate.time_for(Bytes::MAX), Duration::MAX);
    }
}
