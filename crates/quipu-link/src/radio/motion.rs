//! Where a station is, and how far it has gone.

use std::ops::RangeInclusive;

use quipu_base::{Instant, Random, Seed};
use rand_core::Rng;

use crate::InvalidConfig;
use crate::config::invalid;

/// A place in the plane, in metres.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Position {
    /// Metres to the east of the origin, within 1,000 km.
    pub x: f64,
    /// Metres to the north of the origin, within 1,000 km.
    pub y: f64,
}

/// A rectangle, in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    /// The corner with the smallest numbers.
    pub from: Position,
    /// The opposite corner, not before the first in either direction.
    pub to: Position,
}

/// A place at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Waypoint {
    /// When the station is there.
    pub at: Instant,
    /// Where that is.
    pub position: Position,
}

/// How a station moves.
#[derive(Clone, Debug, PartialEq)]
pub enum Motion {
    /// Not at all.
    Fixed(Position),
    /// From one waypoint to the next in straight lines, evenly. It is at the first one before its
    /// time, and at the last one after it. At least one, with times that grow; at most
    /// [`Motion::MOST_WAYPOINTS`].
    Waypoints(Vec<Waypoint>),
    /// The random waypoint model, without pauses: again and again a place evenly drawn from the
    /// area, and an evenly drawn speed at which the station goes there in a straight line. It starts at a
    /// drawn place.
    ///
    /// Johnson and Maltz, "Dynamic Source Routing in Ad Hoc Wireless Networks" (1996). The mean speed
    /// over time is below that of the draws, since slow legs last longer.
    Random {
        /// Where it stays.
        area: Area,
        /// Metres per second of the slowest leg, 0.01 to 1,000.
        slowest: f64,
        /// Metres per second of the fastest leg, not below the slowest and at most 1,000.
        fastest: f64,
    },
}

impl Position {
    /// Metres to the east or to the north: within 1,000 km.
    pub const COORDINATES: RangeInclusive<f64> = -1e6..=1e6;

    /// The place `x` metres to the east and `y` metres to the north.
    pub const fn new(x: f64, y: f64) -> Self {
        Position { x, y }
    }

    /// Metres between two places.
    pub fn distance(self, other: Position) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        (x * x + y * y).sqrt()
    }

    /// The place at `share` of the way to `other`, 0 to 1.
    fn toward(self, other: Position, share: f64) -> Position {
        Position { x: self.x + (other.x - self.x) * share, y: self.y + (other.y - self.y) * share }
    }

    pub(crate) fn validate(self, field: &'static str) -> Result<(), InvalidConfig> {
        match [self.x, self.y].into_iter().find(|metres| !Self::COORDINATES.contains(metres)) {
            Some(metres) => Err(invalid(field, metres, "metres, -1000000 to 1000000")),
            None => Ok(()),
        }
    }
}

impl Motion {
    /// Waypoints that a motion may have: 65,536. Our choice.
    pub const MOST_WAYPOINTS: usize = 1 << 16;

    /// Speeds in metres per second.
    pub const SPEEDS: RangeInclusive<f64> = 0.01..=1_000.0;

    /// Stays at `start` until `from`, then goes to one place after the other, each at its speed in
    /// metres per second, 0.01 to 1,000.
    ///
    /// # Errors
    /// If a speed is none.
    pub fn at_speeds(
        start: Position,
        from: Instant,
        legs: impl IntoIterator<Item = (Position, f64)>,
    ) -> Result<Motion, InvalidConfig> {
        let mut last = Waypoint { at: from, position: start };
        let mut waypoints = vec![last];
        for (position, speed) in legs {
            check_speed("radio.speed", speed)?;
            let seconds = last.position.distance(position) / speed;
            let at = last.at + quipu_base::Duration::from_secs_f64(seconds);
            if at > last.at {
                last = Waypoint { at, position };
                waypoints.push(last);
            }
        }
        Ok(Motion::Waypoints(waypoints))
    }

