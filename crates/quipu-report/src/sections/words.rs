//! Numbers and lists in sentences.

use crate::results::Ratio;

/// Nanoseconds as milliseconds with unit, or as seconds from ten on.
pub(super) fn time(nanos: u64) -> String {
    let millis = nanos as f64 / 1e6;
    match millis {
        millis if millis >= 10_000.0 => format!("{:.2} s", millis / 1e3),
        millis if millis >= 1_000.0 => format!("{millis:.0} ms"),
        millis if millis >= 10.0 => format!("{millis:.1} ms"),
        millis => format!("{millis:.2} ms"),
    }
}

/// A ratio with three digits behind the point.
pub(super) fn ratio(value: f64) -> String {
    format!("{value:.3}")
}

/// The interval of a ratio in words, in brackets and with a space before; empty if there is none.
pub(super) fn interval(ratio: &Ratio) -> String {
    match ratio.interval {
        Some((low, high)) => format!(" (95 % interval {low:.3} to {high:.3})"),
        None => String::new(),
    }
}

/// How many of something: `1 run`, `30 runs`.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// A number with commas between thousands.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `a`, `a and b`, `a, b and c`; of many the first `most` and how many more there are.
pub(super) fn list<T: AsRef<str>>(names: &[T], most: usize) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        names if names.len() > most => {
            let more = names.len() - most;
            format!("{} and {more} more", names[..most].join(", "))
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// What a path of a connection is called; of one connection the path alone.
pub(super) fn line_of(several: bool, flow: &str, path: &str) -> String {
    if several { format!("{flow} on {path}") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_lists_read_well() {
        assert_eq!(
            [9_123_456, 316_400_000, 2_345_600_000, 12_345_000_000].map(time),
            ["9.12 ms", "316.4 ms", "2346 ms", "12.35 s"].map(str::to_owned)
        );
        assert_eq!(count(1, "run", "runs"), "1 run");
        assert_eq!(count(1_234_567, "run", "runs"), "1,234,567 runs");
        assert_eq!(list(&["a"], 3), "a");
        assert_eq!(list(&["a", "b"], 3), "a and b");
        assert_eq!(list(&["a", "b", "c"], 3), "a, b and c");
        assert_eq!(list(&["a", "b", "c", "d"], 2), "a, b and 2 more");
        let ratio = Ratio { mean: 1.006, interval: Some((1.001, 1.011)) };
        assert_eq!(interval(&ratio), " (95 % interval 1.001 to 1.011)");
    }
}
