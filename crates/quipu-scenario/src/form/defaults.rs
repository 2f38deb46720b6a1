//! Defaults as the program has them: what it makes of a file in which nothing is given.

use toml::Value;

use super::{Absent, Field, Table};
use crate::{Document, Scenario};

impl Table {
    /// What the program writes out for a table of which nothing is given that has a default.
    fn written(&self) -> Option<Value> {
        let (text, path) = self.minimal;
        let scenario: Scenario = Document::new(text, self.title).scenario().ok()?;
        let mut value = Value::Table(scenario.to_table().ok()?);
        for part in path.split('.').filter(|part| !part.is_empty()) {
            let (key, index) = part.split_once('[').unwrap_or((part, ""));
            value = value.as_table_mut()?.remove(key)?;
            if let Some(index) = index.strip_suffix(']') {
                let index: usize = index.parse().ok()?;
                let list = value.as_array_mut()?;
                value = if index < list.len() { list.swap_remove(index) } else { return None };
            }
        }
        Some(value)
    }

    /// Each field with its default, if it has one that is a value.
    pub(crate) fn defaults(&self) -> Vec<(&'static Field, Option<Value>)> {
        let mut written = self.written();
        let mut take = |name: &str| written.as_mut()?.as_table_mut()?.remove(name);
        let with_default = |field: &'static Field| match field.absent {
            Absent::Default => (field, take(field.name)),
            Absent::Required | Absent::Words(_) => (field, None),
        };
        self.fields.iter().map(with_default).collect()
    }
}
