use std::collections::BTreeSet;

use jsonschema::Validator;
use quipu_base::{Bytes, Duration, Rate};
use toml::{Table as Toml, Value};

use super::*;
use crate::reference::tables;
use crate::units::{Share, Unit};
use crate::{Document, Scenario, schema};

/// All forms of text.
fn texts() -> Vec<&'static Text> {
    let fields = tables().into_iter().flat_map(|table| &table.fields);
    fields.flat_map(|field| field.kind.texts()).collect()
}

/// A value of `kind` that is right by itself.
fn sample(kind: &Kind) -> Value {
    match kind {
        Kind::Flag => Value::Boolean(true),
        Kind::Whole(least, _) => whole(*least).unwrap(),
        Kind::Among(numbers) => Value::Integer(numbers[0].into()),
        Kind::Number(least, _) => Value::Float(match least {
            Bound::Included(least) | Bound::Excluded(least) => *least,
            Bound::Unbounded => 1.0,
        }),
        Kind::Text(text) | Kind::Amount(text, _) => text.examples[0].into(),
        Kind::Words(words) => words[0].into(),
        Kind::List(of, least, _) => Value::Array(vec![sample(of); *least]),
        Kind::Table(table) => Value::Table(least_of(table)),
        Kind::Map(_) => Value::Table(Toml::new()),
        Kind::Any => Value::Integer(1),
        Kind::Sweep => Value::Table(Toml::from_iter([("seed".to_owned(), vec![1].into())])),
        Kind::Either(kinds) => sample(&kinds[0]),
    }
}

/// A table in which no more is given than has to be.
fn least_of(table: &Table) -> Toml {
    let required = table.fields.iter().filter(|field| matches!(field.absent, Absent::Required));
    let one_of_each = table.needs.iter().map(|group| table.field(group[0]).unwrap());
    required.chain(one_of_each).map(|field| (field.name.to_owned(), sample(&field.kind))).collect()
}

/// Whether a value is one of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Right,
    Wrong,
    /// An amount out of its range, which a schema does not know of.
    OutOfRange,
    /// Reader, checker and schema only have to agree.
    Unknown,
}
use Known::{OutOfRange, Right, Unknown, Wrong};

/// Values at, inside and outside all limits of `kind`.
fn candidates(kind: &Kind) -> Vec<(Value, Known)> {
    match kind {
        Kind::Flag => vec![
            (true.into(), Right),
            (false.into(), Right),
            ("yes".into(), Wrong),
            (1.into(), Wrong),
        ],
        Kind::Whole(least, most) => of_whole(*least, *most),
        Kind::Among(numbers) => {
            let right = numbers.iter().map(|number| (i64::from(*number).into(), Right));
            let wrong =
                (0..=256).filter(|number| !numbers.iter().any(|it| i64::from(*it) == *number));
            right.chain(wrong.map(|number| (Value::Integer(number), Wrong))).collect()
        }
        Kind::Number(least, most) => of_number(*least, *most),
        Kind::Text(text) => of_text(text),
        Kind::Amount(text, ends) => of_amount(text, ends),
        Kind::Words(words) => {
            let right = words.iter().map(|word| ((*word).into(), Right));
            let wrong = ["", "no-such-word"].map(|word| (word.into(), Wrong));
            right.chain(wrong).chain([(3.into(), Wrong)]).collect()
        }
        Kind::List(of, least, most) => of_list(of, *least, *most),
        Kind::Table(table) => {
            let least = least_of(table);
            let mut unknown = least.clone();
            unknown.insert("no-such-field".to_owned(), vec![1].into());
            vec![
                (Value::Table(least), Right),
                (Value::Table(unknown), Wrong),
                (Value::Table(Toml::new()), Unknown),
                (3.into(), Wrong),
                (true.into(), Wrong),
            ]
        }
        Kind::Map(of) => {
            let one = |value: Value| Value::Table(Toml::from_iter([("key".to_owned(), value)]));
            let inner = candidates(of).into_iter().map(|(value, known)| (one(value), known));
            [(Value::Table(Toml::new()), Right), (3.into(), Wrong)]
                .into_iter()
                .chain(inner)
                .collect()
        }
        Kind::Any => vec![(1.into(), Right), ("a".into(), Right), (true.into(), Right)],
        Kind::Sweep => vec![(sample(kind), Right), (3.into(), Wrong)],
        Kind::Either(kinds) => {
            let all = kinds.iter().flat_map(candidates);
            // What is wrong as one kind may be right as another.
            all.map(|(value, known)| (value, if known == Wrong { Unknown } else { known }))
                .collect()
        }
    }
}

fn whole(number: u64) -> Option<Value> {
    i64::try_from(number).ok().map(Value::Integer)
}

fn of_whole(least: u64, most: u64) -> Vec<(Value, Known)> {
    let below = i64::try_from(least).unwrap() - 1;
    let right = [least, least.midpoint(most), most].into_iter().filter_map(whole);
    let above = most.checked_add(1).and_then(whole);
    let wrong = [below.into(), 1.5.into(), "1".into(), true.into()].into_iter().chain(above);
    right.map(|value| (value, Right)).chain(wrong.map(|value| (value, Wrong))).collect()
}

