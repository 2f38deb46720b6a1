//! `srpt` and `sjf`: short streams first.
//!
//! Source: textbook (shortest remaining processing time, Schrage 1968; shortest job first). A stream
//! whose total size the application did not tell is ranked by what was written, which
//! underestimates; a note then calls the score estimated.
//!
//! Aging is our reconstruction: `remaining · (1 − age / T)`, nothing from the age `T` on, which the
//! oldest of them win only by their identifier. As all ranks change with the time then, the age is
//! counted in steps of `T / 64`, on which all streams are ranked anew.

use quipu_base::{Bytes, Duration, Instant};

use super::ranked::{Rank, Ranked};
use super::remaining::{remaining, total};
use crate::seam::event::Event;
use crate::seam::view::{StreamView, View};

/// Steps of the age in which a stream's rank falls to nothing.
const STEPS: u64 = 64;

/// Rank by what remains to be sent.
#[derive(Clone, Copy, Debug)]
pub struct ByRemaining {
    aging: Option<Aging>,
}

#[derive(Clone, Copy, Debug)]
struct Aging {
    horizon: Duration,
    /// The present, rounded down to a step.
    now: Instant,
}

/// Rank by total size.
#[derive(Clone, Copy, Debug)]
pub struct BySize;

impl Ranked<ByRemaining> {
    /// The ready stream with least to send goes first. With `aging`, waiting counts like being
    /// shorter: a stream of that age has nothing before it but others of that age.
    pub fn srpt(aging: Option<Duration>) -> Self {
        let aging = aging.map(|horizon| Aging { horizon, now: Instant::ZERO });
        Ranked::by(ByRemaining { aging })
    }
}

impl Ranked<BySize> {
    /// The ready stream of least total size sends all that it has.
    pub fn sjf() -> Self {
        Ranked::by(BySize)
    }
}

impl Aging {
    fn step(&self) -> u64 {
        (self.horizon.as_nanos() / STEPS).max(1)
    }

    fn aged(&self, bytes: Bytes, since: Instant) -> Bytes {
        let age = self.now.saturating_since(since);
        let left = u128::from(self.horizon.saturating_sub(age).as_nanos());
        let whole = u128::from(self.horizon.as_nanos().max(1));
        // At most `bytes`, as `left` is at most `whole`.
        Bytes(u64::try_from(u128::from(bytes.0) * left / whole).unwrap_or(bytes.0))
    }
}

impl Rank for ByRemaining {
    type Key = Bytes;
    const SENT_STAYS_FIRST: bool = true;

    fn key(&self, stream: &StreamView, _view: &View<'_>) -> Bytes {
        let bytes = remaining(stream);
        self.aging.map_or(bytes, |aging| aging.aged(bytes, stream.opened_at))
    }

    fn depends_on(&self, event: &Event<'_>) -> bool {
        matches!(
            event,
            Event::Sized(_)
                | Event::Written(_)
                | Event::Requeued { .. }
                | Event::Placed { .. }
                | Event::Acked(_)
        )
    }

    fn advance(&mut self, now: Instant) -> bool {
        let Some(aging) = &mut self.aging else { return false };
        let now = Instant::from_nanos(now.as_nanos() / aging.step() * aging.step());
        std::mem::replace(&mut aging.now, now) != now
    }

    fn explain(&self, stream: &StreamView, view: &View<'_>) -> (&'static str, f64) {
        let label = if stream.size.is_some() { "remaining" } else { "remaining (estimated)" };
        (label, self.key(stream, view).0 as f64)
    }
}

impl Rank for BySize {
    type Key = Bytes;
    const SENT_STAYS_FIRST: bool = true;

    fn key(&self, stream: &StreamView, _view: &View<'_>) -> Bytes {
        total(stream)
    }

    fn depends_on(&self, event: &Event<'_>) -> bool {
        matches!(event, Event::Sized(_) | Event::Written(_))
    }

    fn explain(&self, stream: &StreamView, _view: &View<'_>) -> (&'static str, f64) {
        let label = if stream.size.is_some() { "size" } else { "size (estimated)" };
        (label, total(stream).0 as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StreamPolicy;
    use crate::stream::testing::Driver;

    #[test]
    fn what_remains_counts_for_srpt_and_the_total_for_sjf() {
        let mut srpt = Driver::new(Ranked::srpt(None));
        srpt.open(4, 5_000);
        assert_eq!(srpt.packets(3, 1_000), [4, 4, 4]);
        srpt.open(8, 3_000);
        assert_eq!(srpt.packets(9, 1_000), [4, 4, 8, 8, 8]);

        let mut sjf = Driver::new(Ranked::sjf());
        sjf.open(4, 5_000);
        assert_eq!(sjf.packets(3, 1_000), [4, 4, 4]);
        sjf.open(8, 3_000);
        assert_eq!(sjf.packets(9, 1_000), [8, 8, 8, 4, 4]);
    }

    #[test]
    fn a_size_that_was_told_counts_before_it_is_written() {
        let mut driver = Driver::new(Ranked::srpt(None));
        driver.create(4, Some(90_000));
        driver.write(4, 1_000, false);
        driver.open(8, 2_000);
        assert_eq!(driver.notes(), [("remaining (estimated)", 8, 2_000.0)]);
        driver.packets(1, 1_000);
        driver.set_size(8, 100_000);
        assert_eq!(driver.notes(), [("remaining", 4, 90_000.0)]);
        assert_eq!(driver.packets(9, 1_000), [4, 8]);
    }

    #[test]
    fn lost_bytes_remain_to_be_sent() {
        let mut driver = Driver::new(Ranked::srpt(None));
        driver.open(4, 4_000);
        driver.packets(3, 1_000);
        driver.open(8, 2_000);
        driver.lose(4, 0, 1_000);
        driver.lose(4, 1_000, 2_000);
        // 3 kB of 4 and 2 kB of 8 remain.
        assert_eq!(driver.packets(9, 1_000), [8, 8, 4, 4, 4]);
    }

    #[test]
    fn with_aging_a_long_stream_is_not_passed_over_for_ever() {
        let passed_over = |aging| {
            let mut driver = Driver::new(Ranked::srpt(aging));
            driver.open(0, 50_000);
            let mut first = None;
            for step in 1..=200 {
                driver.advance(Duration::from_millis(50));
                driver.open(step * 4, 1_000);
                let sent = driver.packets(1, 1_000);
                if sent == [0] {
                    first = first.or(Some(step));
                }
            }
            first
        };
        assert_eq!(passed_over(None), None);
        // 50 kB · (1 − age / 5 s) falls to 1 kB after 4.9 s; steps last 78.125 ms.
        assert_eq!(passed_over(Some(Duration::from_secs(5))), Some(99));
    }

    #[test]
    fn plans_are_called_back_for_a_shorter_stream() {
        let mut driver = Driver::new(Ranked::srpt(None));
        driver.open(4, 5_000);
        driver.take(1_000);
        driver.open(8, 9_000);
        assert_eq!(driver.policy.order(), 0);
        driver.open(12, 3_000);
        assert_eq!(driver.policy.order(), 1);
    }
}
