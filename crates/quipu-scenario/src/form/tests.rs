use std::collections::BTreeSet;

use super::*;
use crate::{Document, Scenario};

/// All forms of text.
fn texts() -> Vec<&'static Text> {
    tables().iter().flat_map(|table| table.fields).flat_map(|field| field.kind.texts()).collect()
}

/// The value at `path` of `root`; made if it is not there.
fn at<'v>(root: &'v mut toml::Value, path: &str) -> &'v mut toml::Value {
    let mut value = root;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let (key, index) = part.split_once('[').unwrap_or((part, ""));
        let empty = toml::Value::Table(toml::Table::new());
        value = value.as_table_mut().unwrap().entry(key).or_insert(empty);
        if let Some(index) = index.strip_suffix(']') {
            let index: usize = index.parse().unwrap();
            value = &mut value.as_array_mut().unwrap()[index];
        }
    }
    value
}

/// What serde says of a scenario with `key = 1` in a table of the form `table`.
fn with_key(table: &Table, key: &str) -> Result<Scenario, String> {
    let (text, path) = table.minimal;
    let mut root: toml::Value = toml::from_str(text).unwrap();
    let place = at(&mut root, path);
    place.as_table_mut().unwrap().insert(key.to_owned(), toml::Value::Integer(1));
    let text = toml::to_string(&root).unwrap();
    let scenario = toml::from_str(&text).map_err(|error| error.message().to_owned())?;
    // What runs take no notice of has a reader of its own.
    crate::experiment::Experiment::from_toml(&text, "a.toml").map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// The names that serde lists behind `expected`.
fn listed(message: &str) -> BTreeSet<String> {
    let (_, list) = message.split_once("expected").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The test that fails when a field is added to a scenario and not to its form, or the other way
/// round: schema, reference page and checker all go by the form.
#[test]
fn every_table_has_the_fields_that_the_reader_knows() {
    for table in tables() {
        let message = with_key(table, "no-such-field").unwrap_err();
        assert!(message.contains("unknown field `no-such-field`"), "{}: {message}", table.title);
        let ours: BTreeSet<String> = table.names().map(str::to_owned).collect();
        assert_eq!(ours, listed(&message), "fields of {} in scenario/form", table.title);
    }
}

#[test]
fn every_default_is_one_that_the_program_has() {
    for table in tables() {
        for (field, default) in table.defaults() {
            let (title, name) = (table.title, field.name);
            if matches!(field.absent, Absent::Default) {
                assert!(default.is_some(), "{title}: {name} is not written out: use Absent::Words");
            }
        }
    }
}

#[test]
fn every_minimal_scenario_is_one_and_has_nothing_wrong() {
    for table in tables() {
        let document = Document::new(table.minimal.0, "minimal.toml");
        let root = document.parse().unwrap();
        assert_eq!(scenario().check(&document, &root), [], "{}", table.title);
        document.scenario().unwrap();
    }
}

#[test]
fn texts_read_as_their_examples_say() {
    for text in texts() {
        for example in text.examples {
            assert!((text.accepts)(example), "{}: {example}", text.name);
        }
        for refused in text.refused {
            assert!(!(text.accepts)(refused), "{}: {refused}", text.name);
        }
    }
}

#[test]
fn texts_of_one_name_are_one() {
    let mut known: Vec<&'static Text> = Vec::new();
    for text in texts() {
        match known.iter().find(|other| other.name == text.name) {
            Some(other) => assert!(std::ptr::eq(*other, text), "{}", text.name),
            None => known.push(text),
        }
    }
    let titles = tables().into_iter().map(|table| table.title.to_lowercase());
    let names = known.iter().map(|text| text.name.to_lowercase());
    let all: BTreeSet<String> = titles.chain(names).collect();
    assert_eq!(all.len(), tables().len() + known.len(), "schema and reference name them so");
}

#[test]
fn what_is_written_out_is_of_the_form() {
    let networks = crate::builtin_networks();
    let text = Scenario { networks, ..Scenario::default() }.to_toml().unwrap();
    let document = Document::new(text, "scenario.toml");
    assert_eq!(scenario().check(&document, &document.parse().unwrap()), []);
}

/// Fields of links and paths that are refused beside others.
const DEPENDENT: [&str; 1] = ["bottleneck"];

proptest::proptest! {
    /// What the checker lets through the reader must take, as far as one value goes, and the other
    /// way round.
    #[test]
    fn checker_and_reader_agree(
        value in "[0-9]{0,3}(\\.[0-9])?(ms|mbit|B|KiB|%|p|bdp|s)?|default|never|0|unlimited|none",
        which in 0..200_usize,
    ) {
        proptest::prop_assume!(!value.is_empty());
        let fields: Vec<(&Table, &Field)> = tables()
            .into_iter()
            .flat_map(|table| table.fields.iter().map(move |field| (table, field)))
            .filter(|(_, field)| matches!(field.kind, Kind::Text(_)))
            // What these may be depends on other fields, so that only the reader can refuse them.
            .filter(|(table, _)| !table.minimal.0.starts_with("[experiment]"))
            .filter(|(_, field)| !DEPENDENT.contains(&field.name))
            .collect();
        let (table, field) = fields[which % fields.len()];
        let (text, path) = table.minimal;
        let mut root: toml::Value = toml::from_str(text).unwrap();
        let given = toml::Value::String(value);
        at(&mut root, path).as_table_mut().unwrap().insert(field.name.to_owned(), given);
        let text = toml::to_string(&root).unwrap();
        let document = Document::new(text.clone(), "a.toml");
        let findings = scenario().check(&document, &document.parse().unwrap());
        let experiment = crate::experiment::Experiment::from_toml(&text, "a.toml");
        let reads = toml::from_str::<Scenario>(&text).is_ok() && experiment.is_ok();
        proptest::prop_assert_eq!(findings.is_empty(), reads, "{}: {:?}", text, findings);
    }
}
