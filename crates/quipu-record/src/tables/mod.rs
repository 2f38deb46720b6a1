//! Tables as they are written: columns of values, in CSV and in Parquet.

mod parquet;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use parquet::ParquetFile;

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Unknown, or it does not apply.
    Nothing,
    /// A whole number, not negative.
    Whole(u64),
    /// Any number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// Text.
    Text(&'a str),
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers, not negative.
    Whole,
    /// Any numbers.
    Number,
    /// True or false.
    Flag,
    /// Texts.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name, unlike those of the other columns.
    pub name: String,
    /// What its values are.
    pub kind: Kind,
}

impl Column {
    /// A column that results are known to have.
    pub fn known(name: &str) -> Column {
        const TEXTS: [&str; 9] = [
            "page",
            "network",
            "policy",
            "url",
            "end",
            "name",
            "origin",
            "direction",
            "congestion",
        ];
        let kind = match name {
            "held" => Kind::Flag,
            name if TEXTS.contains(&name) => Kind::Text,
            _ => Kind::Whole,
        };
        Column { name: name.to_owned(), kind }
    }
}

impl From<Option<u64>> for Value<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Value::Nothing, Value::Whole)
    }
}

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
