//! Rates that somebody measured over time, as CSV, made into steps of a link's rate.

use quipu_base::{Duration, Instant, Rate};

use crate::config::invalid;
use crate::{InvalidConfig, RateStep};

/// What a link's rate was, over the time of a recording.
///
/// A rate holds from the time of its row until that of the next one; the last one for as long as
/// rows usually do, by the median. Of rows with one time the last one holds. Before the first row nothing moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSeries {
    /// Strictly in order of time, at least one rate above zero.
    rows: Vec<Row>,
    length: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    time: Duration,
    rate: Rate,
}

/// What a link does when the recording of its rate is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtEnd {
    /// The last rate holds for good.
    Hold,
    /// The recording starts again, until the rate at this instant is known, which then holds; if it
    /// is zero, the next one above zero follows still.
    RepeatUntil(Instant),
}

/// Why a text is no series of rates. Lines count from 1, the header's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RateSeriesError {
    /// A row's time is before that of the row before.
    #[error("line {line}: `time_s` is {found}, expected not before the row before")]
    Backwards {
        /// Where it is.
        line: usize,
        /// The time, as it stands there.
        found: String,
    },
    /// A row has more or fewer fields than the header.
    #[error("line {line}: {found} fields, expected {expected} as in the header")]
    FieldCount {
        /// Where it is.
        line: usize,
        /// Fields of the row.
        found: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// The header has no column of that name.
    #[error("line 1: no column `{column}`, expected it among `{header}`")]
    NoColumn {
        /// The name that was looked for.
        column: String,
        /// The first 80 characters of the header.
        header: String,
    },
    /// There is no row with a rate above zero.
    #[error("no rate in column `{column}`, expected one above zero")]
    NoRate {
        /// The column of the rates.
        column: String,
    },
    /// A field is not a number, or too large.
    #[error("line {line}: `{column}` is `{found}`, expected a decimal number, such as 12.5")]
    NotNumber {
        /// Where it is.
        line: usize,
        /// Name of the field's column.
        column: String,
        /// The field's first 24 characters.
        found: String,
    },
    /// There are more rows than a series may have.
    #[error("line {line}: expected not more than {} rows", RateSeries::MOST_ROWS)]
    TooLong {
        /// The first line too many.
        line: usize,
    },
}

impl RateSeries {
    /// The most rows that a series may have, over all its rounds: 1,048,576. Our choice.
    pub const MOST_ROWS: usize = 1 << 20;

    /// Reads the rates in `column`, in Mbit/s, at the times in the column `time_s`, in seconds.
    ///
    /// The text is CSV without quotes: a header with the names of the columns, then a row on each
    /// line with as many fields. Numbers are decimal, without sign or exponent; digits below a
    /// bit per second and a nanosecond are dropped. Other columns are not looked at.
    ///
    /// # Errors
    /// At the first line that is wrong, or if all of it makes no series.
    pub fn parse(text: &str, column: &str) -> Result<Self, RateSeriesError> {
        let mut lines = (1..).zip(text.lines());
        let header = lines.next().map_or("", |(_, header)| header);
        let place = |name: &str| {
            header.split(',').position(|found| found == name).ok_or_else(|| {
                let header = header.chars().take(80).collect();
                RateSeriesError::NoColumn { column: name.to_string(), header }
            })
        };
        let (times, rates) = (place("time_s")?, place(column)?);
        let expected = header.split(',').count();

        let mut rows: Vec<Row> = Vec::new();
        for (line, content) in lines {
            if line > Self::MOST_ROWS + 1 {
                return Err(RateSeriesError::TooLong { line });
            }
            let found = content.split(',').count();
            if found != expected {
                return Err(RateSeriesError::FieldCount { line, found, expected });
            }
            let number = |name: &str, place: usize, decimals: u32| {
                let field = content.split(',').nth(place).unwrap_or_default();
                decimal(field, decimals).ok_or_else(|| RateSeriesError::NotNumber {
                    line,
                    column: name.to_string(),
                    found: field.chars().take(24).collect(),
                })
            };
            let time = Duration::from_nanos(number("time_s", times, 9)?);
            let rate = Rate::from_bits_per_sec(number(column, rates, 6)?);
            // Rows of one instant: the last one holds.
            if let Some(before) = rows.pop_if(|before| before.time >= time)
                && before.time > time
            {
                let found = content.split(',').nth(times).unwrap_or_default().chars().take(24);
                return Err(RateSeriesError::Backwards { line, found: found.collect() });
            }
            rows.push(Row { time, rate });
        }
        match rows.last() {
            Some(last) if rows.iter().any(|row| row.rate > Rate::ZERO) => {
                let length = last.time + usual_gap(&rows);
                Ok(RateSeries { rows, length })
            }
            _ => Err(RateSeriesError::NoRate { column: column.to_string() }),
        }
    }

