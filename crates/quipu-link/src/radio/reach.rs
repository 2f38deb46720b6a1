//! The signal between an access point and a station over time.

use std::ops::RangeInclusive;

use quipu_base::{Instant, Seed};

use super::motion::{Motion, Position, Track};
use super::path_loss::{Channel, PathLoss, Shadow, check};
use super::phy::PhyRate;
use crate::InvalidConfig;

/// A direction between an access point and a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// From the access point to the station.
    Down,
    /// From the station to the access point.
    Up,
}

/// An access point, which stays where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccessPoint {
    /// Where it is.
    pub position: Position,
    /// Power of the transmitter in dBm, -30 to 60. Default 14, that of Mininet-WiFi.
    pub power: f64,
    /// Gain of the antenna in decibels, -30 to 60. Default 5, that of Mininet-WiFi.
    pub gain: f64,
}

/// A station, which may move.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// How it moves.
    pub motion: Motion,
    /// Draws the motion, if it is drawn; a station has the same one for each access point.
    pub seed: Seed,
    /// Power of the transmitter in dBm, -30 to 60. Default 14, that of Mininet-WiFi.
    pub power: f64,
    /// Gain of the antenna in decibels, -30 to 60. Default 5, that of Mininet-WiFi.
    pub gain: f64,
}

impl AccessPoint {
    /// Powers in dBm that access points and stations may have.
    pub const POWERS: RangeInclusive<f64> = -30.0..=60.0;
    /// Gains in decibels that their antennas may have.
    pub const GAINS: RangeInclusive<f64> = -30.0..=60.0;

    /// With the usual power and antenna.
    pub const fn at(position: Position) -> Self {
        AccessPoint { position, power: 14.0, gain: 5.0 }
    }
}

impl Station {
    /// With the usual power and antenna.
    pub const fn new(motion: Motion, seed: Seed) -> Self {
        Station { motion, seed, power: 14.0, gain: 5.0 }
    }
}

/// How strong the signal between an access point and a station is, asked in order of time.
///
/// It depends on time and seed alone. Path and shadows are the same in both directions; powers may
/// differ.
#[derive(Debug)]
pub struct Reach {
    channel: Channel,
    path_loss: PathLoss,
    access_point: Position,
    track: Track,
    shadow: Option<Shadow>,
    /// Decibels from the noise to the sender's power and both antennas: down, up.
    budget: [f64; 2],
    last: Instant,
}

impl Reach {
    /// Draws shadows from a stream of `seed`, which must be of this pair alone.
    ///
    /// # Errors
    /// If a number is out of its range.
    pub fn new(
        channel: Channel,
        path_loss: PathLoss,
        access_point: &AccessPoint,
        station: &Station,
        seed: Seed,
    ) -> Result<Reach, InvalidConfig> {
        path_loss.validate()?;
        station.motion.validate()?;
        access_point.position.validate("radio.access_points.position")?;
        for power in [access_point.power, station.power] {
            check("radio.power", power, AccessPoint::POWERS, "-30 to 60 dBm")?;
        }
        for gain in [access_point.gain, station.gain] {
            check("radio.gain", gain, AccessPoint::GAINS, "decibels, -30 to 60")?;
        }
        let gains = access_point.gain + station.gain - path_loss.noise;
        Ok(Reach {
            channel,
            path_loss,
            access_point: access_point.position,
            track: Track::new(&station.motion, station.seed),
            shadow: path_loss.shadowing.map(|config| Shadow::new(config, seed)),
            budget: [access_point.power + gains, station.power + gains],
            last: Instant::ZERO,
        })
    }

    /// Metres between the two at `at`. An instant before that of the last question counts as that one.
    pub fn distance(&mut self, at: Instant) -> f64 {
        self.look(at).0
    }

    /// Decibels from the noise to the mean signal at `at`, without fading; instants as in
    /// [`Self::distance`].
    pub fn snr(&mut self, way: Way, at: Instant) -> f64 {
        let (distance, gone) = self.look(at);
        let shadow = self.shadow.as_mut().map_or(0.0, |shadow| shadow.at(gone, at - Instant::ZERO));
        self.budget[way as usize] - self.path_loss.loss(self.channel, distance) + shadow
    }

