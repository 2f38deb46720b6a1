//! The clock of an end: it may leap ahead, and it may stand.

use quipu_base::{Duration, Instant};

/// What an end's clock shows, compared with the world's time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    /// How far it is ahead.
    ahead: Duration,
    /// It stands from the first instant of the world to the second.
    stands: Option<(Instant, Instant)>,
}

impl Clock {
    /// It leaps ahead.
    pub(super) fn leap(&mut self, time: Duration) {
        self.ahead += time;
    }

    /// It stands for so long, and then shows again what it would have shown.
    pub(super) fn stand(&mut self, world: Instant, time: Duration) {
        if self.standing(world).is_none() {
            self.stands = Some((world, world + time));
        }
    }

    /// What it shows at that time of the world.
    pub(super) fn shows(&self, world: Instant) -> Instant {
        self.standing(world).map_or(world, |(from, _)| from) + self.ahead
    }

    /// When of the world it shows `shown`, asked at `world`.
    pub(super) fn world_at(&self, world: Instant, shown: Instant) -> Instant {
        let at = Instant::ZERO + shown.saturating_since(Instant::ZERO + self.ahead);
        match self.standing(world) {
            // What it does not show yet, it shows when it goes again.
            Some((from, until)) if at > from => at.max(until),
            _ => at,
        }
    }

    fn standing(&self, world: Instant) -> Option<(Instant, Instant)> {
        self.stands.filter(|(from, until)| *from <= world && world < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_clock_leaps_and_stands_and_never_goes_back() {
        let mut clock = Clock::default();
        assert_eq!(clock.shows(at(5)), at(5));
        clock.leap(Duration::from_millis(100));
        assert_eq!(clock.shows(at(5)), at(105));
        clock.stand(at(10), Duration::from_millis(20));
        assert_eq!(clock.shows(at(29)), at(110));
        assert_eq!(clock.shows(at(30)), at(130));
        // A deadline that it would show while it stands is due when it goes again.
        assert_eq!(clock.world_at(at(10), at(115)), at(30));
        assert_eq!(clock.world_at(at(10), at(110)), at(10));
        assert_eq!(clock.world_at(at(10), at(150)), at(50));
        assert_eq!(clock.world_at(at(40), at(150)), at(50));
    }
}
