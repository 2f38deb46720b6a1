//! What a report says, as data: sentences, figures as declarative specs, tables, and the numbers that
//! both are made of.
//!
//! The page draws a [`Document`] and knows nothing else. All numbers are in the units that titles
//! name: times in milliseconds, rates in Mb/s, amounts in bytes, shares in percent.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Number, Value};

/// A report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// How much was run, in words.
    pub subtitle: String,
    /// The program that made the results.
    pub generated_by: Program,
    /// Where the numbers come from: `simulated`.
    pub world: String,
    /// What could not be read or is not finished, a line each.
    pub notices: Vec<String>,
    /// The result in sentences, most important first.
    pub summary: Vec<String>,
    /// What follows, in order.
    pub sections: Vec<Section>,
    /// The numbers of all figures, by name.
    pub datasets: BTreeMap<String, Dataset>,
}

/// A program that makes results, as these say it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Program {
    /// Version.
    pub version: String,
    /// Commit, with `-dirty` if its tree had changed, or `unknown`.
    pub commit: String,
    /// Hash of its sources or of the executable; empty in results of before they had one.
    pub program: String,
    /// The profile with which it was built; may be empty too.
    pub profile: String,
}

/// A part of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Section {
    /// Name for links: lower case, digits and hyphens, unlike all others.
    pub id: String,
    /// Heading.
    pub title: String,
    /// Paragraphs of plain text.
    pub text: Vec<String>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Tables.
    pub tables: Vec<Table>,
}

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Name for links and files, unlike those of all other figures and tables.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What is drawn, with units.
    pub caption: String,
    /// What is seen, in words, made from the data; of the first selection if there are controls.
    pub alt: String,
    /// A Vega-Lite specification without configuration and data.
    pub spec: Value,
    /// Names of the datasets that the specification reads.
    pub datasets: Vec<String>,
    /// Selectors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<Control>,
}

/// A selector of a figure: only rows whose column [`Control::id`] is the value chosen are drawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Control {
    /// The column of the datasets. A dataset without it is not filtered.
    pub id: String,
    /// What is chosen, in words.
    pub label: String,
    /// The choices.
    pub options: Vec<Choice>,
    /// The value that is chosen at first.
    pub default: String,
}

/// A choice of a selector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Choice {
    /// What stands in the column.
    pub value: String,
    /// What the reader sees.
    pub label: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Name for links, unlike those of all other figures and tables.
    pub id: String,
    /// Heading.
    pub title: String,
    /// What the columns mean.
    pub caption: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows of as many cells: texts, numbers, or `null`.
    pub rows: Vec<Vec<Value>>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Column {
    /// Name in files.
    pub key: String,
    /// Heading.
    pub title: String,
    /// `ms`, `x`, `%`, `bytes`, `Mb/s`, or empty.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub unit: &'static str,
    /// Whether its cells are numbers.
    pub numeric: bool,
    /// Digits behind the point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digits: Option<u8>,
}

/// The numbers behind figures: rows with named columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Dataset {
    /// Names.
    pub columns: Vec<String>,
    /// Texts of those columns whose cells are positions in this list, to keep the file small.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub levels: BTreeMap<String, Vec<String>>,
    /// Rows of as many cells: texts, numbers, or `null`.
    pub rows: Vec<Vec<Value>>,
}

impl Column {
    /// A column of texts.
    pub fn text(key: &str, title: &str) -> Column {
        Column { key: key.to_owned(), title: title.to_owned(), ..Column::default() }
    }

    /// A column of numbers in `unit`, with `digits` behind the point.
    pub fn number(key: &str, title: &str, unit: &'static str, digits: u8) -> Column {
        Column { unit, numeric: true, digits: Some(digits), ..Column::text(key, title) }
    }
}

impl Dataset {
    /// Rows as objects by column, with texts in place of positions: what a plot reads.
    pub fn objects(&self) -> impl Iterator<Item = serde_json::Map<String, Value>> {
        self.rows.iter().map(|row| {
            let cells = self.columns.iter().zip(row);
            cells.map(|(name, cell)| (name.clone(), self.text(name, cell))).collect()
        })
    }

    /// The cell of column `name` that is written as `cell`.
    fn text(&self, name: &str, cell: &Value) -> Value {
        let Some(levels) = self.levels.get(name) else { return cell.clone() };
        let position = cell.as_u64().and_then(|position| usize::try_from(position).ok());
        let text = position.and_then(|position| levels.get(position));
        text.map_or(Value::Null, |text| Value::String(text.clone()))
    }
}

/// `value` as it is: data are never rounded, only what is written of them. What is not finite is `null`.
pub fn number(value: f64) -> Value {
    /// Below it every whole number is a number of its own.
    const WHOLE: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < WHOLE {
        // Whole, so nothing is lost.
        return Value::from(value as i64);
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

/// `value` in a sentence: four significant digits, at most three behind the point, and never fewer
/// than all those before it.
pub fn short(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 1_000.0 => 1.0,
        size if size >= 100.0 => 10.0,
        size if size >= 10.0 => 100.0,
        _ => 1_000.0,
    };
    number((value * places).round() / places).to_string()
}

/// Nanoseconds as milliseconds.
pub fn millis(nanos: u64) -> Value {
    number(nanos as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_keep_every_digit_and_what_is_no_number_is_null() {
        let text = |value: f64| number(value).to_string();
        assert_eq!(
            [1.0, 0.25, 123.456, 54_321.987_654, 0.000_123_4, -0.0].map(text),
            ["1", "0.25", "123.456", "54321.987654", "0.0001234", "0"]
        );
        assert_eq!(number(f64::NAN), Value::Null);
        assert_eq!(number(f64::INFINITY), Value::Null);
    }

    #[test]
    fn times_above_a_second_keep_their_nanoseconds() {
        assert_eq!(millis(1_500_000), Value::from(1.5));
        assert_eq!(millis(12_345_678_901).to_string(), "12345.678901");
        assert_eq!(millis(2_000_000_000).to_string(), "2000");
    }

    #[test]
    fn sentences_have_four_digits() {
        assert_eq!(
            [123.456, 12.345_6, 1.234_56, 54_321.9, 0.25].map(short),
            ["123.5", "12.35", "1.235", "54322", "0.25"]
        );
    }

    #[test]
    fn objects_have_texts_in_place_of_positions() {
        let dataset = Dataset {
            columns: vec!["policy".to_owned(), "ms".to_owned()],
            levels: BTreeMap::from([("policy".to_owned(), vec!["rr".to_owned()])]),
            rows: vec![vec![Value::from(0), Value::from(7)], vec![Value::from(9), Value::Null]],
        };
        let objects: Vec<String> =
            dataset.objects().map(|object| Value::Object(object).to_string()).collect();
        assert_eq!(objects, [r#"{"ms":7,"policy":"rr"}"#, r#"{"ms":null,"policy":null}"#]);
    }
}
