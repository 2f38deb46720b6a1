//! The reinjection policies by name.

use super::Redundant;
use crate::registry::{Built, Confidence, Entry, Layer, Param};

pub(crate) fn entries() -> Vec<Entry> {
    vec![redundant()]
}

/// The parameter of [`Redundant`].
pub(crate) fn most_urgency() -> Param {
    Param::integer("urgency", 7, (0, 7), "streams up to this urgency number are copied; 7: all")
}

fn redundant() -> Entry {
    Entry {
        name: "redundant",
        layer: Layer::Reinject,
        about: "every path carries all that is not yet acknowledged",
        params: vec![most_urgency()],
        source: "Linux MPTCP, code",
        confidence: Confidence::High,
        build: |values, _| {
            let urgency = u8::try_from(values.integer("urgency")?).unwrap_or(7);
            Ok(Built::reinject(Redundant::new(urgency)))
        },
    }
}
