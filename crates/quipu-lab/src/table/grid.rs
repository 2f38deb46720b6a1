//! Columns of text, aligned, on a screen of any width.

use std::fmt;

use super::screen::{Screen, Tone, broken};

/// Where the text of a column stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// At the left.
    Left,
    /// At the right.
    Right,
}

/// Text and what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    text: String,
    tone: Tone,
}

impl Cell {
    /// Text in a tone.
    pub fn toned(text: impl Into<String>, tone: Tone) -> Cell {
        Cell { text: text.into(), tone }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), tone: Tone::Plain }
    }
}

#[derive(Clone, Debug)]
struct Column {
    title: String,
    align: Align,
    /// Columns are left out on narrow screens, those with the least number first; `None` always stays.
    optional: Option<u8>,
}

/// A table: a header, a line, and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

const GAP: &str = "  ";

/// Text columns are not made narrower than this before others are left out. Our choice.
const READABLE: usize = 24;

impl Grid {
    /// A table with these columns and no rows.
    pub fn new(columns: impl IntoIterator<Item = (impl Into<String>, Align)>) -> Grid {
        let column = |(title, align): (_, Align)| Column { title, align, optional: None };
        let columns = columns.into_iter().map(|(title, align)| (title.into(), align));
        Grid { columns: columns.map(column).collect(), rows: Vec::new() }
    }

    /// The same, of which the columns with these positions are left out on screens that are too narrow: those with the
    /// least rank first, of one rank the last.
    #[must_use]
    pub fn optional(mut self, ranks: impl IntoIterator<Item = (usize, u8)>) -> Grid {
        for (index, rank) in ranks {
            if let Some(column) = self.columns.get_mut(index) {
                column.optional = Some(rank);
            }
        }
        self
    }

