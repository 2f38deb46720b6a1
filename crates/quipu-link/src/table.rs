//! Tables of measurements over time: CSV with a column `time_s`.

use quipu_base::Duration;

/// The most rows that a series may have: 1,048,576. Our choice.
pub(crate) const MOST_ROWS: usize = 1 << 20;

/// Why a text is no series of measurements over time. Lines count from 1, the header's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
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
        /// The name that was looked for, or several with `or` between.
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
    /// There is no row with a value.
    #[error("no value in column `{column}`, expected at least one")]
    NoValue {
        /// The column of the values.
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
    /// A number is above what its column may have.
    #[error("line {line}: `{column}` is {found}, expected at most {most}")]
    TooMuch {
        /// Where it is.
        line: usize,
        /// Name of the field's column.
        column: String,
        /// The field's first 24 characters.
        found: String,
        /// The most that it may be.
        most: &'static str,
    },
    /// There are more rows than a series may have.
    #[error("line {line}: expected not more than {MOST_ROWS} rows")]
    TooLong {
        /// The first line too many.
        line: usize,
    },
}

/// What a column of numbers may hold.
pub(crate) struct Kind {
    /// A number is told in units of ten to the power of this less.
    pub(crate) decimals: u32,
    /// The most, in those units, and as text.
    pub(crate) most: (u64, &'static str),
    /// Whether a field may be empty.
    pub(crate) optional: bool,
}

/// Times without end: 10 million seconds, which leaves room for many rounds. Our choice.
const TIMES: Kind =
    Kind { decimals: 9, most: (10_000_000_000_000_000, "10000000 s"), optional: false };

/// A series as it was read: values strictly in order of time, at least one row.
pub(crate) struct Rows<T> {
    pub(crate) rows: Vec<(Duration, T)>,
    /// To the end of the last row, which is as long as rows usually are.
    pub(crate) length: Duration,
}

/// True if the header of `text` has a column of that name.
pub(crate) fn has_column(text: &str, column: &str) -> bool {
    header(text).split(',').any(|found| found == column)
}

fn header(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// An error for a column that is not in the header of `text`.
pub(crate) fn no_column(text: &str, column: &str) -> SeriesError {
    let header = header(text).chars().take(80).collect();
    SeriesError::NoColumn { column: column.to_owned(), header }
}

/// Reads the numbers in `column` with their times in the column `time_s`; `None` where a field is
/// empty and may be. Of rows with one time the last one counts.
///
/// The text is CSV without quotes: a header with the names of the columns, then a row on each line
/// with as many fields. Numbers are decimal, without sign or exponent; further digits are dropped.
pub(crate) fn read(
    text: &str,
    column: &str,
    kind: &Kind,
) -> Result<Rows<Option<u64>>, SeriesError> {
    let place = |name: &str| {
        let found = header(text).split(',').position(|found| found == name);
        found.ok_or_else(|| no_column(text, name))
    };
    let (times, values) = (place("time_s")?, place(column)?);
    let expected = header(text).split(',').count();

    let mut rows: Vec<(Duration, Option<u64>)> = Vec::new();
    for (line, content) in (1..).zip(text.lines()).skip(1) {
        if line > MOST_ROWS + 1 {
            return Err(SeriesError::TooLong { line });
        }
        let found = content.split(',').count();
        if found != expected {
            return Err(SeriesError::FieldCount { line, found, expected });
        }
        let field = |place| content.split(',').nth(place).unwrap_or_default();
        let time = number(line, "time_s", field(times), &TIMES)?.unwrap_or_default();
        let time = Duration::from_nanos(time);
        let value = number(line, column, field(values), kind)?;
        // Rows of one instant: the last one holds.
        if let Some((before, _)) = rows.pop_if(|(before, _)| *before >= time)
            && before > time
        {
            return Err(SeriesError::Backwards { line, found: short(field(times)) });
        }
        rows.push((time, value));
    }
    match rows.last() {
        Some((last, _)) => {
            let length = *last + usual_gap(&rows);
            Ok(Rows { rows, length })
        }
        None => Err(SeriesError::NoValue { column: column.to_owned() }),
    }
}

fn number(line: usize, column: &str, field: &str, kind: &Kind) -> Result<Option<u64>, SeriesError> {
    if kind.optional && field.is_empty() {
        return Ok(None);
    }
    let (column, found) = (|| column.to_owned(), || short(field));
    let number = decimal(field, kind.decimals).ok_or_else(|| SeriesError::NotNumber {
        line,
        column: column(),
        found: found(),
    })?;
    let (most, text) = kind.most;
    if number > most {
        return Err(SeriesError::TooMuch { line, column: column(), found: found(), most: text });
    }
    Ok(Some(number))
}

/// As much of a field as an error tells.
fn short(field: &str) -> String {
    field.chars().take(24).collect()
}

/// The lower median of the times between rows; a second if there is one row alone, our choice.
fn usual_gap<T>(rows: &[(Duration, T)]) -> Duration {
    let pairs = rows.iter().zip(rows.iter().skip(1));
    let mut gaps: Vec<Duration> = pairs.map(|(row, next)| next.0.saturating_sub(row.0)).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len().saturating_sub(1) / 2).copied().unwrap_or(Duration::from_secs(1))
}

/// `text` times ten to the power of `decimals`, rounded down.
pub(crate) fn decimal(text: &str, decimals: u32) -> Option<u64> {
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
