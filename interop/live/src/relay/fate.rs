//! What becomes of datagrams: each is lost, changed, late, marked, or none of that.

use std::time::Duration;

/// Bytes that wait for the link, at most, in time that they take: a queue that drops its tail.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// How much later a datagram comes that others overtake.
const OVERTAKEN_BY: Duration = Duration::from_millis(10);

/// A link of one direction, as it is asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// Share of datagrams that are lost, of 1.
    pub(crate) loss: f64,
    /// Share of those that have a byte changed.
    pub(crate) corruption: f64,
    /// Share of those that come later than the ones behind them.
    pub(crate) reordering: f64,
    /// Share of those that are marked CE, if they are of an ECN-capable transport.
    pub(crate) marks: f64,
    /// Time that each takes.
    pub(crate) delay: Duration,
    /// Bits per second; 0: as fast as it goes.
    pub(crate) rate: u64,
}

/// What becomes of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    /// It arrives so long after it came.
    Arrives {
        after: Duration,
        is_changed: bool,
        is_overtaken: bool,
        is_marked: bool,
    },
}

/// One direction of a link: where chance is drawn, and until when it is busy.
pub(crate) struct Course {
    link: Link,
    chance: u64,
    /// Counted from when the relay started.
    busy_until: Duration,
}

impl Course {
    pub(crate) fn new(link: Link, seed: u64) -> Self {
        Course { link, chance: seed, busy_until: Duration::ZERO }
    }

    /// A datagram of so many bytes came at `now`.
    pub(crate) fn decide(&mut self, now: Duration, bytes: usize) -> Fate {
        // Always the same number of draws, so that one share does not shift the others.
        let draws = [(); 4].map(|()| self.draw());
        let [is_lost, is_changed, is_overtaken, is_marked] = [
            draws[0] < self.link.loss,
            draws[1] < self.link.corruption,
            draws[2] < self.link.reordering,
            draws[3] < self.link.marks,
        ];
        let begins = self.busy_until.max(now);
        if is_lost || begins - now > MAX_WAIT {
            return Fate::Lost;
        }
        let nanos = (bytes as u64 * 8 * 1_000_000_000).checked_div(self.link.rate);
        self.busy_until = begins + Duration::from_nanos(nanos.unwrap_or(0));
        let late = if is_overtaken { OVERTAKEN_BY } else { Duration::ZERO };
        let after = self.busy_until - now + self.link.delay + late;
        Fate::Arrives { after, is_changed, is_overtaken, is_marked }
    }

    /// Changes one bit.
    pub(crate) fn change(&mut self, datagram: &mut [u8]) {
        let at = (self.draw() * datagram.len() as f64) as usize;
        let bit = (self.draw() * 8.0) as u32;
        if let Some(byte) = datagram.get_mut(at) {
            *byte ^= 1 << bit;
        }
    }

    /// From 0 up to 1, by SplitMix64: <https://doi.org/10.1145/2714064.2660195>.
    fn draw(&mut self) -> f64 {
        self.chance = self.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.chance;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_has_the_same_fates_and_about_the_share_asked_for() {
        let fates = |seed| -> Vec<Fate> {
            let mut course = Course::new(Link { loss: 0.02, ..Link::default() }, seed);
            (0..10_000).map(|_| course.decide(Duration::ZERO, 1200)).collect()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let lost = fates(1).iter().filter(|fate| **fate == Fate::Lost).count();
        assert!((150..250).contains(&lost), "{lost}");
    }

    #[test]
    fn datagrams_wait_for_each_other_and_too_many_are_lost() {
        // 1,250 bytes take 10 ms.
        let mut course = Course::new(Link { rate: 1_000_000, ..Link::default() }, 1);
        for at in 1..=11 {
            let Fate::Arrives { after, .. } = course.decide(Duration::ZERO, 1250) else {
                unreachable!("number {at} is lost");
            };
            assert_eq!(after, Duration::from_millis(10 * at));
        }
        assert_eq!(course.decide(Duration::ZERO, 1250), Fate::Lost);
    }

    #[test]
    fn one_bit_changes() {
        let mut course = Course::new(Link::default(), 3);
        let mut datagram = vec![0; 100];
        course.change(&mut datagram);
        assert_eq!(datagram.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
    }
}
