//! Tables as they stand in files: header, separators, quotes.

use csv::{Reader, ReaderBuilder, StringRecord, Trim};

use super::MOST_ROWS;
use super::error::SeriesError;

/// A text with a header and rows.
pub(crate) struct Sheet<'t> {
    text: &'t str,
    separator: u8,
    pub(crate) header: Vec<String>,
}

/// What may separate fields.
const SEPARATORS: [(u8, &str); 3] = [(b',', "`,`"), (b';', "`;`"), (b'\t', "tab")];

/// Rows at which separators are tried, if the header may have several.
const TRIED: usize = 20;

fn reader(text: &str, separator: u8) -> Reader<&[u8]> {
    let mut builder = ReaderBuilder::new();
    builder.delimiter(separator).flexible(true).trim(Trim::All);
    builder.from_reader(text.as_bytes())
}

fn header_of(text: &str, separator: u8) -> Vec<String> {
    // Text in memory can always be read.
    let header = reader(text, separator).headers().cloned().unwrap_or_default();
    header.iter().map(str::to_owned).collect()
}

impl<'t> Sheet<'t> {
    /// The table in `text`, which may begin with a byte order mark.
    ///
    /// # Errors
    /// If several signs may separate its fields.
    pub(crate) fn new(text: &'t str) -> Result<Sheet<'t>, SeriesError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let divides = |(sign, _): &(u8, &str)| header_of(text, *sign).len() > 1;
        let mut found: Vec<(u8, &str)> = SEPARATORS.into_iter().filter(divides).collect();
        if found.len() > 1 {
            let even: Vec<_> =
                found.iter().copied().filter(|(sign, _)| is_even(text, *sign)).collect();
            found = if even.is_empty() { found } else { even };
        }
        let separator = match *found {
            [] => b',',
            [(sign, _)] => sign,
            _ => {
                let signs: Vec<&str> = found.iter().map(|(_, name)| *name).collect();
                return Err(SeriesError::Separators { signs: signs.join(" and ") });
            }
        };
        Ok(Sheet { text, separator, header: header_of(text, separator) })
    }

    /// The place of the column of that name.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.header.iter().position(|found| found == name)
    }

    /// The place of the column of that name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn column(&self, name: &str) -> Result<usize, SeriesError> {
        self.place(name).ok_or_else(|| self.no_column(name))
    }

    /// An error for a column that is not there. What stands behind a colon may be meant as a unit.
    pub(crate) fn no_column(&self, name: &str) -> SeriesError {
        match name.rsplit_once(':') {
            Some((column, found)) if self.place(column.trim()).is_some() => SeriesError::NoUnit {
                column: column.trim().to_owned(),
                found: found.trim().to_owned(),
            },
            _ => SeriesError::NoColumn { column: name.to_owned(), header: self.header.clone() },
        }
    }

    /// Gives each row to `take`, until there is an error. Blank lines are no rows.
    ///
    /// # Errors
    /// At the first row that has another number of fields, that is one too many, or that `take` refuses.
    pub(crate) fn each(
        &self,
        mut take: impl FnMut(&Row<'_>) -> Result<(), SeriesError>,
    ) -> Result<(), SeriesError> {
        let mut reader = reader(self.text, self.separator);
        let mut record = StringRecord::new();
        let mut rows = 0;
        // Text in memory can always be read.
        while reader.read_record(&mut record).unwrap_or(false) {
            let row = Row { sheet: self, record: &record };
            let (found, expected) = (record.len(), self.header.len());
            rows += 1;
            if rows > MOST_ROWS {
                return Err(SeriesError::TooLong { line: row.line() });
            }
            if found != expected {
                return Err(SeriesError::FieldCount { line: row.line(), found, expected });
            }
            take(&row)?;
        }
        Ok(())
    }
}

/// Whether the first rows have as many fields as the header if `separator` separates them.
fn is_even(text: &str, separator: u8) -> bool {
    let columns = header_of(text, separator).len();
    let mut reader = reader(text, separator);
    let mut rows = reader.records().take(TRIED);
    rows.all(|row| row.is_ok_and(|row| row.len() == columns))
}

/// A row of a table.
pub(crate) struct Row<'s> {
    sheet: &'s Sheet<'s>,
    record: &'s StringRecord,
}

impl Row<'_> {
    /// The field at `place`, with a point in numbers where commas may stand for it.
    pub(crate) fn field(&self, place: usize) -> std::borrow::Cow<'_, str> {
        let field = self.record.get(place).unwrap_or_default();
        match self.sheet.separator {
            b';' if field.contains(',') => field.replace(',', ".").into(),
            _ => field.into(),
        }
    }

    /// Where it begins, counted in lines from 1. Looked up from the start of the text: errors alone ask for it.
    pub(crate) fn line(&self) -> usize {
        let place = self.record.position().map_or(0, csv::Position::byte);
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        let bytes = self.sheet.text.as_bytes();
        let ends = bytes.iter().skip(place).take_while(|byte| matches!(byte, b'\r' | b'\n'));
        let place = place.saturating_add(ends.count());
        bytes.iter().take(place).filter(|byte| **byte == b'\n').count() + 1
    }
}
