//! Tables of results as Arrow streams, which polars, pandas, DuckDB and pyarrow read without a copy of rows.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use quipu_record::{Kind, column_kind};

use crate::error;

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Table>()
}

/// A table of a folder of results: columns with their types and units in their names. Anything that takes Arrow
/// streams takes it: `polars.DataFrame(table)`, `duckdb.sql("select … from table")`, `pyarrow.table(table)`.
#[pyclass(frozen, module = "quipu")]
pub(crate) struct Table {
    name: String,
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// Reads the CSV file at `path`. Columns that results are known to have get their types, others those that their
    /// values allow.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
        py.detach(|| read(path))
    }

    /// What it is called, such as `runs`.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The names of its columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!(
            "<Table {}: {} rows, {} columns>",
            self.name,
            self.batch.num_rows(),
            self.batch.num_columns()
        )
    }

    /// The rows as a stream of Arrow's C interface.
    /// <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, which the interface lets a producer ignore.
        drop(requested_schema);
        let rows = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(rows));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// A column that grows.
enum Growing {
    Whole(Int64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
    Text(StringBuilder),
}

impl Growing {
    fn new(kind: Kind) -> Growing {
        match kind {
            Kind::Whole => Growing::Whole(Int64Builder::new()),
            Kind::Number => Growing::Number(Float64Builder::new()),
            Kind::Flag => Growing::Flag(BooleanBuilder::new()),
            Kind::Text => Growing::Text(StringBuilder::new()),
        }
    }

    /// Adds a value; an empty one is none. `false` if it is of another kind.
    fn add(&mut self, text: &str) -> bool {
        fn read<T: std::str::FromStr>(text: &str) -> Option<Option<T>> {
            if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
        }
        match self {
            Growing::Whole(values) => read(text).map(|value| values.append_option(value)).is_some(),
            Growing::Number(values) => {
                read(text).map(|value| values.append_option(value)).is_some()
            }
            Growing::Flag(values) => read(text).map(|value| values.append_option(value)).is_some(),
            Growing::Text(values) => {
                values.append_value(text);
                true
            }
        }
    }

    fn finish(self) -> (DataType, ArrayRef) {
        let array: ArrayRef = match self {
            Growing::Whole(mut values) => Arc::new(values.finish()),
            Growing::Number(mut values) => Arc::new(values.finish()),
            Growing::Flag(mut values) => Arc::new(values.finish()),
            Growing::Text(mut values) => Arc::new(values.finish()),
        };
        (array.data_type().clone(), array)
    }
}

fn read(path: PathBuf) -> PyResult<Table> {
    let shown = path.display().to_string();
    let unreadable = |reason: String| error::run(format!("cannot read {shown}: {reason}"));
    let mut file = csv::Reader::from_path(&path).map_err(|error| unreadable(error.to_string()))?;
    let titles: Vec<String> = file
        .headers()
        .map_err(|error| unreadable(error.to_string()))?
        .iter()
        .map(str::to_owned)
        .collect();
    let rows: Result<Vec<csv::StringRecord>, _> = file.records().collect();
    let rows = rows.map_err(|error| unreadable(error.to_string()))?;
    let mut fields = Vec::with_capacity(titles.len());
    let mut arrays = Vec::with_capacity(titles.len());
    for (index, title) in titles.iter().enumerate() {
        let values = || rows.iter().map(|row| row.get(index).unwrap_or_default());
        let kinds = column_kind(title).into_iter().chain(KINDS);
        // Texts are what all values are.
        let column = kinds.filter_map(|kind| column(kind, values())).next();
        let (kind, array) = column.unwrap_or_else(|| Growing::new(Kind::Text).finish());
        fields.push(Field::new(title, kind, true));
        arrays.push(array);
    }
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|error| unreadable(error.to_string()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Table { name, batch })
}

/// What values of columns may be that only this folder has, the narrowest first.
const KINDS: [Kind; 4] = [Kind::Whole, Kind::Number, Kind::Flag, Kind::Text];

/// A column of `values`, if they are all of that kind.
fn column<'v>(kind: Kind, values: impl Iterator<Item = &'v str>) -> Option<(DataType, ArrayRef)> {
    let mut column = Growing::new(kind);
    for value in values {
        if !column.add(value) {
            return None;
        }
    }
    Some(column.finish())
}
