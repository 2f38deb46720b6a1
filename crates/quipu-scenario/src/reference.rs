//! The form of scenario files as tables in Markdown: the body of the reference page.

use super::form::{Absent, Kind, Table, Text};
use super::scenario::Scenario;

/// Each table of scenario files with its fields, then the forms of text that fields may have.
pub fn reference() -> String {
    let mut texts: Vec<&'static Text> = Vec::new();
    let mut page = String::new();
    for table in tables() {
        page.push_str(&of_table(table));
        let kinds = table.fields.iter().map(|field| &field.kind).chain(&table.rest);
        for kind in kinds {
            for text in kind.texts() {
                if !texts.iter().any(|known| known.name == text.name) {
                    texts.push(text);
                }
            }
        }
    }
    page.push_str(&of_texts(&mut texts));
    page
}

/// All tables of scenario files, the scenario's first, each once.
pub(crate) fn tables() -> Vec<&'static Table> {
    let mut tables = vec![Scenario::table()];
    let mut next = 0;
    while let Some(table) = tables.get(next).copied() {
        let kinds = table.fields.iter().map(|field| &field.kind).chain(&table.rest);
        for inner in kinds.flat_map(Kind::tables) {
            if !tables.iter().any(|known| std::ptr::eq(*known, inner)) {
                tables.push(inner);
            }
        }
        next += 1;
    }
    tables
}

fn of_table(table: &'static Table) -> String {
    let mut text = format!("### {}\n\n{}\n\n", table.title, table.about);
    text.push_str("| field | type | default | meaning |\n| --- | --- | --- | --- |\n");
    for field in &table.fields {
        let absent = match &field.absent {
            Absent::Required => "**required**".to_owned(),
            Absent::Words(words) => (*words).to_owned(),
            Absent::Default(Some(value)) => of_value(value),
            Absent::Default(None) => String::new(),
        };
        let cells =
            [format!("`{}`", field.name), of_kind(&field.kind), absent, field.about.clone()];
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if let Some(rest) = &table.rest {
        text.push_str(&format!("| any other | {} | none | A word of its own. |\n", of_kind(rest)));
    }
    for group in table.needs.iter() {
        let names: Vec<String> = group.iter().map(|name| format!("`{name}`")).collect();
        text.push_str(&format!("\nAt least one is needed of {}.\n", names.join(", ")));
    }
    text.push('\n');
    text
}

fn of_kind(kind: &Kind) -> String {
    match kind {
        Kind::Flag => "true or false".to_owned(),
        Kind::Whole(least, u64::MAX) => format!("whole number from {least}"),
        Kind::Whole(least, most) if *most >= i64::MAX as u64 => {
            format!("whole number from {least}")
        }
        Kind::Whole(least, most) => format!("whole number, {least} to {most}"),
        Kind::Among(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(|number| format!("`{number}`")).collect();
            numbers.join(", ")
        }
        Kind::Number(..) => match kind.range() {
            Some(range) => format!("number, {range}"),
            None => "number".to_owned(),
        },
        Kind::Amount(text, range) => format!("[{}](#forms-of-text), {range}", text.name),
        Kind::Text(text) => format!("[{}](#forms-of-text)", text.name),
        Kind::Words(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(", ")
        }
        Kind::List(of, least, most) => match (*least, *most) {
            (0, usize::MAX) => format!("list: {}", of_kind(of)),
            (least, usize::MAX) => format!("list of {least} or more: {}", of_kind(of)),
            (least, most) if least == most => format!("list of {least}: {}", of_kind(of)),
            (0, most) => format!("list of at most {most}: {}", of_kind(of)),
            (least, most) => format!("list of {least} to {most}: {}", of_kind(of)),
        },
        Kind::Table(table) => {
            let anchor = table.title.to_lowercase().replace(' ', "-");
            format!("[{}](#{anchor})", table.title)
        }
        Kind::Map(of) if matches!(**of, Kind::Any) => "table".to_owned(),
        Kind::Sweep => "table".to_owned(),
        Kind::Map(of) => format!("table, each {}", of_kind(of)),
        Kind::Any => "anything".to_owned(),
        Kind::Either(kinds) => kinds.iter().map(of_kind).collect::<Vec<_>>().join(", or "),
    }
}

fn of_value(value: &toml::Value) -> String {
    match value {
        toml::Value::Table(_) => "its fields' defaults".to_owned(),
        toml::Value::Array(list) if list.iter().any(toml::Value::is_table) => {
            let names = list.iter().map(|item| item.get("name").and_then(toml::Value::as_str));
            let names: Vec<String> =
                names.map(|name| format!("{:?}", name.unwrap_or_default())).collect();
            format!("`[{}]`", names.join(", "))
        }
        other => format!("`{other}`"),
    }
}

fn of_texts(texts: &mut [&'static Text]) -> String {
    texts.sort_by_key(|text| text.name);
    let mut page =
        "### Forms of text\n\n| type | what it is | examples |\n| --- | --- | --- |\n".to_owned();
    for text in texts {
        let examples: Vec<String> =
            text.examples.iter().map(|example| format!("`{example}`")).collect();
        let (name, expected) = (text.name, text.expected.replace('|', "\\|"));
        page.push_str(&format!("| {name} | {expected} | {} |\n", examples.join(", ")));
    }
    page
}
