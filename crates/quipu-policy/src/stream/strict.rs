//! `strict`: strict priority by weight or by urgency.
//!
//! Source: the order that PW-PATS ("A Priority-Weighted and Packet Arrival Time based Scheduling
//! Algorithm for MP-QUIC", 2026) comes to: highest weight first, ties by arrival, never interleaved.
//! The weight is that of the stream's own node, wherever in the tree that is. On pages with
//! urgencies the lowest urgency number goes first. Where one of the two decides nothing, the other
//! does, before arrival: our choice, so that the same policy orders both kinds of pages.

use super::ranked::{Rank, Ranked};
use crate::key::StreamKey;
use crate::priority::DEFAULT_WEIGHT;
use crate::seam::event::Event;
use crate::seam::view::{StreamView, View};

/// Rank by priority, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByPriority {
    /// The heaviest first; of equal weights, the lowest urgency number.
    Weight,
    /// The lowest urgency number first; of equal ones, the heaviest.
    Urgency,
}

impl Ranked<ByPriority> {
    /// The ready stream of highest priority sends all that it has.
    pub fn strict(by: ByPriority) -> Self {
        Ranked::by(by)
    }
}

/// The weight of the node that speaks for a stream, 1 to 256; 16 if none does.
pub(crate) fn weight(stream: StreamKey, view: &View<'_>) -> u16 {
    view.priorities.node_of(stream).map_or(DEFAULT_WEIGHT, |node| node.weight)
}

impl Rank for ByPriority {
    type Key = (u16, u16, u64);
    const SENT_STAYS_FIRST: bool = true;

    fn key(&self, stream: &StreamView, view: &View<'_>) -> Self::Key {
        let lightness = u16::MAX - weight(stream.key, view);
        let urgency = u16::from(stream.priority.urgency);
        match self {
            ByPriority::Weight => (lightness, urgency, stream.seq),
            ByPriority::Urgency => (urgency, lightness, stream.seq),
        }
    }

    fn depends_on(&self, event: &Event<'_>) -> bool {
        matches!(event, Event::Reprioritised(_) | Event::Tree(_))
    }

    fn explain(&self, stream: &StreamView, view: &View<'_>) -> (&'static str, f64) {
        match self {
            ByPriority::Weight => ("weight", f64::from(weight(stream.key, view))),
            ByPriority::Urgency => ("urgency", f64::from(stream.priority.urgency)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::priority::{NodeId, PriorityEdit};
    use crate::stream::testing::Driver;
    use crate::{Priority, StreamPolicy};

    #[test]
    fn the_heaviest_goes_first_and_ties_go_by_arrival() {
        let mut driver = Driver::new(Ranked::strict(ByPriority::Weight));
        driver.open_at(8, 0, 22, 2_000);
        driver.open_at(4, 0, 22, 2_000);
        driver.open_at(12, 0, 42, 2_000);
        driver.open(16, 1_000);
        assert_eq!(driver.packets(9, 1_000), [12, 12, 8, 8, 4, 4, 16]);
    }

    #[test]
    fn the_lowest_urgency_goes_first() {
        for by in [ByPriority::Weight, ByPriority::Urgency] {
            let mut driver = Driver::new(Ranked::strict(by));
            for (id, urgency) in [(0, 5), (4, 0), (8, 3), (12, 0)] {
                driver.open(id, 1_000);
                driver.set_priority(id, Priority { urgency, ..Priority::default() });
            }
            assert_eq!(driver.packets(9, 1_000), [4, 12, 8, 0]);
        }
    }

    #[test]
    fn weight_and_urgency_may_disagree() {
        for (by, order) in [(ByPriority::Weight, [4, 0]), (ByPriority::Urgency, [0, 4])] {
            let mut driver = Driver::new(Ranked::strict(by));
            driver.open_at(0, 0, 10, 1_000);
            driver.open_at(4, 0, 20, 1_000);
            driver.set_priority(0, Priority { urgency: 1, ..Priority::default() });
            assert_eq!(driver.packets(9, 1_000), order);
        }
    }

    #[test]
    fn another_weight_or_node_moves_a_stream_and_calls_plans_back() {
        let mut driver = Driver::new(Ranked::strict(ByPriority::Weight));
        driver.open_at(4, 0, 40, 3_000);
        driver.open_at(8, 0, 30, 3_000);
        driver.take(1_000);
        driver.edit(&PriorityEdit::Weight { node: NodeId(1_008), weight: 50 }, None);
        assert_eq!(driver.policy.order(), 1);
        assert_eq!(driver.packets(1, 1_000), [8]);
        // Another stream takes the node over; 8 is left with the default weight.
        driver.open(12, 2_000);
        let key = driver.key(12);
        let attach = PriorityEdit::Attach { node: NodeId(1_008), stream: key.id };
        driver.edit(&attach, Some(key));
        assert_eq!(driver.packets(9, 1_000), [12, 12, 4, 4, 8, 8]);
        // A node that leaves takes its weight with it.
        driver.open_at(16, 0, 60, 1_000);
        driver.open_at(20, 0, 50, 1_000);
        driver.edit(&PriorityEdit::Remove { node: NodeId(1_016) }, None);
        assert_eq!(driver.packets(9, 1_000), [20, 16]);
    }
}
