//! Writing JSON objects piece by piece into a buffer.
//!
//! Events are written several times per packet, so no value tree is built and no field is looked
//! up: names are constants, and a comma is put where the byte before asks for one. Where a name is a
//! literal, the macros make one copy of a known length of it and all that surrounds it.

use quipu_base::{Duration, Instant};

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A number as a member whose name is a literal.
macro_rules! number {
    ($json:expr, $name:literal, $value:expr) => {{
        $json.after_comma(concat!(",\"", $name, "\":"));
        $json.integer($value);
    }};
}

/// A member of which both name and value are literals without characters to escape.
macro_rules! word {
    ($json:expr, $name:literal, $value:literal) => {
        $json.after_comma(concat!(",\"", $name, "\":\"", $value, "\""))
    };
}

/// Begins the object that is the value of a name.
macro_rules! begin {
    ($json:expr, $name:literal) => {
        $json.after_comma(concat!(",\"", $name, "\":{"))
    };
}

/// Begins the list that is the value of a name.
macro_rules! begin_list {
    ($json:expr, $name:literal) => {
        $json.after_comma(concat!(",\"", $name, "\":["))
    };
}

/// A buffer into which JSON is written.
#[derive(Debug, Default)]
pub(crate) struct Json {
    pub(crate) out: Vec<u8>,
}

impl Json {
    /// Bytes as they are: for constants that are JSON.
    #[inline(always)]
    pub(crate) fn raw(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    /// What follows a comma where one is due; `text` begins with it.
    #[inline(always)]
    pub(crate) fn after_comma(&mut self, text: &'static str) {
        let bytes = text.as_bytes();
        if matches!(self.out.last(), None | Some(b'{' | b'[')) {
            self.out.extend_from_slice(bytes.get(1..).unwrap_or_default());
        } else {
            self.out.extend_from_slice(bytes);
        }
    }

    #[inline(always)]
    fn comma(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[')) {
            self.out.push(b',');
        }
    }

    /// The name of a member. It is a constant without characters to escape.
    #[inline(always)]
    pub(crate) fn key(&mut self, name: &'static str) {
        self.comma();
        self.out.push(b'"');
        self.raw(name);
        self.raw("\":");
    }

    /// Begins the object that is the value of `name`.
    #[inline]
    pub(crate) fn begin(&mut self, name: &'static str) {
        self.key(name);
        self.out.push(b'{');
    }

    /// Ends an object.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.out.push(b'}');
    }

    /// Ends a list.
    #[inline]
    pub(crate) fn end_list(&mut self) {
        self.out.push(b']');
    }

    /// Begins an object in a list.
    #[inline]
    pub(crate) fn begin_item(&mut self) {
        self.comma();
        self.out.push(b'{');
    }

    /// A list of one or two numbers in a list.
    pub(crate) fn range(&mut self, first: u64, last: u64) {
        self.comma();
        self.out.push(b'[');
        self.integer(first);
        if last != first {
            self.out.push(b',');
            self.integer(last);
        }
        self.out.push(b']');
    }

    /// A number in place.
    #[inline]
    pub(crate) fn integer(&mut self, value: u64) {
        self.raw(itoa::Buffer::new().format(value));
    }

    #[inline(always)]
    pub(crate) fn number(&mut self, name: &'static str, value: u64) {
        self.key(name);
        self.integer(value);
    }

    pub(crate) fn boolean(&mut self, name: &'static str, value: bool) {
        self.key(name);
        self.raw(if value { "true" } else { "false" });
    }

    /// A constant that has no characters to escape.
    #[inline]
    pub(crate) fn word(&mut self, name: &'static str, value: &'static str) {
        self.key(name);
        self.out.push(b'"');
        self.raw(value);
        self.out.push(b'"');
    }

    /// Any text, escaped.
    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        self.key(name);
        // A buffer takes all that is written to it.
        let _ = serde_json::to_writer(&mut self.out, value);
    }

    /// A number that may have a fraction; what is not finite has no form in JSON and is left out.
    pub(crate) fn float(&mut self, name: &'static str, value: f64) {
        if value.is_finite() {
            self.key(name);
            // A buffer takes all that is written to it.
            let _ = serde_json::to_writer(&mut self.out, &value);
        }
    }

    /// Bytes in hexadecimal digits.
    pub(crate) fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        self.key(name);
        self.hex_item(bytes);
    }

    /// The same in place.
    pub(crate) fn hex_item(&mut self, bytes: &[u8]) {
        self.out.push(b'"');
        for byte in bytes {
            self.out.push(HEX[usize::from(byte >> 4)]);
            self.out.push(HEX[usize::from(byte & 15)]);
        }
        self.out.push(b'"');
    }

    /// Milliseconds with six decimals: exact to the nanosecond.
    pub(crate) fn millis(&mut self, name: &'static str, value: Duration) {
        self.key(name);
        self.nanos(value.as_nanos());
    }

    /// A time since the start of the run, in place, likewise.
    #[inline]
    pub(crate) fn time(&mut self, value: Instant) {
        self.nanos(value.as_nanos());
    }

    fn nanos(&mut self, nanos: u64) {
        const PER_MILLI: u64 = 1_000_000;
        self.integer(nanos / PER_MILLI);
        let mut digits = *b".000000";
        // Below a million, so that 32 bits hold it.
        let mut rest = (nanos % PER_MILLI) as u32;
        for digit in digits.iter_mut().skip(1).rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        self.out.extend_from_slice(&digits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_parses_to_the_same_values() {
        let mut json = Json::default();
        json.raw("{");
        json.number("n", u64::MAX);
        json.boolean("b", true);
        json.word("w", "plain");
        json.text("t", "a \"quote\",\n\u{1} and \u{1f}");
        json.float("f", -0.125);
        json.float("nan", f64::NAN);
        json.hex("h", &[0, 0xaf, 0xff]);
        json.millis("ms", Duration::from_nanos(1_234_567_089));
        json.begin("o");
        begin_list!(json, "l");
        json.range(3, 3);
        json.range(1, 2);
        json.begin_item();
        json.end();
        json.end_list();
        json.end();
        json.end();
        let value: serde_json::Value = serde_json::from_slice(&json.out).unwrap();
        let expected = serde_json::json!({
            "n": u64::MAX, "b": true, "w": "plain", "t": "a \"quote\",\n\u{1} and \u{1f}",
            "f": -0.125, "h": "00afff", "ms": 1234.567089, "o": { "l": [[3], [1, 2], {}] }
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn times_have_six_decimals() {
        for (nanos, text) in [(0, "0.000000"), (1, "0.000001"), (999_999, "0.999999")] {
            let mut json = Json::default();
            json.time(Instant::from_nanos(nanos));
            assert_eq!(String::from_utf8(json.out).unwrap(), text);
        }
        let mut json = Json::default();
        json.time(Instant::from_nanos(u64::MAX));
        assert_eq!(json.out, b"18446744073709.551615");
    }
}
