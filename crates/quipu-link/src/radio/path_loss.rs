//! How much of a signal arrives: distance, shadows, and fading.

use std::ops::RangeInclusive;

use quipu_base::{Duration, Random, Seed};
use rand_core::Rng;

use crate::InvalidConfig;
use crate::config::invalid;

/// Metres per second.
const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// A channel of 802.11a, 20 MHz wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel(u8);

impl Channel {
    /// The numbers there are, all apart from each other: IEEE 802.11, annex E, operating classes of 20 MHz
    /// in the bands of 5 GHz.
    pub const NUMBERS: [u8; 25] = [
        36, 40, 44, 48, 52, 56, 60, 64, 100, 104, 108, 112, 116, 120, 124, 128, 132, 136, 140, 144,
        149, 153, 157, 161, 165,
    ];

    /// The channel of that number, if there is one.
    pub fn new(number: u8) -> Option<Channel> {
        Self::NUMBERS.contains(&number).then_some(Channel(number))
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self.0
    }

    /// The middle of it in hertz: 5,000 MHz and 5 MHz for each number.
    pub fn frequency(self) -> f64 {
        5e9 + f64::from(self.0) * 5e6
    }
}

/// The way of signals: what reaches the other end, and what it has to be told from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathLoss {
    /// How fast power falls with distance, 1 to 8: 2 in free space, about 3 in buildings. Default 3.
    ///
    /// In decibels the loss over d metres is `L(1 m) + 10 · exponent · log10(d)`, with L(1 m) from
    /// Friis' equation, 46.7 dB on channel 36 (Rappaport, "Wireless Communications", 2002, 4.9). Below a
    /// metre it is that of a metre.
    pub exponent: f64,
    /// What stands between. Default nothing.
    pub shadowing: Option<Shadowing>,
    /// Standard deviation in decibels of a normal variation that each attempt to send a frame
    /// meets anew, 0 to 30, as the fading coefficient of wmediumd. Default 0.
    pub fading: f64,
    /// Noise with that of the receiver, in dBm, -150 to 0. Default -91: thermal noise of 20 MHz and a noise
    /// figure of 10 dB, which the sensitivities of 802.11a count with.
    pub noise: f64,
    /// Decibels above its sensitivity that a rate must have to be chosen, 0 to 30. Default 1, our
    /// choice: 1.7 % of the frames of 1,536 bytes fail then.
    pub margin: f64,
}

/// Losses that vary with what stands between: normal in decibels, and much the same a step further.
///
/// Between places d metres apart the correlation is exp(-d / distance): Gudmundson, "Correlation
/// model for shadow fading in mobile radio systems" (1991). With a `time`, what stands between moves
/// too: a station at rest sees a correlation of exp(-t / time) after t.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation in decibels, 0 to 30.
    pub deviation: f64,
    /// Metres over which the correlation falls to 1/e, 0.1 to 10,000.
    pub distance: f64,
    /// Time over which it falls to 1/e, at least 10 ms. `None`: only motion changes shadows.
    pub time: Option<Duration>,
}

impl Default for PathLoss {
    fn default() -> Self {
        PathLoss::USUAL
    }
}

impl PathLoss {
    /// The default, as each field has it.
    pub const USUAL: PathLoss =
        PathLoss { exponent: 3.0, shadowing: None, fading: 0.0, noise: -91.0, margin: 1.0 };
    /// Exponents that a way may have.
    pub const EXPONENTS: RangeInclusive<f64> = 1.0..=8.0;
    /// Noise in dBm that a receiver may have.
    pub const NOISES: RangeInclusive<f64> = -150.0..=0.0;
    /// Decibels that deviations and the margin may have.
    pub const DECIBELS: RangeInclusive<f64> = 0.0..=30.0;

