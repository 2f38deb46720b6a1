//! Tables of measurements over time: CSV with a column of times.

mod error;
mod sheet;

use quipu_base::Duration;

pub use error::SeriesError;
pub(crate) use sheet::{Row, Sheet};

use crate::columns::{Column, ColumnUnit, Quantity, decimal};

/// The most rows that a series may have: 1,048,576. Our choice.
pub(crate) const MOST_ROWS: usize = 1 << 20;

/// Times without end: 10 million seconds, which leaves room for many rounds. Our choice. A first row after that has
/// the time of a calendar, in which it is the start.
const MOST_TIME: (u64, &str) = (10_000_000_000_000_000, "10000000 s");

/// What a column of numbers may hold.
pub(crate) struct Kind {
    pub(crate) quantity: Quantity,
    /// The unit of columns that tell none, as it is called.
    pub(crate) unit: &'static str,
    /// The most, in what the quantity is counted in, and as text.
    pub(crate) most: (u64, &'static str),
    /// Whether a field may be empty.
    pub(crate) optional: bool,
}

/// A series as it was read: values strictly in order of time, at least one row.
#[derive(Debug)]
pub(crate) struct Rows<T> {
    pub(crate) rows: Vec<(Duration, T)>,
    /// To the end of the last row, which is as long as rows usually are.
    pub(crate) length: Duration,
}

impl Kind {
    /// The unit that numbers of `column` have.
    fn unit_of(&self, column: &Column) -> Result<Option<ColumnUnit>, SeriesError> {
        match column.unit {
            Some(unit) if unit.quantity != self.quantity => Err(SeriesError::WrongUnit {
                column: column.name.clone(),
                unit,
                expected: match self.quantity {
                    Quantity::Rate => "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s and MB/s",
                    Quantity::Time | Quantity::Date => "s, ms, us and ns",
                    Quantity::Share => "% and share",
                },
            }),
            _ => {
                let known = column.known_unit().filter(|unit| unit.quantity == self.quantity);
                Ok(known.or_else(|| ColumnUnit::named(self.unit)))
            }
        }
    }

    /// The number in `field`, `None` if it is empty and may be.
    pub(crate) fn read(
        &self,
        row: &Row<'_>,
        place: usize,
        column: &str,
        unit: ColumnUnit,
    ) -> Result<Option<u64>, SeriesError> {
        let field = row.field(place);
        if self.optional && field.is_empty() {
            return Ok(None);
        }
        let column = || column.to_owned();
        let Some(number) = unit.read(&field) else {
            let (line, found) = (row.line(), short(&field));
            return Err(SeriesError::NotNumber { line, column: column(), found });
        };
        let (most, text) = self.most;
        if number > most {
            let (line, found) = (row.line(), short(&field));
            return Err(SeriesError::TooMuch { line, column: column(), found, most: text });
        }
        Ok(Some(number))
    }
}

/// Reads the times of rows.
pub(crate) struct Clock {
    column: Column,
    place: usize,
    unit: Option<ColumnUnit>,
    /// The time that counts as 0, in nanoseconds, once a row is read.
    start: Option<u64>,
    before: u64,
}

impl Clock {
    /// That of the column of times; by default `time_s`.
    ///
    /// # Errors
    /// If there is no such column, or its unit is none of time.
    pub(crate) fn new(sheet: &Sheet<'_>, column: Option<&Column>) -> Result<Clock, SeriesError> {
        let column = column.cloned().unwrap_or_else(|| Column::new("time_s"));
        let place = sheet.column(&column.name)?;
        let is_time = |unit: &ColumnUnit| matches!(unit.quantity, Quantity::Time | Quantity::Date);
        if let Some(unit) = column.unit.filter(|unit| !is_time(unit)) {
            let expected = "s, ms, us, ns and date";
            return Err(SeriesError::WrongUnit { column: column.name, unit, expected });
        }
        let unit = column.known_unit().filter(is_time);
        Ok(Clock { column, place, unit, start: None, before: 0 })
    }

