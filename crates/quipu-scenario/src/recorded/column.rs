//! Columns of recordings in CSV files, as a scenario names them.

use quipu_link::Column;

use crate::form::text::unit;
use crate::form::{Names, Numbers, Text, amounts};
use crate::units::Unit;

impl Unit for Column {
    const EXPECTED: &'static str = "a column of the file, or one with its unit, such as \
                                    DL_bitrate:kbit/s";

    fn parse(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Column::from(text))
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

/// A column of a CSV file.
static COLUMN: Text = Text {
    name: "column",
    expected: Column::EXPECTED,
    pattern: r"\S",
    accepts: unit::<Column>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["mbps", "DL_bitrate:kbit/s", "Timestamp"],
    refused: &[""],
};

amounts! {
    Column: COLUMN,
}
