//! Results as text for a terminal: comparisons and waterfalls.

mod compare;
mod flows;
mod grid;
mod page;
mod screen;
mod streams;
mod waterfall;
mod words;

pub use compare::{Order, compare};
pub use grid::{Align, Cell, Grid};
pub use page::{floors, model};
pub use screen::{Screen, Tone};
pub use waterfall::{WaterfallOptions, load_summary, load_times, waterfall};

use quipu_base::Duration;

/// A time in milliseconds with one decimal: `412.3`.
pub fn millis(nanos: u64) -> String {
    let tenths = nanos.saturating_add(50_000) / 100_000;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A length of time in the unit that reads best: `412.3 ms`, `12.35 s`.
pub fn time(time: Duration) -> String {
    let nanos = time.as_nanos();
    if nanos < 10_000_000_000 {
        return format!("{} ms", millis(nanos));
    }
    let hundredths = nanos.saturating_add(5_000_000) / 10_000_000;
    format!("{}.{:02} s", hundredths / 100, hundredths % 100)
}

/// An amount of bytes in thousands: `17 B`, `12.1 kB`, `3.76 MB`.
pub fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..999_950 => {
            let tenths = (bytes + 50) / 100;
            format!("{}.{} kB", tenths / 10, tenths % 10)
        }
        _ => {
            let hundredths = bytes.saturating_add(5_000) / 10_000;
            format!("{}.{:02} MB", hundredths / 100, hundredths % 100)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_to_what_matters() {
        assert_eq!(millis(412_349_999), "412.3");
        assert_eq!(millis(412_350_000), "412.4");
        assert_eq!(millis(u64::MAX), "18446744073709.5");
        assert_eq!(time(Duration::from_millis(9_999)), "9999.0 ms");
        assert_eq!(time(Duration::from_millis(12_346)), "12.35 s");
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(12_149), "12.1 kB");
        assert_eq!(bytes(999_949), "999.9 kB");
        assert_eq!(bytes(999_950), "1.00 MB");
        assert_eq!(bytes(3_760_000), "3.76 MB");
        assert_eq!(bytes(u64::MAX), "18446744073709.55 MB");
    }
}
