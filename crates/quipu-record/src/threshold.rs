//! What a number must be: `< 0.75`, `0.9..1.1`, `4.375s ± 0.1%`.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

pub use crate::metric::Dimension;

/// The unit names of a dimension, longest first where one ends with another.
const UNITS: [(&str, f64, Dimension); 18] = [
    ("uJ", 1.0, Dimension::Energy),
    ("mJ", 1e3, Dimension::Energy),
    ("J", 1e6, Dimension::Energy),
    ("gbit", 1e9, Dimension::Rate),
    ("mbit", 1e6, Dimension::Rate),
    ("kbit", 1e3, Dimension::Rate),
    ("bit", 1.0, Dimension::Rate),
    ("MiB", 1_048_576.0, Dimension::Size),
    ("KiB", 1_024.0, Dimension::Size),
    ("MB", 1e6, Dimension::Size),
    ("kB", 1e3, Dimension::Size),
    ("B", 1.0, Dimension::Size),
    ("ms", 1e6, Dimension::Time),
    ("us", 1e3, Dimension::Time),
    ("ns", 1.0, Dimension::Time),
    ("s", 1e9, Dimension::Time),
    ("%", 0.01, Dimension::Plain),
    ("", 1.0, Dimension::Plain),
];

/// An amount of some dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    /// In nanoseconds, bytes, bits per second, microjoules, or plain.
    pub value: f64,
    /// What it counts.
    pub dimension: Dimension,
}

impl Amount {
    /// Reads a number with its unit, such as `-11ms`, `4.375s`, `180kB`, `4mbit`, `90%` or `0.75`. A
    /// minus may be typographic.
    pub fn parse(text: &str) -> Option<Amount> {
        let text = text.trim().replace('−', "-");
        let sign = text.starts_with(['-', '+']);
        let digits = text.get(usize::from(sign)..)?;
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let end = digits.find(|c| !is_number(c)).unwrap_or(digits.len());
        let (number, unit) = digits.split_at(end);
        if !number.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let number: f64 = number.parse().ok()?;
        let unit = unit.trim();
        let (_, scale, dimension) = UNITS.iter().find(|(name, ..)| *name == unit)?;
        let value = number * scale * if text.starts_with('-') { -1.0 } else { 1.0 };
        Some(Amount { value, dimension: *dimension })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount { value, dimension } = *self;
        let (scale, unit) = match dimension {
            Dimension::Plain => (1.0, ""),
            Dimension::Time => match value.abs() {
                nanos if nanos >= 10e9 => (1e9, " s"),
                nanos if nanos >= 1e6 || nanos == 0.0 => (1e6, " ms"),
                _ => (1e3, " µs"),
            },
            Dimension::Size => match value.abs() {
                bytes if bytes >= 1e4 => (1e3, " kB"),
                _ => (1.0, " B"),
            },
            Dimension::Rate => (1e6, " Mb/s"),
            Dimension::Energy => match value.abs() {
                micros if micros >= 1e6 => (1e6, " J"),
                _ => (1e3, " mJ"),
            },
        };
        let scaled = value / scale;
        // Four digits that mean something, at most three behind the point.
        let places = match scaled.abs() {
            size if size >= 1_000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            _ => 3,
        };
        let text = format!("{scaled:.places$}");
        // No negative zero.
        let is_zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
        let text = if is_zero { text.trim_start_matches('-') } else { &text };
        f.pad(&format!("{}{unit}", text.replace('-', "−")))
    }
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bound {
    value: f64,
    inclusive: bool,
}

/// A range that a number must lie in.
#[derive(Clone, Debug, PartialEq)]
pub struct Threshold {
    low: Option<Bound>,
    high: Option<Bound>,
    dimension: Dimension,
    text: String,
}

/// Where an interval lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// All of it in the range.
    Inside,
    /// None of it.
    Outside,
    /// It straddles an end.
    Across,
}

/// What a threshold must look like.
const EXPECTED: &str = "a threshold such as `< 0.75`, `>= 90%`, `0.9..1.1`, `4.3s..4.5s`, \
                        `4.375s ± 0.1%` or `= 4.375s`";

