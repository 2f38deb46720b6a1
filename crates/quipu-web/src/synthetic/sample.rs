//! What the generator really yields, beside what the paper's table says.

use quipu_base::{Duration, Seed};
use serde::Serialize;

use super::{Visit, session};
use crate::page::{ObjectKind, Page, PageError};

/// One of the five quantities of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Size of a main object, bytes.
    MainSize,
    /// Main objects of a page.
    Mains,
    /// Size of an embedded object, bytes.
    EmbeddedSize,
    /// Embedded objects of a page.
    Embedded,
    /// Reading time of a page, seconds.
    Reading,
}

/// Mean, standard deviation and maximum as Table 1 gives them, measured by Pries et al. on a
/// million pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Largest value.
    pub most: f64,
}

/// Mean, standard deviation and maximum of values given one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Moments {
    /// Values.
    pub count: u64,
    /// Their mean; 0 of nothing.
    pub mean: f64,
    /// Sum of the squared distances from the mean.
    #[serde(skip)]
    squares: f64,
    /// The largest; 0 of nothing.
    pub most: f64,
    /// Mean of the natural logarithms of those that are positive; 0 of none.
    pub log_mean: f64,
    /// Sum of the squared distances of these logarithms from their mean.
    #[serde(skip)]
    log_squares: f64,
    /// Values that are positive.
    #[serde(skip)]
    positive: u64,
}

/// The five quantities of pages that were drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    moments: [Moments; 5],
}

impl Quantity {
    /// All, in the order of the table.
    pub const ALL: [Quantity; 5] = [
        Quantity::MainSize,
        Quantity::Mains,
        Quantity::EmbeddedSize,
        Quantity::Embedded,
        Quantity::Reading,
    ];

    /// What the ns-3 QUIC paper's Table 1 says of it.
    pub fn measured(self) -> Measured {
        let (mean, deviation, most) = match self {
            Quantity::MainSize => (31_561.0, 49_219.0, 8e6),
            Quantity::Mains => (1.2, 2.63, 212.0),
            Quantity::EmbeddedSize => (23_915.0, 128_079.0, 8e6),
            Quantity::Embedded => (31.93, 37.65, 1_920.0),
            Quantity::Reading => (39.7, 324.92, 1e4),
        };
        Measured { mean, deviation, most }
    }

    /// Its name in result files.
    pub fn key(self) -> &'static str {
        match self {
            Quantity::MainSize => "main_size",
            Quantity::Mains => "mains",
            Quantity::EmbeddedSize => "embedded_size",
            Quantity::Embedded => "embedded",
            Quantity::Reading => "reading",
        }
    }

    /// What it is called, with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::MainSize => "main object, B",
            Quantity::Mains => "main objects",
            Quantity::EmbeddedSize => "embedded object, B",
            Quantity::Embedded => "embedded objects",
            Quantity::Reading => "reading time, s",
        }
    }
}

impl Moments {
    /// One value more, by Welford's recurrence.
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / self.count as f64;
        self.squares += distance * (value - self.mean);
        self.most = self.most.max(value);
        if value > 0.0 {
            self.positive += 1;
            let log = libm::log(value);
            let distance = log - self.log_mean;
            self.log_mean += distance / self.positive as f64;
            self.log_squares += distance * (log - self.log_mean);
        }
    }

    /// Standard deviation of the values themselves (division by their number); 0 of nothing.
    pub fn deviation(&self) -> f64 {
        match self.count {
            0 => 0.0,
            count => libm::sqrt(self.squares / count as f64),
        }
    }

    /// Standard deviation of the natural logarithms of those that are positive; 0 of none.
    pub fn log_deviation(&self) -> f64 {
        match self.positive {
            0 => 0.0,
            count => libm::sqrt(self.log_squares / count as f64),
        }
    }
}

