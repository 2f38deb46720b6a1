//! Tables of results, for texts to show.

use super::super::measure::{Measure, OVER, Stat};
use super::rule::Side;
use super::unlike;
use crate::form::text::NAME;
use crate::form::{Kind, Shorthand, table};

table! {
    /// A table of results, which texts beside the page of verdicts show. A cell is the number where its row and its
    /// column are; what neither of them says has one value only.
    pub struct ResultTable as "Table of results" {
        /// Its name, different from those of other tables.
        pub name: String [text NAME],
        /// The heading of the column of row names.
        pub head: String => "none",
        /// The metric, unless the row or the column names one.
        pub metric: Measure,
        /// What its numbers are compared with: cells are then ratios, except that a side compared with itself shows its number.
        pub to: Option<Side> => "nothing",
        /// Whether it is also drawn on the page of verdicts, with a curve for each column over the rows.
        pub curves: bool = false,
        /// Its rows.
        pub rows: Vec<Line> [1..],
        /// Its columns.
        pub columns: Vec<Line> [1..],
    }
}

table! {
    /// A row or a column of a table of results.
    pub struct Line as "Line of a table" or String {
        /// What the table calls it.
        pub name: String [text NAME],
        /// Where it is.
        pub of: Option<Side> => "anywhere",
        /// Of numbers that are not compared: which one out of all runs.
        pub over: Option<Stat> [text OVER] => "`median`",
    }
}

impl Shorthand<String> for Line {
    const EXPECTED: &'static str = "the label of a policy, or a table with name, of or over";

    fn narrow(_: Kind) -> Kind {
        Kind::Text(&NAME)
    }

    fn from_short(policy: String) -> Result<Self, String> {
        let of = Some(Side { policy: Some(policy.clone()), ..Side::default() });
        Ok(Line { of, ..Line::least(policy) })
    }
}

impl ResultTable {
    /// Its rows and columns.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.rows.iter().chain(&self.columns)
    }
}

impl Line {
    /// Names of what it says of each cell.
    fn said(&self) -> impl Iterator<Item = &'static str> {
        let of = self.of.as_ref();
        let says = [
            ("policy", of.is_some_and(|side| side.policy.is_some())),
            ("network", of.is_some_and(|side| side.network.is_some())),
            ("page", of.is_some_and(|side| side.page.is_some())),
            ("variant", of.is_some_and(|side| side.variant.is_some())),
            ("metric", of.is_some_and(|side| side.metric.is_some())),
            ("over", self.over.is_some()),
        ];
        says.into_iter().filter_map(|(name, is_said)| is_said.then_some(name))
    }
}

/// Checks what no field can check alone.
pub(super) fn check(tables: &[ResultTable]) -> Result<(), String> {
    unlike("table", tables.iter().map(|table| table.name.as_str()))?;
    for ResultTable { name, to, curves, rows, columns, .. } in tables {
        let is_of_one_kind = |line: &Line| line.of.as_ref().is_none_or(|of| of.metric.is_none());
        if *curves && (to.is_some() || !rows.iter().chain(columns).all(is_of_one_kind)) {
            return Err(format!("table {name}: curves are of one metric, without `to`"));
        }
        for (what, lines) in [("row", rows), ("column", columns)] {
            let what = format!("table {name}: {what}");
            unlike(&what, lines.iter().map(|line| line.name.as_str()))?;
        }
        let of_rows: Vec<&str> = rows.iter().flat_map(Line::said).collect();
        let mut of_columns = columns.iter().flat_map(Line::said);
        if let Some(both) = of_columns.find(|said| of_rows.contains(said)) {
            return Err(format!("table {name}: rows and columns both say `{both}`"));
        }
    }
    Ok(())
}