impl Threshold {
    /// Reads a threshold.
    ///
    /// # Errors
    /// What was expected, if it is none.
    pub fn parse(text: &str) -> Result<Threshold, String> {
        let wrong = || format!("`{text}`: expected {EXPECTED}");
        let trimmed = text.trim();
        let amount = |text: &str| Amount::parse(text).ok_or_else(wrong);
        let threshold =
            |low, high, dimension| Ok(Threshold { low, high, dimension, text: trimmed.to_owned() });
        let bound = |value, inclusive| Some(Bound { value, inclusive });
        for (sign, below, inclusive) in
            [("<=", true, true), (">=", false, true), ("<", true, false), (">", false, false)]
        {
            if let Some(rest) = trimmed.strip_prefix(sign) {
                let Amount { value, dimension } = amount(rest)?;
                let end = bound(value, inclusive);
                let (low, high) = if below { (None, end) } else { (end, None) };
                return threshold(low, high, dimension);
            }
        }
        if let Some(rest) = trimmed.strip_prefix('=') {
            let Amount { value, dimension } = amount(rest)?;
            return threshold(bound(value, true), bound(value, true), dimension);
        }
        if let Some((middle, around)) = trimmed.split_once('±') {
            let (middle, around) = (amount(middle)?, amount(around)?);
            // A percentage of what is no percentage itself is relative.
            let is_relative = trimmed.ends_with('%')
                && (middle.dimension != Dimension::Plain || !trimmed.contains("% ±"));
            let width = if is_relative { middle.value * around.value } else { around.value }.abs();
            if !is_relative && around.dimension != middle.dimension {
                return Err(wrong());
            }
            let (low, high) = (middle.value - width, middle.value + width);
            return threshold(bound(low, true), bound(high, true), middle.dimension);
        }
        let Some((low, high)) = trimmed.split_once("..") else { return Err(wrong()) };
        let (low, high) = (amount(low)?, amount(high)?);
        if low.dimension != high.dimension || low.value > high.value {
            return Err(wrong());
        }
        threshold(bound(low.value, true), bound(high.value, true), low.dimension)
    }

    /// A ratio that differs from one by at most `width`.
    pub fn around_one(width: f64) -> Threshold {
        let bound = |value| Some(Bound { value, inclusive: true });
        Threshold {
            low: bound(1.0 - width),
            high: bound(1.0 + width),
            dimension: Dimension::Plain,
            text: format!("1 ± {width}"),
        }
    }

    /// What the number counts.
    pub fn dimension(&self) -> Dimension {
        self.dimension
    }

    /// Its lower and its upper end, in the unit of result files; `None` where it has none.
    pub fn ends(&self) -> (Option<f64>, Option<f64>) {
        (self.low.map(|end| end.value), self.high.map(|end| end.value))
    }

    /// Whether `value` lies in it.
    pub fn has(&self, value: f64) -> bool {
        self.position(value, value) == Position::Inside
    }

    /// How far `value` lies inside; negative outside. Infinite where there is no end.
    pub fn margin(&self, value: f64) -> f64 {
        let above = self.low.map_or(f64::INFINITY, |end| value - end.value);
        let below = self.high.map_or(f64::INFINITY, |end| end.value - value);
        above.min(below)
    }

    /// The side of `middle` on which all of it lies, as a threshold; `None` if it lies on both.
    pub fn side_of(&self, middle: f64) -> Option<Threshold> {
        let end = Some(Bound { value: middle, inclusive: false });
        let below = self.high.is_some_and(|end| end.value <= middle);
        let above = self.low.is_some_and(|end| end.value >= middle);
        let (low, high, sign) = match (below, above) {
            (true, false) => (None, end, '<'),
            (false, true) => (end, None, '>'),
            _ => return None,
        };
        let amount = Amount { value: middle, dimension: self.dimension };
        Some(Threshold { low, high, dimension: self.dimension, text: format!("{sign} {amount}") })
    }

    /// Where the interval from `low` to `high` lies.
    pub fn position(&self, low: f64, high: f64) -> Position {
        let above_low = |value: f64| {
            self.low.is_none_or(|end| value > end.value || (end.inclusive && value >= end.value))
        };
        let below_high = |value: f64| {
            self.high.is_none_or(|end| value < end.value || (end.inclusive && value <= end.value))
        };
        match (above_low(low) && below_high(high), above_low(high) && below_high(low)) {
            (true, _) => Position::Inside,
            // Something of it is above the lower end and something below the upper one.
            (false, true) => Position::Across,
            (false, false) => Position::Outside,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong =
            || format!("`{text}`: expected a number with its unit, such as 0.75, 90% or 4.375s");
        Amount::parse(&text).ok_or_else(|| de::Error::custom(wrong()))
    }
}

impl<'de> Deserialize<'de> for Threshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Threshold::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(text: &str, low: f64, high: f64) -> Position {
        Threshold::parse(text).unwrap().position(low, high)
    }

    #[test]
    fn a_threshold_has_a_side_unless_it_lies_on_both() {
        let side = |text: &str, middle| {
            let side = Threshold::parse(text).unwrap().side_of(middle);
            side.map(|side| side.to_string())
        };
        for (text, middle, expected) in [
            ("< 0.75", 1.0, Some("< 1.000")),
            ("<= 1", 1.0, Some("< 1.000")),
            ("0.70..0.85", 1.0, Some("< 1.000")),
            ("> 1.25", 1.0, Some("> 1.000")),
            ("0.9..1.1", 1.0, None),
            ("= 1", 1.0, None),
            ("< 1.5", 1.0, None),
            ("-78ms..-11ms", 0.0, Some("< 0.000 ms")),
        ] {
            assert_eq!(side(text, middle).as_deref(), expected, "{text}");
        }
        let threshold = Threshold::parse("0.9..1.1").unwrap();
        assert!(threshold.has(0.9) && threshold.has(1.1) && !threshold.has(1.2));
        assert!((threshold.margin(1.05) - 0.05).abs() < 1e-12);
        assert!((threshold.margin(0.8) + 0.1).abs() < 1e-12);
        assert_eq!(Threshold::parse("< 2").unwrap().margin(0.5), 1.5);
    }

