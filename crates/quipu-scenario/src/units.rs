//! Amounts as people write them, read and printed without rounding: `30mbit`, `10ms`, `1.5%`.
//!
//! Numbers are read as decimal digits, never through a float, so what is printed reads back as the
//! same amount.

use std::fmt;

use quipu_base::{Bytes, Duration, Rate};
use quipu_link::QueueLimit;
use serde::{Deserializer, Serializer, de};
use thiserror::Error;

/// Text that is no amount of the kind wanted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}`: expected {expected}")]
pub struct UnitError {
    /// The text.
    pub text: String,
    /// What would have been right.
    pub expected: &'static str,
}

/// An amount with a way to write it.
pub trait Unit: Sized {
    /// What the text must look like, such as `a time such as 10ms or 1.5s`.
    const EXPECTED: &'static str;

    /// The amount that `text` names, if it names one.
    fn parse(text: &str) -> Option<Self>;

    /// Writes the amount so that [`Unit::parse`] reads the same.
    fn print(&self) -> String;

    /// As [`Unit::parse`], with an error that says what was expected.
    ///
    /// # Errors
    /// If `text` is no such amount.
    fn read(text: &str) -> Result<Self, UnitError> {
        Self::parse(text.trim())
            .ok_or_else(|| UnitError { text: text.to_owned(), expected: Self::EXPECTED })
    }
}

/// A share from 0 to 1 in steps of 10^-9, written as a percentage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(u32);

impl Share {
    /// Nothing.
    pub const ZERO: Share = Share(0);
    /// All.
    pub const WHOLE: Share = Share(Self::PARTS);
    /// Steps of a share.
    const PARTS: u32 = 1_000_000_000;

    /// `thousandths` of the whole, at most 1,000.
    pub const fn from_thousandths(thousandths: u16) -> Share {
        let thousandths = if thousandths > 1_000 { 1_000 } else { thousandths };
        Share(thousandths as u32 * 1_000_000)
    }

    /// `parts` thousand-millionths of the whole; all of it if there are more.
    pub(super) fn from_parts(parts: u64) -> Share {
        Share(u32::try_from(parts).unwrap_or(u32::MAX).min(Self::PARTS))
    }

    /// The share next to `number`, from 0 to 1.
    pub fn nearest(number: f64) -> Share {
        // Between 0 and all of it, so that it fits.
        Share::from_parts((number.clamp(0.0, 1.0) * f64::from(Self::PARTS) + 0.5) as u64)
    }

    /// The share in thousand-millionths.
    pub(super) fn parts(self) -> u64 {
        u64::from(self.0)
    }

    /// The share as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::PARTS)
    }

    /// True if the share is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// True if it is all.
    pub const fn is_whole(self) -> bool {
        self.0 == Self::PARTS
    }

    /// What is left of the whole.
    #[must_use]
    pub const fn complement(self) -> Share {
        Share(Self::PARTS.saturating_sub(self.0))
    }
}

const TIMES: [(&str, u128); 5] =
    [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("µs", 1_000), ("ns", 1)];
const RATES: [(&str, u128); 4] =
    [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];
const SIZES: [(&str, u128); 7] = [
    ("gib", 1 << 30),
    ("mib", 1 << 20),
    ("kib", 1 << 10),
    ("gb", 1_000_000_000),
    ("mb", 1_000_000),
    ("kb", 1_000),
    ("b", 1),
];

/// `number × scale` for a decimal number without sign; `None` if it is no such number, has a
/// remainder, or does not fit.
fn decimal(number: &str, scale: u128) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 20 || fraction.len() > 18 {
        return None;
    }
    if !digits(whole) || !digits(fraction) || (number.contains('.') && fraction.is_empty()) {
        return None;
    }
    let mut total = whole.parse::<u128>().ok()?.checked_mul(scale)?;
    if !fraction.is_empty() {
        let parts = fraction.parse::<u128>().ok()?.checked_mul(scale)?;
        // At most 18 digits, so below 2^60.
        let unit = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        if parts % unit != 0 {
            return None;
        }
        total = total.checked_add(parts / unit)?;
    }
    u64::try_from(total).ok()
}

/// Splits `30mbit` after the number and multiplies by its unit.
fn with_unit(text: &str, units: &[(&str, u128)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_lowercase();
    let scale = units.iter().find(|(name, _)| *name == unit)?.1;
    decimal(number, scale)
}

/// The amount in the largest unit that gives a whole number.
fn in_largest(amount: u64, units: &[(&str, u128)]) -> String {
    let amount = u128::from(amount);
    let (name, scale) = units
        .iter()
        .find(|(_, scale)| amount != 0 && amount % scale == 0)
        .or(units.last())
        .copied()
        .unwrap_or(("", 1));
    format!("{}{name}", amount / scale)
}

impl Unit for Duration {
    const EXPECTED: &'static str =
        "a time with its unit, not negative, such as 10ms, 1.5s or 100us";

    fn parse(text: &str) -> Option<Self> {
        if text == "0" {
            return Some(Duration::ZERO);
        }
        with_unit(text, &TIMES).map(Duration::from_nanos)
    }

    fn print(&self) -> String {
        if self.is_zero() { "0ms".to_owned() } else { in_largest(self.as_nanos(), &TIMES) }
    }
}

impl Unit for Rate {
    const EXPECTED: &'static str = "a rate with its unit, above zero, such as 30mbit or 500kbit";

    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_suffix("/s").or_else(|| text.strip_suffix("ps")).unwrap_or(text);
        with_unit(text, &RATES).filter(|bits| *bits > 0).map(Rate::from_bits_per_sec)
    }

    fn print(&self) -> String {
        in_largest(self.bits_per_sec(), &RATES)
    }
}

