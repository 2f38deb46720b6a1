//! When a link is down.

use quipu_base::{Duration, Instant};

use crate::InvalidConfig;
use crate::config::invalid;

/// A time in which a link is down, like a cable that is cut: a datagram is lost if the link is
/// down at any instant from the datagram's offer to its arrival. So those in the queue and those
/// on the way are lost too, and nobody is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// First instant at which the link is down.
    pub from: Instant,
    /// First instant at which it is up again. `None`: it stays down for good.
    pub until: Option<Instant>,
}

impl Outage {
    /// Down at `from`, up again at `until`, which must be later.
    pub const fn between(from: Instant, until: Instant) -> Self {
        Outage { from, until: Some(until) }
    }

    /// Down for good.
    pub const fn for_good(from: Instant) -> Self {
        Outage { from, until: None }
    }

    /// A link that flaps: `times` times down for `down`, with `up` between, first at `from`.
    pub fn flapping(
        from: Instant,
        down: Duration,
        up: Duration,
        times: u32,
    ) -> impl Iterator<Item = Outage> {
        (0..times).map(move |index| {
            let start = from + (down + up).saturating_mul(u64::from(index));
            Outage::between(start, start + down)
        })
    }

    pub(crate) fn validate(&self) -> Result<(), InvalidConfig> {
        match self.until {
            Some(until) if until <= self.from => {
                Err(invalid("outages.until", until, "later than the outage's start"))
            }
            _ => Ok(()),
        }
    }

    fn end(&self) -> Instant {
        self.until.unwrap_or(Instant::FAR_FUTURE)
    }
}

/// All outages of a link, asked in order of time.
#[derive(Debug)]
pub(crate) struct OutageSchedule {
    /// In order, apart from each other.
    outages: Vec<Outage>,
    /// The first outage that is not over.
    next: usize,
}

impl OutageSchedule {
    /// Takes outages in any order; those that overlap or touch become one.
    pub(crate) fn new(mut outages: Vec<Outage>) -> Self {
        outages.sort_by_key(|outage| outage.from);
        outages.dedup_by(|later, earlier| {
            let merges = later.from <= earlier.end();
            if merges && earlier.end() < later.end() {
                earlier.until = later.until;
            }
            merges
        });
        OutageSchedule { outages, next: 0 }
    }

    /// Forgets the outages that are over. `now` never goes back.
    pub(crate) fn advance(&mut self, now: Instant) {
        while self.outages.get(self.next).is_some_and(|outage| outage.end() <= now) {
            self.next += 1;
        }
    }

    /// First instant from that of the last [`Self::advance`] on at which the link is down.
    pub(crate) fn next_from(&self) -> Instant {
        self.outages.get(self.next).map_or(Instant::FAR_FUTURE, |outage| outage.from)
    }

    /// Whether the link is down at some instant from the one of the last [`Self::advance`] to
    /// `end`, both included.
    pub(crate) fn cuts_before(&self, end: Instant) -> bool {
        self.outages.get(self.next).is_some_and(|outage| outage.from <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn overlapping_outages_become_one() {
        let schedule = OutageSchedule::new(vec![
            Outage::between(at(30), at(40)),
            Outage::between(at(10), at(20)),
            Outage::between(at(15), at(30)),
            Outage::between(at(12), at(13)),
            Outage::for_good(at(50)),
            Outage::between(at(60), at(70)),
        ]);
        let expected = [Outage::between(at(10), at(40)), Outage::for_good(at(50))];
        assert_eq!(schedule.outages, expected);
    }

    #[test]
    fn an_outage_includes_its_start_and_excludes_its_end() {
        let mut schedule = OutageSchedule::new(vec![Outage::between(at(10), at(20))]);
        schedule.advance(at(0));
        assert!(!schedule.cuts_before(at(9)));
        assert!(schedule.cuts_before(at(10)));
        schedule.advance(at(19));
        assert!(schedule.cuts_before(at(19)));
        schedule.advance(at(20));
        assert!(!schedule.cuts_before(at(1_000)));
    }

    #[test]
    fn a_flapping_link_is_down_at_even_distances() {
        let (down, up) = (Duration::from_nanos(2), Duration::from_nanos(3));
        let outages: Vec<_> = Outage::flapping(at(10), down, up, 3).collect();
        let expected = [(10, 12), (15, 17), (20, 22)];
        assert_eq!(outages, expected.map(|(from, until)| Outage::between(at(from), at(until))));
    }
}