    /// Checks all numbers.
    ///
    /// # Errors
    /// The first one that makes no motion.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        match self {
            Motion::Fixed(position) => position.validate("radio.position"),
            Motion::Waypoints(waypoints) => {
                if !(1..=Self::MOST_WAYPOINTS).contains(&waypoints.len()) {
                    let found = waypoints.len();
                    return Err(invalid("radio.waypoints", found, "1 to 65536 waypoints"));
                }
                for waypoint in waypoints {
                    waypoint.position.validate("radio.waypoints.position")?;
                }
                let mut pairs = waypoints.iter().zip(waypoints.iter().skip(1));
                match pairs.find(|(before, after)| after.at <= before.at) {
                    Some((_, late)) => {
                        Err(invalid("radio.waypoints.at", late.at, "later than the one before"))
                    }
                    None => Ok(()),
                }
            }
            Motion::Random { area, slowest, fastest } => {
                area.from.validate("radio.area")?;
                area.to.validate("radio.area")?;
                if area.to.x < area.from.x || area.to.y < area.from.y {
                    let found = format!("{} m x {} m", area.to.x, area.to.y);
                    return Err(invalid("radio.area", found, "two corners in order"));
                }
                check_speed("radio.speed", *slowest)?;
                check_speed("radio.speed", *fastest)?;
                if fastest < slowest {
                    return Err(invalid("radio.speed", fastest, "not less than the slowest"));
                }
                Ok(())
            }
        }
    }
}

fn check_speed(field: &'static str, speed: f64) -> Result<(), InvalidConfig> {
    if Motion::SPEEDS.contains(&speed) {
        return Ok(());
    }
    Err(invalid(field, speed, "metres per second, 0.01 to 1000"))
}

/// A station on its way, looked at in order of time.
#[derive(Debug)]
pub(crate) struct Track {
    legs: Legs,
    from: Waypoint,
    to: Waypoint,
    /// Metres gone up to `from`.
    gone: f64,
}

/// Where the next leg ends.
#[derive(Debug)]
enum Legs {
    /// The waypoints that are still to come, the next one last.
    Given(Vec<Waypoint>),
    Drawn {
        random: Box<Random>,
        area: Area,
        slowest: f64,
        fastest: f64,
    },
}

impl Track {
    /// Draws random waypoints from a stream of `seed`.
    pub(crate) fn new(motion: &Motion, seed: Seed) -> Self {
        let (legs, start) = match motion {
            Motion::Fixed(position) => {
                (Legs::Given(Vec::new()), Waypoint { at: Instant::ZERO, position: *position })
            }
            Motion::Waypoints(waypoints) => {
                let first = waypoints.first().map_or(Position::default(), |first| first.position);
                let legs = waypoints.iter().rev().copied().collect();
                (Legs::Given(legs), Waypoint { at: Instant::ZERO, position: first })
            }
            &Motion::Random { area, slowest, fastest } => {
                let mut random = Box::new(seed.stream("radio.waypoint", 0));
                let position = place(area, &mut random);
                let legs = Legs::Drawn { random, area, slowest, fastest };
                (legs, Waypoint { at: Instant::ZERO, position })
            }
        };
        Track { legs, from: start, to: start, gone: 0.0 }
    }

    /// Where the station is at `at`, and how many metres it has gone by then. `at` never goes back.
    pub(crate) fn at(&mut self, at: Instant) -> (Position, f64) {
        while self.to.at < at {
            self.gone += self.from.position.distance(self.to.position);
            self.from = self.to;
            match self.legs.next(self.from) {
                Some(next) => self.to = next,
                None => {
                    // Here it stays.
                    self.to = Waypoint { at: Instant::FAR_FUTURE, ..self.from };
                }
            }
        }
        let length = self.to.at - self.from.at;
        if length.is_zero() {
            return (self.to.position, self.gone + self.from.position.distance(self.to.position));
        }
        let share = (at - self.from.at).as_secs_f64() / length.as_secs_f64();
        let gone = self.from.position.distance(self.to.position) * share;
        (self.from.position.toward(self.to.position, share), self.gone + gone)
    }
}

impl Legs {
    fn next(&mut self, from: Waypoint) -> Option<Waypoint> {
        match self {
            Legs::Given(waypoints) => waypoints.pop(),
            Legs::Drawn { random, area, slowest, fastest } => {
                let position = place(*area, random);
                let speed = *slowest + (*fastest - *slowest) * unit(random);
                let seconds = from.position.distance(position) / speed;
                // A leg of no length would not end the search for one.
                let nanos = quipu_base::Duration::from_secs_f64(seconds).as_nanos().max(1);
                Some(Waypoint { at: from.at + quipu_base::Duration::from_nanos(nanos), position })
            }
        }
    }
}