    /// Checks all numbers.
    ///
    /// # Errors
    /// The first one out of its range.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        check("radio.exponent", self.exponent, Self::EXPONENTS, "1 to 8")?;
        check("radio.fading", self.fading, Self::DECIBELS, "decibels, 0 to 30")?;
        check("radio.noise", self.noise, Self::NOISES, "-150 to 0 dBm")?;
        check("radio.margin", self.margin, Self::DECIBELS, "decibels, 0 to 30")?;
        let Some(Shadowing { deviation, distance, time }) = self.shadowing else { return Ok(()) };
        check("radio.shadowing", deviation, Self::DECIBELS, "decibels, 0 to 30")?;
        check("radio.shadowing.distance", distance, Shadowing::DISTANCES, "0.1 to 10000 metres")?;
        match time {
            Some(time) if time < Shadowing::SHORTEST => {
                Err(invalid("radio.shadowing.time", time, "at least 10 ms"))
            }
            _ => Ok(()),
        }
    }

    /// Decibels that are lost over `distance` metres on `channel`, without shadows.
    pub fn loss(&self, channel: Channel, distance: f64) -> f64 {
        let wavelength = SPEED_OF_LIGHT / channel.frequency();
        let at_one_metre = 20.0 * libm::log10(4.0 * std::f64::consts::PI / wavelength);
        at_one_metre + 10.0 * self.exponent * libm::log10(distance.max(1.0))
    }
}

impl Shadowing {
    /// Metres over which shadows may change.
    pub const DISTANCES: RangeInclusive<f64> = 0.1..=10_000.0;
    /// The shortest time in which they may change.
    pub const SHORTEST: Duration = Duration::from_millis(10);
}

pub(crate) fn check(
    field: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
    expected: &'static str,
) -> Result<(), InvalidConfig> {
    if range.contains(&value) { Ok(()) } else { Err(invalid(field, value, expected)) }
}

/// The shadow between two places, step by step along the way.
///
/// A step is a tenth of what the correlation takes to fall to 1/e. The values are those of a
/// first-order autoregression, one draw per step, so that they depend on how far one has come alone.
#[derive(Debug)]
pub(crate) struct Shadow {
    config: Shadowing,
    step: u64,
    decibels: f64,
    random: Box<Random>,
}

/// Steps to a fall of the correlation to 1/e.
const STEPS: f64 = 10.0;

impl Shadow {
    pub(crate) fn new(config: Shadowing, seed: Seed) -> Self {
        let mut random = Box::new(seed.stream("radio.shadow", 0));
        let decibels = config.deviation * normal(|| random.next_u64());
        Shadow { config, step: 0, decibels, random }
    }

    /// Decibels to be added to a signal when the station has gone `gone` metres at `time` from the
    /// start. Neither goes back.
    pub(crate) fn at(&mut self, gone: f64, time: Duration) -> f64 {
        let by_time =
            self.config.time.map_or(0.0, |shadow| time.as_secs_f64() / shadow.as_secs_f64());
        let step = ((gone / self.config.distance + by_time) * STEPS) as u64;
        let kept = libm::exp(-1.0 / STEPS);
        let fresh = (1.0 - kept * kept).sqrt() * self.config.deviation;
        while self.step < step {
            self.step += 1;
            self.decibels = kept * self.decibels + fresh * normal(|| self.random.next_u64());
        }
        self.decibels
    }

    /// Steps taken so far.
    #[cfg(test)]
    fn steps(&self) -> u64 {
        self.step
    }
}

