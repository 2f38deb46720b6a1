//! Amounts of any kind that a sweep may go through, draw, or multiply.

use quipu_base::{Bytes, Duration, Rate};
use toml::Value;

use crate::units::{Share, Unit};

/// An amount with its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount {
    kind: AmountKind,
    /// In bits per second, nanoseconds, bytes, parts of the whole, or as it is.
    number: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AmountKind {
    Rate,
    Time,
    Size,
    Share,
    Whole,
    Number,
}

impl Amount {
    /// What `value` says; `None` if it is no amount.
    pub fn read(value: &Value) -> Option<Amount> {
        let amount = |kind, number| Some(Amount { kind, number });
        match value {
            Value::Integer(number) => amount(AmountKind::Whole, *number as f64),
            Value::Float(number) if number.is_finite() => amount(AmountKind::Number, *number),
            Value::String(text) => {
                if text.ends_with('%') {
                    let share = Share::parse(text)?;
                    return amount(AmountKind::Share, share.as_f64());
                }
                if let Some(rate) = Rate::parse(text) {
                    return amount(AmountKind::Rate, rate.bits_per_sec() as f64);
                }
                if let Some(time) = Duration::parse(text) {
                    return amount(AmountKind::Time, time.as_nanos() as f64);
                }
                amount(AmountKind::Size, Bytes::parse(text)?.0 as f64)
            }
            _ => None,
        }
    }

    /// The same as a value of a scenario; amounts that come in units are whole.
    pub fn value(self) -> Value {
        // At most 2^64 where it matters; what is beyond the field refuses.
        let whole = || (self.number.max(0.0) + 0.5) as u64;
        let text = match self.kind {
            AmountKind::Rate => Rate::from_bits_per_sec(whole().max(1)).print(),
            AmountKind::Time => Duration::from_nanos(whole()).print(),
            AmountKind::Size => Bytes(whole()).print(),
            AmountKind::Share => Share::nearest(self.number).print(),
            AmountKind::Whole => return Value::Integer((self.number + 0.5).floor() as i64),
            AmountKind::Number => return Value::Float(self.number),
        };
        Value::String(text)
    }

    /// Whether both are of one kind, so that there are amounts between them.
    pub fn goes_with(self, other: Amount) -> bool {
        let is_plain = |kind| matches!(kind, AmountKind::Whole | AmountKind::Number);
        self.kind == other.kind || (is_plain(self.kind) && is_plain(other.kind))
    }

    /// True if it is above zero.
    pub fn is_positive(self) -> bool {
        self.number > 0.0
    }

    /// The amount at `part` of the way to `to`, along a line or, with `log`, along a line of
    /// logarithms.
    pub fn between(self, to: Amount, part: f64, log: bool) -> Amount {
        let kind = if self.kind == to.kind { self.kind } else { AmountKind::Number };
        let number = match log {
            // The ends as they are, whatever rounding does.
            _ if part <= 0.0 => self.number,
            _ if part >= 1.0 => to.number,
            false => self.number + (to.number - self.number) * part,
            true => {
                let (from, to) = (libm::log(self.number), libm::log(to.number));
                libm::exp(from + (to - from) * part)
            }
        };
        Amount { kind, number }
    }

    /// The same to four digits, so that it can be read; whole numbers as they are.
    pub fn rounded(self) -> Amount {
        if self.number == 0.0 || self.kind == AmountKind::Whole {
            return self;
        }
        let digits = 3 - libm::floor(libm::log10(libm::fabs(self.number))) as i32;
        // A power of ten is exact up to 10^22, and a division by it is rounded once.
        let number = if digits >= 0 {
            let scale = libm::pow(10.0, f64::from(digits));
            libm::round(self.number * scale) / scale
        } else {
            let scale = libm::pow(10.0, f64::from(-digits));
            libm::round(self.number / scale) * scale
        };
        Amount { number, ..self }
    }

    /// This amount so many times.
    pub fn times(self, factor: Amount) -> Option<Amount> {
        let is_plain = matches!(factor.kind, AmountKind::Whole | AmountKind::Number);
        let kind = match self.kind {
            AmountKind::Whole if factor.kind == AmountKind::Number => AmountKind::Number,
            kind => kind,
        };
        is_plain.then_some(Amount { kind, number: self.number * factor.number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Amount {
        Amount::read(&Value::String(text.to_owned())).unwrap()
    }

    #[test]
    fn amounts_read_print_and_multiply_in_their_units() {
        for example in ["30mbit", "15ms", "64KiB", "1.5%", "0ms"] {
            assert_eq!(text(example).value(), Value::String(example.to_owned()));
        }
        assert_eq!(Amount::read(&Value::Integer(32)).unwrap().value(), Value::Integer(32));
        assert_eq!(Amount::read(&Value::Boolean(true)), None);
        let factor = Amount::read(&Value::Float(0.35)).unwrap();
        assert_eq!(text("30mbit").times(factor).unwrap().value().as_str(), Some("10500kbit"));
        assert_eq!(text("15ms").times(factor).unwrap().value().as_str(), Some("5250us"));
        assert_eq!(text("15ms").times(text("1ms")), None);
    }

    #[test]
    fn between_two_amounts_there_are_readable_ones() {
        let (from, to) = (text("1mbit"), text("100mbit"));
        let at = |part, log| from.between(to, part, log).rounded().value().to_string();
        assert_eq!(
            [at(0.0, true), at(0.5, true), at(1.0, true)],
            ["\"1mbit\"", "\"10mbit\"", "\"100mbit\""]
        );
        assert_eq!(at(0.5, false), "\"50500kbit\"");
        assert_eq!(at(0.123_456, false), "\"13220kbit\"");
        assert!(!from.goes_with(text("1ms")));
        let share = text("1%").between(text("3%"), 0.333_333, false).rounded();
        assert_eq!(share.value().as_str(), Some("1.667%"));
    }
}
