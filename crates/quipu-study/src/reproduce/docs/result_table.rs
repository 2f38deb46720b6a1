//! Tables of results in texts: written where a line of the text names one.
//!
//! `<!-- table ID: NAME -->` stands for the table `NAME` of the id `ID`; the lines after it that begin with `|` are
//! that table, and are written anew.

use super::row;
use quipu_record::verdict::{Judged, ResultTable};

const BEGIN: &str = "<!-- table ";
const END: &str = " -->";

/// Whether `text` names tables.
pub(super) fn has_any(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(BEGIN))
}

/// `text` with its tables as they are in `all`.
///
/// # Errors
/// If it names a table that is not there.
pub(super) fn renewed(text: &str, all: &[&Judged]) -> Result<String, String> {
    let mut out = String::new();
    let mut is_in_table = false;
    for line in text.lines() {
        if is_in_table && line.starts_with('|') {
            continue;
        }
        is_in_table = false;
        out.push_str(line);
        out.push('\n');
        let Some(named) = line.strip_prefix(BEGIN) else { continue };
        let (id, name) = named
            .strip_suffix(END)
            .and_then(|named| named.split_once(": "))
            .ok_or_else(|| format!("`{line}`: expected `{BEGIN}ID: NAME{END}`"))?;
        out.push_str(&markdown(find(id, name, all)?));
        is_in_table = true;
    }
    Ok(out)
}

fn find<'a>(id: &str, name: &str, all: &[&'a Judged]) -> Result<&'a ResultTable, String> {
    let judged = all.iter().find(|judged| judged.id == id).ok_or_else(|| {
        let near = quipu_record::suggestion(id, all.iter().map(|judged| judged.id.as_str()));
        format!("table {id}: {name}: there is no id `{id}`{near}")
    })?;
    judged.tables.iter().find(|table| table.name == name).ok_or_else(|| {
        let names = judged.tables.iter().map(|table| table.name.as_str());
        let near = quipu_record::suggestion(name, names);
        format!("{id} has no table `{name}`{near}")
    })
}

/// `table` as Markdown.
fn markdown(table: &ResultTable) -> String {
    let head = [table.head.as_str()].into_iter().chain(table.columns.iter().map(String::as_str));
    let head: Vec<&str> = head.collect();
    // An empty head is none.
    let mut text = row(&head).replacen("| – |", "| |", usize::from(table.head.is_empty()));
    text.push_str(&format!("|{}\n", " --- |".repeat(head.len())));
    for line in &table.rows {
        let cells = line.cells.iter().map(|cell| cell.as_ref().map_or("", |cell| &cell.text));
        let cells: Vec<&str> = [line.name.as_str()].into_iter().chain(cells).collect();
        text.push_str(&row(&cells));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::judged;
    use super::*;
    use quipu_record::threshold::Dimension;
    use quipu_record::verdict::{TableCell, TableRow};

    fn with_table() -> Judged {
        let cell = |text: &str| {
            Some(TableCell { text: text.to_owned(), value: 0.5, interval: Some((0.4, 0.6)) })
        };
        let table = ResultTable {
            name: "times".to_owned(),
            head: "rate".to_owned(),
            curves: false,
            dimension: Dimension::Plain,
            columns: vec!["a".to_owned(), "b".to_owned()],
            rows: vec![TableRow { name: "1".to_owned(), cells: vec![cell("0.500"), None] }],
        };
        Judged { tables: vec![table], ..judged() }
    }

    #[test]
    fn a_table_is_written_where_the_text_names_it() {
        let (judged, whole) = (
            with_table(),
            "Before.\n\n<!-- table one: times -->\n| rate | a | b |\n| --- | --- | --- |\n| 1 | 0.500 | – |\n\n\
             After.\n| not | ours |\n",
        );
        let empty = "Before.\n\n<!-- table one: times -->\n\nAfter.\n| not | ours |\n";
        let other = whole.replace("0.500", "0.400");
        for text in [whole, empty, &other] {
            assert_eq!(renewed(text, &[&judged]).unwrap(), whole);
        }
        assert!(has_any(whole));
        assert!(!has_any("| a | table |"));
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is_near() {
        let judged = with_table();
        for (line, expected) in [
            ("<!-- table two: times -->", "there is no id `two`"),
            ("<!-- table one: time -->", "one has no table `time`; did you mean `times`?"),
            ("<!-- table one -->", "expected `<!-- table ID: NAME -->`"),
        ] {
            let wrong = renewed(line, &[&judged]).unwrap_err();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }
}
