//! Policies by name: `ecf:beta=0.25`.
//!
//! A [`Registry`] knows every policy with its parameters, defaults, ranges and source. Whoever
//! writes a new one adds an [`Entry`]. A [`PolicySpec`] is a choice of policies for a connection:
//!
//! ```
//! use quipu_base::Seed;
//! use quipu_policy::{BuildContext, PolicySpec, Registry};
//!
//! let registry = Registry::builtin();
//! let spec = PolicySpec::parse(&registry, "stream=wrr:mode=quantum path=minrtt")?;
//! assert_eq!(spec.to_string(), "stream=wrr:mode=quantum path=minrtt ack=own congestion=newreno");
//! let policies = spec.build(&BuildContext::new(Seed::new(1)))?;
//! assert!(!policies.joint.has_copies());
//!
//! let error = PolicySpec::parse(&registry, "stream=wrrr").unwrap_err();
//! assert!(error.to_string().contains("did you mean `wrr`?"));
//! # Ok::<(), quipu_policy::registry::SpecError>(())
//! ```

use strsim::damerau_levenshtein;

mod describe;
mod entry;
mod error;
mod layer;
mod param;
mod part;
mod spec;

pub use entry::{Build, BuildContext, Built, Confidence, Entry};
pub use error::{AddError, BuildError, Hint, SpecError};
pub use layer::Layer;
pub use param::{Domain, Param, Value, Values};
pub use part::Part;
pub use spec::{Policies, PolicySpec};

/// The policies that can be chosen by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Vec<Entry>,
    /// How many of the entries, from the first on, came with this crate.
    builtin: usize,
}

impl Registry {
    /// A registry without policies.
    pub fn new() -> Self {
        Registry::default()
    }

    /// A registry of the policies that come with this crate.
    pub(crate) fn of_crate(entries: Vec<Entry>) -> Self {
        Registry { builtin: entries.len(), entries }
    }

    /// Adds a policy.
    ///
    /// # Errors
    /// If its name is taken in its layer or has other signs than lower-case letters, digits, `-`
    /// and `_`, if it has no formula, or if a parameter is declared twice or with a default out of
    /// its range.
    pub fn add(&mut self, entry: Entry) -> Result<(), AddError> {
        check_entry(&entry)?;
        if self.get(entry.layer, entry.name).is_some() {
            return Err(AddError::Exists { layer: entry.layer, name: entry.name });
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Adds a policy, in the place of the one of its layer and name if that did not come with this crate: for whoever
    /// changes a policy while the program runs.
    ///
    /// # Errors
    /// See [`Registry::add`].
    pub fn put(&mut self, entry: Entry) -> Result<(), AddError> {
        check_entry(&entry)?;
        let own = &mut self.entries[self.builtin..];
        let is_it = |known: &&mut Entry| (known.layer, known.name) == (entry.layer, entry.name);
        match own.iter_mut().find(is_it) {
            Some(known) => *known = entry,
            None => return self.add(entry),
        }
        Ok(())
    }

    /// Gives a policy that is here another formula than its entry came with.
    pub fn explain(&mut self, layer: Layer, name: &'static str, formula: &'static str) {
        let is_it = |entry: &&mut Entry| (entry.layer, entry.name) == (layer, name);
        if let Some(entry) = self.entries.iter_mut().find(is_it) {
            entry.formula = formula;
        }
    }

    /// How a policy decides, in formulas.
    pub fn formula(&self, layer: Layer, name: &str) -> Option<&'static str> {
        self.get(layer, name).map(|entry| entry.formula)
    }

    /// The policy of that layer and name.
    pub fn get(&self, layer: Layer, name: &str) -> Option<&Entry> {
        self.of(layer).find(|entry| entry.name == name)
    }

    /// Whether `entry` came with this crate, and was not added to the registry.
    pub fn is_builtin(&self, entry: &Entry) -> bool {
        let mut builtin = self.entries[..self.builtin].iter();
        builtin.any(|known| (known.layer, known.name) == (entry.layer, entry.name))
    }

    /// The policies of a layer, in order of registration.
    pub fn of(&self, layer: Layer) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.layer == layer)
    }

    /// All policies, in order of registration.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
}

fn check_entry(entry: &Entry) -> Result<(), AddError> {
    let names = std::iter::once(entry.name).chain(entry.params.iter().map(|param| param.name));
    for name in names {
        let valid = |sign: u8| matches!(sign, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if name.is_empty() || !name.bytes().all(valid) {
            return Err(AddError::Name { name: name.into() });
        }
    }
    if entry.formula.is_empty() {
        return Err(AddError::Formula { policy: entry.name });
    }
    for (index, param) in entry.params.iter().enumerate() {
        let twice = entry.params[..index].iter().any(|other| other.name == param.name);
        if twice || !param.domain.holds(param.default) {
            return Err(AddError::Param { policy: entry.name, param: param.name });
        }
    }
    Ok(())
}

/// All of `valid`, and the one nearest to `name` if it is near.
fn nearest<'a>(name: &str, valid: impl Iterator<Item = &'a str>) -> Hint {
    let valid: Vec<String> = valid.map(str::to_owned).collect();
    let nearest = valid
        .iter()
        .map(|candidate| (damerau_levenshtein(name, candidate), candidate))
        .min_by_key(|&(distance, _)| distance)
        .filter(|&(distance, candidate)| distance <= 1 + candidate.chars().count() / 3)
        .map(|(_, candidate)| candidate.clone());
    Hint { nearest, valid }
}
