//! When Startup is over by loss.

use quipu_base::PacketNumber;

/// Ranges of lost packets in a round trip that end Startup, if the loss rate is too high.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr-06#section-5.3.1.3>
const FULL_LOSS_RANGES: u64 = 6;

/// Ranges of packet numbers lost in a round trip. A mark counts as a range of its own.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRanges {
    count: u64,
    last: Option<PacketNumber>,
}

impl LossRanges {
    pub(super) fn on_lost(&mut self, pn: PacketNumber) {
        if self.last.is_none_or(|last| last.next() != pn) {
            self.count = self.count.saturating_add(1);
        }
        self.last = Some(pn);
    }

    pub(super) fn on_marked(&mut self, marks: u64) {
        self.count = self.count.saturating_add(marks);
    }

    /// A round trip is over: whether there were enough to end Startup.
    pub(super) fn end_round(&mut self) -> bool {
        std::mem::take(&mut self.count) >= FULL_LOSS_RANGES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_counted_not_packets() {
        let mut ranges = LossRanges::default();
        let lose = |ranges: &mut LossRanges, numbers: &[u64]| {
            for &number in numbers {
                ranges.on_lost(PacketNumber(number));
            }
            ranges.end_round()
        };
        assert!(!lose(&mut ranges, &[1, 2, 3, 5, 7, 8, 9, 11, 20]));
        assert!(lose(&mut ranges, &[30, 32, 34, 36, 38, 40]));
        assert!(!lose(&mut ranges, &[41]));
        ranges.on_marked(6);
        assert!(ranges.end_round());
    }
}