fn of_number(least: Bound<f64>, most: Bound<f64>) -> Vec<(Value, Known)> {
    let mut all = vec![("1".into(), Wrong), (true.into(), Wrong)];
    for (bound, outside) in [(least, -1.0), (most, 1.0)] {
        match bound {
            Bound::Included(end) => {
                all.push((end.into(), Right));
                all.push(((end + outside * 0.001).into(), Wrong));
                all.push(((end - outside * 0.001).into(), Right));
            }
            Bound::Excluded(end) => {
                all.push((end.into(), Wrong));
                all.push(((end - outside * 0.001).into(), Right));
            }
            Bound::Unbounded => all.push((0.5.into(), Right)),
        }
    }
    all
}

fn of_text(text: &Text) -> Vec<(Value, Known)> {
    let right = text.examples.iter().map(|&example| example.to_owned()).chain(text.names.list());
    let right = right.map(|value| (value.into(), Right));
    let wrong = text.refused.iter().map(|&refused| (refused.into(), Wrong));
    let numbers: Vec<(Value, Known)> = match text.numbers {
        Numbers::None => vec![(0.into(), Wrong), (0.5.into(), Wrong)],
        Numbers::Zero => vec![(0.into(), Right), (1.into(), Wrong), (0.5.into(), Wrong)],
        Numbers::Share => {
            vec![(0.into(), Right), (0.5.into(), Right), (1.into(), Right), (2.into(), Wrong)]
        }
        Numbers::Index => vec![(0.into(), Right), (7.into(), Right), ((-1).into(), Wrong)],
    };
    right.chain(wrong).chain(numbers).chain([(true.into(), Wrong)]).collect()
}

/// The amounts next to `text`, in the finest steps there are.
fn neighbours(text: &str) -> [Option<String>; 2] {
    fn around<T: Unit>(number: u64, amount: impl Fn(u64) -> T) -> [Option<String>; 2] {
        let print = |number: Option<u64>| number.map(|number| amount(number).print());
        [print(number.checked_sub(1)), print(number.checked_add(1))]
    }
    if let Some(time) = Duration::parse(text) {
        around(time.as_nanos(), Duration::from_nanos)
    } else if let Some(size) = Bytes::parse(text) {
        around(size.0, Bytes)
    } else if let Some(rate) = Rate::parse(text) {
        around(rate.bits_per_sec(), Rate::from_bits_per_sec)
    } else {
        around(Share::parse(text).unwrap().parts(), Share::from_parts)
    }
}

fn of_amount(text: &Text, ends: &Ends) -> Vec<(Value, Known)> {
    let mut all: Vec<(Value, Known)> =
        text.refused.iter().map(|&refused| (refused.into(), Wrong)).collect();
    if let Some(least) = &ends.least {
        let [below, above] = neighbours(least);
        all.extend(below.map(|below| (below.into(), OutOfRange)));
        all.extend([(least.clone().into(), Right), (above.unwrap().into(), Right)]);
    }
    if let Some(most) = &ends.most {
        let [below, above] = neighbours(most);
        all.push((below.unwrap().into(), Right));
        all.push((most.clone().into(), if ends.below { OutOfRange } else { Right }));
        all.extend(above.filter(|above| above != most).map(|above| (above.into(), OutOfRange)));
    }
    all
}

fn of_list(of: &Kind, least: usize, most: usize) -> Vec<(Value, Known)> {
    let of_length = |length: usize| Value::Array(vec![sample(of); length]);
    let mut all = vec![(of_length(least), Right), (true.into(), Wrong)];
    all.extend(least.checked_sub(1).map(|few| (of_length(few), Wrong)));
    if most < usize::MAX {
        all.extend([(of_length(most), Right), (of_length(most + 1), Wrong)]);
    }
    let one = |(value, known)| {
        let rest = vec![sample(of); least.saturating_sub(1)];
        (Value::Array([vec![value], rest].concat()), known)
    };
    all.extend(candidates(of).into_iter().map(one));
    all
}

/// A validator for one table of the schema.
fn validator(table: &Table) -> Validator {
    let whole = schema(&|_| Vec::new());
    let alone = match table.title {
        "Scenario" => whole,
        title => serde_json::json!({
            "definitions": whole["definitions"],
            "$ref": format!("#/definitions/{}", crate::schema::key(title)),
        }),
    };
    jsonschema::validator_for(&alone).unwrap()
}

/// Whether reader, checker and schema take a table.
fn verdicts(table: &Table, validator: &Validator, value: &Toml) -> [bool; 3] {
    let text = toml::to_string(value).unwrap();
    let document = Document::new(text.clone(), "a.toml");
    let findings = table.check(&document, &document.parse().unwrap());
    let json = serde_json::to_value(value).unwrap();
    [(table.reads)(&text).is_ok(), findings.is_empty(), validator.is_valid(&json)]
}

