//! Colours of words that judge: what holds is green, what fails is red, and what nobody can tell is grey.

use serde_json::Value;

use super::field::Field;

/// Words with their colours on white. The page has the same, and others for dark cards
/// (`assets/scripts/scheme.js`).
pub(super) const MEANINGS: [(&str, &str); 9] = [
    ("holds", "#0f7a66"),
    ("reproduced", "#0f7a66"),
    ("depends on the set-up", "#b88d10"),
    ("direction only", "#b4560c"),
    ("fails", "#94102a"),
    ("not reproduced", "#94102a"),
    ("unclear", "#8b929b"),
    ("not testable here", "#4b525b"),
    ("error", "#4a1f63"),
];

/// Colour of a word that is not among these.
const OTHER: &str = "#8b929b";

impl Field {
    /// A column of verdicts, in the colours of what they mean; those of `words` in this order.
    pub fn verdict(column: &str, title: &str, words: &[String]) -> Field {
        let colour = |word: &String| {
            let known = MEANINGS.iter().find(|(name, _)| name == word);
            Value::from(known.map_or(OTHER, |(_, colour)| colour))
        };
        Field::name(column, title, words).colours(words.iter().map(colour).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_record::verdict::{Outcome, Verdict};

    /// Red, green and blue of `#rrggbb`.
    fn parts(colour: &str) -> [u8; 3] {
        [1, 3, 5].map(|at| u8::from_str_radix(&colour[at..at + 2], 16).unwrap())
    }

    #[test]
    fn every_verdict_and_outcome_has_a_colour() {
        let words = Verdict::ALL.iter().map(ToString::to_string);
        for word in words.chain(Outcome::ALL.iter().map(ToString::to_string)) {
            assert!(MEANINGS.iter().any(|(name, _)| *name == word), "{word}");
        }
    }

    #[test]
    fn only_what_holds_is_green_and_what_fails_is_red() {
        for (word, colour) in MEANINGS {
            let [red, green, blue] = parts(colour);
            let is_green = green > red && green > blue && green - red.min(blue) > 30;
            assert_eq!(is_green, ["holds", "reproduced"].contains(&word), "{word}: {colour}");
            if ["fails", "not reproduced"].contains(&word) {
                assert!(red > 2 * green && red > 2 * blue, "{word}: {colour}");
            }
        }
    }

    #[test]
    fn the_page_has_the_same_colours() {
        let page = include_str!("../../assets/scripts/scheme.js");
        let light = page.split("dark: {").next().unwrap();
        for (word, colour) in MEANINGS {
            let line = format!("\"{word}\": \"{colour}\"");
            assert!(light.contains(&line), "{line}");
            assert_eq!(page.matches(&format!("\"{word}\": \"#")).count(), 2, "{word}");
        }
    }
}
