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
mod file;
mod layer;
mod param;
mod part;
mod spec;

pub use entry::{Build, BuildContext, Built, Confidence, Entry};
pub use error::{AddError, BuildError, Hint, SpecError};
pub use file::{FileError, PolicyFile};
pub use layer::Layer;
pub use param::{Domain, Param, Value, Values};
pub use part::Part;
pub use spec::{Policies, PolicySpec};

/// The policies that can be chosen by name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Vec<Entry>,
    /// How many of the entries, from the first on, came with the program.
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

    /// Adds a policy of another crate that comes with the program, behind those of this crate. What is kept of earlier
    /// runs depends on hashes of the program's sources, so that crate's must be among them: see `quipu-build`.
    ///
    /// # Errors
    /// See [`Registry::add`].
    pub fn add_builtin(&mut self, entry: Entry) -> Result<(), AddError> {
        self.add(entry)?;
        self.entries[self.builtin..].rotate_right(1);
        self.builtin += 1;
        Ok(())
    }

    /// The same without policies that are made of files: for choices of strangers, who must not make this machine read
    /// files that they name.
    #[must_use]
    pub fn without_files(&self) -> Self {
        let is_kept =
            |entry: &&Entry| entry.params.iter().all(|param| param.domain != Domain::File);
        let builtin = self.entries[..self.builtin].iter().filter(is_kept).count();
        Registry { entries: self.entries.iter().filter(is_kept).cloned().collect(), builtin }
    }

    /// Adds a policy, in the place of the one of its layer and name if that did not come with the program: for whoever
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

    /// Whether `entry` came with the program: with this crate, or by [`Registry::add_builtin`].
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
        if twice || !param.domain.holds(&param.default) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::{IdleProbe, MinRtt};

    fn entry(name: &'static str, params: Vec<Param>) -> Entry {
        Entry {
            name,
            layer: Layer::Path,
            about: "for tests",
            formula: "as minrtt",
            params,
            source: "our choice",
            confidence: Confidence::High,
            build: &|values, _| {
                values.file("file")?;
                Ok(Built::path(MinRtt::new(IdleProbe::INTERVAL)))
            },
        }
    }

    fn of_file() -> Entry {
        entry("of-file", vec![Param::file("file", "what it is made of")])
    }

    #[test]
    fn a_policy_of_a_file_needs_one() {
        let mut registry = Registry::builtin();
        registry.add(of_file()).unwrap();
        assert!(registry.get(Layer::Path, "of-file").unwrap().needs_file());
        assert!(Registry::builtin().iter().all(|entry| !entry.needs_file()));
        let read = |text: &str| Part::read(&registry, Layer::Path, text);
        assert_eq!(
            read("of-file").unwrap_err().to_string(),
            "of-file needs a file: expected of-file:file=FILE"
        );
        let error = read("of-file:file=no-such-file").unwrap_err().to_string();
        let expected = "of-file: file=no-such-file: expected a file that can be read: ";
        assert!(error.starts_with(expected), "{error}");
        let part = read("of-file:file=Cargo.toml").unwrap();
        assert_eq!(part.to_string(), "of-file:file=Cargo.toml");
        assert_eq!(part.full_text(), part.to_string());
        let file = part.values().files().next().unwrap();
        assert!(file.bytes().starts_with(b"[package]"));
        assert!(registry.describe("of-file").unwrap().contains("    file=FILE (a file)\n"));
    }

    #[test]
    fn strangers_choose_among_policies_without_files() {
        let mut registry = Registry::builtin();
        registry.add(of_file()).unwrap();
        registry.add(entry("own", Vec::new())).unwrap();
        registry.add_builtin(entry("came-along", Vec::new())).unwrap();
        let without = registry.without_files();
        assert_eq!(without.iter().count() + 1, registry.iter().count());
        let error = Part::read(&without, Layer::Path, "of-file:file=Cargo.toml").unwrap_err();
        assert!(matches!(error, SpecError::UnknownPolicy { .. }), "{error}");
        let is_builtin = |name| without.is_builtin(without.get(Layer::Path, name).unwrap());
        assert!(is_builtin("minrtt") && is_builtin("came-along") && !is_builtin("own"));
    }

    #[test]
    fn a_policy_that_comes_with_the_program_gives_way_to_none() {
        let mut registry = Registry::builtin();
        registry.add(entry("own", Vec::new())).unwrap();
        registry.add_builtin(entry("came-along", Vec::new())).unwrap();
        let names: Vec<&str> = registry.of(Layer::Path).map(|entry| entry.name).collect();
        assert!(names.ends_with(&["came-along", "own"]), "{names:?}");
        let again = || entry("came-along", Vec::new());
        assert!(matches!(registry.put(again()), Err(AddError::Exists { .. })));
        assert!(matches!(registry.add_builtin(again()), Err(AddError::Exists { .. })));
    }
}
