//! What is printed of a path, during a measurement and after it.

use quipu_tokio::PathInfo;
use quipu_tokio::perf::Direction;

/// UDP payload that went over a path in a direction.
pub(crate) fn carried(direction: Direction, path: &PathInfo) -> u64 {
    match direction {
        Direction::Down => path.sample.counters.bytes_received,
        Direction::Up => path.sample.counters.bytes_sent,
    }
}

pub(crate) fn local_name(path: &PathInfo) -> String {
    match &path.interface {
        Some(name) => name.clone(),
        None => path.route.local.ip().to_string(),
    }
}

/// Bits per second, with the prefix that fits.
pub(crate) fn rate(bytes: u64, seconds: f64) -> String {
    let bits = bytes as f64 * 8.0 / seconds.max(1e-9);
    match bits {
        1e9.. => format!("{:.2} Gbit/s", bits / 1e9),
        1e6.. => format!("{:.1} Mbit/s", bits / 1e6),
        _ => format!("{:.1} kbit/s", bits / 1e3),
    }
}

pub(crate) fn millis(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_prefix_that_fits() {
        assert_eq!(rate(0, 1.0), "0.0 kbit/s");
        assert_eq!(rate(125_000, 1.0), "1.0 Mbit/s");
        assert_eq!(rate(312_500_000, 2.0), "1.25 Gbit/s");
    }
}
