//! Virtual time: instants and durations in integer nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

const NANOS_PER_MICRO: u64 = 1_000;
const NANOS_PER_MILLI: u64 = 1_000_000;
const NANOS_PER_SEC: u64 = 1_000_000_000;

/// A point in time: nanoseconds since the start of the run.
///
/// Addition saturates at [`Instant::FAR_FUTURE`], about 584 years; subtraction of a later instant
/// gives [`Duration::ZERO`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Instant(u64);

/// A length of time in nanoseconds, never negative. Arithmetic saturates.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Duration(u64);

/// A difference of two times in nanoseconds, of either sign.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct SignedDuration(i64);

impl Instant {
    /// The earlier of two deadlines, each of which there may be.
    #[inline]
    pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The start of the run.
    pub const ZERO: Instant = Instant(0);
    /// Later than anything that happens.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// The instant `nanos` nanoseconds after the start of the run.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the start of the run.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time from `earlier` to `self`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);
    /// The longest length of time that can be stated.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Duration(nanos)
    }

    /// `micros` microseconds, saturating.
    pub const fn from_micros(micros: u64) -> Self {
        Duration(micros.saturating_mul(NANOS_PER_MICRO))
    }

    /// `millis` milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Self {
        Duration(millis.saturating_mul(NANOS_PER_MILLI))
    }

    /// `secs` seconds, saturating.
    pub const fn from_secs(secs: u64) -> Self {
        Duration(secs.saturating_mul(NANOS_PER_SEC))
    }

    /// `secs` seconds, rounded to the nearest nanosecond; negative or NaN gives zero, and what is
    /// too long saturates.
    pub fn from_secs_f64(secs: f64) -> Self {
        // `as` saturates and maps NaN to zero.
        Duration((secs * NANOS_PER_SEC as f64 + 0.5) as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / NANOS_PER_MICRO
    }

    /// Whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MILLI
    }

    /// Seconds as a floating-point number.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }

    /// True if the length is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// `self` times `factor`, saturating.
    pub const fn saturating_mul(self, factor: u64) -> Duration {
        Duration(self.0.saturating_mul(factor))
    }

    /// `self` less `other`; zero if `other` is longer.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }

    /// `self` divided by `divisor`, rounded down.
    ///
    /// # Panics
    /// If `divisor` is zero.
    pub const fn divided_by(self, divisor: u64) -> Duration {
        Duration(self.0 / divisor)
    }

    /// `self · numerator / denominator` without intermediate overflow, rounded down, saturating.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub fn scaled(self, numerator: u64, denominator: u64) -> Duration {
        let scaled = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Duration(u64::try_from(scaled).unwrap_or(u64::MAX))
    }

    /// The absolute difference of two lengths.
    pub const fn abs_diff(self, other: Duration) -> Duration {
        Duration(self.0.abs_diff(other.0))
    }

    /// `self` less `other`, of either sign, saturating.
    pub fn signed_sub(self, other: Duration) -> SignedDuration {
        let difference = i128::from(self.0) - i128::from(other.0);
        SignedDuration(difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
    }
}

impl SignedDuration {
    /// No difference.
    pub const ZERO: SignedDuration = SignedDuration(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: i64) -> Self {
        SignedDuration(nanos)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;

    /// Time from `rhs` to `self`; zero if `rhs` is later.
    fn sub(self, rhs: Instant) -> Duration {
        self.saturating_since(rhs)
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    /// The instant `rhs` earlier, not before the start of the run.
    fn sub(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_sub(rhs.0))
    }
}

impl Add for Duration {
    type Output = Duration;

    fn add(self, rhs: Duration) -> Duration {
        Duration(self.0.saturating_add(rhs.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, rhs: Duration) {
        *self = *self + rhs;
    }
}

impl fmt::Display for Duration {
    /// Milliseconds with three decimals, such as `12.345 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:03} ms",
            self.0 / NANOS_PER_MILLI,
            self.0 % NANOS_PER_MILLI / NANOS_PER_MICRO
        )
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_saturate_instead_of_wrapping() {
        assert_eq!(Instant::FAR_FUTURE + Duration::from_secs(1), Instant::FAR_FUTURE);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
        assert_eq!(Duration::MAX.saturating_mul(3), Duration::MAX);
        assert_eq!(Duration::MAX.scaled(3, 2), Duration::MAX);
    }

    #[test]
    fn seconds_round_to_the_nearest_nanosecond() {
        assert_eq!(Duration::from_secs_f64(1.5), Duration::from_millis(1500));
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::INFINITY), Duration::MAX);
    }

    #[test]
    fn durations_print_as_milliseconds() {
        assert_eq!(Duration::from_micros(12_345).to_string(), "12.345 ms");
    }
}
