//! A bar for each path while fetching goes on: its share of what came, its rate and its round trip.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use quipu_lab::base::Duration as Span;
use quipu_lab::table;
use quipu_tokio::PathInfo;
use quipu_tokio::tokio::time::sleep;

use super::connections::Connections;
use crate::values::{local_name, rate};

/// How often they change. Our choice.
const EVERY: Duration = Duration::from_millis(500);

/// Shows the paths of all connections until it is dropped.
pub(super) async fn show(bars: &MultiProgress, connections: &Connections) -> Infallible {
    let mut shown = Shown::default();
    loop {
        sleep(EVERY).await;
        for (origin, paths) in connections.paths() {
            shown.show(bars, &origin, &paths);
        }
    }
}

/// The bars, and the bytes that they showed last.
#[derive(Default)]
struct Shown(BTreeMap<(String, u32), (ProgressBar, u64)>);

impl Shown {
    fn show(&mut self, bars: &MultiProgress, origin: &str, paths: &[PathInfo]) {
        let all: u64 = paths.iter().map(|path| path.sample.counters.bytes_received).sum();
        for path in paths {
            let key = (origin.to_owned(), path.id.0);
            let (bar, before) = self.0.entry(key).or_insert_with(|| (bars.add(bar()), 0));
            let received = path.sample.counters.bytes_received;
            let new = received.saturating_sub(std::mem::replace(before, received));
            bar.set_length(all.max(1));
            bar.set_position(received);
            bar.set_message(message(&local_name(path), received, new, path.sample.srtt));
        }
    }
}

/// What stands beside the bar of a path, which brought `new` of its bytes since it was shown last.
fn message(name: &str, received: u64, new: u64, srtt: Option<Span>) -> String {
    let (bytes, rate) = (table::bytes(received), rate(new, EVERY.as_secs_f64()));
    let round_trip = srtt.map(|srtt| format!(", round trip {}", table::time(srtt)));
    let round_trip = round_trip.unwrap_or_default();
    format!("path {name}: {bytes}, {rate}{round_trip}")
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::new(1);
    // The template is constant; the default bar would do as well.
    let style = ProgressStyle::with_template("{bar:20} {wide_msg}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_its_bytes_rate_and_round_trip() {
        let srtt = Some(Span::from_micros(12_340));
        let text = message("wlan0", 3_000_000, 250_000, srtt);
        assert_eq!(text, "path wlan0: 3.00 MB, 4.0 Mbit/s, round trip 12.3 ms");
        assert_eq!(message("10.0.0.1", 100, 0, None), "path 10.0.0.1: 100 B, 0.0 kbit/s");
    }
}
