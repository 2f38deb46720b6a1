//! One chosen policy: an entry with the values of its parameters.

use std::fmt;
use std::sync::Arc;

use super::entry::{BuildContext, Built, Entry};
use super::error::{BuildError, SpecError};
use super::layer::Layer;
use super::param::{Value, Values};
use super::{Registry, nearest};

/// One chosen policy with its values, as in `ecf:beta=0.25`.
#[derive(Clone, Debug)]
pub struct Part {
    entry: Arc<Entry>,
    is_builtin: bool,
    values: Values,
}

impl Part {
    /// Reads `name` or `name:param=value,param=value`.
    ///
    /// # Errors
    /// If the registry has no such policy in that layer, a parameter is unknown, repeated or out
    /// of range, or a file is not named or cannot be read. Errors name the nearest valid name.
    pub fn read(registry: &Registry, layer: Layer, text: &str) -> Result<Self, SpecError> {
        let (name, params) = match text.split_once(':') {
            Some((name, params)) => (name.trim(), Some(params)),
            None => (text.trim(), None),
        };
        let Some(entry) = registry.get(layer, name) else {
            return Err(match registry.iter().find(|entry| entry.name == name) {
                Some(other) => SpecError::OtherLayer { name: name.into(), layer, is: other.layer },
                None => SpecError::UnknownPolicy {
                    layer,
                    name: name.into(),
                    hint: nearest(name, registry.of(layer).map(|entry| entry.name)),
                },
            });
        };
        let values = match params {
            Some(params) => Values::read(name, &entry.params, params)?,
            None => Values::defaults(&entry.params),
        };
        if let Some(param) = values.unnamed_file() {
            return Err(SpecError::NeedsFile { policy: name.into(), param });
        }
        let is_builtin = registry.is_builtin(entry);
        Ok(Part { entry: Arc::new(entry.clone()), is_builtin, values })
    }

    /// The policy's name.
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// What the registry knows of the policy.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Whether it came with the program: see [`Registry::is_builtin`].
    pub fn is_builtin(&self) -> bool {
        self.is_builtin
    }

    /// Its parameters.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The same text with every parameter, defaults too: for files that must not depend on them.
    pub fn full_text(&self) -> String {
        text(self.name(), self.values.iter())
    }

    /// Makes one.
    ///
    /// # Errors
    /// If values that are each in range do not go together, or the policy's entry is wrong.
    pub fn build(&self, context: &mut BuildContext) -> Result<Built, SpecError> {
        let layer = self.entry.layer;
        (self.entry.build)(&self.values, context)
            .and_then(
                |built| {
                    if built.has(layer) { Ok(built) } else { Err(BuildError::Missing { layer }) }
                },
            )
            .map_err(|error| SpecError::Build { policy: self.name().into(), error })
    }
}

fn text<'v>(name: &str, values: impl Iterator<Item = (&'static str, &'v Value)>) -> String {
    let mut text = name.to_owned();
    for (index, (param, value)) in values.enumerate() {
        text.push(if index == 0 { ':' } else { ',' });
        text.push_str(&format!("{param}={value}"));
    }
    text
}

impl PartialEq for Part {
    fn eq(&self, other: &Self) -> bool {
        self.entry.layer == other.entry.layer
            && self.entry.name == other.entry.name
            && self.values == other.values
    }
}

impl fmt::Display for Part {
    /// The shortest text that reads as the same: defaults are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.name(), self.values.changed()))
    }
}
