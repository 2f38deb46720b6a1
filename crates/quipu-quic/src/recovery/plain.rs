//! When packets left that ask for no acknowledgement.

use std::collections::VecDeque;

use quipu_base::{Instant, PacketNumber};

/// Most packets remembered; our choice. Where more leave in a round trip, samples are rarer.
const MAX: usize = 256;

/// Send times of packets that are not ack-eliciting, and so not kept: an acknowledgement that has one
/// of them as its largest gives a sample of the round-trip time all the same.
#[derive(Debug, Default)]
pub(super) struct PlainPackets {
    /// In packet-number order; all above the largest acknowledged.
    recent: VecDeque<(PacketNumber, Instant)>,
}

impl PlainPackets {
    pub(super) fn note(&mut self, pn: PacketNumber, sent_at: Instant) {
        if self.recent.len() >= MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((pn, sent_at));
    }

    /// Everything up to `largest` was acknowledged, or is of no interest: when `largest` left, if it is
    /// one of these.
    pub(super) fn take(&mut self, largest: PacketNumber) -> Option<Instant> {
        let mut last = None;
        while let Some(&(pn, sent_at)) = self.recent.front()
            && pn <= largest
        {
            self.recent.pop_front();
            last = Some((pn, sent_at));
        }
        last.filter(|&(pn, _)| pn == largest).map(|(_, sent_at)| sent_at)
    }

    pub(super) fn clear(&mut self) {
        self.recent.clear();
    }

    /// Gives back what it took.
    pub(super) fn release(&mut self) {
        self.recent.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_largest_is_found_once_and_all_before_it_forgotten() {
        let mut plain = PlainPackets::default();
        for pn in [2, 3, 7] {
            plain.note(PacketNumber(pn), at(pn));
        }
        assert_eq!(plain.take(PacketNumber(3)), Some(at(3)));
        assert_eq!(plain.take(PacketNumber(3)), None);
        assert_eq!(plain.take(PacketNumber(5)), None);
        assert_eq!(plain.take(PacketNumber(7)), Some(at(7)));
    }

    #[test]
    fn the_newest_are_remembered() {
        let mut plain = PlainPackets::default();
        let most = u64::try_from(MAX).unwrap();
        for pn in 0..=most {
            plain.note(PacketNumber(pn), at(pn));
        }
        assert_eq!(plain.recent.len(), MAX);
        assert_eq!(plain.take(PacketNumber(0)), None);
        assert_eq!(plain.take(PacketNumber(1)), Some(at(1)));
        assert_eq!(plain.take(PacketNumber(most)), Some(at(most)));
    }
}