impl Unit for Bytes {
    const EXPECTED: &'static str =
        "a size with its unit, not negative, such as 3000B, 32KiB or 6MiB";

    fn parse(text: &str) -> Option<Self> {
        with_unit(text, &SIZES).map(Bytes)
    }

    fn print(&self) -> String {
        // Thousands would print 3,000 B as 3kB, which reads as if it had been rounded.
        const BINARY: [(&str, u128); 4] =
            [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
        in_largest(self.0, &BINARY)
    }
}

impl Unit for Share {
    const EXPECTED: &'static str = "a share from 0% to 100%, such as 1.5% or 0.015";

    fn parse(text: &str) -> Option<Self> {
        let parts = match text.strip_suffix('%') {
            Some(percent) => decimal(percent.trim_end(), u128::from(Self::PARTS / 100)),
            None => decimal(text, u128::from(Self::PARTS)),
        }?;
        u32::try_from(parts).ok().filter(|parts| *parts <= Self::PARTS).map(Share)
    }

    fn print(&self) -> String {
        let percent = Self::PARTS / 100;
        let fraction = format!("{:07}", self.0 % percent);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}%", self.0 / percent)
    }
}

impl Unit for QueueLimit {
    const EXPECTED: &'static str = "a queue such as default, 1bdp, 50p, 64KiB or unlimited";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "default" => return Some(QueueLimit::default()),
            "unlimited" => return Some(QueueLimit::Unlimited),
            _ => {}
        }
        if let Some(multiple) = text.strip_suffix("bdp") {
            // A thousandth of a product is fine enough, and the division is exact on every machine.
            let thousandths = decimal(multiple, 1_000).filter(|t| *t > 0 && *t <= 1_000_000)?;
            return Some(QueueLimit::bandwidth_delay(thousandths as f64 / 1_000.0));
        }
        if let Some(packets) = text.strip_suffix('p') {
            return decimal(packets, 1).filter(|p| *p > 0).map(QueueLimit::packets);
        }
        Bytes::parse(text).filter(|bytes| !bytes.is_zero()).map(QueueLimit::Bytes)
    }

    fn print(&self) -> String {
        match *self {
            QueueLimit::Unlimited => "unlimited".to_owned(),
            QueueLimit::Bytes(bytes) if bytes.0.is_multiple_of(QueueLimit::PACKET.0) => {
                format!("{}p", bytes.0 / QueueLimit::PACKET.0)
            }
            QueueLimit::Bytes(bytes) => bytes.print(),
            limit if limit == QueueLimit::default() => "default".to_owned(),
            QueueLimit::BandwidthDelay { multiple, .. } => format!("{multiple}bdp"),
        }
    }
}

/// An amount that may be `unlimited`.
impl Unit for Option<Bytes> {
    const EXPECTED: &'static str = "unlimited, or a size above zero such as 32KiB";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "unlimited" => Some(None),
            _ => Bytes::parse(text).filter(|bytes| !bytes.is_zero()).map(Some),
        }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "unlimited".to_owned(), |bytes| bytes.print())
    }
}

/// A rate that may be zero: none.
impl Unit for Option<Rate> {
    const EXPECTED: &'static str = "a rate with its unit, such as 30mbit, or 0 for none";

    fn parse(text: &str) -> Option<Self> {
        if text == "0" { Some(None) } else { Rate::parse(text).map(Some) }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "0".to_owned(), |rate| rate.print())
    }
}

/// A threshold of a queue that may never be reached.
impl Unit for Option<QueueLimit> {
    const EXPECTED: &'static str = "never, or a queue such as 30p, 64KiB, 0.5bdp or default";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "never" | "unlimited" => Some(None),
            _ => QueueLimit::parse(text).map(Some),
        }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "never".to_owned(), |limit| limit.print())
    }
}

/// An end that may be `never`.
impl Unit for Option<Duration> {
    const EXPECTED: &'static str = "never, or a time such as 10ms";

    fn parse(text: &str) -> Option<Self> {
        if text == "never" { Some(None) } else { Duration::parse(text).map(Some) }
    }

    fn print(&self) -> String {
        self.map_or_else(|| "never".to_owned(), |time| time.print())
    }
}

/// For `#[serde(with = "human")]`: an amount is a string such as `10ms`.
pub mod human {
    use super::*;

