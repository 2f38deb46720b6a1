//! What a place in the dependency tree means in RFC 9218's terms.
//!
//! The sheet of browsers' signals gives the rule for the three known browsers; it is a
//! reconstruction, as no document maps one world to the other:
//!
//! | tree | urgency | incremental |
//! | --- | --- | --- |
//! | Chrome's exclusive chain, weights 256, 220, 183, 147, 110 | 0, 1, 2, 3, 4 | no |
//! | Firefox's groups: urgent, leaders, others, followers, background and speculative | 1, 2, 3, 4, 6, 6 | images |
//! | Safari, children of the root of weights 255, 24, 16, 8 | 0, 1, 3, 5 | yes |
//!
//! A place does not say who made it, and what is said must hold for any tree. So it is read locally,
//! from the place itself and from what is above it (our choice, made so that the table holds):
//!
//! 1. A *group* is a node that never spoke for a stream. Firefox's are recognised by weight, wherever
//!    their numbers are: 241 (urgent), 201 (leaders), 101 (others) and 1 (background) under the root;
//!    1 or 2 under leaders (followers) and under background (speculative). What is in them has the
//!    urgency of the table; of the followers, those of weight 22 and less are images and incremental.
//! 2. Chrome's weights are worth what the table says wherever they stand under the root, and in any
//!    exclusive place. There its formula goes on: 74 (throttled), 37 and 1 are 5, 6 and 7.
//! 3. Other children of the root: weight 128 and more is 0, then 24 is 1, 17 is 2, 12 is 3 (the default
//!    of 16 is the default of 3), 9 is 4, 5 is 5, 2 is 6, and 1 is 7.
//! 4. Below a stream: one less urgent than that stream, for it goes when that is done. In a group of
//!    another kind: as urgent as the group would be as a stream.
//! 5. What shares is incremental: every place that is not exclusive, those of rule 1 excepted.
//!
//! An urgency follows from what was last *said* of a node, and of its parent before that. It stays when
//! nodes above move or leave: RFC 7540 gives the weight of a closed stream to its children
//! (<https://www.rfc-editor.org/rfc/rfc7540#section-5.3.4>), which would make Chrome's images as urgent
//! as the document they followed. So an edit costs one look per elementary change.

use super::DEFAULT_WEIGHT;

/// Urgency and incremental flag of a response. <https://www.rfc-editor.org/rfc/rfc9218#section-4>
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency {
    /// 0 (most urgent) to 7.
    pub level: u8,
    /// Whether parts of it are of use.
    pub incremental: bool,
}

impl Default for Urgency {
    fn default() -> Self {
        Urgency { level: 3, incremental: false }
    }
}

/// The least urgent level.
pub const LEAST_URGENT: u8 = 7;

/// Weights of Chrome's levels 0 to 7: ⌊255.9 / 7 · (7 − level)⌋ + 1.
pub(super) const CHROME: [u16; 8] = [256, 220, 183, 147, 110, 74, 37, 1];
/// The last level that ordinary requests have.
const LAST_USED: u8 = 4;
/// Least weights of the levels 0 to 6 among the children of the root.
const FLAT: [u16; 7] = [128, 24, 17, 12, 9, 5, 2];
/// Firefox gives images this weight or less, and fonts more.
const MOST_OF_IMAGES: u16 = 22;

/// Firefox's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    UrgentStart,
    Leaders,
    Others,
    Followers,
    Background,
    Speculative,
}

/// What was last said of a node, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// 1 to 256, as it was said.
    pub(super) weight: u16,
    pub(super) exclusive: bool,
    /// Which of Firefox's groups it is if it never speaks for a stream.
    pub(super) group: Option<Group>,
    /// What its stream has.
    pub(super) urgency: Urgency,
}

/// What is above a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Above {
    Root,
    /// A node that speaks, or spoke, for a stream.
    Stream(Urgency),
    /// A node that never did.
    Group(Option<Group>, Urgency),
}

impl Group {
    fn of(weight: u16, above: Above) -> Option<Group> {
        match (above, weight) {
            (Above::Root, 241) => Some(Group::UrgentStart),
            (Above::Root, 201) => Some(Group::Leaders),
            (Above::Root, 101) => Some(Group::Others),
            (Above::Root, 1) => Some(Group::Background),
            (Above::Group(Some(Group::Leaders), _), 1 | 2) => Some(Group::Followers),
            (Above::Group(Some(Group::Background), _), 1 | 2) => Some(Group::Speculative),
            _ => None,
        }
    }

    const fn level(self) -> u8 {
        match self {
            Group::UrgentStart => 1,
            Group::Leaders => 2,
            Group::Others => 3,
            Group::Followers => 4,
            Group::Background | Group::Speculative => 6,
        }
    }
}

