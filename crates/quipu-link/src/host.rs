//! What the hosts at both ends of links do to datagrams: the time they take, timers, batches, and the
//! queue of the kernel.

mod costs;
mod kernel_queue;
mod lateness;
mod timer;
mod wake;

pub use costs::{HostCosts, InvalidCosts};
pub use kernel_queue::KernelQueue;
pub use timer::HostTimer;
pub use wake::HostWake;

use quipu_base::{Duration, Instant, Random};

use crate::chance::uniform_up_to;

/// Random processing delay of a receiving host, for the datagrams of one incoming link.
///
/// Each datagram takes between zero and the greatest delay, evenly spread, and none overtakes
/// another that the link delivered before it. Without it, runs that lose nothing would all be the
/// same, and their confidence intervals would say nothing.
#[derive(Debug)]
pub struct HostJitter {
    greatest: Duration,
    last_arrived_at: Instant,
    last_processed_at: Instant,
    random: Random,
}

impl HostJitter {
    /// The usual greatest delay: 100 µs. Our choice.
    pub const DEFAULT: Duration = Duration::from_micros(100);

    /// A host that takes up to `greatest` per datagram; zero turns it off.
    pub fn new(greatest: Duration, random: Random) -> Self {
        HostJitter {
            greatest,
            last_arrived_at: Instant::ZERO,
            last_processed_at: Instant::ZERO,
            random,
        }
    }

    /// When the host has processed a datagram that arrives at `arrives_at`, not before that
    /// instant and at most the greatest delay after it or with its predecessor.
    ///
    /// To be called in the order in which the datagrams were sent. One that arrives earlier than
    /// its predecessor, which only a link that reorders brings about, does not wait for it.
    pub fn processed_at(&mut self, arrives_at: Instant) -> Instant {
        if self.greatest.is_zero() {
            return arrives_at;
        }
        let mut at = arrives_at + uniform_up_to(self.greatest, &mut self.random);
        if self.last_arrived_at <= arrives_at {
            at = at.max(self.last_processed_at);
        }
        self.last_arrived_at = arrives_at;
        self.last_processed_at = at;
        at
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn delays_stay_below_the_greatest_and_keep_the_order() {
        let mut host = HostJitter::new(HostJitter::DEFAULT, Seed::new(1).stream("host", 0));
        let mut last = Instant::ZERO;
        for index in 0..1_000 {
            let arrival = at(index * 10);
            let processed = host.processed_at(arrival);
            assert!(processed >= last && processed >= arrival);
            assert!(processed - arrival <= HostJitter::DEFAULT);
            last = processed;
        }
    }

    #[test]
    fn zero_turns_it_off() {
        let mut host = HostJitter::new(Duration::ZERO, Seed::new(1).stream("host", 0));
        assert_eq!(host.processed_at(at(5)), at(5));
        assert_eq!(host.processed_at(at(3)), at(3));
    }

    #[test]
    fn a_datagram_that_overtook_another_on_the_link_does_not_wait_for_it() {
        let mut host = HostJitter::new(HostJitter::DEFAULT, Seed::new(1).stream("host", 0));
        host.processed_at(at(50_000));
        assert!(host.processed_at(at(1_000)) <= at(1_100));
        assert!(host.processed_at(at(1_000)) <= at(1_100));
    }
}
