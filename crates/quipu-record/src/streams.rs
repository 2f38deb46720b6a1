//! What the runs say about each raw stream.

use quipu_base::Duration;
use serde::Serialize;

use crate::loads::{Runs, pairs};
use crate::run::RunRecord;
use crate::stats::{Comparison, FiveNumbers, five_numbers, mean};

/// Load times of one raw stream, from the start of the page to the stream's last byte, over all runs
/// in which it carried something. Nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamSummary {
    /// Number in the scenario, from 0.
    pub stream: u32,
    /// Its own latency for deadlines, in nanoseconds.
    pub latency_ns: Option<u64>,
    /// Runs.
    pub runs: usize,
    /// The fastest run.
    pub least: u64,
    /// Lower quartile.
    pub lower_quartile: u64,
    /// Median.
    pub median: u64,
    /// Upper quartile.
    pub upper_quartile: u64,
    /// The slowest run.
    pub most: u64,
    /// Mean.
    pub mean: u64,
    /// Geometric mean of the paired ratios to the first row; `null` for what has none.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 95 % interval; `null` without randomness.
    pub ratio_low: Option<f64>,
    /// Upper end of the ratio's 95 % interval.
    pub ratio_high: Option<f64>,
}

/// The streams of `runs`, compared with `base` if they are not those of the first row.
pub fn summaries(
    runs: &Runs<'_>,
    base: Option<&Runs<'_>>,
    comparison: &Comparison,
) -> Vec<StreamSummary> {
    let streams = runs.iter().flat_map(|(_, record)| &record.streams);
    let count = streams.map(|stream| stream.stream + 1).max().unwrap_or(0);
    (0..count).filter_map(|stream| summary(stream, runs, base, comparison)).collect()
}

fn summary(
    number: u32,
    runs: &Runs<'_>,
    base: Option<&Runs<'_>>,
    comparison: &Comparison,
) -> Option<StreamSummary> {
    let of =
        |record: &RunRecord| record.streams.iter().find(|stream| stream.stream == number).copied();
    let time = |record: &RunRecord| of(record).map(|stream| stream.since_page_start.as_nanos());
    let times: Vec<u64> = runs.iter().filter_map(|(_, record)| time(record)).collect();
    let FiveNumbers { least, lower_quartile, median, upper_quartile, most } = five_numbers(&times)?;
    let ratio = base.and_then(|base| comparison.ratio(&pairs(runs, base, time)));
    let interval = ratio.and_then(|ratio| ratio.interval);
    let latency = runs.iter().find_map(|(_, record)| of(record)).and_then(|it| it.latency);
    Some(StreamSummary {
        stream: number,
        latency_ns: latency.map(Duration::as_nanos),
        runs: times.len(),
        least,
        lower_quartile,
        median,
        upper_quartile,
        most,
        mean: mean(&times)?,
        ratio: ratio.map(|ratio| ratio.mean),
        ratio_low: interval.map(|(low, _)| low),
        ratio_high: interval.map(|(_, high)| high),
    })
}