impl Meaning {
    /// The root's, which nobody is told.
    pub(super) const ROOT: Meaning = Meaning {
        weight: DEFAULT_WEIGHT,
        exclusive: false,
        group: None,
        urgency: Urgency { level: 3, incremental: false },
    };

    /// What a place means.
    pub(super) fn of(weight: u16, exclusive: bool, above: Above) -> Meaning {
        let urgency = match above {
            Above::Group(Some(group), _) => Urgency {
                level: group.level(),
                incremental: group == Group::Followers && weight <= MOST_OF_IMAGES,
            },
            _ => Urgency { level: level(weight, exclusive, above), incremental: !exclusive },
        };
        let group = if exclusive { None } else { Group::of(weight, above) };
        Meaning { weight, exclusive, group, urgency }
    }
}

fn level(weight: u16, exclusive: bool, above: Above) -> u8 {
    let chrome = (0..).zip(CHROME).find(|&(_, other)| other == weight).map(|(level, _)| level);
    match (chrome, above) {
        (Some(level), _) if exclusive => level,
        (Some(level), Above::Root) if level <= LAST_USED => level,
        (_, Above::Root) => flat(weight),
        (_, Above::Stream(above)) => (above.level + 1).min(LEAST_URGENT),
        (_, Above::Group(_, above)) => above.level,
    }
}

fn flat(weight: u16) -> u8 {
    (0..).zip(FLAT).find(|&(_, least)| weight >= least).map_or(LEAST_URGENT, |(level, _)| level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urgency(weight: u16, exclusive: bool, above: Above) -> (u8, bool) {
        let Urgency { level, incremental } = Meaning::of(weight, exclusive, above).urgency;
        (level, incremental)
    }

    #[test]
    fn chrome_levels_are_urgencies_in_order() {
        let under_a_stream = Above::Stream(Urgency { level: 6, incremental: true });
        for (level, weight) in (0..).zip(CHROME) {
            assert_eq!(urgency(weight, true, Above::Root), (level, false));
            assert_eq!(urgency(weight, true, under_a_stream), (level, false));
            let formula = libm::floor(255.9 / 7.0 * f64::from(7 - level)) as u16 + 1;
            assert_eq!(weight, formula);
        }
        // The framework paper's Chrome has the weights, but shares.
        for (level, weight) in (0..5).zip(CHROME) {
            assert_eq!(urgency(weight, false, Above::Root), (level, true));
        }
    }

    #[test]
    fn safari_weights_are_its_urgencies() {
        for (weight, level) in [(255, 0), (256, 0), (24, 1), (16, 3), (8, 5)] {
            assert_eq!(urgency(weight, false, Above::Root), (level, true), "{weight}");
        }
    }

    #[test]
    fn firefox_groups_are_known_by_weight() {
        let group = |weight, above| {
            let Meaning { group, urgency, .. } = Meaning::of(weight, false, above);
            Above::Group(group, urgency)
        };
        let [urgent, leaders, others, background] =
            [241, 201, 101, 1].map(|weight| group(weight, Above::Root));
        let [followers, framework_followers] = [1, 2].map(|weight| group(weight, leaders));
        let speculative = group(1, background);
        for (above, weight, expected) in [
            (urgent, 32, (1, false)),
            (leaders, 32, (2, false)),
            (others, 22, (3, false)),
            (followers, 22, (4, true)),
            (followers, 12, (4, true)),
            (followers, 42, (4, false)),
            (framework_followers, 22, (4, true)),
            (background, 22, (6, false)),
            (speculative, 2, (6, false)),
        ] {
            assert_eq!(urgency(weight, false, above), expected, "{weight} in {above:?}");
        }
    }

    #[test]
    fn more_weight_is_never_less_urgent_among_children_of_the_root() {
        let chrome_apart = (1..=256).filter(|weight| !CHROME[..5].contains(weight));
        let levels: Vec<u8> =
            chrome_apart.map(|weight| urgency(weight, false, Above::Root).0).collect();
        assert!(levels.is_sorted_by(|before, after| before >= after));
        assert_eq!((levels.first(), levels.last()), (Some(&7), Some(&0)));
        assert_eq!(urgency(DEFAULT_WEIGHT, false, Above::Root), (Urgency::default().level, true));
    }

    #[test]
    fn what_waits_for_a_stream_is_less_urgent_than_it() {
        let above = |level| Above::Stream(Urgency { level, incremental: false });
        assert_eq!(urgency(16, false, above(2)), (3, true));
        assert_eq!(urgency(16, true, above(2)), (3, false));
        assert_eq!(urgency(256, false, above(7)), (7, true));
        let group = Above::Group(None, Urgency { level: 4, incremental: true });
        assert_eq!(urgency(200, false, group), (4, true));
    }
}
