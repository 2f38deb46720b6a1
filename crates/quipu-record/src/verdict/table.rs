//! Tables of results, which texts show.

use serde::{Deserialize, Serialize};

use crate::metric::Dimension;

/// A table of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResultTable {
    /// Its name.
    pub name: String,
    /// What stands above the names of the rows; may be empty.
    pub head: String,
    /// Whether it is drawn: a curve for each column over the rows.
    #[serde(default)]
    pub curves: bool,
    /// What the numbers of curves count.
    #[serde(default)]
    pub dimension: Dimension,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<TableRow>,
}

/// A row of a table of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// Its name.
    pub name: String,
    /// A cell for each column; none where nothing is there.
    pub cells: Vec<Option<TableCell>>,
}

/// A cell of a table of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableCell {
    /// The number in words.
    pub text: String,
    /// The number, in nanoseconds, bytes, bits per second or plain.
    pub value: f64,
    /// Its 95 % interval; `null` without chance.
    pub interval: Option<(f64, f64)>,
}
