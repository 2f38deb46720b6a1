//! Reads `[sweep]`, and tells all that is wrong with it.

use std::ops::Range;

use serde::Deserialize;
use toml::de::{DeTable, DeValue, ValueDeserializer};
use toml::{Spanned, Value};

use super::super::document::{Document, in_order};
use super::super::field_path::joined;
use super::super::finding::{Finding, Findings, Place, shortened};
use super::super::{ScenarioError, resolve_field};
use super::{Amount, Axis, Draw, Random, SweepSpec, SweptField};
use quipu_record::nearest;

/// Values that a list of a sweep may have, and samples that may be drawn.
pub(super) const MOST_VALUES: usize = 10_000;

/// Fields that no sweep changes: lists of the scenario itself, and what has no place in a sweep.
const OWN_LISTS: [(&str, &str); 6] = [
    ("pages", "the scenario's own list `pages`, of which every point has all"),
    ("networks", "the scenario's own list `networks`, of which every point has all"),
    ("runs", "the scenario's own `runs`, which every point has"),
    ("series", "no time series: those of one run are written by `quipu load --series`"),
    ("experiment", "a field of the scenario"),
    ("sweep", "a field of the scenario"),
];

/// Parts of a scenario in which a path goes deeper than names do.
const WITHIN: [&str; 6] = ["clients", "cross", "flows", "networks", "raw", "servers"];

/// The sweep that `given`, a value of `document`, describes.
///
/// # Errors
/// All that is wrong with its form, with places.
pub(super) fn sweep(
    document: &Document,
    given: &Spanned<DeValue<'_>>,
) -> Result<SweepSpec, Findings> {
    let mut reader = Reader { document, findings: Vec::new() };
    let spec = reader.sweep(given);
    match Findings::new(reader.findings) {
        None => Ok(spec),
        Some(findings) => Err(findings),
    }
}

/// What a table says of a field's values.
#[derive(Default)]
struct Described {
    values: Option<Vec<Value>>,
    /// `from` and `to`.
    ends: [Option<Amount>; 2],
    steps: Option<usize>,
    log: bool,
}