    /// Writes the amount as people do.
    ///
    /// # Errors
    /// Only those of `serializer`.
    pub fn serialize<T: Unit, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&value.print())
    }

    /// Reads an amount; a bare number counts as its digits.
    ///
    /// # Errors
    /// If the value is no such amount.
    pub fn deserialize<'de, T: Unit, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(Reader(std::marker::PhantomData))
    }

    struct Reader<T>(std::marker::PhantomData<T>);

    impl<T: Unit> de::Visitor<'_> for Reader<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(T::EXPECTED)
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
            T::read(text).map_err(E::custom)
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }

        fn visit_f64<E: de::Error>(self, number: f64) -> Result<T, E> {
            self.visit_str(&number.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn expected<T: Unit + fmt::Debug>(text: &str) -> String {
        T::read(text).unwrap_err().to_string()
    }

    #[test]
    fn amounts_read_as_people_write_them() {
        assert_eq!(Rate::read("30mbit"), Ok(Rate::from_mbit_per_sec(30)));
        assert_eq!(Rate::read("1.5 Mbit/s"), Ok(Rate::from_bits_per_sec(1_500_000)));
        assert_eq!(Duration::read("10ms"), Ok(Duration::from_millis(10)));
        assert_eq!(Duration::read("0.8ms"), Ok(Duration::from_micros(800)));
        assert_eq!(Bytes::read("3000B"), Ok(Bytes(3000)));
        assert_eq!(Bytes::read("6MiB"), Ok(Bytes(6 << 20)));
        assert_eq!(Share::read("1.5%"), Ok(Share(15_000_000)));
        assert_eq!(Share::read("0.015"), Share::read("1.5%"));
        assert_eq!(QueueLimit::read("50p"), Ok(QueueLimit::Bytes(Bytes(75_000))));
        assert_eq!(QueueLimit::read("1bdp"), Ok(QueueLimit::bandwidth_delay(1.0)));
        assert_eq!(Option::<Bytes>::read("unlimited"), Ok(None));
        assert_eq!(Option::<Rate>::read("4mbit"), Ok(Some(Rate::from_mbit_per_sec(4))));
        assert_eq!(Option::<QueueLimit>::read("30p"), Ok(Some(QueueLimit::packets(30))));
        for rate in [None, Some(Rate::from_mbit_per_sec(4))] {
            assert_eq!(Option::<Rate>::read(&rate.print()), Ok(rate));
        }
        for threshold in [None, Some(QueueLimit::packets(30)), Some(QueueLimit::default())] {
            assert_eq!(Option::<QueueLimit>::read(&threshold.print()), Ok(threshold));
        }
    }

    #[test]
    fn amounts_print_as_people_write_them() {
        assert_eq!(Rate::from_mbit_per_sec(30).print(), "30mbit");
        assert_eq!(Duration::from_micros(1_200).print(), "1200us");
        assert_eq!(Duration::ZERO.print(), "0ms");
        assert_eq!(Bytes(3000).print(), "3000B");
        assert_eq!(Bytes(15 << 20).print(), "15MiB");
        assert_eq!(Share(15_000_000).print(), "1.5%");
        assert_eq!(Share(0).print(), "0%");
        assert_eq!(QueueLimit::default().print(), "default");
        assert_eq!(QueueLimit::packets(50).print(), "50p");
    }

    #[test]
    fn negative_absurd_and_unitless_amounts_say_what_was_expected() {
        for text in ["-1ms", "nan", "10", "1e3ms", "", "ms", ".5ms", "5.ms", "99999999999999999s"] {
            assert!(expected::<Duration>(text).contains("expected a time"), "{text}");
        }
        for text in ["0mbit", "-30mbit", "NaN", "inf", "30", "30 m"] {
            assert!(expected::<Rate>(text).contains("expected a rate"), "{text}");
        }
        for text in ["101%", "1.1", "-1%", "NaN", "1.00000000001%"] {
            assert!(expected::<Share>(text).contains("expected a share"), "{text}");
        }
        assert!(expected::<QueueLimit>("0p").contains("expected a queue"));
        assert!(expected::<Option<QueueLimit>>("0p").contains("expected never, or a queue"));
        assert!(expected::<Option<Rate>>("-1mbit").contains("or 0 for none"));
        assert!(expected::<QueueLimit>("-1bdp").contains("expected a queue"));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same(nanos: u64, bits in 1..u64::MAX, bytes: u64,
                                                  share in 0..=Share::PARTS) {
            let time = Duration::from_nanos(nanos);
            prop_assert_eq!(Duration::read(&time.print()), Ok(time));
            let rate = Rate::from_bits_per_sec(bits);
            prop_assert_eq!(Rate::read(&rate.print()), Ok(rate));
            prop_assert_eq!(Bytes::read(&Bytes(bytes).print()), Ok(Bytes(bytes)));
            prop_assert_eq!(Share::read(&Share(share).print()), Ok(Share(share)));
        }

        #[test]
        fn any_text_is_read_or_refused_without_panic(text: String) {
            let _ = (Duration::read(&text), Rate::read(&text), Bytes::read(&text));
            let _ = (Share::read(&text), QueueLimit::read(&text), Option::<Bytes>::read(&text));
        }
    }
}
