//! A timer as hosts have them: of some granularity, and late.

use quipu_base::{Duration, Instant, Random};

use super::HostCosts;
use super::lateness::Lateness;

/// One timer of a host, which fires for the earliest deadline that it was armed for.
///
/// As drivers do, it is not armed anew for a deadline that moves later: it fires for the old one, and
/// whoever asks then finds that nothing is due.
#[derive(Debug)]
pub struct HostTimer {
    tick: Duration,
    lateness: Lateness,
    armed: Option<Armed>,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    deadline: Instant,
    fires_at: Instant,
}

impl HostTimer {
    /// A timer that is not armed, of a host with these `costs`. `random` is used for nothing else.
    pub fn new(costs: &HostCosts, random: Random) -> Self {
        HostTimer {
            tick: costs.timer_tick,
            lateness: Lateness::new(Duration::ZERO, costs.timer_late, costs.timer_late_p99, random),
            armed: None,
        }
    }

    /// Arms the timer at `now` for `deadline`. Returns when it fires if that is new: never before `now` or
    /// the deadline. Each time it is armed takes one number of its random stream.
    pub fn arm(&mut self, now: Instant, deadline: Option<Instant>) -> Option<Instant> {
        // Nothing lies after the end of time.
        let deadline = deadline.filter(|at| *at != Instant::FAR_FUTURE)?;
        if self.armed.is_some_and(|armed| armed.deadline <= deadline) {
            return None;
        }
        let fires_at = (self.next_tick(deadline) + self.lateness.draw()).max(now);
        self.armed = Some(Armed { deadline, fires_at });
        Some(fires_at)
    }

    /// It is `now`: true if the timer fires. It is not armed then. An instant for which it was armed before
    /// it was armed anew is none.
    pub fn fire(&mut self, now: Instant) -> bool {
        let fires = self.armed.is_some_and(|armed| armed.fires_at == now);
        if fires {
            self.armed = None;
        }
        fires
    }

    fn next_tick(&self, at: Instant) -> Instant {
        let Some(over) = at.as_nanos().checked_rem(self.tick.as_nanos()).filter(|over| *over > 0)
        else {
            return at;
        };
        at + self.tick.saturating_sub(Duration::from_nanos(over))
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;

    fn timer(costs: HostCosts) -> HostTimer {
        HostTimer::new(&costs, Seed::new(1).stream("host.timer", 0))
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn granularity_rounds_deadlines_up() {
        let tick = Duration::from_millis(1);
        let fires = |deadline| {
            let mut timer = timer(HostCosts { timer_tick: tick, ..HostCosts::IDEAL });
            timer.arm(at(0), Some(at(deadline)))
        };
        assert_eq!(fires(1), Some(at(1_000)));
        assert_eq!(fires(999), Some(at(1_000)));
        assert_eq!(fires(1_000), Some(at(1_000)));
        assert_eq!(fires(1_001), Some(at(2_000)));
        assert_eq!(timer(HostCosts::IDEAL).arm(at(0), Some(at(7))), Some(at(7)));
        assert_eq!(timer(HostCosts::IDEAL).arm(at(9), Some(at(7))), Some(at(9)));
    }

    #[test]
    fn only_an_earlier_deadline_arms_anew_and_the_old_one_fires_no_more() {
        let mut timer = timer(HostCosts::IDEAL);
        assert_eq!(timer.arm(at(0), Some(at(100))), Some(at(100)));
        assert_eq!(timer.arm(at(0), Some(at(150))), None);
        assert_eq!(timer.arm(at(0), None), None);
        assert_eq!(timer.arm(at(0), Some(at(50))), Some(at(50)));
        assert!(timer.fire(at(50)) && !timer.fire(at(50)));
        assert_eq!(timer.arm(at(50), Some(at(150))), Some(at(150)));
        assert!(!timer.fire(at(100)) && timer.fire(at(150)));
        assert_eq!(timer.arm(at(150), Some(Instant::FAR_FUTURE)), None);
    }
}
