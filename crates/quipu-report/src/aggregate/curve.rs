//! Empirical distribution functions as few points.

use super::samples::Samples;

/// The points of a distribution function: each value with the part of the samples that do not exceed
/// it, from the least to 1. A point `(value, 0)` at the least value comes first, so that the curve
/// begins on the axis.
///
/// All values are there if they are at most `most`, else the quantiles at `most` equal distances.
pub fn curve(samples: &Samples, most: usize) -> Vec<(u64, f64)> {
    let counted = samples.counted();
    let total = samples.count() as f64;
    let Some(&(least, _)) = counted.first() else { return Vec::new() };
    let mut points = vec![(least, 0.0)];
    let all = counted.len() <= most.max(2);
    let steps = most.max(2) as u128;
    // Of many values those are kept that are the first to reach a further step.
    let (mut seen, mut reached) = (0, 0);
    for (value, count) in counted {
        seen += count;
        let step = u128::from(seen) * steps / u128::from(samples.count());
        if all || step > reached {
            points.push((value, seen as f64 / total));
            reached = step;
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn all_values_of_few_samples_are_points() {
        let points = curve(&[30, 10, 10, 20].into_iter().collect(), 200);
        assert_eq!(points, [(10, 0.0), (10, 0.5), (20, 0.75), (30, 1.0)]);
        assert!(curve(&Samples::default(), 200).is_empty());
    }

    proptest! {
        /// Against the definition: the part of the samples that are not above the value.
        #[test]
        fn every_point_is_true_and_none_is_far_from_the_next(
            values in prop::collection::vec(0_u64..1_000_000, 1..2_000),
            most in 2_usize..300,
        ) {
            let points = curve(&values.iter().copied().collect(), most);
            prop_assert!(points.len() <= most + 2, "{} of {most}", points.len());
            prop_assert_eq!(points[0].1, 0.0);
            prop_assert_eq!(points.last().map(|point| point.1), Some(1.0));
            prop_assert_eq!(points.last().map(|point| point.0), values.iter().copied().max());
            for &(value, part) in &points[1..] {
                let below = values.iter().filter(|other| **other <= value).count();
                prop_assert!((part - below as f64 / values.len() as f64).abs() < 1e-12);
            }
            for pair in points.windows(2) {
                prop_assert!(pair[0].0 <= pair[1].0 && pair[0].1 < pair[1].1);
            }
        }
    }
}
