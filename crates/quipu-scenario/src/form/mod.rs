//! The form of scenario files as data: which fields there are, what each may hold, and what it means.
//!
//! Reader, checker, JSON Schema and reference page all go by it. Serde reads scenarios without it; a
//! test asks serde for the fields of each table and compares them with those told here, so that
//! neither can have a field that the other lacks. Defaults are not written here but taken from what
//! the program makes of a minimal file.

mod check;
mod defaults;
mod experiment;
mod fields;
mod radio;
mod tables;
mod text;

pub(super) use fields::{network, scenario};
pub(super) use text::{Names, Numbers, Text};

/// All tables of scenario files, the scenario's first, each once.
pub(super) fn tables() -> Vec<&'static Table> {
    let mut tables = vec![scenario()];
    let mut next = 0;
    while let Some(table) = tables.get(next).copied() {
        for inner in table.fields.iter().flat_map(|field| field.kind.tables()) {
            if !tables.iter().any(|known| std::ptr::eq(*known, inner)) {
                tables.push(inner);
            }
        }
        next += 1;
    }
    tables
}

/// A table of a scenario file.
#[derive(Debug)]
pub(crate) struct Table {
    /// What the reference calls it, such as `Link`.
    pub(crate) title: &'static str,
    /// What it stands for, in a sentence or more.
    pub(crate) about: &'static str,
    /// Its fields, in the order of the reference.
    pub(crate) fields: &'static [Field],
    /// Of each group at least one field has to be there.
    pub(crate) needs: &'static [&'static [&'static str]],
    /// A complete scenario with one such table, where nothing is given that has a default, and the
    /// path of that table in it.
    pub(crate) minimal: (&'static str, &'static str),
}

/// A field of a table.
#[derive(Debug)]
pub(crate) struct Field {
    /// Its key.
    pub(crate) name: &'static str,
    /// What it means.
    pub(crate) about: &'static str,
    /// What it is if it is left out.
    pub(crate) absent: Absent,
    /// What it may hold.
    pub(crate) kind: Kind,
}

/// What stands for a field that is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Absent {
    /// Nothing: it must be there.
    Required,
    /// What the program writes out for it.
    Default,
    /// Something that is no value, in words.
    Words(&'static str),
}

/// What a field may hold.
#[derive(Debug)]
pub(crate) enum Kind {
    /// True or false.
    Flag,
    /// A whole number within bounds.
    Whole(u64, u64),
    /// A number within bounds.
    Number(f64, f64),
    /// Text of some form.
    Text(&'static Text),
    /// One of several words.
    Words(fn() -> Vec<&'static str>),
    /// Values of one kind, between so many and so many.
    List(&'static Kind, usize, usize),
    /// Another table.
    Table(&'static Table),
    /// A table with any keys, whose values are of one kind.
    Map(&'static Kind),
    /// Anything.
    Any,
    /// What `[sweep]` holds; [`SweepSpec::read`](super::SweepSpec::read) tells what is wrong with it.
    Sweep,
    /// Any of these, which TOML tells apart by type.
    Either(&'static [Kind]),
}

impl Table {
    /// The field called `name`.
    pub(crate) fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Names of its fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.fields.iter().map(|field| field.name)
    }
}

impl Kind {
    /// What is wanted, in words that go on after `expected`.
    pub(crate) fn expected(&self) -> String {
        match self {
            Kind::Flag => "true or false".to_owned(),
            Kind::Whole(0, u64::MAX) => "a whole number, not negative".to_owned(),
            Kind::Whole(least, most) => format!("a whole number, {least} to {most}"),
            Kind::Number(least, most) => format!("a number, {least} to {most}"),
            Kind::Text(text) => text.expected.to_owned(),
            Kind::Words(words) => format!("one of {}", words().join(", ")),
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
            Kind::Text(text) => vec![text],
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
