//! Tables of public data sets.

use std::cell::RefCell;

use quipu_base::Duration;

use super::ConvertError;
use super::measured::{Measured, What};
use crate::SeriesError;
use crate::columns::{Column, ColumnUnit, Columns, decimal};
use crate::table::{Clock, Row, Sheet, date, short};

type Read = Result<Measured, ConvertError>;

/// What stands for a value that was not measured.
fn is_missing(field: &str) -> bool {
    matches!(field, "" | "-" | "NaN" | "nan" | "NA" | "null")
}

/// A column with its unit.
struct Source {
    name: String,
    place: usize,
    unit: ColumnUnit,
}

impl Source {
    /// The column of that name, in the unit that it tells, or else in `unit`.
    fn new(sheet: &Sheet<'_>, column: &Column, unit: &str) -> Result<Source, SeriesError> {
        let place = sheet.column(&column.name)?;
        let unit = column.known_unit().or_else(|| ColumnUnit::named(unit));
        let unit = unit.unwrap_or(ColumnUnit::MILLISECONDS);
        Ok(Source { name: column.name.clone(), place, unit })
    }

    fn named(sheet: &Sheet<'_>, text: &str) -> Result<Source, SeriesError> {
        Self::new(sheet, &Column::from(text), "")
    }

    /// The number in `row`, `None` if it was not measured.
    fn read(&self, row: &Row<'_>) -> Result<Option<u64>, SeriesError> {
        let field = row.field(self.place);
        if is_missing(&field) {
            return Ok(None);
        }
        let number = self.unit.read(&field);
        number.map(Some).ok_or_else(|| SeriesError::NotNumber {
            line: row.line(),
            column: self.name.clone(),
            found: short(&field),
        })
    }
}

/// A table of ours, or of others with names for their columns.
pub(super) fn csv(text: &str, columns: &Columns) -> Read {
    let sheet = Sheet::new(text)?;
    let clock = RefCell::new(Clock::new(&sheet, columns.time.as_ref())?);
    let rate = if columns.up.is_some() { What::Down } else { What::Rate };
    let wanted = [
        (rate, &columns.rate, "Mbit/s"),
        (What::Up, &columns.up, "Mbit/s"),
        (What::RoundTrip, &columns.rtt, "ms"),
        (What::Loss, &columns.loss, "%"),
    ];
    let mut sources: Vec<(What, Source)> = Vec::new();
    for (what, column, unit) in wanted {
        if let Some(column) = column {
            sources.push((what, Source::new(&sheet, column, unit)?));
        }
    }
    if sources.is_empty() {
        let usual = What::ALL.into_iter().filter(|what| sheet.place(what.column()).is_some());
        let usual = usual.map(|what| Ok((what, Source::named(&sheet, what.column())?)));
        sources = usual.collect::<Result<_, SeriesError>>()?;
    }
    if sources.is_empty() {
        return Err(sheet.no_column("mbps` or `rtt_ms").into());
    }
    let has_rates = sources.iter().any(|(what, _)| what.is_rate());
    let mut measured = Measured::default();
    sheet.each(|row| {
        let at = clock.borrow_mut().read(row)?;
        let mut values = Vec::new();
        for (what, source) in &sources {
            values.push((*what, source.read(row)?));
        }
        // A round trip that is missing was lost.
        match has_rates && values.iter().any(|(what, value)| what.is_rate() && value.is_none()) {
            true => measured.leave_out("rows without a rate"),
            false => put(&mut measured, at, &values),
        }
        Ok(())
    })?;
    Ok(measured.ends_as_usual())
}

/// Puts a row behind the others, in place of one of the same time.
fn put(measured: &mut Measured, at: Duration, values: &[(What, Option<u64>)]) {
    if measured.samples.pop_if(|last| last.at == at).is_some() {
        measured.leave_out("rows that a later one of the same time replaces");
    }
    measured.push(at, 1, values);
}

