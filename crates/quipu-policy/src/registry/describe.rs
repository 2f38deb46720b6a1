//! What a person reads of the registry.

use std::fmt::Write;

use super::entry::Entry;
use super::error::SpecError;
use super::param::Value;
use super::{Registry, nearest};

impl Registry {
    /// All about the policies of that name, in whichever layers.
    ///
    /// # Errors
    /// If there is none; the error names the nearest.
    pub fn describe(&self, name: &str) -> Result<String, SpecError> {
        let texts: Vec<String> =
            self.iter().filter(|entry| entry.name == name).map(Self::about).collect();
        if texts.is_empty() {
            let hint = nearest(name, self.iter().map(|entry| entry.name));
            return Err(SpecError::UnknownName { name: name.into(), hint });
        }
        Ok(texts.join("\n"))
    }

    /// All about one policy, in lines.
    fn about(entry: &Entry) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{} ({})", entry.name, entry.layer);
        let _ = writeln!(text, "  {}", entry.about);
        let _ = writeln!(text, "  formula:");
        for line in entry.formula.lines() {
            let _ = writeln!(text, "    {line}");
        }
        let _ = writeln!(text, "  source: {}", entry.source);
        let _ = writeln!(text, "  confidence: {}", entry.confidence);
        if !entry.params.is_empty() {
            let _ = writeln!(text, "  parameters:");
        }
        for param in &entry.params {
            let default = match &param.default {
                Value::File(None) => "FILE".to_owned(),
                default => default.to_string(),
            };
            let _ = writeln!(text, "    {}={default} ({})", param.name, param.domain);
            let _ = writeln!(text, "      {}", param.about);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::Layer;
    use super::*;

    #[test]
    fn a_description_tells_parameters_source_and_confidence() {
        let text = Registry::builtin().describe("swrr").unwrap();
        assert_eq!(
            text,
            "swrr (stream)\n\
             \x20 weighted rounds of few packets per stream\n\
             \x20 formula:\n\
             \x20   scaled: tokens(i) = max(1, floor(weight(i) / g)),\n\
             \x20   g = greatest weight of active siblings / most;\n\
             \x20   as-published: tokens(i) = 1;\n\
             \x20   smooth: current(i) += weight(i); serve the greatest; its current -= sum of weights\n\
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
    fn every_policy_has_a_formula_in_short_lines() {
        for entry in Registry::builtin().iter() {
            assert!(entry.formula.len() > 10, "{} {}", entry.layer, entry.name);
            let is_short = |line: &str| line.chars().count() <= 116;
            assert!(entry.formula.lines().all(is_short), "{}", entry.formula);
        }
    }

    #[test]
    fn a_policy_can_be_explained_anew() {
        let mut registry = Registry::builtin();
        registry.explain(Layer::Path, "minrtt", "the least srtt");
        assert_eq!(registry.formula(Layer::Path, "minrtt"), Some("the least srtt"));
        assert!(registry.describe("minrtt").unwrap().contains("formula:\n    the least srtt\n"));
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let error = Registry::builtin().describe("dwr").unwrap_err();
        assert!(error.to_string().contains("did you mean `dwrr`?"), "{error}");
    }
}