/// What keeps reader, checker and schema from drifting apart: for each field of each table all of
/// them take the same values.
#[test]
fn reader_checker_and_schema_agree_on_every_field() {
    let mut wrong = Vec::new();
    for table in tables() {
        let validator = validator(table);
        let others = table.rest.as_ref().map(|kind| ("any-other", kind));
        let fields = table.fields.iter().map(|field| (field.name, &field.kind));
        for (name, kind) in fields.chain(others) {
            // Runs take no notice of that table; its own reader is asked below.
            if (table.title, name) == ("Scenario", "experiment") {
                continue;
            }
            for (value, known) in candidates(kind) {
                let mut given = least_of(table);
                given.insert(name.to_owned(), value.clone());
                let verdicts = verdicts(table, &validator, &given);
                let is_right = match known {
                    Right => verdicts == [true; 3],
                    Wrong => verdicts == [false; 3],
                    OutOfRange => verdicts == [false, true, true],
                    Unknown => verdicts == [verdicts[0]; 3],
                };
                if !is_right {
                    let mut value = value.to_string();
                    value.truncate(60);
                    let reader = (table.reads)(&toml::to_string(&given).unwrap());
                    wrong.push(format!(
                        "{}: {name} = {value} is {known:?}: {verdicts:?} {reader:?}",
                        table.title
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "reader, checker, schema:\n{}", wrong.join("\n"));
}

#[test]
fn what_has_to_be_there_is_missed_by_reader_checker_and_schema() {
    for table in tables() {
        let validator = validator(table);
        let required = table.fields.iter().filter(|field| matches!(field.absent, Absent::Required));
        let required = required.map(|field| vec![field.name]);
        let groups = table.needs.iter().map(|group| group.to_vec());
        for names in required.chain(groups) {
            let mut given = least_of(table);
            names.iter().for_each(|name| drop(given.remove(*name)));
            let verdicts = verdicts(table, &validator, &given);
            assert_eq!(verdicts, [false; 3], "{} without {names:?}", table.title);
        }
    }
}

#[test]
fn every_default_is_taken_by_reader_checker_and_schema() {
    let mut written = 0;
    for table in tables() {
        let validator = validator(table);
        for field in &table.fields {
            let Absent::Default(default) = &field.absent else { continue };
            let mut given = least_of(table);
            let default = default.clone().expect("a default that can be written");
            given.insert(field.name.to_owned(), default);
            let verdicts = verdicts(table, &validator, &given);
            assert_eq!(verdicts, [true; 3], "{}: {}", table.title, field.name);
            written += 1;
        }
    }
    assert!(written > 80, "{written}");
}

#[test]
fn a_range_that_the_schema_cannot_hold_is_told_in_it() {
    let schema = schema(&|_| Vec::new()).to_string();
    let fields = tables().into_iter().flat_map(|table| &table.fields);
    for field in fields.filter(|field| matches!(field.kind, Kind::Amount(..))) {
        let range = format!("Range: {}.", field.kind.range().unwrap());
        assert!(schema.contains(&range), "{}: {range}", field.name);
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
fn what_users_read_are_sentences_without_links_into_the_code() {
    for table in tables() {
        let fields = table.fields.iter().map(|field| (field.name, &field.about));
        for (name, about) in fields.chain([("", &table.about)]) {
            assert!(about.ends_with('.'), "{}: {name}: {about}", table.title);
            assert!(!about.contains("[`"), "{}: {name}: {about}", table.title);
        }
    }
}

#[test]
fn what_is_written_out_is_of_the_form() {
    let networks = crate::builtin_networks();
    let text = Scenario { networks, ..Scenario::default() }.to_toml().unwrap();
    let document = Document::new(text, "scenario.toml");
    assert_eq!(Scenario::table().check(&document, &document.parse().unwrap()), []);
}

proptest::proptest! {
    /// The same for texts that nobody thought of.
    #[test]
    fn reader_and_checker_agree_on_any_text(
        value in "[0-9]{0,3}(\\.[0-9])?(ms|mbit|B|KiB|%|p|bdp|s)?|default|never|0|unlimited|none",
        which in 0..200_usize,
    ) {
        let fields: Vec<(&Table, &Field)> = tables()
            .into_iter()
            .flat_map(|table| table.fields.iter().map(move |field| (table, field)))
            .filter(|(_, field)| matches!(field.kind, Kind::Text(_)))
            .collect();
        let (table, field) = fields[which % fields.len()];
        let mut given = least_of(table);
        given.insert(field.name.to_owned(), Value::String(value));
        let text = toml::to_string(&given).unwrap();
        let document = Document::new(text.clone(), "a.toml");
        let findings = table.check(&document, &document.parse().unwrap());
        let read = (table.reads)(&text);
        proptest::prop_assert_eq!(findings.is_empty(), read.is_ok(), "{}: {:?}", text, findings);
    }
}
