//! Why a text is no series of measurements.

use super::MOST_ROWS;
use crate::columns::ColumnUnit;

/// Why a text is no series of measurements over time. Lines count from 1, the header's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SeriesError {
    /// A row's time is before that of the row before.
    #[error("line {line}: `{column}` is {found}, expected not before the row before")]
    Backwards {
        /// Where it is.
        line: usize,
        /// The column of the times.
        column: String,
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
    #[error("line 1: no column `{column}`, expected it among `{}`", shown(header))]
    NoColumn {
        /// The name that was looked for, or several with `or` between.
        column: String,
        /// The names of all columns.
        header: Vec<String>,
    },
    /// There is no row with a rate above zero.
    #[error("no rate in column `{column}`, expected one above zero")]
    NoRate {
        /// The column of the rates.
        column: String,
    },
    /// What stands behind the name of a column is no unit.
    #[error("`{found}` is no unit of column `{column}`, expected one of {}", ColumnUnit::list())]
    NoUnit {
        /// The column.
        column: String,
        /// What stands there.
        found: String,
    },
    /// There is no row with a value.
    #[error("no value in column `{column}`, expected at least one")]
    NoValue {
        /// The column of the values.
        column: String,
    },
    /// A field is not a date.
    #[error("line {line}: `{column}` is `{found}`, expected a date such as 2024-01-11T10:06:39Z")]
    NotDate {
        /// Where it is.
        line: usize,
        /// Name of the field's column.
        column: String,
        /// The field's first 24 characters.
        found: String,
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
    /// Fields may be separated by several signs.
    #[error("line 1: {signs} may separate fields, expected one of them alone")]
    Separators {
        /// The signs, with `and` between.
        signs: String,
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
    /// A column has a unit of something else.
    #[error("the unit of column `{column}` is {unit}, expected one of {expected}")]
    WrongUnit {
        /// The column.
        column: String,
        /// Its unit.
        unit: ColumnUnit,
        /// Units that it may have.
        expected: &'static str,
    },
}

/// As many names as a line holds.
fn shown(header: &[String]) -> String {
    const LONGEST: usize = 240;
    let text = header.join("`, `");
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}
