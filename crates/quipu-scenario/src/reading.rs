//! Scenarios read from documents: strictly, or as far as they are right.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::document::Document;
use super::error::ScenarioError;
use super::field_path::{Step, steps};
use super::finding::{Finding, Findings};
use super::scenario::Scenario;

/// What can be read of a file, and what is wrong with its form.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The scenario, if one is left.
    pub scenario: Option<Scenario>,
    /// What was left out of it, and why.
    pub findings: Vec<Finding>,
}

impl Scenario {
    /// Reads a scenario; what it does not name has its default. Files of recordings count from the
    /// folder of `file`.
    ///
    /// # Errors
    /// If `text` is no TOML or has an unknown field or a value that is none: all of them, with
    /// `file`, line and column.
    pub fn from_toml(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        Document::new(text, file).scenario()
    }

    /// Reads the scenario in the file at `path`.
    ///
    /// # Errors
    /// As [`Scenario::from_toml`], and if the file is unreadable.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        Document::read(path)?.scenario()
    }
}

impl Document {
    /// The scenario in it.
    ///
    /// # Errors
    /// Every unknown field and every value that is none, with their places.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        let mut scenario: Scenario = Scenario::table().read(self)?;
        self.resolve(&mut scenario);
        Ok(scenario)
    }

    /// The scenario in it, without what is wrong in form: fields that are wrong count as left out,
    /// or else the table that they are in.
    ///
    /// # Errors
    /// If it is no TOML.
    pub fn readable(&self) -> Result<Readable, Findings> {
        let root = self
            .located()
            .map_err(|findings| Findings::new(findings).unwrap_or_else(|| self.unreadable()))?;
        let mut findings = Scenario::table().check(self, &root);
        let (mut table, span) = (root.get_ref().clone(), root.span());
        for finding in &findings {
            remove(&mut table, &finding.field);
        }
        let scenario = loop {
            let input = Spanned::new(span.clone(), table.clone());
            let error = match Scenario::deserialize(toml::de::Deserializer::from(input)) {
                Ok(mut scenario) => {
                    self.resolve(&mut scenario);
                    break Some(scenario);
                }
                Err(error) => error,
            };
            let finding = self.refused(&error);
            let part = finding.field.split(['.', '[']).next().unwrap_or_default().to_owned();
            // A part of which something is wrong need not be told again.
            let is_told = findings.iter().any(|told| told.field.starts_with(&part));
            if part.is_empty() || !is_told {
                findings.push(finding);
            }
            if table.remove(part.as_str()).is_none() {
                break None;
            }
        };
        Ok(Readable { scenario, findings })
    }

    /// Makes names of other files count from the folder of this one.
    fn resolve(&self, scenario: &mut Scenario) {
        scenario.count_from(self.folder());
    }
}

/// Takes `field` away, or the innermost list around it: numbers in a list have to stay.
fn remove(root: &mut DeTable<'_>, field: &str) {
    let parts: Vec<Step<'_>> = steps(field).collect();
    let Some(last) = parts.iter().rposition(|step| matches!(step, Step::Key(_))) else { return };
    let mut table = root;
    let mut at = 0;
    while at < last {
        let Some(Step::Key(key)) = parts.get(at) else { return };
        let Some(mut value) = table.get_mut(*key) else { return };
        at += 1;
        while let Some(Step::Index(index)) = parts.get(at) {
            let DeValue::Array(list) = value.get_mut() else { return };
            let Some(item) = list.get_mut(*index) else { return };
            value = item;
            at += 1;
        }
        let DeValue::Table(inner) = value.get_mut() else { return };
        table = inner;
    }
    if let Some(Step::Key(key)) = parts.get(last) {
        table.remove(*key);
    }
}
