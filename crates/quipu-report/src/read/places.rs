//! Which cell a row belongs to.

use std::collections::BTreeMap;

use super::table::Rows;
use crate::notices::{Notices, clean};
use crate::results::{Place, Results};

/// Finds the cells of rows: rows of the same cell mostly follow each other.
pub(super) struct Places {
    /// Columns of the page, the network, the policy, then the fields that the table has.
    columns: Vec<usize>,
    /// For each of [`Results::fields`]: the column that has it, or the text that all rows have.
    fields: Vec<Source>,
    last: (Vec<u8>, (usize, usize)),
    known: BTreeMap<Vec<u8>, (usize, usize)>,
    /// Whether there were too many.
    full: bool,
}

enum Source {
    Column(usize),
    Fixed(String),
}

/// Cells that a report looks at: beyond this it is no help.
const MOST_CELLS: usize = 100_000;

impl Places {
    /// For the rows of `rows`; `fixed` are the fields that the folder itself has. `None`, with a
    /// notice, if a column is missing.
    pub(super) fn new(
        rows: &Rows,
        results: &Results,
        fixed: &[(String, String)],
        notices: &mut Notices,
    ) -> Option<Places> {
        let mut columns = rows.need(["page", "network", "policy"], notices)?.to_vec();
        let fields = results.fields.iter().map(|field| {
            if let Some((_, value)) = fixed.iter().find(|(name, _)| name == field) {
                return Source::Fixed(value.clone());
            }
            match rows.find(field) {
                Some(column) => Source::Column(column),
                None => Source::Fixed(String::new()),
            }
        });
        let fields: Vec<Source> = fields.collect();
        columns.extend(fields.iter().filter_map(|source| match source {
            Source::Column(column) => Some(*column),
            Source::Fixed(_) => None,
        }));
        let last = (Vec::new(), (0, 0));
        Some(Places { columns, fields, last, known: BTreeMap::new(), full: false })
    }

    /// Positions of the scene and the cell of the row that `rows` is at; `None` beyond [`MOST_CELLS`].
    pub(super) fn of(&mut self, rows: &Rows, results: &mut Results) -> Option<(usize, usize)> {
        if self.is_last(rows) {
            return Some(self.last.1);
        }
        let mut key = Vec::new();
        for &column in &self.columns {
            key.extend_from_slice(rows.bytes(column));
            key.push(0xff);
        }
        let found = match self.known.get(&key) {
            Some(found) => *found,
            None if self.known.len() >= MOST_CELLS => {
                self.full = true;
                return None;
            }
            None => {
                let text = |column: usize| clean(&rows.text(column));
                let fields = self.fields.iter().map(|source| match source {
                    Source::Column(column) => text(*column),
                    Source::Fixed(value) => value.clone(),
                });
                let place = Place {
                    page: text(self.columns[0]),
                    network: text(self.columns[1]),
                    fields: fields.collect(),
                };
                let scene = results.scene(&place);
                let cell = results.cell(scene, &text(self.columns[2]));
                self.known.insert(key.clone(), (scene, cell));
                (scene, cell)
            }
        };
        self.last = (key, found);
        Some(found)
    }

    /// Whether the row has the same names as the row before.
    fn is_last(&self, rows: &Rows) -> bool {
        let mut rest = &self.last.0[..];
        for &column in &self.columns {
            let cell = rows.bytes(column);
            match rest.strip_prefix(cell).and_then(|rest| rest.strip_prefix(&[0xff])) {
                Some(after) => rest = after,
                None => return false,
            }
        }
        rest.is_empty() && !self.last.0.is_empty()
    }

    /// Says if rows had no place.
    pub(super) fn finish(&self, name: &str, notices: &mut Notices) {
        if self.full {
            notices.add(format!(
                "{name} has more than {MOST_CELLS} combinations of page, network, fields and policy; \
                 the rest is left out."
            ));
        }
    }
}