    /// The time of `row`, not before that of the last one.
    ///
    /// # Errors
    /// If it is no time, or before that of the last row.
    pub(crate) fn read(&mut self, row: &Row<'_>) -> Result<Duration, SeriesError> {
        let field = row.field(self.place);
        let column = || self.column.name.clone();
        let unit = *self.unit.get_or_insert_with(|| likely_unit(&field));
        let time = match unit.quantity {
            Quantity::Date => date(&field).ok_or_else(|| {
                let (line, found) = (row.line(), short(&field));
                SeriesError::NotDate { line, column: column(), found }
            })?,
            _ => unit.read(&field).ok_or_else(|| {
                let (line, found) = (row.line(), short(&field));
                SeriesError::NotNumber { line, column: column(), found }
            })?,
        };
        let (most, text) = MOST_TIME;
        let is_calendar = unit.quantity == Quantity::Date || time > most;
        let start = *self.start.get_or_insert(if is_calendar { time } else { 0 });
        let Some(time) = time.checked_sub(start).filter(|time| *time >= self.before) else {
            let (line, found) = (row.line(), short(&field));
            return Err(SeriesError::Backwards { line, column: column(), found });
        };
        if time > most {
            let (line, found) = (row.line(), short(&field));
            return Err(SeriesError::TooMuch { line, column: column(), found, most: text });
        }
        self.before = time;
        Ok(Duration::from_nanos(time))
    }
}

/// What a time looks like whose unit nothing tells: a date, or seconds; numbers that would be seconds after the year
/// 5000 are a thousandth, a millionth and so on of that.
fn likely_unit(field: &str) -> ColumnUnit {
    match decimal(field, 0) {
        None if date(field).is_some() => ColumnUnit::DATE,
        None | Some(0..100_000_000_000) => ColumnUnit::SECONDS,
        Some(100_000_000_000..100_000_000_000_000) => ColumnUnit::MILLISECONDS,
        Some(100_000_000_000_000..100_000_000_000_000_000) => {
            ColumnUnit::named("us").unwrap_or(ColumnUnit::SECONDS)
        }
        Some(_) => ColumnUnit::named("ns").unwrap_or(ColumnUnit::SECONDS),
    }
}

/// Nanoseconds from 1970 on to a date with a time of day, as ISO 8601 and RFC 3339 have it; one without a zone is UTC.
pub(crate) fn date(text: &str) -> Option<u64> {
    let at: jiff::Timestamp = text.parse().ok().or_else(|| {
        let at: jiff::civil::DateTime = text.parse().ok()?;
        Some(at.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp())
    })?;
    u64::try_from(at.as_nanosecond()).ok()
}

/// True if the header of `text` has a column of that name.
pub(crate) fn has_column(text: &str, column: &str) -> bool {
    Sheet::new(text).is_ok_and(|sheet| sheet.place(column).is_some())
}

/// Reads the numbers in `column` at the times in the column `time`; `None` where a field is empty and may be. Of rows
/// with one time the last one counts.
///
/// The text is CSV: a header with the names of the columns, then rows with as many fields, separated by commas,
/// semicolons or tabs, with quotes where they are needed. Numbers are decimal, without sign or exponent; further digits
/// are dropped. Between semicolons a comma may stand for the point.
pub(crate) fn read(
    sheet: &Sheet<'_>,
    time: Option<&Column>,
    column: &Column,
    kind: &Kind,
) -> Result<Rows<Option<u64>>, SeriesError> {
    let mut clock = Clock::new(sheet, time)?;
    let place = sheet.column(&column.name)?;
    let unit = kind.unit_of(column)?.unwrap_or(ColumnUnit::SECONDS);
    let mut rows: Vec<(Duration, Option<u64>)> = Vec::new();
    sheet.each(|row| {
        let time = clock.read(row)?;
        let value = kind.read(row, place, &column.name, unit)?;
        // Rows of one instant: the last one holds.
        rows.pop_if(|(before, _)| *before == time);
        rows.push((time, value));
        Ok(())
    })?;
    match rows.last() {
        Some((last, _)) => {
            let length = *last + usual_gap(rows.iter().map(|(time, _)| *time));
            Ok(Rows { rows, length })
        }
        None => Err(SeriesError::NoValue { column: column.name.clone() }),
    }
}

/// As much of a field as an error tells.
pub(crate) fn short(field: &str) -> String {
    field.chars().take(24).collect()
}

/// The lower median of the times between rows; a second if there is one row alone, our choice.
pub(crate) fn usual_gap(times: impl Iterator<Item = Duration> + Clone) -> Duration {
    let pairs = times.clone().zip(times.skip(1));
    let mut gaps: Vec<Duration> = pairs.map(|(row, next)| next.saturating_sub(row)).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(Duration::from_secs(1))
}

#[cfg(test)]
mod tests;