struct Reader<'d> {
    document: &'d Document,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    fn tell(&mut self, span: Range<usize>, field: &str, found: impl Into<String>, expected: &str) {
        let place = Place::File(self.document.spot(span));
        self.findings.push(Finding::new(field, found, expected).at(place));
    }

    fn sweep(&mut self, given: &Spanned<DeValue<'_>>) -> SweepSpec {
        let mut spec = SweepSpec { document: Some(self.document.clone()), ..SweepSpec::default() };
        let DeValue::Table(table) = given.get_ref() else {
            let text = self.document.value_text(given.span());
            self.tell(given.span(), "sweep", text, "a table of fields with lists of values");
            return spec;
        };
        for (key, value) in in_order(table) {
            let name: &str = key.get_ref();
            match (name, value.get_ref()) {
                ("random", DeValue::Table(random)) => {
                    spec.random = self.random(random, value.span());
                }
                ("zip", DeValue::Array(list)) => {
                    for (index, item) in list.iter().enumerate() {
                        spec.axes.extend(self.zip(item, index));
                    }
                }
                _ => {
                    let entry = self.entry(name, key.span(), value, &joined("sweep", name));
                    if let Some((field, Draw::List(values))) = entry {
                        let (fields, values) = (vec![field], vec![values]);
                        spec.axes.push(Axis { fields, values, zipped: false });
                    }
                }
            }
        }
        // Lists first, as TOML writes them; what moves together behind them.
        spec.axes.sort_by_key(|axis| axis.zipped);
        if spec.axes.is_empty() && spec.random.is_none() && self.findings.is_empty() {
            let expected =
                "a field with a list of values, such as browser = [\"chrome\", \"firefox\"]";
            self.tell(given.span(), "sweep", "empty", expected);
        }
        let fields: Vec<SweptField> = spec.fields().cloned().collect();
        for (index, field) in fields.iter().enumerate() {
            if fields[..index].iter().any(|other| other.name == field.name) {
                let found = format!("`{}` twice", field.name);
                self.tell(
                    field.span.clone(),
                    &joined("sweep", &field.key),
                    found,
                    "each field once",
                );
            }
        }
        spec
    }

    fn zip(&mut self, item: &Spanned<DeValue<'_>>, index: usize) -> Option<Axis> {
        let path = format!("sweep.zip[{index}]");
        let DeValue::Table(table) = item.get_ref() else {
            let text = self.document.value_text(item.span());
            self.tell(
                item.span(),
                &path,
                text,
                "a table of fields with lists as long as each other",
            );
            return None;
        };
        let mut axis = Axis { fields: Vec::new(), values: Vec::new(), zipped: true };
        for (key, value) in in_order(table) {
            let (name, path): (&str, String) = (key.get_ref(), joined(&path, key.get_ref()));
            let entry = self.entry(name, key.span(), value, &path);
            let Some((field, Draw::List(values))) = entry else { continue };
            let length = axis.values.first().map_or(values.len(), Vec::len);
            if values.len() != length {
                let found = format!("{} values", values.len());
                self.tell(value.span(), &path, found, &format!("{length}, as before it"));
            }
            axis.fields.push(field);
            axis.values.push(values);
        }
        (!axis.fields.is_empty()).then_some(axis)
    }

    fn random(&mut self, table: &DeTable<'_>, span: Range<usize>) -> Option<Random> {
        let mut random = Random { count: 0, seed: 1, fields: Vec::new() };
        for (key, value) in in_order(table) {
            let (name, path): (&str, String) =
                (key.get_ref(), joined("sweep.random", key.get_ref()));
            let most = if name == "count" { MOST_VALUES as u64 } else { i64::MAX as u64 };
            match name {
                "count" | "seed" => {
                    let number = plain(value).and_then(|value| value.as_integer());
                    let number = number.and_then(|number| u64::try_from(number).ok());
                    match number.filter(|number| *number <= most && (*number > 0 || name == "seed"))
                    {
                        Some(number) if name == "seed" => random.seed = number,
                        Some(number) => random.count = u32::try_from(number).unwrap_or(u32::MAX),
                        None => {
                            let text = self.document.value_text(value.span());
                            let least = u64::from(name == "count");
                            let expected = format!("a whole number, {least} to {most}");
                            self.tell(value.span(), &path, text, &expected);
                            // Told already.
                            random.count = random.count.max(1);
                        }
                    }
                }
                _ => random.fields.extend(self.entry(name, key.span(), value, &path)),
            }
        }
        if random.count == 0 {
            let expected = "a number of samples, such as count = 100";
            self.tell(span.clone(), "sweep.random.count", "missing", expected);
        }
        if random.fields.is_empty() && self.findings.is_empty() {
            let expected = "a field with `from` and `to`, or with a list of values";
            self.tell(span, "sweep.random", "no field", expected);
        }
        Some(random)
    }

    /// A field and its values: a list, or a table that says more.
    fn entry(
        &mut self,
        name: &str,
        span: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        path: &str,
    ) -> Option<(SweptField, Draw)> {
        let in_random = is_in_random(path);
        let mut field = SweptField {
            name: name.to_owned(),
            sets: vec![name.to_owned()],
            times: None,
            key: name.to_owned(),
            span,
        };
        let draw = match value.get_ref() {
            DeValue::Array(list) => Some(Draw::List(self.list(list, value.span(), path)?)),
            DeValue::Table(table) => self.described(&mut field, table, value.span(), path),
            _ => {
                let text = self.document.value_text(value.span());
                let expected = if in_random {
                    "a list of values, or { from = …, to = … }"
                } else {
                    "a list of values"
                };
                self.tell(value.span(), path, text, expected);
                None
            }
        };
        let top = |set: &String| OWN_LISTS.iter().find(|(own, _)| set == own);
        if let Some((_, instead)) = field.sets.iter().find_map(top) {
            self.tell(field.span.clone(), path, "no field to sweep over", instead);
            return None;
        }
        // Short names and dashes as `--set` has them.
        for set in field.sets.iter_mut().chain(&mut field.times) {
            match full_path(set) {
                Ok(full) => *set = full,
                Err(error) => {
                    let mut findings = error.findings();
                    let place = Place::File(self.document.spot(field.span.clone()));
                    for finding in &mut findings {
                        finding.field = path.to_owned();
                        finding.place = place.clone();
                    }
                    self.findings.extend(findings);
                    return None;
                }
            }
        }
        if field.sets.len() == 1 && field.times.is_none() && name == field.key {
            let is_own_name =
                matches!(value.get_ref(), DeValue::Table(table) if table.contains_key("fields"));
            if !is_own_name {
                field.name.clone_from(&field.sets[0]);
            }
        }
        draw.map(|draw| (field, draw))
    }

    /// The values of a list, at least one.
    fn list(
        &mut self,
        list: &[Spanned<DeValue<'_>>],
        span: Range<usize>,
        path: &str,
    ) -> Option<Vec<Value>> {
        if list.is_empty() || list.len() > MOST_VALUES {
            let expected = format!("1 to {MOST_VALUES} values");
            self.tell(span, path, format!("{} in the list", list.len()), &expected);
            return None;
        }
        let values: Option<Vec<Value>> = list.iter().map(plain).collect();
        let values = values?;
        for (index, value) in values.iter().enumerate() {
            if values[..index].contains(value) {
                let found = format!("{} twice", shortened(&value.to_string()));
                let expected = "different values";
                self.tell(list[index].span(), &format!("{path}[{index}]"), found, expected);
            }
        }
        Some(values)
    }

    fn described(
        &mut self,
        field: &mut SweptField,
        table: &DeTable<'_>,
        span: Range<usize>,
        path: &str,
    ) -> Option<Draw> {
        const KEYS: [&str; 7] = ["values", "from", "to", "steps", "scale", "fields", "times"];
        let mut given = Described::default();
        let in_random = is_in_random(path);
        let told = self.findings.len();
        for (key, value) in in_order(table) {
            let (name, path): (&str, String) = (key.get_ref(), joined(path, key.get_ref()));
            let plain = plain(value);
            let text = || self.document.value_text(value.span());
            match (name, value.get_ref(), &plain) {
                ("values", DeValue::Array(list), _) => {
                    given.values = self.list(list, value.span(), &path);
                }
                ("from" | "to", _, Some(end)) => {
                    let amount = Amount::read(end);
                    if amount.is_none() {
                        let text = text();
                        let expected = "a number, a rate, a time, a size or a share such as 1%";
                        self.tell(value.span(), &path, text, expected);
                    }
                    given.ends[usize::from(name == "to")] = amount;
                }
                ("scale", _, Some(Value::String(scale))) if scale == "linear" || scale == "log" => {
                    given.log = scale == "log";
                }
                ("scale", ..) => {
                    let text = text();
                    self.tell(value.span(), &path, text, "\"linear\" or \"log\"");
                }
                ("steps", _, Some(Value::Integer(count)))
                    if !in_random && (2..=MOST_VALUES as i64).contains(count) =>
                {
                    given.steps = usize::try_from(*count).ok();
                }
                ("steps", ..) if !in_random => {
                    let text = text();
                    let expected = format!("a whole number, 2 to {MOST_VALUES}");
                    self.tell(value.span(), &path, text, &expected);
                }
                ("fields", _, Some(Value::Array(list)))
                    if !list.is_empty() && list.iter().all(Value::is_str) =>
                {
                    let texts = list.iter().filter_map(Value::as_str);
                    field.sets = texts.map(str::to_owned).collect();
                }
                ("fields", ..) => {
                    let text = text();
                    self.tell(value.span(), &path, text, "a list of fields that get the value");
                }
                ("times", _, Some(Value::String(of))) => field.times = Some(of.clone()),
                ("times", ..) => {
                    let text = text();
                    self.tell(
                        value.span(),
                        &path,
                        text,
                        "the field that the value is a multiple of",
                    );
                }
                _ => {
                    let finding =
                        Finding::new(path, "no such field", format!("one of {}", KEYS.join(", ")));
                    let finding = finding.near(nearest(name, KEYS));
                    let place = Place::File(self.document.spot(key.span()));
                    self.findings.push(finding.at(place));
                }
            }
        }
        if self.findings.len() > told { None } else { self.draw(given, span, path) }
    }

    /// What a table with these values comes to.
    fn draw(&mut self, given: Described, span: Range<usize>, path: &str) -> Option<Draw> {
        let Described { values, ends, steps, log } = given;
        match (values, ends, steps) {
            (Some(values), [None, None], None) => Some(Draw::List(values)),
            (None, [Some(from), Some(to)], steps) => {
                if !from.goes_with(to) || (log && !(from.is_positive() && to.is_positive())) {
                    let expected = match log {
                        true => "two amounts of one kind, above zero on a logarithmic scale",
                        false => "two amounts of one kind",
                    };
                    let text = self.document.value_text(span.clone());
                    self.tell(span, path, text, expected);
                    return None;
                }
                match (is_in_random(path), steps) {
                    (true, _) => Some(Draw::Range { from, to, log }),
                    (false, Some(steps)) => {
                        let last = (steps - 1) as f64;
                        let at = |index: usize| from.between(to, index as f64 / last, log);
                        let mut list: Vec<Value> =
                            (0..steps).map(|index| at(index).rounded().value()).collect();
                        // Of whole numbers close by several steps may be one.
                        list.dedup();
                        Some(Draw::List(list))
                    }
                    (false, None) => {
                        self.tell(span, &joined(path, "steps"), "missing", "how many values");
                        None
                    }
                }
            }
            _ => {
                let expected = "either `values`, or `from` and `to`";
                let text = self.document.value_text(span.clone());
                self.tell(span, path, text, expected);
                None
            }
        }
    }
}

/// Whether `path` lies in the part that is drawn.
fn is_in_random(path: &str) -> bool {
    path.starts_with("sweep.random.")
}

/// A value as it is without its place.
fn plain(value: &Spanned<DeValue<'_>>) -> Option<Value> {
    Value::deserialize(ValueDeserializer::from(value.clone())).ok()
}

/// The path of the field that `key` names, as [`resolve_field`] does, or a path into lists.
fn full_path(key: &str) -> Result<String, ScenarioError> {
    match key.split_once('.') {
        Some((first, _)) if WITHIN.contains(&first) => Ok(key.to_owned()),
        _ => resolve_field(key),
    }
}
