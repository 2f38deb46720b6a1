//! Standard output: how wide it is, whether it shows colours, and in which form tables go there.

use std::io::IsTerminal;

use clap::{Args, ValueEnum};
use quipu_lab::table::{Grid, Screen};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// Options of every command.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputOptions {
    /// When to show colours: always, never, or auto: on terminals, unless NO_COLOR is set [default: auto]
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = Colour::Auto,
          hide_default_value = true, hide_possible_values = true, help_heading = "Output")]
    color: Colour,
    /// Print tables with all columns, however wide the terminal is
    #[arg(long, global = true, help_heading = "Output")]
    wide: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Colour {
    Auto,
    Always,
    Never,
}

/// How results are printed: as tables that fit the terminal, or in full as JSON or as comma-separated values with a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    #[default]
    Table,
    Json,
    Csv,
}

/// The option of commands whose results can be printed in several forms.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct FormatOption {
    /// How results are printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table,
          help_heading = "Output")]
    pub(crate) format: Format,
}

/// Standard output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terminal {
    pub(crate) screen: Screen,
}

impl Terminal {
    /// As the options, the environment and the terminal say. Output that goes elsewhere is as wide as it needs, unless
    /// `COLUMNS` says otherwise.
    pub(crate) fn new(options: OutputOptions) -> Terminal {
        let told = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
        let width = terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = match options.wide {
            true => None,
            false => width.or_else(told),
        };
        let colour = match options.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb
            }
        };
        Terminal { screen: Screen { width, colour } }
    }

    /// Prints text with its lines broken where the terminal ends.
    pub(crate) fn print(self, text: &str) -> Result<(), Failure> {
        crate::print(&self.screen.fold(text))
    }

    /// Prints a table in a form.
    pub(crate) fn print_grid(self, grid: &Grid, format: Format) -> Result<(), Failure> {
        match format {
            Format::Table => crate::print(&grid.on(self.screen)),
            Format::Json => crate::print(&json(&grid_values(grid))),
            Format::Csv => crate::print(&grid_csv(grid)),
        }
    }
}

/// A value as indented JSON with a line end.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    // What is printed has a form in JSON: texts, finite numbers, and lists of them.
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
}

/// Rows as objects, by the titles of columns.
fn grid_values(grid: &Grid) -> Value {
    let row = |cells: Vec<&str>| {
        let fields = grid.titles().zip(cells);
        let fields = fields.map(|(title, text)| (title.to_owned(), Value::from(text)));
        Value::Object(fields.collect::<Map<String, Value>>())
    };
    Value::Array(grid.texts().map(|cells| row(cells.collect())).collect())
}

fn grid_csv(grid: &Grid) -> String {
    let rows = grid.texts().map(|cells| cells.map(str::to_owned).collect());
    csv(grid.titles().map(str::to_owned).collect(), rows)
}

/// A header and rows as comma-separated values.
pub(crate) fn csv(header: Vec<String>, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(header).chain(rows) {
        // Writing to memory does not fail, and rows have as many cells as the header.
        let _ = writer.write_record(&row);
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use quipu_lab::table::Align;

    use super::*;

    #[test]
    fn tables_are_json_and_csv_too() {
        let mut grid = Grid::new([("name", Align::Left), ("value", Align::Right)]);
        grid.row(["a,b", "1"]);
        assert_eq!(grid_csv(&grid), "name,value\n\"a,b\",1\n");
        assert_eq!(
            json(&grid_values(&grid)),
            "[\n  {\n    \"name\": \"a,b\",\n    \"value\": \"1\"\n  }\n]\n"
        );
    }
}