    #[test]
    fn thresholds_read_as_people_write_them() {
        assert_eq!(position("< 0.75", 0.7, 0.74), Position::Inside);
        assert_eq!(position("< 0.75", 0.7, 0.75), Position::Across);
        assert_eq!(position("<= 0.75", 0.7, 0.75), Position::Inside);
        assert_eq!(position("< 0.75", 0.75, 0.8), Position::Outside);
        assert_eq!(position("> 90%", 0.91, 0.95), Position::Inside);
        assert_eq!(position("0.9..1.1", 0.9, 1.1), Position::Inside);
        assert_eq!(position("0.9..1.1", 0.5, 2.0), Position::Across);
        assert_eq!(position("0.9..1.1", 1.2, 2.0), Position::Outside);
        assert_eq!(position("−78ms..−11ms", -50e6, -20e6), Position::Inside);
        assert_eq!(position("4.375s ± 0.1%", 4.376e9, 4.376e9), Position::Inside);
        assert_eq!(position("4.375s ± 0.1%", 4.38e9, 4.38e9), Position::Outside);
        assert_eq!(position("50% ± 5%", 0.46, 0.54), Position::Inside);
        assert_eq!(position("180kB ± 20%", 150e3, 200e3), Position::Inside);
        assert_eq!(position("2 ± 10%", 1.8, 2.2), Position::Inside);
        assert_eq!(position("= 1", 1.0, 1.0), Position::Inside);
        assert_eq!(position("1..1", 1.0, 1.0), Position::Inside);
        assert_eq!(position("4s ± 1ms", 4.001e9, 4.001e9), Position::Inside);
    }

    #[test]
    fn only_an_end_that_is_named_belongs_to_the_range() {
        assert_eq!(position("> 90%", 0.9, 0.95), Position::Across);
        assert_eq!(position(">= 90%", 0.9, 0.95), Position::Inside);
        assert_eq!(position(">= 90%", 0.8, 0.9), Position::Across);
        assert_eq!(position(">= 90%", 0.8, 0.85), Position::Outside);
        assert_eq!(position("<= 90%", 0.95, 1.0), Position::Outside);
    }

    #[test]
    fn what_is_no_threshold_is_told_what_one_looks_like() {
        for text in ["", "0.75", "< ", "< fast", "1s..2", "2..1", "4s ± 1B", "1e9..2e9", "< -"] {
            let error = Threshold::parse(text).unwrap_err();
            assert!(error.contains("expected a threshold such as"), "{text}: {error}");
        }
    }

    #[test]
    fn ends_are_those_that_a_threshold_has() {
        let ends = |text: &str| Threshold::parse(text).unwrap().ends();
        assert_eq!(ends("< 0.75"), (None, Some(0.75)));
        assert_eq!(ends(">= 90%"), (Some(0.9), None));
        assert_eq!(ends("1 ± 0.25"), (Some(0.75), Some(1.25)));
    }

    #[test]
    fn around_one_is_a_range() {
        let within = Threshold::around_one(0.02);
        assert_eq!(within.position(0.981, 1.02), Position::Inside);
        assert_eq!(within.position(0.981, 1.03), Position::Across);
        assert_eq!(within.to_string(), "1 ± 0.02");
    }

    #[test]
    fn amounts_have_four_digits_and_their_unit() {
        let show = |value, dimension| Amount { value, dimension }.to_string();
        assert_eq!(show(1.5, Dimension::Plain), "1.500");
        assert_eq!(show(-12.5e6, Dimension::Time), "−12.50 ms");
        assert_eq!(show(4.375e9, Dimension::Time), "4375 ms");
        assert_eq!(show(43.75e9, Dimension::Time), "43.75 s");
        assert_eq!(show(185_700.0, Dimension::Size), "185.7 kB");
        assert_eq!(show(10_000.0, Dimension::Size), "10.00 kB");
        assert_eq!(show(9_999.0, Dimension::Size), "9999 B");
        assert_eq!(show(3.25e6, Dimension::Rate), "3.250 Mb/s");
        assert_eq!(show(12.5e6, Dimension::Energy), "12.50 J");
        assert_eq!(show(12.5e3, Dimension::Energy), "12.50 mJ");
        assert_eq!(show(-0.000_01, Dimension::Plain), "0.000");
        assert_eq!(show(12_000.0, Dimension::Time), "12.00 µs");
    }
}
