//! Recordings of how fast a link was, in either form.

use quipu_base::{Duration, Rate};

use crate::{DeliveryTrace, DeliveryTraceError, LinkConfig, Play, RateSeries, SeriesError};

/// How fast a link was, over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Recording {
    /// When it delivered packets, in Mahimahi's form.
    Deliveries(DeliveryTrace),
    /// Its rates.
    Rates(RateSeries),
}

/// Why a text, or something that ships, is no recording of the kind wanted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// It is no packet-delivery trace.
    #[error(transparent)]
    Deliveries(#[from] DeliveryTraceError),
    /// It is no series of measurements.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// It has something else.
    #[error("there are no {what} in it")]
    Absent {
        /// What was looked for: `rates`, `round trips`.
        what: &'static str,
    },
}

impl Recording {
    /// Time of one round.
    pub fn length(&self) -> Duration {
        match self {
            Recording::Deliveries(trace) => trace.length(),
            Recording::Rates(series) => series.length(),
        }
    }

    /// Bits per second over a whole round, rounded down.
    pub fn mean_rate(&self) -> Rate {
        match self {
            Recording::Deliveries(trace) => trace.mean_rate(),
            Recording::Rates(series) => series.mean_rate(),
        }
    }

    /// Makes `config` a link that follows the recording, played so, in place of any rate.
    pub fn put_into(&self, config: &mut LinkConfig, play: Play) {
        (config.rate, config.trace, config.rates) = (None, None, None);
        config.steps.clear();
        match self {
            Recording::Deliveries(trace) => config.trace = Some(trace.clone().played(play)),
            Recording::Rates(series) => config.rates = Some(series.timeline(play)),
        }
    }
}
