//! Parquet files: the columns of a table, compressed, with their types.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};

use super::{Column, Kind, Value};

/// Rows that are held in memory before they are written.
const GROUP: usize = 1 << 16;

/// A Parquet file that rows are added to.
pub(crate) struct ParquetFile {
    writer: SerializedFileWriter<BufWriter<File>>,
    columns: Vec<Values>,
    rows: usize,
}

/// The values of one column that are not yet written, and for each row whether it has one.
struct Values {
    name: Cow<'static, str>,
    present: Vec<i16>,
    values: Kinds,
}

enum Kinds {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Flag(Vec<bool>),
    Text { values: Vec<ByteArray>, known: BTreeMap<Box<str>, ByteArray> },
}

fn failed(error: ParquetError) -> io::Error {
    io::Error::other(error)
}

impl ParquetFile {
    /// A table of `columns`, of which any value may be missing.
    pub(crate) fn new(file: BufWriter<File>, columns: &[Column]) -> io::Result<ParquetFile> {
        let mut properties = WriterProperties::builder().set_compression(Compression::SNAPPY);
        let mut fields = Vec::with_capacity(columns.len());
        for column in columns {
            let (physical, logical) = match column.kind {
                Kind::Whole => (Physical::INT64, None),
                Kind::Number => (Physical::DOUBLE, None),
                Kind::Flag => (Physical::BOOLEAN, None),
                Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            };
            let field = Type::primitive_type_builder(&column.name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_logical_type(logical)
                .build();
            fields.push(Arc::new(field.map_err(failed)?));
            if column.kind == Kind::Whole {
                // Times and amounts hardly repeat, but differ by little.
                let path = ColumnPath::new(vec![column.name.to_string()]);
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        let schema = Type::group_type_builder("table").with_fields(fields).build();
        let schema = Arc::new(schema.map_err(failed)?);
        let properties = Arc::new(properties.build());
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(failed)?;
        let columns = columns.iter().map(Values::new).collect();
        Ok(ParquetFile { writer, columns, rows: 0 })
    }

    /// Adds a row.
    pub(crate) fn write<'v>(&mut self, row: impl Iterator<Item = &'v Value<'v>>) -> io::Result<()> {
        let mut columns = self.columns.iter_mut();
        for value in row {
            let too_many = || io::Error::other("a row has more values than there are columns");
            columns.next().ok_or_else(too_many)?.add(value)?;
        }
        if columns.next().is_some() {
            return Err(io::Error::other("a row has fewer values than there are columns"));
        }
        self.rows += 1;
        if self.rows == GROUP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for values in &mut self.columns {
            let Some(mut column) = group.next_column().map_err(failed)? else { break };
            let present = Some(values.present.as_slice());
            let written = match (column.untyped(), &values.values) {
                (ColumnWriter::Int64ColumnWriter(column), Kinds::Whole(values)) => {
                    column.write_batch(values, present, None)
                }
                (ColumnWriter::DoubleColumnWriter(column), Kinds::Number(values)) => {
                    column.write_batch(values, present, None)
                }
                (ColumnWriter::BoolColumnWriter(column), Kinds::Flag(values)) => {
                    column.write_batch(values, present, None)
                }
                (ColumnWriter::ByteArrayColumnWriter(column), Kinds::Text { values, .. }) => {
                    column.write_batch(values, present, None)
                }
                _ => Err(ParquetError::General(format!("{} has another type", values.name))),
            };
            written.map_err(failed)?;
            column.close().map_err(failed)?;
            values.clear();
        }
        group.close().map_err(failed)?;
        self.rows = 0;
        Ok(())
    }

    /// Writes what is left, and what the file has.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.flush()?;
        }
        self.writer.close().map(|_| ()).map_err(failed)
    }
}

impl Values {
    fn new(column: &Column) -> Values {
        let values = match column.kind {
            Kind::Whole => Kinds::Whole(Vec::new()),
            Kind::Number => Kinds::Number(Vec::new()),
            Kind::Flag => Kinds::Flag(Vec::new()),
            Kind::Text => Kinds::Text { values: Vec::new(), known: BTreeMap::new() },
        };
        Values { name: column.name.clone(), present: Vec::new(), values }
    }

    fn add(&mut self, value: &Value<'_>) -> io::Result<()> {
        match (&mut self.values, value) {
            (_, Value::Nothing) => {}
            // Only times that never come are larger.
            (Kinds::Whole(all), Value::Whole(number)) => {
                all.push(i64::try_from(*number).unwrap_or(i64::MAX));
            }
            (Kinds::Number(all), Value::Number(number)) => all.push(*number),
            (Kinds::Number(all), Value::Whole(number)) => all.push(*number as f64),
            (Kinds::Flag(all), Value::Flag(flag)) => all.push(*flag),
            (Kinds::Text { values, known }, Value::Text(text)) => {
                let is_last = values.last().is_some_and(|last| last.data() == text.as_bytes());
                let found = if is_last { values.last() } else { known.get(*text) };
                let shared = match found {
                    Some(found) => found.clone(),
                    None => {
                        let new = ByteArray::from(text.as_bytes().to_vec());
                        known.insert((*text).into(), new.clone());
                        new
                    }
                };
                values.push(shared);
            }
            (_, value) => {
                let text = format!("column {}: {value:?} is of another type", self.name);
                return Err(io::Error::other(text));
            }
        }
        self.present.push(i16::from(*value != Value::Nothing));
        Ok(())
    }

    fn clear(&mut self) {
        self.present.clear();
        match &mut self.values {
            Kinds::Whole(values) => values.clear(),
            Kinds::Number(values) => values.clear(),
            Kinds::Flag(values) => values.clear(),
            Kinds::Text { values, known } => {
                values.clear();
                known.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::tables::{Form, TableFile};

    #[test]
    fn what_is_written_is_read_again_over_several_groups() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.parquet");
        let column = |name: &'static str, kind| Column::new(name, kind);
        let columns = [
            column("n", Kind::Whole),
            column("t", Kind::Text),
            column("f", Kind::Flag),
            column("x", Kind::Number),
        ];
        let mut table = TableFile::create(&file, Form::Parquet, &columns).unwrap();
        assert!(table.write(&[Value::Whole(1)], &[]).is_err());
        let mut table = TableFile::create(&file, Form::Parquet, &columns).unwrap();
        assert!(table.write(&[Value::Text("1")], &[]).is_err());
        let mut table = TableFile::create(&file, Form::Parquet, &columns).unwrap();
        let count = GROUP + 7;
        for index in 0..count as u64 {
            let text = format!("row {}", index % 5);
            let number = if index % 3 == 0 { Value::Nothing } else { Value::Whole(index) };
            let rest = [Value::Text(&text), Value::Flag(index % 2 == 0), Value::Number(0.5)];
            table.write(&[number], &rest).unwrap();
        }
        table.finish().unwrap();
        let reader = SerializedFileReader::new(File::open(&file).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let mut read = 0;
        for (index, row) in reader.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            assert_eq!(row.get_long(0).ok(), (index % 3 != 0).then_some(index as i64));
            assert_eq!(row.get_string(1).unwrap(), &format!("row {}", index % 5));
            assert_eq!(row.get_bool(2).unwrap(), index % 2 == 0);
            read += 1;
        }
        assert_eq!(read, count);
    }
}
