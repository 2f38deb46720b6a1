//! What a person reads of the registry.

use std::fmt::Write;

use super::entry::{Entry, Layer};
use super::error::SpecError;
use super::{Registry, nearest};

impl Registry {
    /// A list of all policies, one line each, by layer.
    pub fn list(&self) -> String {
        let mut text = String::new();
        let width = self.iter().map(|entry| entry.name.len()).max().unwrap_or(0);
        for layer in Layer::ALL {
            if self.of(layer).next().is_none() {
                continue;
            }
            let space = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{space}{layer}: {}", layer.question());
            for entry in self.of(layer) {
                let _ = writeln!(text, "  {:width$}  {}", entry.name, entry.about);
            }
        }
        text
    }

    /// All about the policies of that name, in whichever layers.
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn describe(&self, name: &str) -> Result<String, SpecError> {
        let texts: Vec<String> =
            self.iter().filter(|entry| entry.name == name).map(Entry::describe).collect();
        if texts.is_empty() {
            let hint = nearest(name, self.iter().map(|entry| entry.name));
            return Err(SpecError::UnknownName { name: name.into(), hint });
        }
        Ok(texts.join("\n"))
    }
}

impl Entry {
    /// All about the policy, in lines.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{} ({})", self.name, self.layer);
        let _ = writeln!(text, "  {}", self.about);
        let _ = writeln!(text, "  source: {}", self.source);
        let _ = writeln!(text, "  confidence: {}", self.confidence);
        if !self.params.is_empty() {
            let _ = writeln!(text, "  parameters:");
        }
        for param in &self.params {
            let _ = writeln!(text, "    {}={} ({})", param.name, param.default, param.domain);
            let _ = writeln!(text, "      {}", param.about);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_tells_parameters_source_and_confidence() {
        let text = Registry::builtin().describe("swrr").unwrap();
        assert_eq!(
            text,
            "swrr (stream)\n\
             \x20 weighted rounds of few packets per stream\n\
             \x20 source: Xing et al. 2023 as quoted in \"A Novel Framework for HTTP/2 over MPQUIC\" \
             (2025) and its code; code of ytxing/mpquic-hbes (smooth, low confidence)\n\
             \x20 confidence: medium-high\n\
             \x20 parameters:\n\
             \x20   mode=scaled (one of scaled, as-published, smooth)\n\
             \x20     scaled: as described; as-published: one packet each; smooth: spread evenly\n\
             \x20   most=10 (a whole number in 1..=256)\n\
             \x20     packets of the heaviest in a round (scaled)\n"
        );
    }

    #[test]
    fn the_list_has_every_policy_under_its_layer() {
        let registry = Registry::builtin();
        let list = registry.list();
        for entry in registry.iter() {
            assert!(list.contains(entry.about), "{}", entry.name);
        }
        assert!(list.starts_with("stream: whose bytes go next\n  rr "), "{list}");
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let error = Registry::builtin().describe("dwr").unwrap_err();
        assert!(error.to_string().contains("did you mean `dwrr`?"), "{error}");
    }
}