    /// The rate that a sender chooses at `at`; `None`: the two are not associated. Instants as in
    /// [`Self::distance`].
    pub fn rate(&mut self, way: Way, at: Instant) -> Option<PhyRate> {
        PhyRate::chosen(self.snr(way, at), self.path_loss.margin)
    }

    pub(super) fn fading(&self) -> f64 {
        self.path_loss.fading
    }

    /// Distance, and metres gone.
    fn look(&mut self, at: Instant) -> (f64, f64) {
        self.last = self.last.max(at);
        let (position, gone) = self.track.at(self.last);
        (position.distance(self.access_point), gone)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Duration;

    use super::*;

    fn reach(path_loss: PathLoss, motion: Motion, seed: u64) -> Reach {
        let ap = AccessPoint::at(Position::new(55.0, 50.0));
        let station = Station::new(motion, Seed::new(seed).child("station", 0));
        let channel = Channel::new(40).unwrap();
        Reach::new(channel, path_loss, &ap, &station, Seed::new(seed)).unwrap()
    }

    fn at(metres: f64) -> Reach {
        reach(PathLoss::default(), Motion::Fixed(Position::new(55.0 + metres, 50.0)), 1)
    }

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn signal_and_rate_fall_with_distance_as_computed_by_hand() {
        // 14 dBm and twice 5 dB, less 46.77 dB + 30 log10(d), over -91 dBm.
        let table = [
            (1.0, 68.2, Some(54)),
            (10.0, 38.2, Some(54)),
            (20.6, 28.8, Some(54)),
            (25.0, 26.3, Some(48)),
            (30.0, 23.9, Some(36)),
            (40.0, 20.2, Some(24)),
            (50.0, 17.3, Some(18)),
            (60.0, 14.9, Some(12)),
            (70.0, 12.9, Some(9)),
            (80.0, 11.1, Some(9)),
            (90.0, 9.6, Some(6)),
            (100.0, 8.2, None),
        ];
        for (metres, snr, mbit) in table {
            let mut reach = at(metres);
            let found = reach.snr(Way::Down, Instant::ZERO);
            assert!((found - snr).abs() < 0.1, "{metres} m: {found} dB");
            let rate = reach.rate(Way::Up, Instant::ZERO).map(PhyRate::mbit);
            assert_eq!(rate, mbit, "{metres} m");
        }
    }

    #[test]
    fn walking_away_lowers_the_rate_step_by_step() {
        let away = Motion::at_speeds(
            Position::new(56.0, 50.0),
            Instant::ZERO,
            [(Position::new(256.0, 50.0), 2.0)],
        );
        let mut reach = reach(PathLoss::default(), away.unwrap(), 1);
        let rates: Vec<_> =
            (0..1_000).map(|tenth| reach.rate(Way::Down, millis(tenth * 100))).collect();
        assert!(rates.is_sorted_by(|before, after| before >= after));
        let mut seen: Vec<_> = rates.into_iter().map(|rate| rate.map(PhyRate::mbit)).collect();
        seen.dedup();
        let expected = [54, 48, 36, 24, 18, 12, 9, 6].map(Some);
        assert_eq!(seen, [&expected[..], &[None]].concat());
    }

    #[test]
    fn powers_may_differ_by_direction() {
        let station = Station {
            power: 4.0,
            ..Station::new(Motion::Fixed(Position::new(20.6, 0.0)), Seed::new(1))
        };
        let ap = AccessPoint::at(Position::default());
        let channel = Channel::new(36).unwrap();
        let mut reach =
            Reach::new(channel, PathLoss::default(), &ap, &station, Seed::new(1)).unwrap();
        let [down, up] = [Way::Down, Way::Up].map(|way| reach.snr(way, Instant::ZERO));
        assert!((down - up - 10.0).abs() < 1e-9);
        let loud = AccessPoint { power: 99.0, ..ap };
        let refused = Reach::new(channel, PathLoss::default(), &loud, &station, Seed::new(1));
        assert_eq!(refused.unwrap_err().field, "radio.power");
    }
}
