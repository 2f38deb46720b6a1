//! Places by their scores: the allowed place of greatest score.

use std::sync::Arc;

use quipu_policy::View;

use crate::choosing::Decider;
use crate::observation::{LENGTH, Observation, PLACES};

/// What gives each place a score, from the numbers of an observation.
pub trait Score: Send + Sync {
    /// A score for each place; `None` if it cannot be computed.
    fn scores(&self, numbers: &[f32; LENGTH]) -> Option<[f64; PLACES]>;
}

/// The allowed place of greatest score, of equal ones the lowest; `None` if none is allowed. A score that is no number
/// is the least of all.
pub fn greatest(scores: &[f64; PLACES], allowed: &[bool; PLACES]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (place, (score, allowed)) in scores.iter().zip(allowed).enumerate() {
        let score = if score.is_nan() { f64::NEG_INFINITY } else { *score };
        if *allowed && best.is_none_or(|(_, other)| score > other) {
            best = Some((place, score));
        }
    }
    best.map(|(place, _)| place)
}

/// Decides for the allowed place of greatest score. Connections share what scores.
pub struct Greatest<S>(pub Arc<S>);

impl<S: Score> Decider for Greatest<S> {
    fn decide(&mut self, observation: &Observation, _view: &View<'_>) -> usize {
        let scores = self.0.scores(&observation.numbers);
        // No place: the bytes take the open path of least round-trip time.
        scores.and_then(|scores| greatest(&scores, &observation.allowed)).unwrap_or(PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_of_the_greatest_allowed_scores_wins() {
        let all = [true; PLACES];
        assert_eq!(greatest(&[1.0, 3.0, 3.0, 2.0], &all), Some(1));
        assert_eq!(greatest(&[1.0, 3.0, 3.0, 2.0], &[true, false, false, true]), Some(3));
        assert_eq!(greatest(&[f64::NAN, -1e9, f64::NAN, f64::NEG_INFINITY], &all), Some(1));
        assert_eq!(greatest(&[f64::NAN; PLACES], &[false, false, true, true]), Some(2));
        assert_eq!(greatest(&[0.0; PLACES], &[false; PLACES]), None);
    }
}
