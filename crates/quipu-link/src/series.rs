//! Rates that somebody measured over time, as CSV.

use quipu_base::{Duration, Rate};

use crate::table::{self, Kind, Rows, SeriesError};
use crate::{Play, Timeline, rate};

/// What a link's rate was, over the time of a recording.
///
/// A rate holds from the time of its row until that of the next one; the last one for as long as
/// rows usually do, by the median. Of rows with one time the last one holds. Before the first row nothing moves.
///
/// ```
/// use quipu_link::{AtEnd, LinkConfig, Play, RateSeries};
/// use quipu_base::{Duration, Rate};
///
/// let series = RateSeries::parse("time_s,mbps,tech\n0,12.5,LTE\n0.5,0,\n1,4,LTE\n", "mbps")?;
/// assert_eq!(series.length(), Duration::from_millis(1_500));
/// assert_eq!(series.mean_rate(), Rate::from_bits_per_sec(5_500_000));
/// let play = Play { from: Duration::from_secs(1), at_end: AtEnd::Loop };
/// let config = LinkConfig { rates: Some(series.timeline(play)), ..LinkConfig::default() };
/// assert!(config.validate().is_ok());
/// # Ok::<(), quipu_link::SeriesError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RateSeries {
    rates: Timeline<Rate>,
}

impl RateSeries {
    /// The most rows that a series may have: 1,048,576. Our choice.
    pub const MOST_ROWS: usize = table::MOST_ROWS;

    /// The greatest rate that a row may have. Our choice.
    pub const MOST_RATE: Rate = Rate::from_mbit_per_sec(100_000);

    /// Reads the rates in `column`, in Mbit/s up to [`Self::MOST_RATE`], at the times in the column
    /// `time_s`, in seconds.
    ///
    /// The text is CSV without quotes: a header with the names of the columns, then a row on each
    /// line with as many fields. Numbers are decimal, without sign or exponent; digits below a
    /// bit per second and a nanosecond are dropped. Other columns are not looked at.
    ///
    /// # Errors
    /// At the first line that is wrong, or if all of it makes no series.
    pub fn parse(text: &str, column: &str) -> Result<Self, SeriesError> {
        let most = (Self::MOST_RATE.bits_per_sec(), "100000, as Mbit/s");
        let Rows { rows, length } =
            table::read(text, column, &Kind { decimals: 6, most, optional: false })?;
        let rates = rows
            .into_iter()
            .map(|(time, bits)| (time, Rate::from_bits_per_sec(bits.unwrap_or_default())));
        let rates = Timeline::recorded(Rate::ZERO, rates, length);
        if rates.values().all(|(_, rate)| rate == Rate::ZERO) {
            return Err(SeriesError::NoRate { column: column.to_owned() });
        }
        Ok(RateSeries { rates })
    }

    /// The column of `text` that has the rates of one direction: `down_mbps` or `up_mbps`, or else
    /// `mbps`, which is also the answer if there is none of them.
    pub fn column_of(text: &str, down: bool) -> &'static str {
        let column = if down { "down_mbps" } else { "up_mbps" };
        if table::has_column(text, column) { column } else { "mbps" }
    }

    /// Time of one round, to the end of the last row.
    pub fn length(&self) -> Duration {
        self.rates.length()
    }

    /// Bits per second over a whole round, rounded down.
    pub fn mean_rate(&self) -> Rate {
        rate::mean_rate(&self.rates)
    }

    /// What [`LinkConfig::rates`](crate::LinkConfig::rates) takes. Clones nothing but a reference.
    pub fn timeline(&self, play: Play) -> Timeline<Rate> {
        self.rates.clone().played(play)
    }
}

#[cfg(test)]
mod tests;
