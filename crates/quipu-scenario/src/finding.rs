//! What is wrong with a scenario, and where it stands: file, line and column, or an option.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

/// Characters of a line that an excerpt shows at most; our choice.
const WIDEST: usize = 120;
/// Characters of a value that a finding repeats; our choice.
const LONGEST: usize = 60;

/// Where a wrong value was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// Not known, as for a scenario that a program made.
    #[default]
    Unknown,
    /// On the command line, by this option.
    Option(String),
    /// In a file.
    File(Spot),
}

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file, as it was named.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line around it, at most 120 characters of it.
    text: String,
    /// Characters of `text` before the place.
    before: usize,
    /// Characters that are meant, at least one.
    width: usize,
}

/// One thing that is wrong with a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// The field from the top, such as `networks[1].paths[0].down.loss`; empty if it is not about a
    /// field.
    pub field: String,
    /// The value found, or what is wrong with it.
    pub found: String,
    /// What would have been right; may be empty.
    pub expected: String,
    /// What was probably meant.
    pub nearest: Option<String>,
}

/// All that is wrong with a scenario; at least one finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Findings(Vec<Finding>);

impl Spot {
    /// The place of bytes `span` of `text`, the content of `file`. Beyond the end it is the end.
    pub fn new(file: &str, text: &str, span: Range<usize>) -> Spot {
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let end = floor(text, span.end).clamp(start, line_end);
        let column = text[line_start..start].chars().count();
        // Of a long line the part around the place.
        let skipped = (column + 20).saturating_sub(WIDEST);
        let line = text[line_start..line_end].trim_end_matches('\r');
        let shown: String = line.chars().skip(skipped).take(WIDEST).map(plain).collect();
        let before = column - skipped;
        let room = shown.chars().count().saturating_sub(before).max(1);
        Spot {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: column + 1,
            before,
            width: text[start..end].chars().count().clamp(1, room),
            text: shown,
        }
    }
}

impl Spot {
    /// The start of line `line`, from 1, of `file`, whose text is not at hand.
    pub(super) fn in_line(file: &str, line: usize) -> Spot {
        let (file, text) = (file.to_owned(), String::new());
        Spot { file, line, column: 1, text, before: 0, width: 1 }
    }

    /// The place at `line` and `column` of `text`, the content of `file`: from 1, the column in
    /// bytes, as serde_json counts.
    pub fn at(file: &str, text: &str, line: usize, column: usize) -> Spot {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        let start = std::iter::once(0).chain(starts).nth(line.saturating_sub(1));
        let at = start.unwrap_or(text.len()).saturating_add(column.saturating_sub(1));
        Spot::new(file, text, at..at.saturating_add(1))
    }
}

