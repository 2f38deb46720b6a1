//! The form of scenario files as data: which fields there are, what each may hold, and what it means.
//!
//! It comes from the structs themselves: `table!` declares a struct together with its [`Table`], so
//! that a field stands once. Checker, JSON Schema and reference page all go by these tables.
//!
//! - [`table`]: the macro. [`types`]: what each type of a field allows, and how serde reads and
//!   writes it. [`limit`]: what a field may hold beyond its type. [`text`]: forms of text, of which
//!   [`amount`] has those with units and [`pattern`] the parts of patterns.
//! - [`check`]: holds a document to its form.

mod amount;
mod check;
mod limit;
pub(crate) mod pattern;
mod table;
pub(crate) mod text;
mod types;

use std::ops::Bound;

pub(crate) use amount::amounts;
pub(crate) use limit::{Among, Bounds, Ends, Limit, OfText, OneOf, Texted};
#[cfg(test)]
pub(crate) use table::reads;
pub(crate) use table::{
    absent, default_value, field_type_of, filled, given, input_of, least_of, limit, put, serde_of,
    table, value,
};
pub(crate) use text::{Names, Numbers, Text};
pub(crate) use types::{
    As, FieldType, Held, Optional, Shorthand, Written, field_types, optional, read_only,
    table_or_short,
};

/// A table of a scenario file.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What the reference calls it, such as `Link`.
    pub(crate) title: &'static str,
    /// What it stands for, in a sentence or more.
    pub(crate) about: String,
    /// Its fields, in the order in which they are written out.
    pub(crate) fields: Vec<Field>,
    /// What keys that are no fields may hold; `None`: there are no others.
    pub(crate) rest: Option<Kind>,
    /// Of each group at least one field has to be there.
    pub(crate) needs: &'static [&'static [&'static str]],
    /// Whether the reader takes a table, given as the text of a file, and if not, why.
    #[cfg(test)]
    pub(crate) reads: fn(&str) -> Result<(), String>,
}

/// A field of a table.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Its key.
    pub(crate) name: &'static str,
    /// What it means.
    pub(crate) about: String,
    /// What it is if it is left out.
    pub(crate) absent: Absent,
    /// What it may hold.
    pub(crate) kind: Kind,
}

/// What stands for a field that is left out.
#[derive(Clone, Debug)]
pub(crate) enum Absent {
    /// Nothing: it must be there.
    Required,
    /// This value; `None` if TOML has no way to write it.
    Default(Option<toml::Value>),
    /// Something that is no value, in words.
    Words(&'static str),
}

/// What a field may hold.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// True or false.
    Flag,
    /// A whole number within bounds.
    Whole(u64, u64),
    /// One of several whole numbers.
    Among(&'static [u8]),
    /// A number within bounds.
    Number(Bound<f64>, Bound<f64>),
    /// Text of some form.
    Text(&'static Text),
    /// An amount with its unit, in a range.
    Amount(&'static Text, Ends),
    /// One of several words.
    Words(Vec<&'static str>),
    /// Values of one kind, between so many and so many.
    List(Box<Kind>, usize, usize),
    /// Another table.
    Table(&'static Table),
    /// A table with any keys, whose values are of one kind.
    Map(Box<Kind>),
    /// Anything.
    Any,
    /// What `[sweep]` holds; [`SweepSpec::read`](crate::SweepSpec::read) tells what is wrong with it.
    Sweep,
    /// Any of these, which TOML tells apart by type.
    Either(Vec<Kind>),
}

/// The first paragraph of a doc comment in one line: what users read.
pub(crate) fn first_paragraph(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| line.trim());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The key of a field from the name that it has in its struct.
pub(crate) fn key(name: &'static str) -> &'static str {
    name.trim_start_matches("r#")
}

impl Absent {
    /// `value`, as a file has it.
    pub(crate) fn default_of<T: FieldType>(value: &T) -> Absent {
        Absent::Default(toml::Value::try_from(As(value)).ok())
    }
}

impl Table {
    /// The field called `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// What is said of a table that has no field of `group`.
    pub(crate) fn missing(&self, group: &[&str]) -> String {
        let kinds = group.iter().filter_map(|name| self.field(name)).map(|field| &field.kind);
        let expected: Vec<String> = kinds.map(Kind::expected).collect();
        // What is wanted alike is told once.
        let mut wanted: Vec<&str> = Vec::new();
        for expected in &expected {
            if !wanted.contains(&expected.as_str()) {
                wanted.push(expected);
            }
        }
        format!("{} is missing; expected {}", group.join(" or "), wanted.join(", or "))
    }

    /// Names of its fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }
}

impl Kind {
    /// Any number.
    pub(crate) fn number() -> Kind {
        Kind::Number(Bound::Unbounded, Bound::Unbounded)
    }

    /// The range of its numbers or amounts, if it has one.
    pub(crate) fn range(&self) -> Option<Ends> {
        match self {
            Kind::Amount(_, range) => Some(range.clone()),
            Kind::Number(Bound::Unbounded, Bound::Unbounded) => None,
            Kind::Number(least, most) => Some(Bounds::of((*least, *most)).of_numbers()),
            Kind::List(of, ..) => of.range(),
            _ => None,
        }
    }

    /// What is wanted, in words that go on after `expected`.
    pub(crate) fn expected(&self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(0, u64::MAX) => "a whole number, not negative".to_owned(),
            Kind::Whole(least, most) => format!("a whole number, {least} to {most}"),
            Kind::Among(numbers) => {
                let numbers: Vec<String> = numbers.iter().map(u8::to_string).collect();
                format!("one of {}", numbers.join(", "))
            }
            Kind::Number(..) => match self.range() {
                Some(range) => format!("a number, {range}"),
                None => "a number".to_owned(),
            },
            Kind::Text(text) => text.expected.to_owned(),
            Kind::Amount(text, range) => format!("{}; {range}", text.expected),
            Kind::Words(words) => format!("one of {}", words.join(", ")),
            Kind::List(of, ..) => format!("a list, each {}", of.expected()),
            Kind::Table(table) => {
                let names: Vec<&str> = table.names().collect();
                format!("a table of {}", names.join(", "))
            }
            Kind::Map(_) | Kind::Sweep => "a table".to_owned(),
            Kind::Any => "anything".to_owned(),
            Kind::Either(kinds) => {
                kinds.iter().map(Kind::expected).collect::<Vec<_>>().join(", or ")
            }
        }
    }

    /// Every form of text in it, tables left out.
    pub(crate) fn texts(&self) -> Vec<&'static Text> {
        match self {
            Kind::Text(text) | Kind::Amount(text, _) => vec![text],
            Kind::List(of, ..) | Kind::Map(of) => of.texts(),
            Kind::Either(kinds) => kinds.iter().flat_map(Kind::texts).collect(),
            _ => Vec::new(),
        }
    }

    /// Every table in it.
    pub(crate) fn tables(&self) -> Vec<&'static Table> {
        match self {
            Kind::Table(table) => vec![table],
            Kind::List(of, ..) | Kind::Map(of) => of.tables(),
            Kind::Either(kinds) => kinds.iter().flat_map(Kind::tables).collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
