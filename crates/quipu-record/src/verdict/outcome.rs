//! What becomes of a paper's claim: the verdict in the paper's own set-up, held against the settings that the
//! paper leaves open.

use serde::{Deserialize, Serialize};

use super::{RuleKind, RuleVerdict, Verdict};

words! {
    /// What became of a claim.
    Outcome {
        /// It holds in the paper's own set-up, as far as that is known, and in at least half of the combinations of
        /// what the paper leaves open.
        Reproduced = "reproduced",
        /// It holds in some of these combinations: in the paper's own set-up and less than half of them, or not
        /// there and in a tenth of them at least.
        Depends = "depends on the set-up",
        /// It does not hold, but the number lies on the side of no difference that the paper says.
        Direction = "direction only",
        /// It does not hold.
        Not = "not reproduced",
        /// The interval over seeds straddles the threshold.
        Unclear = "unclear",
        /// Nothing here can tell.
        Untestable = "not testable here",
    }
}

/// Something that a paper leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// Why these values.
    pub about: String,
    /// Values that were tried; the first is that of the scenario itself.
    pub values: Vec<String>,
}

/// A claim that cannot be tested here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untested {
    /// What the paper says.
    pub claim: String,
    /// Its numbers.
    pub reported: String,
    /// Why it cannot be tested.
    pub because: String,
}

/// What a claim's number is in each combination of the settings that the paper leaves open. A combination
/// agrees if its number satisfies the threshold; intervals play no part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Agreement {
    /// Combinations in which it holds.
    pub holds: usize,
    /// Combinations that have a number.
    pub of: usize,
    /// The least number.
    pub low: Option<f64>,
    /// The greatest number.
    pub high: Option<f64>,
    /// Both in words.
    pub range: String,
    /// What each setting changes, in the order of the settings.
    pub effects: Vec<Effect>,
}

/// What a setting changes of a claim's number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The setting.
    pub setting: String,
    /// How far its values lie apart, all others being equal, in the mean over these: of a difference
    /// the distance, else greatest by least.
    pub moves: Option<f64>,
    /// The same in words.
    pub moved: String,
    /// Each of its values.
    pub values: Vec<ValueAgreement>,
}

/// How often a claim holds with a value of a setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueAgreement {
    /// The value.
    pub value: String,
    /// Combinations with it in which the claim holds.
    pub holds: usize,
    /// Combinations with it that have a number.
    pub of: usize,
    /// Whether this value alone, all else being the scenario's own, turns the verdict.
    pub turns: bool,
}

impl Agreement {
    /// The setting whose values move the number most, if any moves it.
    pub fn moved_most_by(&self) -> Option<&Effect> {
        let moves = self.effects.iter().filter_map(|effect| Some((effect, effect.moves?)));
        moves.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(effect, _)| effect)
    }

    /// The setting that decides the claim more than others: whose values differ most in how often it holds.
    /// `None` if no value makes a difference.
    pub fn decided_by(&self) -> Option<&Effect> {
        let spread = |effect: &Effect| {
            let part = |it: &ValueAgreement| it.holds as f64 / it.of as f64;
            let parts = effect.values.iter().filter(|it| it.of > 0).map(part);
            let most = parts.clone().max_by(f64::total_cmp)?;
            Some(most - parts.min_by(f64::total_cmp)?)
        };
        let spreads = self.effects.iter().filter_map(|effect| Some((effect, spread(effect)?)));
        let deciding = spreads.filter(|(_, spread)| *spread > 0.0);
        deciding.max_by(|(_, one), (_, other)| one.total_cmp(other)).map(|(effect, _)| effect)
    }
}

impl RuleVerdict {
    /// What became of it, if it is a paper's claim.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.kind != RuleKind::Claim {
            return None;
        }
        let (holds, of) = self.agreement.as_ref().map_or((0, 0), |it| (it.holds, it.of));
        Some(match self.verdict {
            Verdict::Holds if holds * 2 >= of => Outcome::Reproduced,
            Verdict::Holds => Outcome::Depends,
            _ if holds > 0 && holds * 10 >= of => Outcome::Depends,
            _ if self.direction == Some(true) => Outcome::Direction,
            Verdict::Unclear => Outcome::Unclear,
            Verdict::Fails | Verdict::Error => Outcome::Not,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::rule;
    use super::*;

    fn claim(
        verdict: Verdict,
        direction: Option<bool>,
        agreement: Option<(usize, usize)>,
    ) -> RuleVerdict {
        let agreement = agreement.map(|(holds, of)| Agreement {
            holds,
            of,
            low: None,
            high: None,
            range: String::new(),
            effects: Vec::new(),
        });
        RuleVerdict { direction, agreement, ..rule(RuleKind::Claim, verdict, verdict) }
    }

    #[test]
    fn claims_are_judged_in_the_papers_set_up_and_in_what_it_leaves_open() {
        use Verdict::{Error, Fails, Holds, Unclear};
        for (verdict, direction, agreement, expected) in [
            (Holds, None, None, Outcome::Reproduced),
            (Holds, Some(true), Some((4, 8)), Outcome::Reproduced),
            (Holds, Some(true), Some((3, 8)), Outcome::Depends),
            (Fails, Some(true), Some((1, 10)), Outcome::Depends),
            (Fails, Some(true), Some((1, 11)), Outcome::Direction),
            (Fails, Some(true), None, Outcome::Direction),
            (Fails, Some(false), Some((0, 8)), Outcome::Not),
            (Fails, None, None, Outcome::Not),
            (Unclear, None, None, Outcome::Unclear),
            (Unclear, Some(false), Some((0, 0)), Outcome::Unclear),
            (Unclear, Some(true), None, Outcome::Direction),
            (Unclear, None, Some((2, 3)), Outcome::Depends),
            (Error, None, None, Outcome::Not),
        ] {
            let found = claim(verdict, direction, agreement);
            assert_eq!(found.outcome(), Some(expected), "{verdict} {direction:?} {agreement:?}");
        }
        for kind in [RuleKind::Firm, RuleKind::Control, RuleKind::Ablation] {
            assert_eq!(rule(kind, Holds, Holds).outcome(), None);
        }
    }

    fn effect(name: &str, moves: f64, parts: &[(usize, usize)]) -> Effect {
        let value = |(index, (holds, of)): (usize, &(usize, usize))| ValueAgreement {
            value: index.to_string(),
            holds: *holds,
            of: *of,
            turns: false,
        };
        Effect {
            setting: name.to_owned(),
            moves: Some(moves),
            moved: String::new(),
            values: parts.iter().enumerate().map(value).collect(),
        }
    }

    #[test]
    fn what_moves_a_number_most_need_not_be_what_decides() {
        let mut agreement = claim(Verdict::Fails, None, Some((3, 8))).agreement.unwrap();
        agreement.effects =
            vec![effect("queue", 1.1, &[(0, 4), (3, 4)]), effect("window", 1.4, &[(1, 4), (2, 4)])];
        assert_eq!(agreement.moved_most_by().unwrap().setting, "window");
        assert_eq!(agreement.decided_by().unwrap().setting, "queue");
        agreement.effects = vec![effect("queue", 1.0, &[(2, 4), (2, 4), (0, 0)])];
        assert_eq!(agreement.decided_by(), None);
    }
}
