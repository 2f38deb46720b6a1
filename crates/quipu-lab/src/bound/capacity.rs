//! What one link lets through between two instants, at most.

use quipu_base::{Duration, Instant, Rate};
use quipu_link::{AtEnd, DeliveryTrace, LinkConfig, Timeline};

/// One byte, in what a bit per second does in a nanosecond.
const BYTE: u128 = 8_000_000_000;

/// An upper limit of the bytes that a link delivers, headers included, over any stretch of time.
///
/// It follows the link's rate, its steps or its trace exactly, and takes off what leaves in an
/// outage, or so shortly before one that it cannot arrive: a datagram is lost if the link is down at
/// any instant from its offer to its arrival. Losses, queues and other traffic are left out: they
/// only take away.
#[derive(Debug)]
pub(super) struct Supply {
    source: Source,
    /// In order, apart from each other.
    blocked: Vec<Blocked>,
}

#[derive(Debug)]
enum Source {
    Unlimited,
    Rate(Rates),
    Trace(DeliveryTrace),
}

/// Rates over time, once or round after round. Times are in nanoseconds.
#[derive(Debug)]
struct Rates {
    /// In order of time; the first begins at zero.
    stretches: Vec<Stretch>,
    /// Time of a round, above zero, if it does not go on for good.
    length: Option<u64>,
    /// Whether the next round follows; if not, nothing.
    loops: bool,
    /// Time of the first round at which a run begins.
    offset: u64,
}

/// A rate from a time on, in nanoseconds and bits per second.
#[derive(Debug)]
struct Stretch {
    from: u64,
    rate: u64,
    /// What the stretches before it let through.
    before: u128,
}

/// Instants of departure, in nanoseconds, from which nothing arrives.
#[derive(Debug)]
struct Blocked {
    /// The first.
    from: u64,
    /// The first after it from which something does.
    until: u64,
    /// What the ones before it take away.
    before: u128,
}

/// The least time that a datagram spends between a link's two ends.
pub(super) fn least_delay(link: &LinkConfig) -> Duration {
    link.least_delay().saturating_sub(link.jitter)
}

impl Supply {
    pub(super) fn new(link: &LinkConfig) -> Supply {
        let source = match (&link.trace, &link.rates, link.rate) {
            (Some(trace), ..) => Source::Trace(trace.clone()),
            (None, Some(rates), _) => Source::Rate(Rates::recorded(rates)),
            (None, None, Some(rate)) => {
                let steps = link.steps.iter();
                let steps = steps.map(|step| (step.at - Instant::ZERO, step.rate));
                Source::Rate(Rates::for_good(std::iter::once((Duration::ZERO, rate)).chain(steps)))
            }
            (None, None, None) => Source::Unlimited,
        };
        let mut supply = Supply { source, blocked: Vec::new() };
        supply.block(link);
        supply
    }

    fn block(&mut self, link: &LinkConfig) {
        let delay = least_delay(link).as_nanos();
        let mut spans: Vec<(u64, u64)> = link
            .outages
            .iter()
            .map(|outage| {
                let until = outage.until.unwrap_or(Instant::FAR_FUTURE);
                (outage.from.as_nanos().saturating_sub(delay), until.as_nanos())
            })
            .collect();
        spans.sort_unstable();
        spans.dedup_by(|later, earlier| {
            let merges = later.0 <= earlier.1;
            if merges {
                earlier.1 = earlier.1.max(later.1);
            }
            merges
        });
        let mut before = 0;
        for (from, until) in spans {
            self.blocked.push(Blocked { from, until, before });
            before += self.departing(from, until);
        }
    }

    /// What departs up to and with `at`, were there no outages.
    fn departed(&self, at: u64) -> u128 {
        match &self.source {
            Source::Unlimited => 0,
            Source::Rate(rates) => rates.until(at),
            Source::Trace(trace) => {
                let opportunities = trace.opportunities_by(Instant::from_nanos(at));
                u128::from(opportunities) * u128::from(DeliveryTrace::OPPORTUNITY.0) * BYTE
            }
        }
    }

    /// What departs from `from` on and before `until`, were there no outages.
    fn departing(&self, from: u64, until: u64) -> u128 {
        let by = |at: u64| match self.source {
            // An opportunity is at one instant.
            Source::Trace(_) => at.checked_sub(1).map_or(0, |before| self.departed(before)),
            Source::Unlimited | Source::Rate(_) => self.departed(at),
        };
        by(until).saturating_sub(by(from))
    }

    /// What departs up to and with `at` and arrives.
    fn arriving(&self, at: u64) -> u128 {
        let departed = self.departed(at);
        if self.blocked.is_empty() {
            return departed;
        }
        let next = self.blocked.partition_point(|blocked| blocked.from <= at);
        let taken = next.checked_sub(1).and_then(|last| self.blocked.get(last)).map_or(0, |last| {
            // An opportunity at that very instant counts.
            let trace = matches!(self.source, Source::Trace(_));
            let end = at.saturating_add(u64::from(trace));
            last.before + self.departing(last.from, last.until.min(end))
        });
        departed.saturating_sub(taken)
    }

    /// Bytes that are offered at `from` or later, depart by `until`, and arrive. At most
    /// [`u64::MAX`], which is also what a link without a rate lets through.
    pub(super) fn between(&self, from: u64, until: u64) -> u64 {
        if from > until {
            return 0;
        }
        if let Source::Unlimited = self.source {
            return u64::MAX;
        }
        let bytes = self.arriving(until).saturating_sub(self.arriving(from)) / BYTE;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

impl Rates {
    fn for_good(values: impl Iterator<Item = (Duration, Rate)>) -> Rates {
        let mut stretches: Vec<Stretch> = Vec::new();
        for (time, rate) in values {
            let from = time.as_nanos();
            let before = stretches.last().map_or(0, |last| last.until(from));
            stretches.push(Stretch { from, rate: rate.bits_per_sec(), before });
        }
        Rates { stretches, length: None, loops: false, offset: 0 }
    }

    fn recorded(rates: &Timeline<Rate>) -> Rates {
        let play = rates.play();
        let length = rates.length().as_nanos().max(1);
        Rates {
            length: (play.at_end != AtEnd::Hold).then_some(length),
            loops: play.at_end == AtEnd::Loop,
            offset: play.from.as_nanos(),
            ..Rates::for_good(rates.values())
        }
    }

    /// What passes from the start of the first round up to `at` of the run.
    fn until(&self, at: u64) -> u128 {
        let time = at.saturating_add(self.offset);
        match self.length {
            Some(length) if self.loops => {
                let rounds = u128::from(time / length);
                rounds * self.in_round(length) + self.in_round(time % length)
            }
            Some(length) => self.in_round(time.min(length)),
            None => self.in_round(time),
        }
    }

    fn in_round(&self, time: u64) -> u128 {
        let next = self.stretches.partition_point(|stretch| stretch.from <= time);
        let last = next.checked_sub(1).and_then(|last| self.stretches.get(last));
        last.map_or(0, |stretch| stretch.until(time))
    }
}

impl Stretch {
    /// What passes up to `at`, which is in this stretch or where it ends.
    fn until(&self, at: u64) -> u128 {
        self.before + u128::from(self.rate) * u128::from(at.saturating_sub(self.from))
    }
}
