//! Rows of a CSV file, with checks: what is wrong becomes a notice, and the rest is still read.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use csv::ByteRecord;
use quipu_record::suggestion;

use crate::notices::{Notices, clean};

/// A table that is read row by row.
pub(super) struct Rows {
    /// What the file is called in notices.
    name: String,
    reader: csv::Reader<File>,
    header: Vec<String>,
    record: ByteRecord,
    /// The first row that was left out, and why.
    bad: Option<String>,
    /// How many rows were left out.
    left_out: u64,
}

/// A row has to be left out; why is noted.
pub(super) struct Bad;

/// Columns that a table may have.
const MOST_COLUMNS: usize = 200;

impl Rows {
    /// Opens `file` of `folder`, which notices call `label`. `None` if it is not there, without a
    /// notice, or cannot be read, with one.
    pub(super) fn open(
        folder: &Path,
        label: &str,
        file: &str,
        notices: &mut Notices,
    ) -> Option<Rows> {
        let name = if label.is_empty() { file.to_owned() } else { format!("{label}/{file}") };
        let path = folder.join(file);
        if !path.exists() {
            return None;
        }
        let opened = csv::ReaderBuilder::new().buffer_capacity(1 << 18).from_path(path);
        let read = opened.and_then(|mut reader| {
            let header = reader.byte_headers()?;
            let text = |column: &[u8]| clean(&String::from_utf8_lossy(column));
            let header = header.iter().take(MOST_COLUMNS).map(text).collect();
            Ok((reader, header))
        });
        match read {
            Ok((reader, header)) => Some(Rows {
                name,
                reader,
                header,
                record: ByteRecord::new(),
                bad: None,
                left_out: 0,
            }),
            Err(error) => {
                notices.add(format!("{name} cannot be read: {error}."));
                None
            }
        }
    }

    /// Names of the columns.
    pub(super) fn header(&self) -> &[String] {
        &self.header
    }

    /// The position of `column`, if it is there.
    pub(super) fn find(&self, column: &str) -> Option<usize> {
        self.header.iter().position(|name| name == column)
    }

    /// The positions of `columns`; `None`, with a notice, if one is missing.
    pub(super) fn need<const N: usize>(
        &self,
        columns: [&str; N],
        notices: &mut Notices,
    ) -> Option<[usize; N]> {
        let mut positions = [0; N];
        for (position, column) in positions.iter_mut().zip(columns) {
            let Some(found) = self.find(column) else {
                let near = suggestion(column, self.header.iter().map(String::as_str));
                let near = near.replace("did you mean", "nearest is").replace('?', "");
                notices.add(format!(
                    "{} has no column `{column}`{near}; what needs it is left out.",
                    self.name
                ));
                return None;
            };
            *position = found;
        }
        Some(positions)
    }

    /// Goes to the next row; false at the end.
    pub(super) fn next(&mut self) -> bool {
        loop {
            match self.reader.read_byte_record(&mut self.record) {
                Ok(more) => return more,
                Err(error) => {
                    let stops = error.is_io_error();
                    let why = match error.kind() {
                        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                            format!("{len} cells; expected {expected_len}")
                        }
                        _ => error.to_string(),
                    };
                    self.leave_out(&why);
                    if stops {
                        return false;
                    }
                }
            }
        }
    }

    /// The cell at `position`, as bytes.
    pub(super) fn bytes(&self, position: usize) -> &[u8] {
        self.record.get(position).unwrap_or_default()
    }

    /// The cell at `position`, as text.
    pub(super) fn text(&self, position: usize) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(position))
    }

    /// The whole number at `position`.
    pub(super) fn number(&mut self, position: usize) -> Result<u64, Bad> {
        self.optional(position)?.ok_or_else(|| self.bad(position))
    }

    /// The whole number at `position`; `None` if the cell is empty.
    pub(super) fn optional(&mut self, position: usize) -> Result<Option<u64>, Bad> {
        let bytes = self.bytes(position);
        if bytes.is_empty() {
            return Ok(None);
        }
        let number = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
        number.map(Some).ok_or_else(|| self.bad(position))
    }

    /// Notes that the cell at `position` is not a whole number.
    fn bad(&mut self, position: usize) -> Bad {
        let column = self.header.get(position).map(String::as_str).unwrap_or_default();
        let value = clean(&self.text(position));
        let why = format!("column {column}: `{value}`; expected a whole number");
        self.leave_out(&why);
        Bad
    }

    fn leave_out(&mut self, why: &str) {
        self.left_out += 1;
        if self.bad.is_none() {
            let line = self.record.position().map_or(self.reader.position().line(), |at| at.line());
            self.bad = Some(format!("{}, line {line}: {why}", self.name));
        }
    }

    /// Says which rows were left out.
    pub(super) fn finish(self, notices: &mut Notices) {
        let Some(bad) = self.bad else { return };
        match self.left_out {
            1 => notices.add(format!("{bad}; this row is left out.")),
            rows => notices.add(format!("{bad}; this row and {} more are left out.", rows - 1)),
        }
    }
}