impl Sample {
    /// What `sessions` sessions of `pages` pages each yield, those of index 0 and on.
    ///
    /// # Errors
    /// None: every drawn page is sound.
    pub fn drawn(seed: Seed, sessions: u64, pages: u32) -> Result<Sample, PageError> {
        let mut sample = Sample::default();
        for index in 0..sessions {
            for Visit { page, reading } in session(seed, index, pages)? {
                sample.add_page(&page);
                sample.add_reading(reading);
            }
        }
        Ok(sample)
    }

    /// A page more. What is no document counts as embedded.
    pub fn add_page(&mut self, page: &Page) {
        let (mut mains, mut embedded) = (0_u32, 0_u32);
        for object in page.objects() {
            let bytes = object.response_bytes.0 as f64;
            if object.kind == ObjectKind::Document {
                mains += 1;
                self.add(Quantity::MainSize, bytes);
            } else {
                embedded += 1;
                self.add(Quantity::EmbeddedSize, bytes);
            }
        }
        self.add(Quantity::Mains, f64::from(mains));
        self.add(Quantity::Embedded, f64::from(embedded));
    }

    /// A reading time more.
    pub fn add_reading(&mut self, time: Duration) {
        self.add(Quantity::Reading, time.as_secs_f64());
    }

    /// What was drawn of `quantity`.
    pub fn of(&self, quantity: Quantity) -> &Moments {
        &self.moments[quantity as usize]
    }

    fn add(&mut self, quantity: Quantity, value: f64) {
        self.moments[quantity as usize].add(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_values() {
        let mut moments = Moments::default();
        assert_eq!((moments.mean, moments.deviation(), moments.most), (0.0, 0.0, 0.0));
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| moments.add(value));
        assert_eq!((moments.count, moments.mean, moments.most), (8, 5.0, 9.0));
        assert!((moments.deviation() - 2.0).abs() < 1e-12);
    }

    #[test]
    fn logarithms_are_of_positive_values_alone() {
        let mut moments = Moments::default();
        assert_eq!((moments.log_mean, moments.log_deviation()), (0.0, 0.0));
        [-1.0, 1.0, 3.0].into_iter().for_each(|log| moments.add(libm::exp(log)));
        moments.add(0.0);
        assert!((moments.log_mean - 1.0).abs() < 1e-12, "{}", moments.log_mean);
        let expected = libm::sqrt(8.0 / 3.0);
        assert!((moments.log_deviation() - expected).abs() < 1e-12);
    }

    /// Means and deviations of the fitted laws, rounded down and limited; see `laws`.
    #[test]
    fn a_sample_has_the_moments_of_the_fitted_laws() {
        let sample = Sample::drawn(Seed::new(7), 4_000, 1).unwrap();
        let laws = [(31_586.0, 39_030.0), (1.772, 1.436), (21_091.0, 40_707.0), (31.43, 31.92)];
        for (quantity, (mean, deviation)) in Quantity::ALL.into_iter().zip(laws) {
            let moments = sample.of(quantity);
            assert!((moments.mean / mean - 1.0).abs() < 0.04, "{quantity:?}: {moments:?}");
            let ratio = moments.deviation() / deviation;
            assert!((ratio - 1.0).abs() < 0.1, "{quantity:?}: {}", moments.deviation());
        }
        let reading = sample.of(Quantity::Reading);
        // 4,000 draws of a tail this heavy fix the mean to a third or so.
        assert!(reading.count == 4_000 && (16.0..33.0).contains(&reading.mean), "{reading:?}");
        // The law's µ and σ, four standard errors wide.
        assert!((reading.log_mean + 0.495).abs() < 0.18, "{reading:?}");
        assert!((reading.log_deviation() - 2.773).abs() < 0.13, "{}", reading.log_deviation());
    }

    #[test]
    fn every_page_of_a_session_counts() {
        let sample = Sample::drawn(Seed::new(1), 3, 5).unwrap();
        assert_eq!(sample.of(Quantity::Mains).count, 15);
        assert_eq!(sample.of(Quantity::Reading).count, 15);
        let mains = sample.of(Quantity::Mains).mean * 15.0;
        assert!((mains - sample.of(Quantity::MainSize).count as f64).abs() < 1e-9);
    }
}
