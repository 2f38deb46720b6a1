//! Where the values of a scenario come from: a file, options, or neither.

use super::document::Document;
use super::finding::{Finding, Findings, Place};

/// The file of a scenario, and the options that changed its fields afterwards.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    document: Option<Document>,
    /// Fields, each with the option that set it.
    options: Vec<(String, String)>,
}

impl From<Document> for Origin {
    fn from(document: Document) -> Origin {
        Origin { document: Some(document), options: Vec::new() }
    }
}

impl Origin {
    /// Remembers that `option`, such as `--runs 3`, gave the value of `field`.
    pub fn set(&mut self, field: impl Into<String>, option: impl Into<String>) {
        self.options.push((field.into(), option.into()));
    }

    /// `findings` with the places of their fields, in order; `None` if there are none.
    pub fn explain(&self, findings: impl IntoIterator<Item = Finding>) -> Option<Findings> {
        Findings::new(findings.into_iter().map(|finding| self.placed(finding)).collect())
    }

    fn placed(&self, finding: Finding) -> Finding {
        if finding.place != Place::Unknown {
            return finding;
        }
        let of_field = |(field, _): &&(String, String)| {
            covers(field, &finding.field) || covers(&finding.field, field)
        };
        // The last option that set it counts.
        let place = match (self.options.iter().rev().find(of_field), &self.document) {
            (Some((_, option)), _) => Place::Option(option.clone()),
            (None, Some(document)) => Place::File(document.locate(&finding.field)),
            (None, None) => Place::Unknown,
        };
        finding.at(place)
    }
}

/// Whether `field` is `inner`, or a table or list around it.
fn covers(field: &str, inner: &str) -> bool {
    let rest = inner.strip_prefix(field);
    !field.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_that_set_a_field_is_told_and_else_the_file() {
        let text = "runs = 0\n[policies]\nstream = [\"dwr\"]\n";
        let mut origin = Origin::from(Document::new(text, "a.toml"));
        let told = |origin: &Origin, field: &str| {
            let findings = origin.explain([Finding::new(field, "x", "")]).unwrap();
            findings.to_string()
        };
        assert_eq!(told(&origin, "runs"), "a.toml:1:8: runs: x");
        assert_eq!(told(&origin, "policies.stream[0]"), "a.toml:3:11: policies.stream[0]: x");
        origin.set("policies.stream", "--stream dwr");
        assert_eq!(told(&origin, "policies.stream[0]"), "--stream dwr: policies.stream[0]: x");
        assert_eq!(told(&origin, "policies.streams"), "a.toml:2:1: policies.streams: x");
        assert_eq!(told(&Origin::default(), "runs"), "runs: x");
    }
}
