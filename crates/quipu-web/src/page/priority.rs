//! Priorities as a recording states them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Chrome's priority of a request, most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChromePriority {
    /// `VeryHigh`, in the network stack `HIGHEST`.
    VeryHigh,
    /// `High`, in the network stack `MEDIUM`.
    High,
    /// `Medium`, in the network stack `LOW`.
    Medium,
    /// `Low`, in the network stack `LOWEST`.
    Low,
    /// `VeryLow`, in the network stack `IDLE`.
    VeryLow,
}

/// Which of the two vocabularies a recording uses: `Low` means different things in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vocabulary {
    /// `VeryHigh, High, Medium, Low, VeryLow`; also `Highest` and `Lowest` at the ends.
    Blink,
    /// `HIGHEST, MEDIUM, LOW, LOWEST, IDLE` of WebPageTest until 2018.
    Net,
}

/// What was recorded about the priority of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPriority {
    /// When the request was sent.
    pub initial: ChromePriority,
    /// At the end; images in view are raised after layout.
    pub last: ChromePriority,
}

/// The HTTP/2 priority that a recorded request carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Priority {
    /// Stream of the request.
    pub stream: u32,
    /// Stream that it depends on; 0 is the root.
    pub parent: u32,
    /// Effective weight, 1 to 256.
    pub weight: u16,
    /// Exclusive dependency.
    pub exclusive: bool,
}

impl ChromePriority {
    /// All priorities, most urgent first.
    pub const ALL: [ChromePriority; 5] = [
        ChromePriority::VeryHigh,
        ChromePriority::High,
        ChromePriority::Medium,
        ChromePriority::Low,
        ChromePriority::VeryLow,
    ];

    pub(crate) fn from_word(word: &str, vocabulary: Vocabulary) -> Option<ChromePriority> {
        let word = word.to_ascii_lowercase();
        Some(match (vocabulary, word.as_str()) {
            (_, "veryhigh" | "highest") => ChromePriority::VeryHigh,
            (_, "verylow" | "idle") => ChromePriority::VeryLow,
            (_, "high") => ChromePriority::High,
            (Vocabulary::Blink, "medium") => ChromePriority::Medium,
            (Vocabulary::Blink, "low") => ChromePriority::Low,
            (Vocabulary::Blink, "lowest") => ChromePriority::VeryLow,
            (Vocabulary::Net, "medium") => ChromePriority::High,
            (Vocabulary::Net, "low") => ChromePriority::Medium,
            (Vocabulary::Net, "lowest") => ChromePriority::Low,
            _ => return None,
        })
    }
}

impl Vocabulary {
    /// The vocabulary of a word: only the network stack's names are written in capitals.
    pub(crate) fn of(word: &str) -> Vocabulary {
        if word.chars().any(|letter| letter.is_ascii_lowercase()) {
            Vocabulary::Blink
        } else {
            Vocabulary::Net
        }
    }
}

impl fmt::Display for ChromePriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            ChromePriority::VeryHigh => "VeryHigh",
            ChromePriority::High => "High",
            ChromePriority::Medium => "Medium",
            ChromePriority::Low => "Low",
            ChromePriority::VeryLow => "VeryLow",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(word: &str) -> Option<ChromePriority> {
        ChromePriority::from_word(word, Vocabulary::of(word))
    }

    #[test]
    fn both_vocabularies_meet_at_both_ends() {
        for (word, priority) in [
            ("VeryHigh", ChromePriority::VeryHigh),
            ("Highest", ChromePriority::VeryHigh),
            ("HIGHEST", ChromePriority::VeryHigh),
            ("MEDIUM", ChromePriority::High),
            ("LOW", ChromePriority::Medium),
            ("LOWEST", ChromePriority::Low),
            ("Lowest", ChromePriority::VeryLow),
            ("Low", ChromePriority::Low),
            ("IDLE", ChromePriority::VeryLow),
        ] {
            assert_eq!(read(word), Some(priority), "{word}");
        }
        assert_eq!(read("urgent"), None);
    }
}
