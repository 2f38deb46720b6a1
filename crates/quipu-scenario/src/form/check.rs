//! Holds a document to the form: unknown fields, missing ones, values of another type or form.

use std::ops::RangeBounds;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::text::{Numbers, Text};
use super::{Absent, Kind, Table};
use crate::document::{Document, in_order};
use crate::error::ScenarioError;
use crate::field_path::joined;
use crate::finding::{Finding, Findings, Place, shortened};
use quipu_record::nearest;

/// What a document has that it should not have.
struct Check<'d> {
    document: &'d Document,
    findings: Vec<Finding>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Table {
    /// The value of this form that `document` has.
    ///
    /// # Errors
    /// All that is wrong with it, with places.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        document: &Document,
    ) -> Result<T, ScenarioError> {
        let unread = |findings| {
            let findings = Findings::new(findings).unwrap_or_else(|| document.unreadable());
            ScenarioError::Found(findings)
        };
        let root = document.located().map_err(unread)?;
        let input = toml::de::Deserializer::from(root.clone());
        T::deserialize(input).map_err(|error| {
            // What the form does not know of is told as the reader tells it.
            let findings = Findings::new(self.check(document, &root));
            let findings = findings.unwrap_or_else(|| Findings::one(document.refused(&error)));
            ScenarioError::Found(findings)
        })
    }

    /// All that is wrong with the form of `root`, the tables of `document`, in their order.
    pub(crate) fn check(&self, document: &Document, root: &Spanned<DeTable<'_>>) -> Vec<Finding> {
        let mut check = Check { document, findings: Vec::new() };
        check.table(self, root.get_ref(), root.span(), "");
        check.findings
    }
}

