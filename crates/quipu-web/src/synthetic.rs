//! Made-up pages with the statistics of real ones.
//!
//! The model is that of Pries, Magyari and Tran-Gia, "An HTTP Web Traffic Model Based on the Top
//! One Million Visited Web Pages" (NGI 2012), with the fitted distributions that the ns-3 QUIC
//! paper (Paro et al., 2020) lists in its Table 1. The fits miss some of the measured means: the
//! fitted number of main objects has mean 1.77 after rounding down, not 1.2, and the fitted
//! embedded objects 21.1 kB, not 23.9 kB.

use quipu_base::{Bytes, Random, Seed};
use rand_core::Rng;

use crate::page::{Discovery, Object, ObjectId, ObjectKind, Page, PageError};

/// Scale of the size of a main object, Weibull, bytes.
const MAIN_SCALE: f64 = 28_242.8;
/// Shape of the size of a main object, Weibull.
const MAIN_SHAPE: f64 = 0.814_944;
/// Mean of the logarithm of the number of main objects.
const MAINS_MU: f64 = 0.473_844;
/// Standard deviation of the logarithm of the number of main objects.
const MAINS_SIGMA: f64 = 0.688_471;
/// Mean of the logarithm of the size of an embedded object, bytes.
const EMBEDDED_MU: f64 = 9.179_79;
/// Standard deviation of the logarithm of the size of an embedded object.
const EMBEDDED_SIGMA: f64 = 1.246_46;
/// Rate of the exponential number of embedded objects.
const EMBEDDED_RATE: f64 = 0.031_32;
/// Largest size of any object, bytes.
const MAX_BYTES: f64 = 8e6;
/// Most main objects of a page.
const MAX_MAINS: f64 = 212.0;
/// Most embedded objects of a page.
const MAX_EMBEDDED: f64 = 1_920.0;

/// The `index`-th random page of `seed`: documents first, then images as embedded objects, which
/// the first document's parser finds, spread evenly. Values are drawn, rounded down and limited to
/// between 1 (embedded objects: 0) and the largest of the paper's table.
///
/// The same seed and index give the same page on every machine.
///
/// # Errors
/// None: every drawn page is sound.
pub fn pries(seed: Seed, index: u64) -> Result<Page, PageError> {
    let mut random = seed.stream("synthetic.pries", index);
    let mains = limited(log_normal(&mut random, MAINS_MU, MAINS_SIGMA), 1.0, MAX_MAINS);
    let embedded = limited(exponential(&mut random) / EMBEDDED_RATE, 0.0, MAX_EMBEDDED);
    let mut objects: Vec<Object> = Vec::new();
    let count = mains + embedded;
    let first_bytes = main_size(&mut random);
    for position in 0..count {
        let is_main = position < mains;
        let bytes = match position {
            0 => first_bytes,
            _ if is_main => main_size(&mut random),
            _ => {
                let size = log_normal(&mut random, EMBEDDED_MU, EMBEDDED_SIGMA);
                Bytes(limited(size, 1.0, MAX_BYTES))
            }
        };
        let (kind, name) = match is_main {
            true => (ObjectKind::Document, "main"),
            false => (ObjectKind::Image, "embedded"),
        };
        // Few enough for 32 bits: the numbers are limited above.
        let id = ObjectId(u32::try_from(position).unwrap_or(u32::MAX));
        let url = format!("https://pries-{index}.test/{name}-{position}");
        let discovery = match position {
            0 => Discovery::Root,
            _ => Discovery::ParserOffset {
                parent: ObjectId(0),
                offset: Bytes(first_bytes.0 * position / count),
            },
        };
        objects.push(Object::new(id, url, kind, bytes).discovered(discovery));
    }
    Page::new(format!("pries-{index}"), objects)
}

fn main_size(random: &mut Random) -> Bytes {
    let size = MAIN_SCALE * libm::pow(exponential(random), 1.0 / MAIN_SHAPE);
    Bytes(limited(size, 1.0, MAX_BYTES))
}

/// `value` rounded down, from `least` to `most`.
fn limited(value: f64, least: f64, most: f64) -> u64 {
    // Not negative and small: the cast only drops the fraction.
    value.clamp(least, most) as u64
}

/// Uniform in the open interval from 0 to 1.
fn uniform(random: &mut Random) -> f64 {
    ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// Exponential with mean 1.
fn exponential(random: &mut Random) -> f64 {
    -libm::log(uniform(random))
}

/// Log-normal, by the method of Box and Muller; the second value of the pair is not used, so that
/// each draw takes the same from the stream.
fn log_normal(random: &mut Random, mu: f64, sigma: f64) -> f64 {
    let radius = libm::sqrt(2.0 * exponential(random));
    let angle = core::f64::consts::TAU * uniform(random);
    libm::exp(mu + sigma * radius * libm::cos(angle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_repeat_and_differ_by_index() {
        let page = |index| pries(Seed::new(1), index).unwrap();
        assert_eq!(page(3), page(3));
        assert_ne!(page(3).body_bytes(), page(4).body_bytes());
    }

    /// Means of the fitted laws: 1.77 main objects of 31.6 kB, 31.4 embedded ones (rounded down)
    /// of 21.1 kB.
    #[test]
    fn sample_means_are_those_of_the_fitted_laws() {
        let (mut mains, mut main_bytes, mut embedded, mut embedded_bytes) = (0.0, 0.0, 0.0, 0.0);
        let pages = 4_000_u32;
        for index in 0..pages {
            for object in pries(Seed::new(7), u64::from(index)).unwrap().objects() {
                let bytes = object.response_bytes.0 as f64;
                match object.kind {
                    ObjectKind::Document => (mains, main_bytes) = (mains + 1.0, main_bytes + bytes),
                    _ => (embedded, embedded_bytes) = (embedded + 1.0, embedded_bytes + bytes),
                }
            }
        }
        let near = |mean: f64, expected: f64| {
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} is not near {expected}");
        };
        near(mains / f64::from(pages), 1.77);
        near(main_bytes / mains, 31_600.0);
        near(embedded / f64::from(pages), 31.4);
        near(embedded_bytes / embedded, 21_100.0);
    }
}
