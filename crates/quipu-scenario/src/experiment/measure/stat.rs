//! One number out of many: means, percentiles, and what becomes of a time series.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

use crate::form::{Kind, Names, Numbers, Text, Texted, read_only};

/// One number out of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// Arithmetic mean.
    Mean,
    /// Standard deviation; of drawn pages alone.
    Deviation,
    /// Mean of the natural logarithms of what is above zero; of drawn pages alone.
    LogMean,
    /// Standard deviation of these; of drawn pages alone.
    LogDeviation,
    /// The least.
    Min,
    /// The largest.
    Max,
    /// What so many per cent do not exceed, between values by linear interpolation.
    Percentile(u8),
    /// The first in order.
    First,
    /// The last in order.
    Last,
    /// How many there are.
    Count,
    /// Growth per second from first to last; bytes as bits.
    Rate,
    /// Part of the growth of all connections.
    Part,
    /// Median distance from one beginning to the next.
    Period,
    /// Median length.
    Length,
}

impl Stat {
    /// The one that `text` names.
    pub(crate) fn parse(text: &str) -> Option<Stat> {
        Some(match text {
            "mean" => Stat::Mean,
            "deviation" => Stat::Deviation,
            "log-mean" => Stat::LogMean,
            "log-deviation" => Stat::LogDeviation,
            "min" => Stat::Min,
            "max" => Stat::Max,
            "median" => Stat::Percentile(50),
            "first" => Stat::First,
            "last" => Stat::Last,
            "count" => Stat::Count,
            "rate" => Stat::Rate,
            "part" => Stat::Part,
            "period" => Stat::Period,
            "length" => Stat::Length,
            _ => {
                let percent = text.strip_prefix('p')?.parse().ok()?;
                (percent <= 100).then_some(Stat::Percentile(percent))?
            }
        })
    }
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Stat::Mean => "mean",
            Stat::Deviation => "deviation",
            Stat::LogMean => "log-mean",
            Stat::LogDeviation => "log-deviation",
            Stat::Min => "min",
            Stat::Max => "max",
            Stat::Percentile(50) => "median",
            Stat::Percentile(percent) => return f.pad(&format!("p{percent}")),
            Stat::First => "first",
            Stat::Last => "last",
            Stat::Count => "count",
            Stat::Rate => "rate",
            Stat::Part => "part",
            Stat::Period => "period",
            Stat::Length => "length",
        })
    }
}

impl Stat {
    /// Whether it may be one number out of all runs.
    pub(crate) fn is_over_runs(self) -> bool {
        matches!(self, Stat::Mean | Stat::Min | Stat::Max | Stat::Percentile(_))
    }
}

read_only! {
    Stat: Kind::Text(&STAT),
}

impl<'de> Deserialize<'de> for Stat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::custom(format!("`{text}`: expected {}", STAT.expected));
        Stat::parse(&text).ok_or_else(wrong)
    }
}

impl Texted for Stat {}

macro_rules! percentile {
    () => {
        r"p\+?0*(100|[0-9]{1,2})"
    };
}

/// One number out of many.
static STAT: Text = Text {
    name: "statistic",
    expected: "mean, median, p0 to p100, min, max, first, last, count, rate, part, period, length, \
               deviation, log-mean or log-deviation",
    pattern: concat!(
        "^(mean|median|min|max|first|last|count|rate|part|period|length|deviation|log-mean|log-deviation|",
        percentile!(),
        ")$"
    ),
    accepts: |text| Stat::parse(text).is_some(),
    numbers: Numbers::None,
    names: Names::Usual(|| {
        let names = ["mean", "median", "min", "max", "first", "last", "count", "rate", "part"];
        let others = ["period", "length", "deviation", "log-mean", "log-deviation"];
        names.into_iter().chain(others).map(str::to_owned).collect()
    }),
    examples: &["mean", "p95", "first"],
    refused: &["p101", "average", ""],
};

/// One number out of all runs.
pub(crate) static OVER: Text = Text {
    name: "statistic of runs",
    expected: "mean, median, min, max or p0 to p100",
    pattern: concat!("^(mean|median|min|max|", percentile!(), ")$"),
    accepts: |text| Stat::parse(text).is_some_and(Stat::is_over_runs),
    numbers: Numbers::None,
    names: Names::Usual(|| ["mean", "median", "min", "max"].map(str::to_owned).to_vec()),
    examples: &["median", "mean", "p95"],
    refused: &["first", "p101", "deviation"],
};