impl Check<'_> {
    fn tell(&mut self, span: std::ops::Range<usize>, finding: Finding) {
        let place = Place::File(self.document.spot(span));
        self.findings.push(finding.at(place));
    }

    fn table(
        &mut self,
        form: &Table,
        table: &DeTable<'_>,
        span: std::ops::Range<usize>,
        path: &str,
    ) {
        for (key, value) in in_order(table) {
            let name: &str = key.get_ref();
            let field_path = joined(path, &shortened(name));
            match form.field(name).map(|field| &field.kind).or(form.rest.as_ref()) {
                Some(kind) => self.value(kind, value, &field_path),
                None => {
                    let names: Vec<&str> = form.names().collect();
                    let finding = Finding::new(field_path, "no such field", listed(&names));
                    self.tell(key.span(), finding.near(nearest(name, names)));
                }
            }
        }
        let missing = form.fields.iter().filter(|field| {
            matches!(field.absent, Absent::Required) && !table.contains_key(field.name)
        });
        for field in missing {
            let finding = Finding::new(joined(path, field.name), "missing", field.kind.expected());
            self.tell(span.clone(), finding);
        }
        for group in form.needs {
            if !group.iter().any(|name| table.contains_key(*name)) {
                let wanted: Vec<String> = group
                    .iter()
                    .filter_map(|name| form.field(name))
                    .map(|field| format!("{}: {}", field.name, field.kind.expected()))
                    .collect();
                let wanted = match (*group, form.field(group.first().unwrap_or(&""))) {
                    ([_], Some(field)) => field.kind.expected(),
                    _ => wanted.join(", or "),
                };
                let name = group.first().copied().unwrap_or_default();
                self.tell(span.clone(), Finding::new(joined(path, name), "missing", wanted));
            }
        }
    }

    fn value(&mut self, kind: &Kind, value: &Value<'_>, path: &str) {
        match (kind, value.get_ref()) {
            (Kind::Flag, DeValue::Boolean(_))
            | (Kind::Sweep, DeValue::Table(_))
            | (Kind::Any, _) => {}
            (Kind::Map(of), DeValue::Table(table)) => {
                for (key, value) in in_order(table) {
                    self.value(of, value, &joined(path, &shortened(key.get_ref())));
                }
            }
            (Kind::Whole(least, most), DeValue::Integer(number)) => {
                let number = i128::from_str_radix(number.as_str(), number.radix());
                if !number
                    .is_ok_and(|number| (i128::from(*least)..=i128::from(*most)).contains(&number))
                {
                    self.wrong(kind, value, path);
                }
            }
            (Kind::Among(numbers), DeValue::Integer(number)) => {
                let number = u8::from_str_radix(number.as_str(), number.radix());
                if !number.is_ok_and(|number| numbers.contains(&number)) {
                    self.wrong(kind, value, path);
                }
            }
            (Kind::Number(least, most), DeValue::Integer(_) | DeValue::Float(_)) => {
                if !number(value).is_some_and(|number| (*least, *most).contains(&number)) {
                    self.wrong(kind, value, path);
                }
            }
            (
                Kind::Text(text) | Kind::Amount(text, _),
                DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_),
            ) => self.text(text, value, path),
            (Kind::Words(words), DeValue::String(word)) => {
                if !words.contains(&word.as_ref()) {
                    let finding = Finding::new(path, quoted(word), kind.expected());
                    let near = nearest(word, words.iter().copied());
                    self.tell(value.span(), finding.near(near));
                }
            }
            (Kind::List(of, least, most), DeValue::Array(list)) => {
                if !(*least..=*most).contains(&list.len()) {
                    let wanted = match *most {
                        usize::MAX => format!("at least {least}"),
                        most => format!("{least} to {most}"),
                    };
                    let found = format!("{} in the list", list.len());
                    self.tell(value.span(), Finding::new(path, found, wanted));
                }
                for (index, item) in list.iter().enumerate() {
                    self.value(of, item, &format!("{path}[{index}]"));
                }
            }
            (Kind::Table(form), DeValue::Table(table)) => {
                self.table(form, table, value.span(), path);
            }
            (Kind::Either(kinds), found) => match kinds.iter().find(|kind| kind.may_be(found)) {
                Some(fitting) => self.value(fitting, value, path),
                None => self.wrong(kind, value, path),
            },
            _ => self.wrong(kind, value, path),
        }
    }

    fn text(&mut self, form: &Text, value: &Value<'_>, path: &str) {
        let number = || number(value);
        let (accepted, given) = match value.get_ref() {
            DeValue::String(text) => ((form.accepts)(text), Some(text)),
            _ => {
                let fits = match form.numbers {
                    Numbers::None => false,
                    Numbers::Zero => number() == Some(0.0),
                    Numbers::Share => number().is_some_and(|n| (0.0..=1.0).contains(&n)),
                    Numbers::Index => {
                        number().is_some_and(|n| (0.0..=f64::from(u32::MAX)).contains(&n))
                    }
                };
                (fits, None)
            }
        };
        if accepted {
            return;
        }
        let found = match given {
            Some(text) => quoted(text),
            None => self.document.value_text(value.span()),
        };
        let names = form.names.list();
        let near = given.and_then(|text| nearest(text, names.iter().map(String::as_str)));
        self.tell(value.span(), Finding::new(path, found, form.wanted()).near(near));
    }

    fn wrong(&mut self, kind: &Kind, value: &Value<'_>, path: &str) {
        let found = match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            _ => self.document.value_text(value.span()),
        };
        self.tell(value.span(), Finding::new(path, found, kind.expected()));
    }
}

impl Kind {
    /// Whether a value of the type of `value` may be of this kind.
    fn may_be(&self, value: &DeValue<'_>) -> bool {
        match self {
            Kind::Flag => value.is_bool(),
            Kind::Whole(..) | Kind::Among(_) => value.is_integer(),
            Kind::Number(..) => value.is_integer() || value.is_float(),
            Kind::Words(_) => value.is_str(),
            Kind::Text(text) | Kind::Amount(text, _) => {
                let numbers = text.numbers != Numbers::None;
                value.is_str() || (numbers && (value.is_integer() || value.is_float()))
            }
            Kind::List(..) => value.is_array(),
            Kind::Table(_) | Kind::Map(_) | Kind::Sweep => value.is_table(),
            Kind::Any => true,
            Kind::Either(kinds) => kinds.iter().any(|kind| kind.may_be(value)),
        }
    }
}

/// A text as messages repeat it.
fn quoted(text: &str) -> String {
    format!("`{}`", shortened(text))
}

fn number(value: &Value<'_>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Integer(number) => {
            // Whole numbers beyond 2^53 are compared as rounded: all bounds are far below.
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number as f64)
        }
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

/// Names in words.
fn listed(names: &[&str]) -> String {
    match names {
        [one] => format!("only {one}"),
        _ => format!("one of {}", names.join(", ")),
    }
}
