//! The tables of columns in `docs/results.md`, made from the columns themselves.

use std::fmt::Write as _;

use super::{LOAD, sheets};
use crate::place::PLACE;
use crate::tables::{Column, Kind};
use crate::{networks, series};

/// The text of the guide `text`, with each block between `<!-- columns: TABLE -->` and
/// `<!-- end of columns -->` made anew. `None` if a table has no block, or a block no table.
pub(crate) fn renew(text: &str) -> Option<String> {
    const BEGIN: &str = "<!-- columns: ";
    const END: &str = "<!-- end of columns -->";

    let mut missing: Vec<&str> = tables().map(|(name, _)| name).collect();
    let mut new = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (name, after) = after.split_once(" -->\n")?;
        let (_, after) = after.split_once(END)?;
        let (_, columns) = tables().find(|(known, _)| *known == name)?;
        missing.retain(|known| *known != name);
        new.push_str(before);
        // Text takes whatever is written to it.
        let _ = write!(new, "{BEGIN}{name} -->\n{}{END}", table(&columns));
        rest = after;
    }
    new.push_str(rest);
    let told = |file: &String| new.contains(&format!("`{file}`"));
    (missing.is_empty() && super::names().all(|file| told(&file))).then_some(new)
}

/// All tables with their own columns.
fn tables() -> impl Iterator<Item = (&'static str, Vec<&'static Column>)> {
    let shared = ("every table", PLACE.iter().chain(&LOAD).collect());
    let others = [
        (networks::NAME, networks::COLUMNS.iter().collect()),
        (series::NAME, series::COLUMNS.iter().collect()),
    ];
    let sheets = sheets().map(|sheet| (sheet.name, sheet.columns.iter().collect()));
    [shared].into_iter().chain(sheets).chain(others)
}

fn table(columns: &[&Column]) -> String {
    let mut text = "\n| column | values | |\n| --- | --- | --- |\n".to_owned();
    for column in columns {
        let kind = match column.kind {
            Kind::Whole => "integer",
            Kind::Number => "number",
            Kind::Flag => "`true`, `false`",
            Kind::Text => "text",
        };
        let about: Vec<&str> = column.about.split_whitespace().collect();
        // Text takes whatever is written to it.
        let _ = writeln!(text, "| `{}` | {kind} | {} |", column.name, about.join(" "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `QUIPU_RENEW=1 cargo test -p quipu-record guide` writes the page.
    #[test]
    fn the_page_of_results_has_every_file_and_column() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");
        let page = std::fs::read_to_string(path).unwrap();
        let new = renew(&page).expect("a file, a table or its block is missing in docs/results.md");
        if std::env::var_os("QUIPU_RENEW").is_some() {
            std::fs::write(path, &new).unwrap();
        } else {
            assert_eq!(
                page, new,
                "docs/results.md is not as the columns are: QUIPU_RENEW=1 writes it"
            );
        }
    }
}
