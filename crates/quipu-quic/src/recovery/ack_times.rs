//! When packets left that acknowledgements named as the largest.

use std::collections::VecDeque;

use quipu_base::{Instant, PacketNumber};

/// Send times of the last packets, so that a repeated acknowledgement can still be measured.
#[derive(Clone, Debug, Default)]
pub(super) struct AckTimes {
    recent: VecDeque<(PacketNumber, Instant)>,
}

impl AckTimes {
    /// Largest-acknowledged packets remembered.
    const MAX: usize = 64;

    /// A packet was the largest of an acknowledgement for the first time.
    pub(super) fn note(&mut self, pn: PacketNumber, sent_at: Instant) {
        if self.recent.len() >= Self::MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((pn, sent_at));
    }

    pub(super) fn sent_at(&self, pn: PacketNumber) -> Option<Instant> {
        self.recent.iter().rev().find(|(known, _)| *known == pn).map(|(_, at)| *at)
    }
}