/// `TIME_STAMP_x,DLtput_x,…,TIME_STAMP_y,DLtput_y,…`, or `ULtput`: Unix times in seconds, Mbit/s.
pub(super) fn pam2025(text: &str, only: Option<&str>) -> Read {
    let carrier = match only {
        None => "x",
        Some(carrier @ ("x" | "y")) => carrier,
        Some(found) => {
            let expected = "the carrier x or y, the first or the second in the file's name";
            return Err(ConvertError::Only { found: found.to_owned(), expected });
        }
    };
    let sheet = Sheet::new(text)?;
    let names = ["DL", "UL"].map(|direction| format!("{direction}tput_{carrier}"));
    let name = names.iter().find(|name| sheet.place(name).is_some()).unwrap_or(&names[0]);
    let time = Column::from(format!("TIME_STAMP_{carrier}:s").as_str());
    let rate = Column::from(format!("{name}:Mbit/s").as_str());
    csv(text, &Columns { time: Some(time), rate: Some(rate), ..Columns::default() })
}

/// The time from `start` to `end` of rows that tell both, strung together. What lies between is cut out.
struct Strung {
    start: usize,
    end: usize,
    /// Where the last row ended, on the clock of the file.
    ended_at: Option<u64>,
    /// The same in the recording.
    at: Duration,
    test: u32,
}

impl Strung {
    fn new(sheet: &Sheet<'_>) -> Result<Strung, SeriesError> {
        let (start, end) = (sheet.column("timestamp_start")?, sheet.column("timestamp_end")?);
        Ok(Strung { start, end, ended_at: None, at: Duration::ZERO, test: 0 })
    }

    /// Whether the row began at a time that begins with `only`.
    fn is_meant(&self, row: &Row<'_>, only: Option<&str>) -> bool {
        only.is_none_or(|only| row.field(self.start).starts_with(only))
    }

    /// Where the row begins in the recording, and its test.
    fn next(&mut self, row: &Row<'_>) -> Result<(Duration, u32), SeriesError> {
        let read = |place: usize, column: &str| {
            date(&row.field(place)).ok_or_else(|| SeriesError::NotDate {
                line: row.line(),
                column: column.to_owned(),
                found: short(&row.field(place)),
            })
        };
        let start = read(self.start, "timestamp_start")?;
        let end = read(self.end, "timestamp_end")?;
        if self.ended_at != Some(start) {
            self.test += 1;
        }
        let at = self.at;
        self.ended_at = Some(end);
        self.at += Duration::from_nanos(end.saturating_sub(start));
        Ok((at, self.test))
    }
}

const OTHER_TIMES: &str = "rows of other times";

/// Seconds of tests with iperf: rates down and up.
pub(super) fn starlink_iperf(text: &str, only: Option<&str>) -> Read {
    let columns = [(What::Down, "download_mbps"), (What::Up, "upload_mbps")];
    starlink(text, only, columns, "rows without a rate")
}

/// Tests with ping of 25 s: the mean round trip and the loss of each.
pub(super) fn starlink_ping(text: &str, only: Option<&str>) -> Read {
    let columns = [(What::RoundTrip, "ping_avg:ms"), (What::Loss, "packet_loss:%")];
    starlink(text, only, columns, "tests without a round trip or a loss")
}

/// Tests strung together, with the values of `columns`; rows without one of them are left out as `incomplete`.
fn starlink(
    text: &str,
    only: Option<&str>,
    columns: [(What, &str); 2],
    incomplete: &'static str,
) -> Read {
    let sheet = Sheet::new(text)?;
    let mut strung = Strung::new(&sheet)?;
    let [(first, one), (second, other)] = columns;
    let (one, other) = (Source::named(&sheet, one)?, Source::named(&sheet, other)?);
    let mut measured = Measured::default();
    sheet.each(|row| {
        let values = [(first, one.read(row)?), (second, other.read(row)?)];
        if !strung.is_meant(row, only) {
            measured.leave_out(OTHER_TIMES);
        } else if values.iter().any(|(_, value)| value.is_none()) {
            measured.leave_out(incomplete);
        } else {
            let (at, test) = strung.next(row)?;
            measured.push(at, test, &values);
        }
        Ok(())
    })?;
    Ok(measured.ends_at(strung.at))
}

