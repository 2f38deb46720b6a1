//! What recordings measured, in whatever form they came.

use std::collections::BTreeMap;

use quipu_base::{Duration, Instant, Rate};

use super::ConvertError;
use crate::DeliveryTrace;
use crate::table::usual_gap;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the network to the host.
    Down,
    /// From the host to the network.
    Up,
}

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    /// The rate of some direction, in bits per second.
    Rate,
    /// The rate down.
    Down,
    /// The rate up.
    Up,
    /// The round trip in nanoseconds.
    RoundTrip,
    /// The loss in thousand-millionths.
    Loss,
}

impl What {
    pub(super) const ALL: [What; 5] =
        [What::Rate, What::Down, What::Up, What::RoundTrip, What::Loss];

    pub(super) fn is_rate(self) -> bool {
        matches!(self, What::Rate | What::Down | What::Up)
    }
}

/// A row.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    pub(super) at: Duration,
    /// One for each of [`What::ALL`].
    pub(super) values: [Option<u64>; 5],
    /// The test that it is from.
    pub(super) test: u32,
}

/// What recordings measured over time.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub(super) samples: Vec<Sample>,
    length: Duration,
    /// Rows that are not among the samples, by the reason.
    left_out: BTreeMap<&'static str, usize>,
}

/// The figures of one rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Name of its column in CSV.
    pub column: &'static str,
    /// The mean over time.
    pub mean: Rate,
}

impl Measured {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.samples.len()
    }

    /// Time from the start to the end of the last row.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Rows of the files that were left out, with the reason.
    pub fn left_out(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.left_out.iter().map(|(why, count)| (*why, *count))
    }

    /// The rates, with their means.
    pub fn rates(&self) -> impl Iterator<Item = Tally> {
        let all = What::ALL.into_iter().filter(|what| what.is_rate() && self.has(*what));
        all.map(|what| Tally { column: what.column(), mean: self.mean(what) })
    }

    /// The column of the rates that one direction has: its own, or that of rates without a direction.
    pub fn column_of(&self, direction: Direction) -> Option<&'static str> {
        self.rate_of(direction).ok().map(What::column)
    }

    /// Pings, and those of them that were lost; none if there are no round trips.
    pub fn pings(&self) -> Option<(usize, usize)> {
        let is_lost = |sample: &&Sample| sample.values[What::RoundTrip as usize].is_none();
        let lost = self.samples.iter().filter(is_lost).count();
        self.has(What::RoundTrip).then_some((self.samples.len(), lost))
    }

    pub(super) fn has(&self, what: What) -> bool {
        self.samples.iter().any(|sample| sample.values[what as usize].is_some())
    }

    /// Puts a row behind the others.
    pub(super) fn push(&mut self, at: Duration, test: u32, values: &[(What, Option<u64>)]) {
        let mut sample = Sample { at, values: [None; 5], test };
        for (what, value) in values {
            sample.values[*what as usize] = *value;
        }
        self.samples.push(sample);
    }

    pub(super) fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Ends it at `length`.
    pub(super) fn ends_at(mut self, length: Duration) -> Measured {
        self.length = if self.samples.is_empty() { Duration::ZERO } else { length };
        self
    }

    /// Ends it after the last row, which lasts as long as rows usually do.
    pub(super) fn ends_as_usual(self) -> Measured {
        let gap = usual_gap(self.samples.iter().map(|sample| sample.at));
        let last = self.samples.last().map_or(Duration::ZERO, |sample| sample.at);
        self.ends_at(last + gap)
    }

    /// Puts another recording behind this one.
    pub(super) fn append(&mut self, other: Measured) {
        let (shift, tests) = (self.length, self.samples.last().map_or(0, |sample| sample.test));
        self.samples.extend(other.samples.into_iter().map(|sample| Sample {
            at: sample.at + shift,
            test: sample.test + tests,
            ..sample
        }));
        self.length = shift + other.length;
        for (why, count) in other.left_out {
            *self.left_out.entry(why).or_default() += count;
        }
    }

    /// Spans of time with the rate that holds over each, in order.
    pub(super) fn spans(&self, what: What) -> impl Iterator<Item = (Duration, Duration, u64)> {
        let ends = self.samples.iter().skip(1).map(|next| next.at).chain([self.length]);
        self.samples.iter().zip(ends).map(move |(sample, end)| {
            (sample.at, end, sample.values[what as usize].unwrap_or_default())
        })
    }

    fn mean(&self, what: What) -> Rate {
        let sum = |(from, to, rate): (Duration, Duration, u64)| {
            u128::from(to.saturating_sub(from).as_nanos()) * u128::from(rate)
        };
        let sum: u128 = self.spans(what).map(sum).sum();
        let mean = sum / u128::from(self.length.as_nanos().max(1));
        Rate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The rate of one direction: its own, or that of a recording that tells none.
    pub(super) fn rate_of(&self, direction: Direction) -> Result<What, ConvertError> {
        let own = match direction {
            Direction::Down => What::Down,
            Direction::Up => What::Up,
        };
        let found = [own, What::Rate].into_iter().find(|what| self.has(*what));
        found.ok_or(ConvertError::Nothing { what: "rates of that direction" })
    }
}

/// Time over which opportunities are counted: single milliseconds are too coarse. Our choice.
const WINDOW: Duration = Duration::from_millis(100);

/// The rates of a packet-delivery trace, over windows of 100 ms. The last one may be shorter.
pub(super) fn of_deliveries(trace: &DeliveryTrace) -> Measured {
    let mut measured = Measured::default();
    let (mut from, length) = (Duration::ZERO, trace.length());
    let mut before = 0;
    while from < length {
        let until = (from + WINDOW).min(length);
        let by = trace.opportunities_by(Instant::ZERO + until);
        let bits = u128::from((by - before) * DeliveryTrace::OPPORTUNITY.0 * 8);
        let rate = bits * 1_000_000_000 / u128::from(until.saturating_sub(from).as_nanos().max(1));
        let rate = Some(u64::try_from(rate).unwrap_or(u64::MAX));
        measured.push(from, 1, &[(What::Rate, rate)]);
        (from, before) = (until, by);
    }
    measured.ends_at(length)
}
