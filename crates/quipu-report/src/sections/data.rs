//! Datasets as they grow.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::Dataset;

/// Rows of a dataset.
#[derive(Debug)]
pub(super) struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// No rows, with these columns.
    pub(super) fn new<T: Into<String>>(columns: impl IntoIterator<Item = T>) -> Rows {
        Rows { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// Adds a row of as many cells.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Value>) {
        let mut row: Vec<Value> = cells.into_iter().collect();
        debug_assert_eq!(row.len(), self.columns.len(), "{:?}", self.columns);
        row.resize(self.columns.len(), Value::Null);
        self.rows.push(row);
    }

    /// Whether there are no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The dataset: columns of texts are written as positions in a list of them.
    pub(super) fn build(mut self) -> Dataset {
        let mut levels = BTreeMap::new();
        for (column, name) in self.columns.iter().enumerate() {
            if self.rows.is_empty() || !self.rows.iter().all(|row| row[column].is_string()) {
                continue;
            }
            let mut positions: BTreeMap<String, usize> = BTreeMap::new();
            let mut texts: Vec<String> = Vec::new();
            for row in &mut self.rows {
                let Value::String(text) = std::mem::take(&mut row[column]) else { continue };
                let position = *positions.entry(text).or_insert_with_key(|text| {
                    texts.push(text.clone());
                    texts.len() - 1
                });
                row[column] = Value::from(position);
            }
            levels.insert(name.clone(), texts);
        }
        Dataset { columns: self.columns, levels, rows: self.rows }
    }
}

/// `text` as a cell.
pub(super) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}
