//! Rates that somebody measured over time, as CSV.

use quipu_base::{Duration, Rate};

use crate::columns::{Column, Columns, Quantity};
use crate::table::{self, Kind, Rows, SeriesError, Sheet};
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

    /// Reads the rates in `column`, up to [`Self::MOST_RATE`], at the times in the column `time_s`. Both tell their
    /// unit by the end of their name, and are in Mbit/s and seconds otherwise.
    ///
    /// # Errors
    /// At the first line that is wrong, or if all of it makes no series.
    pub fn parse(text: &str, column: &str) -> Result<Self, SeriesError> {
        let columns = Columns { rate: Some(Column::new(column)), ..Columns::default() };
        Self::read(text, true, &columns)
    }

    /// Reads the rates of one direction, up to [`Self::MOST_RATE`], at the times of their rows.
    ///
    /// The text is CSV: a header with the names of the columns, then rows with as many fields, separated by commas,
    /// semicolons or tabs as the header tells, with quotes around those that need them. It may begin with a byte order
    /// mark, and its lines may end in CR LF. Numbers are decimal, without sign or exponent, with a point, or between
    /// semicolons a comma; digits below a bit per second and a nanosecond are dropped. Other columns are not looked at.
    ///
    /// Times count from the start of the recording. Those of a calendar, which are dates (ISO 8601, RFC 3339; UTC
    /// unless they tell a zone) or begin after 10 million seconds, count from the first row.
    ///
    /// # Errors
    /// At the first line that is wrong, or if all of it makes no series.
    pub fn read(text: &str, down: bool, columns: &Columns) -> Result<Self, SeriesError> {
        let sheet = Sheet::new(text)?;
        let own = columns.up.as_ref().filter(|_| !down).or(columns.rate.as_ref());
        let usual = || Column::new(usual_column(&sheet, down));
        let column = own.cloned().unwrap_or_else(usual);
        let most = (Self::MOST_RATE.bits_per_sec(), "100000, as Mbit/s");
        let kind = Kind { quantity: Quantity::Rate, unit: "Mbit/s", most, optional: false };
        let Rows { rows, length } = table::read(&sheet, columns.time.as_ref(), &column, &kind)?;
        let rates = rows
            .into_iter()
            .map(|(time, bits)| (time, Rate::from_bits_per_sec(bits.unwrap_or_default())));
        let rates = Timeline::recorded(Rate::ZERO, rates, length);
        if rates.values().all(|(_, rate)| rate == Rate::ZERO) {
            return Err(SeriesError::NoRate { column: column.name });
        }
        Ok(RateSeries { rates })
    }

    /// The column of `text` that has the rates of one direction: `down_mbps` or `up_mbps`, or else
    /// `mbps`, which is also the answer if there is none of them.
    pub fn column_of(text: &str, down: bool) -> &'static str {
        Sheet::new(text).map_or("mbps", |sheet| usual_column(&sheet, down))
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

fn usual_column(sheet: &Sheet<'_>, down: bool) -> &'static str {
    let column = if down { "down_mbps" } else { "up_mbps" };
    if sheet.place(column).is_some() { column } else { "mbps" }
}

#[cfg(test)]
mod tests;