/// A number of the standard normal distribution from two of 64 bits (Box and Muller, 1958).
pub(crate) fn normal(mut next: impl FnMut() -> u64) -> f64 {
    const SCALE: f64 = (1u64 << 53) as f64;
    // Above zero, so that the logarithm is finite.
    let first = ((next() >> 11) as f64 + 1.0) / SCALE;
    let second = (next() >> 11) as f64 / SCALE;
    (-2.0 * libm::log(first)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(number: u8) -> Channel {
        Channel::new(number).unwrap()
    }

    #[test]
    fn the_loss_at_one_metre_is_that_of_free_space() {
        let loss = PathLoss::default();
        // 20 log10(4 pi 5.18e9 / c) = 46.73 dB; channel 40 has 5.2 GHz.
        assert!((loss.loss(channel(36), 1.0) - 46.734).abs() < 0.001);
        assert!((loss.loss(channel(40), 1.0) - 46.768).abs() < 0.001);
        assert!((loss.loss(channel(36), 10.0) - 76.734).abs() < 0.001);
        assert_eq!(loss.loss(channel(36), 0.0), loss.loss(channel(36), 1.0));
        let free = PathLoss { exponent: 2.0, ..loss };
        assert!((free.loss(channel(36), 100.0) - 86.734).abs() < 0.001);
        assert_eq!(Channel::new(38), None);
        assert!(Channel::NUMBERS.is_sorted());
    }

    #[test]
    fn shadows_have_their_deviation_and_fall_apart_over_their_distance() {
        let config = Shadowing { deviation: 6.0, distance: 20.0, time: None };
        let mut shadow = Shadow::new(config, Seed::new(5));
        // Every 2 m of 1,000 km.
        let seen: Vec<f64> =
            (0..500_000).map(|at| shadow.at(f64::from(at) * 2.0, Duration::ZERO)).collect();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        let covariance = |lag: usize| -> f64 {
            let pairs = seen.iter().zip(&seen[lag..]);
            pairs.map(|(one, other)| (one - mean) * (other - mean)).sum::<f64>() / seen.len() as f64
        };
        assert!(mean.abs() < 0.3, "{mean}");
        assert!((covariance(0).sqrt() - 6.0).abs() < 0.15, "{}", covariance(0));
        for (metres, expected) in [(10usize, 0.6065), (20, 0.3679), (40, 0.1353)] {
            let found = covariance(metres / 2) / covariance(0);
            assert!((found - expected).abs() < 0.03, "{metres} m: {found}");
        }
    }

    #[test]
    fn a_shadow_depends_on_the_way_and_not_on_how_often_one_looks() {
        let config =
            Shadowing { deviation: 6.0, distance: 5.0, time: Some(Duration::from_secs(10)) };
        let mut often = Shadow::new(config, Seed::new(5));
        for at in 0..1_000u32 {
            often.at(f64::from(at) / 10.0, Duration::from_millis(u64::from(at) * 100));
        }
        let mut once = Shadow::new(config, Seed::new(5));
        let last = Duration::from_millis(99_900);
        assert_eq!(once.at(99.9, last), often.at(99.9, last));
        // 99.9 m / 5 m and 99.9 s / 10 s, in tenths.
        assert_eq!(once.steps(), 299);
        let mut resting = Shadow::new(Shadowing { time: None, ..config }, Seed::new(5));
        assert_eq!(resting.at(0.0, Duration::ZERO), resting.at(0.0, Duration::from_secs(999)));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        let base = PathLoss::default();
        let field = |loss: PathLoss| loss.validate().unwrap_err().field;
        assert_eq!(base.validate(), Ok(()));
        assert_eq!(field(PathLoss { exponent: 0.5, ..base }), "radio.exponent");
        assert_eq!(field(PathLoss { fading: f64::NAN, ..base }), "radio.fading");
        assert_eq!(field(PathLoss { noise: 10.0, ..base }), "radio.noise");
        assert_eq!(field(PathLoss { margin: -1.0, ..base }), "radio.margin");
        let shadowing = Shadowing { deviation: 6.0, distance: 20.0, time: None };
        let with = |shadowing| PathLoss { shadowing: Some(shadowing), ..base };
        assert_eq!(field(with(Shadowing { deviation: 31.0, ..shadowing })), "radio.shadowing");
        let near = with(Shadowing { distance: 0.0, ..shadowing });
        assert_eq!(field(near), "radio.shadowing.distance");
        let time = Some(Duration::from_millis(1));
        assert_eq!(field(with(Shadowing { time, ..shadowing })), "radio.shadowing.time");
    }
}