/// The last boundary of characters up to `at`.
fn floor(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// What can be printed in one cell of a terminal.
fn plain(sign: char) -> char {
    match sign {
        '\t' => ' ',
        sign if sign.is_control() => '\u{fffd}',
        sign => sign,
    }
}

/// A value as a message repeats it: one line, not too long.
pub(super) fn shortened(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.retain(|sign| !sign.is_control());
    match line.char_indices().nth(LONGEST) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

impl Finding {
    /// `field` has a value that is `found` but should be `expected`.
    pub fn new(
        field: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Finding {
        Finding {
            place: Place::Unknown,
            field: field.into(),
            found: found.into(),
            expected: expected.into(),
            nearest: None,
        }
    }

    /// The same with a name that was probably meant.
    #[must_use]
    pub fn near(mut self, nearest: Option<impl Into<String>>) -> Finding {
        self.nearest = nearest.map(Into::into);
        self
    }

    /// The same at `place`.
    #[must_use]
    pub fn at(mut self, place: Place) -> Finding {
        self.place = place;
        self
    }

    /// The line that it is about, with a caret under the place; empty if that is not in a file.
    pub fn excerpt(&self) -> String {
        let Place::File(spot) = &self.place else { return String::new() };
        if spot.text.is_empty() {
            return String::new();
        }
        let number = spot.line.to_string();
        let margin = " ".repeat(number.len());
        let (before, carets) = (" ".repeat(spot.before), "^".repeat(spot.width));
        format!("  {number} | {}\n  {margin} | {before}{carets}\n", spot.text)
    }

    /// What orders findings: files first, by line and column.
    pub(super) fn order(&self) -> (bool, &str, usize, usize) {
        match &self.place {
            Place::File(spot) => (false, &spot.file, spot.line, spot.column),
            Place::Option(option) => (true, option, 0, 0),
            Place::Unknown => (true, "", 0, 0),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Unknown => Ok(()),
            Place::Option(option) => f.write_str(option),
            Place::File(spot) => write!(f, "{}:{}:{}", spot.file, spot.line, spot.column),
        }
    }
}

impl fmt::Display for Finding {
    /// `FILE:LINE:COLUMN: field: value; expected …; did you mean …?` in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place != Place::Unknown {
            write!(f, "{}: ", self.place)?;
        }
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.found)?;
        if !self.expected.is_empty() {
            write!(f, "; expected {}", self.expected)?;
        }
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl Serialize for Finding {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let (file, line, column, option) = match &self.place {
            Place::File(spot) => (Some(&spot.file), Some(spot.line), Some(spot.column), None),
            Place::Option(option) => (None, None, None, Some(option)),
            Place::Unknown => (None, None, None, None),
        };
        let mut object = serializer.serialize_struct("Finding", 8)?;
        object.serialize_field("file", &file)?;
        object.serialize_field("line", &line)?;
        object.serialize_field("column", &column)?;
        object.serialize_field("option", &option)?;
        object.serialize_field("field", &self.field)?;
        object.serialize_field("found", &self.found)?;
        object.serialize_field("expected", &self.expected)?;
        object.serialize_field("nearest", &self.nearest)?;
        object.end()
    }
}

/// `findings` as a JSON list of objects with file, line, column, option, field, found, expected and
/// nearest.
pub fn findings_json(findings: &[Finding]) -> String {
    // Texts and numbers can always be written.
    serde_json::to_string_pretty(findings).unwrap_or_default() + "\n"
}

impl Findings {
    /// Those of `list` in order of file, line and column, each once; `None` if there are none.
    pub fn new(mut list: Vec<Finding>) -> Option<Findings> {
        list.sort_by(|a, b| a.order().cmp(&b.order()));
        list.dedup();
        (!list.is_empty()).then_some(Findings(list))
    }

    /// `finding` alone.
    pub fn one(finding: Finding) -> Findings {
        Findings(vec![finding])
    }

    /// Each of them; at least one.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// The same as a list.
    pub fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}

impl fmt::Display for Findings {
    /// The first, and how many more there are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.0.first() else { return Ok(()) };
        write!(f, "{first}")?;
        match self.0.len() - 1 {
            0 => Ok(()),
            more => write!(f, " (and {more} more: `quipu scenario check` tells all)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let text = "a = 1\nb = \"µs\" # c\n";
        let at = text.find('#').unwrap();
        let spot = Spot::new("x.toml", text, at..at + 1);
        assert_eq!((spot.line, spot.column), (2, 10));
        let finding = Finding::new("b", "µs", "a time").at(Place::File(spot));
        assert_eq!(finding.to_string(), "x.toml:2:10: b: µs; expected a time");
        assert_eq!(finding.excerpt(), "  2 | b = \"µs\" # c\n    |          ^\n");
        let end = Spot::new("x.toml", text, 1_000..2_000);
        assert_eq!((end.line, end.column, end.width), (3, 1, 1));
        let empty = Spot::new("x.toml", "", 0..0);
        assert_eq!((empty.line, empty.column, empty.text.as_str()), (1, 1, ""));
        let inside = Spot::new("x.toml", "µ", 1..1);
        assert_eq!(inside.column, 1);
    }

    #[test]
    fn of_a_long_line_the_part_around_the_place_is_shown() {
        let text = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let finding = Finding::new("", "?", "").at(Place::File(Spot::new("f", &text, 500..501)));
        let excerpt = finding.excerpt();
        let lines: Vec<&str> = excerpt.lines().collect();
        assert_eq!(lines[0].find('X'), lines[1].find('^'));
        assert!(lines[0].chars().count() <= WIDEST + 6);
    }

    #[test]
    fn findings_are_in_order_and_none_is_twice() {
        let at = |line: usize| Place::File(Spot::new("f", "\n\n\n\n", line..line));
        let list = vec![
            Finding::new("c", "1", "").at(Place::Option("--runs".to_owned())),
            Finding::new("b", "1", "").at(at(3)),
            Finding::new("a", "1", "").at(at(1)),
            Finding::new("a", "1", "").at(at(1)),
        ];
        let findings = Findings::new(list).unwrap();
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert_eq!(lines, ["f:2:1: a: 1", "f:4:1: b: 1", "--runs: c: 1"]);
        assert!(findings.to_string().ends_with("(and 2 more: `quipu scenario check` tells all)"));
        assert_eq!(Findings::new(Vec::new()), None);
    }
}