/// Chunks of video: kilobits (which the data set calls kilobytes), the rate that they came at in kbit/s, and for how
/// long in seconds. Those that say little of the link are left out, as in the recordings that ship: under 1,000 kbit, or
/// faster than 30 ms. Pauses between chunks are cut out.
pub(super) fn lumos(text: &str) -> Read {
    let sheet = Sheet::new(text)?;
    let kilobits = sheet.column("chunk_size")?;
    let rate = Source::named(&sheet, "app_throughput:kbit/s")?;
    let time = Source::named(&sheet, "delivery_time:s")?;
    let mut measured = Measured::default();
    let mut at = Duration::ZERO;
    sheet.each(|row| {
        let size = decimal(&row.field(kilobits), 0).unwrap_or_default();
        match (rate.read(row)?, time.read(row)?) {
            (Some(_), Some(_)) if size < 1_000 => measured.leave_out("chunks under 1000 kbit"),
            (Some(_), Some(nanos)) if nanos < 30_000_000 => {
                measured.leave_out("chunks that took less than 30 ms");
            }
            (rate @ Some(_), Some(nanos)) => {
                measured.push(at, 1, &[(What::Rate, rate)]);
                at += Duration::from_nanos(nanos);
            }
            _ => measured.leave_out("chunks without a rate or a time"),
        }
        Ok(())
    })?;
    Ok(measured.ends_at(at))
}

/// A row a second, or several, of which the last counts: `2019.12.16_13.40.04`, rates in kbit/s.
pub(super) fn gnettrack(text: &str) -> Read {
    let sheet = Sheet::new(text)?;
    let times = sheet.column("Timestamp")?;
    let down = Source::named(&sheet, "DL_bitrate:kbit/s")?;
    let up = Source::named(&sheet, "UL_bitrate:kbit/s")?;
    let mut measured = Measured::default();
    let mut start = None;
    sheet.each(|row| {
        let field = row.field(times);
        let mut parts = field.split(['.', '_']);
        let mut next = || parts.next().unwrap_or_default();
        let text = format!("{}-{}-{}T{}:{}:{}", next(), next(), next(), next(), next(), next());
        let now = date(&text).ok_or_else(|| SeriesError::NotDate {
            line: row.line(),
            column: "Timestamp".to_owned(),
            found: short(&field),
        })?;
        let since = now.checked_sub(*start.get_or_insert(now)).map(Duration::from_nanos);
        let last = measured.samples.last().map_or(Duration::ZERO, |last| last.at);
        let Some(at) = since.filter(|at| *at >= last) else {
            measured.leave_out("rows with a time before that of the row before");
            return Ok(());
        };
        let values = [(What::Down, down.read(row)?), (What::Up, up.read(row)?)];
        match values.iter().any(|(_, value)| value.is_none()) {
            true => measured.leave_out("rows without a rate"),
            false => put(&mut measured, at, &values),
        }
        Ok(())
    })?;
    Ok(measured.ends_as_usual())
}

/// Seconds and Mbit/s on each line, with blanks between.
pub(super) fn pensieve(text: &str) -> Read {
    let mut measured = Measured::default();
    for (line, content) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = content.split_whitespace().collect();
        let last = measured.samples.last().map_or(Duration::ZERO, |last| last.at);
        let (at, rate) = match *fields {
            [] => continue,
            [time, rate] => (decimal(time, 9).map(Duration::from_nanos), decimal(rate, 6)),
            _ => (None, None),
        };
        let (Some(at), Some(rate)) = (at.filter(|at| *at >= last), rate) else {
            return Err(ConvertError::Line {
                line,
                found: content.chars().take(40).collect(),
                expected: "seconds, not before those of the line before, and Mbit/s",
            });
        };
        put(&mut measured, at, &[(What::Rate, Some(rate))]);
    }
    Ok(measured.ends_as_usual())
}
