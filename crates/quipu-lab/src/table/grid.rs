//! Columns of text, aligned.

use std::fmt;

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left.
    Left,
    /// At the right.
    Right,
}

/// A table: a header, a line, and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Grid {
    aligns: Vec<Align>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";

impl Grid {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Grid {
        let (header, aligns) =
            columns.into_iter().map(|(title, align)| (title.into(), align)).unzip();
        Grid { aligns, header, rows: Vec::new() }
    }

    /// Adds a row; cells beyond the columns are left out, missing ones are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        row.resize(self.header.len(), String::new());
        self.rows.push(row);
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths = vec![0; self.header.len()];
        for row in std::iter::once(&self.header).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, row: &[String], widths: &[usize]) -> fmt::Result {
        let mut line = String::new();
        for (index, ((cell, width), align)) in row.iter().zip(widths).zip(&self.aligns).enumerate()
        {
            if index > 0 {
                line.push_str(GAP);
            }
            match align {
                Align::Left => line.push_str(&format!("{cell:<width$}")),
                Align::Right => line.push_str(&format!("{cell:>width$}")),
            }
        }
        writeln!(f, "{}", line.trim_end())
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        self.line(f, &self.header, &widths)?;
        let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        writeln!(f, "{}", "─".repeat(total))?;
        self.rows.iter().try_for_each(|row| self.line(f, row, &widths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut grid = Grid::new([("policy", Align::Left), ("ms", Align::Right)]);
        grid.row(["rr", "1.5"]);
        grid.row(["dwrr + µ", "12.5"]);
        grid.row(["missing"]);
        let text = "policy      ms\n──────────────\nrr         1.5\ndwrr + µ  12.5\nmissing\n";
        assert_eq!(grid.to_string(), text);
    }
}