    /// Time of one round, to the end of the last row.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// Bits per second over a whole round, rounded down.
    ///
    /// For the limit of a queue: one in bandwidth-delay products counts the first rate alone.
    pub fn mean_rate(&self) -> Rate {
        let ends = self.rows.iter().skip(1).map(|row| row.time).chain([self.length]);
        let bits = self.rows.iter().zip(ends).fold(0u128, |sum, (row, end)| {
            let nanos = end.saturating_sub(row.time).as_nanos();
            // Times add up to less than 2^64, so that the sum stays below 2^128.
            sum + u128::from(row.rate.bits_per_sec()) * u128::from(nanos)
        });
        let mean = bits / u128::from(self.length.as_nanos().max(1));
        Rate::from_bits_per_sec(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// The rate at first, which may be zero, and each change of it: what
    /// [`LinkConfig::rate`](crate::LinkConfig::rate) and
    /// [`LinkConfig::steps`](crate::LinkConfig::steps) take.
    ///
    /// A link refuses steps that end with a rate of zero, as a series does that ends in an outage
    /// and holds.
    ///
    /// # Errors
    /// If to repeat for so long takes more than [`Self::MOST_ROWS`] rows.
    pub fn steps(&self, at_end: AtEnd) -> Result<(Rate, Vec<RateStep>), InvalidConfig> {
        let silence = Row { time: Duration::ZERO, rate: Rate::ZERO };
        let starts_late = self.rows.first().is_some_and(|row| row.time > Duration::ZERO);
        let round = || starts_late.then_some(silence).into_iter().chain(self.rows.iter().copied());
        let first = round().next().map_or(Rate::ZERO, |row| row.rate);

        let (mut steps, mut rate, mut round_at, mut taken) = (Vec::new(), first, Instant::ZERO, 0);
        loop {
            for row in round() {
                let at = round_at + row.time;
                if let AtEnd::RepeatUntil(until) = at_end {
                    if at > until && rate > Rate::ZERO {
                        return Ok((first, steps));
                    }
                    taken += 1;
                    if taken > Self::MOST_ROWS {
                        return Err(invalid(
                            "steps",
                            until,
                            "an end in not more than 1,048,576 rows",
                        ));
                    }
                }
                if row.rate != rate {
                    rate = row.rate;
                    steps.push(RateStep { at, rate });
                }
            }
            if at_end == AtEnd::Hold || steps.is_empty() {
                return Ok((first, steps));
            }
            round_at += self.length;
        }
    }
}

/// The lower median of the times between rows; a second if there is one row alone, our choice.
fn usual_gap(rows: &[Row]) -> Duration {
    let pairs = rows.iter().zip(rows.iter().skip(1));
    let mut gaps: Vec<Duration> =
        pairs.map(|(row, next)| next.time.saturating_sub(row.time)).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(Duration::from_secs(1))
}

/// `text` times ten to the power of `decimals`, rounded down.
fn decimal(text: &str, decimals: u32) -> Option<u64> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let fraction = fraction.bytes().chain(std::iter::repeat(b'0')).take(decimals as usize);
    let fraction = fraction.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.checked_mul(10u64.checked_pow(decimals)?)?.checked_add(fraction)
}

#[cfg(test)]
mod tests;