fn place(area: Area, random: &mut Random) -> Position {
    let x = area.from.x + (area.to.x - area.from.x) * unit(random);
    let y = area.from.y + (area.to.y - area.from.y) * unit(random);
    Position { x, y }
}

/// Evenly spread over 0 to below 1.
fn unit(random: &mut Random) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use quipu_base::Duration;

    use super::*;

    fn second(seconds: f64) -> Instant {
        Instant::ZERO + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn a_walk_follows_its_waypoints_in_straight_lines() {
        let corners = [(Position::new(30.0, 0.0), 3.0), (Position::new(30.0, 20.0), 2.0)];
        let motion = Motion::at_speeds(Position::new(0.0, 0.0), second(5.0), corners).unwrap();
        assert_eq!(motion.validate(), Ok(()));
        let mut track = Track::new(&motion, Seed::new(1));
        let seen: Vec<_> = [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 1_000.0]
            .map(|seconds| track.at(second(seconds)))
            .iter()
            .map(|(place, gone)| (place.x, place.y, *gone))
            .collect();
        let expected = [
            (0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0),
            (15.0, 0.0, 15.0),
            (30.0, 0.0, 30.0),
            (30.0, 10.0, 40.0),
            (30.0, 20.0, 50.0),
            (30.0, 20.0, 50.0),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn random_waypoints_stay_in_the_area_at_the_speeds_told() {
        let area = Area { from: Position::new(0.0, 0.0), to: Position::new(100.0, 100.0) };
        let motion = Motion::Random { area, slowest: 2.0, fastest: 4.0 };
        let mut track = Track::new(&motion, Seed::new(20));
        let (mut before, mut gone_before) = track.at(Instant::ZERO);
        let mut corners = [f64::MAX, f64::MIN];
        for tenth in 1..36_000u32 {
            let (place, gone) = track.at(second(f64::from(tenth) / 10.0));
            assert!((0.0..=100.0).contains(&place.x) && (0.0..=100.0).contains(&place.y));
            let speed = (gone - gone_before) * 10.0;
            assert!((2.0 - 1e-6..=4.0 + 1e-6).contains(&speed), "{speed} m/s");
            assert!(place.distance(before) <= gone - gone_before + 1e-9);
            corners = [corners[0].min(place.x), corners[1].max(place.x)];
            (before, gone_before) = (place, gone);
        }
        assert!(corners[0] < 10.0 && corners[1] > 90.0, "{corners:?}");
    }

    #[test]
    fn where_a_station_is_does_not_depend_on_when_one_looks() {
        let area = Area { from: Position::new(0.0, 0.0), to: Position::new(100.0, 50.0) };
        let motion = Motion::Random { area, slowest: 1.0, fastest: 9.0 };
        let mut often = Track::new(&motion, Seed::new(7));
        for millis in (0..500_000).step_by(37) {
            often.at(Instant::ZERO + Duration::from_millis(millis));
        }
        let mut once = Track::new(&motion, Seed::new(7));
        assert_eq!(often.at(second(500.0)), once.at(second(500.0)));
        let mut other = Track::new(&motion, Seed::new(8));
        assert_ne!(other.at(second(500.0)).0, once.at(second(500.0)).0);
    }

    #[test]
    fn motions_that_are_none_are_refused() {
        let field = |motion: Motion| motion.validate().unwrap_err().field;
        let far = Position::new(f64::NAN, 0.0);
        assert_eq!(field(Motion::Fixed(far)), "radio.position");
        assert_eq!(field(Motion::Waypoints(Vec::new())), "radio.waypoints");
        let twice = vec![Waypoint { at: second(1.0), position: Position::default() }; 2];
        assert_eq!(field(Motion::Waypoints(twice)), "radio.waypoints.at");
        let area = Area { from: Position::default(), to: Position::new(1.0, 1.0) };
        assert_eq!(field(Motion::Random { area, slowest: 0.0, fastest: 1.0 }), "radio.speed");
        assert_eq!(field(Motion::Random { area, slowest: 2.0, fastest: 1.0 }), "radio.speed");
        let back = Area { from: area.to, to: area.from };
        assert_eq!(field(Motion::Random { area: back, slowest: 1.0, fastest: 1.0 }), "radio.area");
        assert!(Motion::at_speeds(far, Instant::ZERO, [(area.to, -1.0)]).is_err());
    }
}
