//! Tables as they are written: columns of values, in CSV and in Parquet.

mod column;
mod parquet;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use parquet::ParquetFile;

pub use column::{Column, Kind, Value};
pub(crate) use column::{columns, value};

/// A file that rows go into, all with the same columns.
pub struct TableFile(Rows);

enum Rows {
    Csv(Box<csv::Writer<BufWriter<File>>>),
    Parquet(Box<ParquetFile>),
}

/// In which form a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines of text, with the names of the columns first.
    Csv,
    /// Parquet, compressed with Snappy.
    Parquet,
}

impl Form {
    /// The name of the file of the table `name`.
    pub fn file(self, name: &str) -> String {
        match self {
            Form::Csv => format!("{name}.csv"),
            Form::Parquet => format!("{name}.parquet"),
        }
    }
}

impl TableFile {
    /// A new file at `path` for rows of `columns`.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn create(path: &Path, form: Form, columns: &[Column]) -> io::Result<TableFile> {
        let file = BufWriter::with_capacity(1 << 18, File::create(path)?);
        match form {
            Form::Csv => {
                let mut rows = csv::Writer::from_writer(file);
                rows.write_record(columns.iter().map(|column| column.name.as_bytes()))?;
                Ok(TableFile(Rows::Csv(Box::new(rows))))
            }
            Form::Parquet => {
                Ok(TableFile(Rows::Parquet(Box::new(ParquetFile::new(file, columns)?))))
            }
        }
    }

    /// Adds the row that is `lead` and then `rest`.
    ///
    /// # Errors
    /// If the file system refuses, or a value is not of its column's kind.
    pub fn write(&mut self, lead: &[Value<'_>], rest: &[Value<'_>]) -> io::Result<()> {
        let row = lead.iter().chain(rest);
        match &mut self.0 {
            Rows::Csv(rows) => {
                let mut digits = itoa::Buffer::new();
                for value in row {
                    match value {
                        Value::Nothing => rows.write_field(""),
                        Value::Whole(number) => rows.write_field(digits.format(*number)),
                        Value::Number(number) => rows.write_field(number.to_string()),
                        Value::Flag(flag) => rows.write_field(if *flag { "true" } else { "false" }),
                        Value::Text(text) => rows.write_field(text),
                    }?;
                }
                Ok(rows.write_record(None::<&[u8]>)?)
            }
            Rows::Parquet(file) => file.write(row),
        }
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Rows::Csv(rows) => {
                let mut file = rows.into_inner().map_err(|error| error.into_error())?;
                file.flush()
            }
            Rows::Parquet(file) => file.finish(),
        }
    }
}