    /// Adds a row; cells beyond the columns are left out, missing ones are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let mut row: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        row.resize(self.columns.len(), Cell::default());
        self.rows.push(row);
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The titles of the columns.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.title.as_str())
    }

    /// The texts of each row.
    pub fn texts(&self) -> impl Iterator<Item = impl Iterator<Item = &str>> {
        self.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()))
    }

    /// The table on `screen`: texts are broken into several lines, columns that may be left out are, and named below.
    pub fn on(&self, screen: Screen) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        let mut left_out: Vec<usize> = Vec::new();
        while self.fit(&shown, screen.width).is_none()
            && let Some(position) = self.least(&shown)
        {
            left_out.push(shown.remove(position));
        }
        let mut text = String::new();
        for (index, part) in self.parts(&shown, screen.width).iter().enumerate() {
            if index > 0 {
                text.push('\n');
            }
            self.part(screen, part, &mut text);
        }
        if !left_out.is_empty() {
            left_out.sort_unstable();
            let titles: Vec<&str> =
                left_out.iter().map(|&index| self.columns[index].title.as_str()).collect();
            let note = format!("not shown: {} (--wide shows all columns)\n", titles.join(", "));
            text.push_str(&screen.toned(screen.fold(&note).trim_end(), Tone::Faint));
            text.push('\n');
        }
        text
    }

    /// Columns that are drawn below each other, if they do not fit beside each other: the first stands before all.
    fn parts(&self, shown: &[usize], width: Option<usize>) -> Vec<Vec<usize>> {
        let Some((&first, others)) = shown.split_first() else { return vec![Vec::new()] };
        let mut parts: Vec<Vec<usize>> = vec![vec![first]];
        for &index in others {
            let fits = |part: &[usize]| self.fit(&[part, &[index]].concat(), width).is_some();
            match parts.last_mut() {
                Some(part) if part.len() == 1 || fits(part) => part.push(index),
                _ => parts.push(vec![first, index]),
            }
        }
        parts
    }

    /// Adds the table with the columns `shown`.
    fn part(&self, screen: Screen, shown: &[usize], text: &mut String) {
        let fitting = self.fit(shown, screen.width);
        let widths = fitting.unwrap_or_else(|| self.squeezed(shown, screen.width));
        let head = |&index: &usize| Cell::toned(self.columns[index].title.clone(), Tone::Strong);
        self.lines(screen, shown, &widths, &shown.iter().map(head).collect::<Vec<_>>(), text);
        text.push_str(&screen.toned(&"─".repeat(total(&widths)), Tone::Faint));
        text.push('\n');
        for row in &self.rows {
            let cells: Vec<Cell> = shown.iter().map(|&index| row[index].clone()).collect();
            self.lines(screen, shown, &widths, &cells, text);
        }
    }

    /// Widths with which the columns `shown` fit; `None` if they do not.
    fn fit(&self, shown: &[usize], width: Option<usize>) -> Option<Vec<usize>> {
        let natural: Vec<usize> = shown.iter().map(|&index| self.natural(index)).collect();
        let Some(width) = width else { return Some(natural) };
        if total(&natural) <= width {
            return Some(natural);
        }
        self.narrowed(shown, natural, width, READABLE)
    }

    /// The widths with texts made narrower, the widest first, to `least` columns each.
    fn narrowed(
        &self,
        shown: &[usize],
        mut widths: Vec<usize>,
        width: usize,
        least: usize,
    ) -> Option<Vec<usize>> {
        while total(&widths) > width {
            let of_text = shown.iter().enumerate().filter(|(_, index)| self.is_text(**index));
            let (widest, _) = of_text
                .filter(|(position, _)| widths[*position] > least)
                .max_by_key(|(position, _)| (widths[*position], *position))?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    /// Widths for a screen on which nothing fits: texts are broken to single signs, then numbers too.
    fn squeezed(&self, shown: &[usize], width: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|&index| self.natural(index)).collect();
        let Some(width) = width else { return widths };
        if let Some(narrowed) = self.narrowed(shown, widths.clone(), width, 1) {
            return narrowed;
        }
        while total(&widths) > width
            && let Some(widest) = widths.iter_mut().filter(|it| **it > 1).max()
        {
            *widest -= 1;
        }
        widths
    }

    /// Position in `shown` of the column that is left out next.
    fn least(&self, shown: &[usize]) -> Option<usize> {
        let optional = shown
            .iter()
            .enumerate()
            .filter_map(|(position, &index)| Some((self.columns[index].optional?, position)));
        let least = optional.min_by_key(|&(rank, position)| (rank, std::cmp::Reverse(position)));
        least.map(|(_, position)| position)
    }

    fn is_text(&self, index: usize) -> bool {
        self.columns[index].align == Align::Left
    }

    fn natural(&self, index: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[index].text.chars().count());
        cells.chain([self.columns[index].title.chars().count()]).max().unwrap_or(0)
    }

    /// Adds the lines of one row.
    fn lines(
        &self,
        screen: Screen,
        shown: &[usize],
        widths: &[usize],
        cells: &[Cell],
        text: &mut String,
    ) {
        let parts: Vec<Vec<String>> = cells
            .iter()
            .zip(widths)
            .map(|(cell, &width)| match cell.text.chars().count() <= width {
                true => vec![cell.text.clone()],
                false => broken(&cell.text, width, width),
            })
            .collect();
        for line in 0..parts.iter().map(Vec::len).max().unwrap_or(0) {
            let mut drawn = String::new();
            // Spaces at the end are left out.
            let mut owed = 0;
            for (position, ((cell, part), &width)) in
                cells.iter().zip(&parts).zip(widths).enumerate()
            {
                let part = part.get(line).map_or("", |part| part.trim_end());
                let space = width.saturating_sub(part.chars().count());
                owed += if position > 0 { GAP.len() } else { 0 };
                let before = match self.columns[shown[position]].align {
                    Align::Left => 0,
                    Align::Right => space,
                };
                if part.is_empty() {
                    owed += width;
                    continue;
                }
                drawn.push_str(&" ".repeat(owed + before));
                drawn.push_str(&screen.toned(part, cell.tone));
                owed = space - before;
            }
            text.push_str(&drawn);
            text.push('\n');
        }
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.on(Screen::ANY))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::screen::visible;
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

    fn narrow(width: usize) -> Screen {
        Screen { width: Some(width), colour: false }
    }

    #[test]
    fn texts_are_broken_where_the_screen_ends() {
        let mut grid = Grid::new([("name", Align::Left), ("what it is", Align::Left)]);
        grid.row(["one", "a long story about something"]);
        assert_eq!(
            grid.on(narrow(24)),
            "name  what it is\n────────────────────────\none   a long story about\n      something\n"
        );
    }

    #[test]
    fn columns_that_must_stay_go_below() {
        let columns = ["policy", "first link", "other link"];
        let mut grid = Grid::new(columns.map(|title| (title, Align::Right)));
        grid.row(["rr", "1.0", "2.0"]);
        assert_eq!(
            grid.on(narrow(20)),
            "policy  first link\n──────────────────\n    rr         1.0\n\n\
             policy  other link\n──────────────────\n    rr         2.0\n"
        );
    }

    #[test]
    fn columns_that_may_be_left_out_are_and_are_named() {
        let columns = [("policy", Align::Left), ("page", Align::Right), ("p95", Align::Right)];
        let mut grid = Grid::new(columns).optional([(2, 1)]);
        grid.row(["rr", "100.0", "120.0"]);
        assert!(!grid.on(narrow(20)).contains("not shown"));
        assert_eq!(
            grid.on(narrow(18)),
            "policy   page\n─────────────\nrr      100.0\nnot shown: p95\n  (--wide shows\n  all columns)\n"
        );
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_the_screen(
            rows in prop::collection::vec(prop::collection::vec("[a-zµ ]{0,40}", 4), 0..6),
            optional in prop::collection::vec((0..4_usize, 0..3_u8), 0..4),
            width in 12..120_usize,
        ) {
            let aligns = [Align::Left, Align::Right, Align::Left, Align::Right];
            let titles = ["first", "second", "third", "fourth"];
            let mut grid = Grid::new(titles.into_iter().zip(aligns)).optional(optional);
            rows.into_iter().for_each(|row| grid.row(row));
            let text = grid.on(narrow(width));
            prop_assert!(text.lines().all(|line| visible(line) <= width), "{text}");
        }
    }
}
