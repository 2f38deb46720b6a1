//! The one definition of quantiles: type 7 of Hyndman and Fan, "Sample Quantiles in Statistical
//! Packages", 1996. The quantile `p` of n sorted values lies at position (n − 1)·p, from 0; between two
//! values by linear interpolation.

/// A part of all values, in thousandths, at most 1,000.
type PerMille = u16;

const MEDIAN: PerMille = 500;
const P95: PerMille = 950;

/// What sorted values are looked up by: how many there are, and the value at a position.
fn at<T>(
    count: u64,
    per_mille: PerMille,
    value: impl Fn(u64) -> Option<T>,
    between: impl FnOnce(T, T, u64) -> T,
) -> Option<T> {
    let place = u128::from(count.checked_sub(1)?) * u128::from(per_mille.min(1_000));
    // At most the last position, and below a thousand.
    let (index, rest) = ((place / 1_000) as u64, (place % 1_000) as u64);
    let below = value(index)?;
    match rest {
        0 => Some(below),
        rest => Some(between(below, value(index + 1)?, rest)),
    }
}

/// Whole numbers are rounded down: half a nanosecond is nothing.
fn between_whole(below: u64, above: u64, rest: u64) -> u64 {
    let step = u128::from(above.saturating_sub(below)) * u128::from(rest) / 1_000;
    // Less than the whole step, so it fits.
    below + step as u64
}

/// The quantile of `sorted` whole numbers at `per_mille` thousandths, rounded down. `None` of nothing.
pub fn quantile(sorted: &[u64], per_mille: u16) -> Option<u64> {
    let value = |index| sorted.get(usize::try_from(index).ok()?).copied();
    at(sorted.len() as u64, per_mille, value, between_whole)
}

/// The quantile of `sorted` numbers at `per_mille` thousandths. `None` of nothing.
pub fn quantile_of_numbers(sorted: &[f64], per_mille: u16) -> Option<f64> {
    let value = |index| sorted.get(usize::try_from(index).ok()?).copied();
    let between = |below: f64, above: f64, rest| below + (above - below) * (rest as f64 / 1_000.0);
    at(sorted.len() as u64, per_mille, value, between)
}

/// The quantile of `count` values of which `value` tells the one at a position from 0, in rising order:
/// for those that are counted instead of kept. `None` of nothing.
pub fn quantile_of_counted(
    count: u64,
    per_mille: u16,
    value: impl Fn(u64) -> Option<u64>,
) -> Option<u64> {
    at(count, per_mille, value, between_whole)
}

/// The middle value; the mean of the two middle ones, rounded down, if their number is even. `None` of
/// nothing.
pub fn median(values: &[u64]) -> Option<u64> {
    quantile(&sorted(values), MEDIAN)
}

/// The same of any numbers.
pub fn median_of_numbers(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile_of_numbers(&sorted, MEDIAN)
}

/// The 95th percentile, rounded down. `None` of nothing.
pub fn p95(values: &[u64]) -> Option<u64> {
    quantile(&sorted(values), P95)
}

/// What a box plot is drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveNumbers {
    /// The least value.
    pub least: u64,
    /// What a quarter of the values does not exceed.
    pub lower_quartile: u64,
    /// The middle value.
    pub median: u64,
    /// What three quarters of the values do not exceed.
    pub upper_quartile: u64,
    /// The largest value.
    pub most: u64,
}

/// Least and largest value, median and quartiles, rounded down. `None` of nothing.
pub fn five_numbers(values: &[u64]) -> Option<FiveNumbers> {
    let sorted = sorted(values);
    let at = |per_mille| quantile(&sorted, per_mille);
    Some(FiveNumbers {
        least: at(0)?,
        lower_quartile: at(250)?,
        median: at(MEDIAN)?,
        upper_quartile: at(750)?,
        most: at(1_000)?,
    })
}

fn sorted(values: &[u64]) -> Vec<u64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn medians_and_percentiles_of_small_sets() {
        assert_eq!(median(&[]), None);
        assert_eq!(p95(&[]), None);
        assert_eq!(median(&[5]), Some(5));
        assert_eq!(p95(&[5]), Some(5));
        assert_eq!(median(&[9, 1, 5]), Some(5));
        assert_eq!(median(&[4, 1, 8, 2]), Some(3));
        // At 0.95 of 99 steps, and of 29.
        let thousands = |count: u64| (1..=count).map(|value| value * 1_000).collect::<Vec<_>>();
        assert_eq!(p95(&thousands(100)), Some(95_050));
        assert_eq!(p95(&thousands(30)), Some(28_550));
        assert_eq!(median(&[u64::MAX, u64::MAX]), Some(u64::MAX));
        assert_eq!(median_of_numbers(&[4.0, 1.0, 8.0, 2.0]), Some(3.0));
        assert_eq!(median_of_numbers(&[]), None);
    }

    #[test]
    fn quartiles_lie_between_values_where_none_is_at_their_place() {
        assert_eq!(five_numbers(&[]), None);
        let of = |values: &[u64]| {
            let five = five_numbers(values).unwrap();
            let FiveNumbers { least, lower_quartile, median, upper_quartile, most } = five;
            [least, lower_quartile, median, upper_quartile, most]
        };
        assert_eq!(of(&[7]), [7; 5]);
        assert_eq!(of(&[50, 10, 40, 20, 30]), [10, 20, 30, 40, 50]);
        // At 0.75, 1.5 and 2.25 of the way from the first to the fourth.
        assert_eq!(of(&[100, 200, 300, 400]), [100, 175, 250, 325, 400]);
        assert_eq!(
            of(&[0, u64::MAX]),
            [0, u64::MAX / 4, u64::MAX / 2, u64::MAX / 4 * 3 + 2, u64::MAX]
        );
    }

    proptest! {
        /// All forms agree, quantiles rise, and each lies between the values beside its place.
        #[test]
        fn every_form_has_the_same_definition(
            mut values in prop::collection::vec(0_u64..1 << 40, 1..60),
            per_mille in 0_u16..=1_000,
        ) {
            values.sort_unstable();
            let whole = quantile(&values, per_mille).unwrap();
            let numbers: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            let number = quantile_of_numbers(&numbers, per_mille).unwrap();
            prop_assert!((number - whole as f64).abs() <= 1.0, "{number} and {whole}");
            let counted = quantile_of_counted(values.len() as u64, per_mille, |index| {
                values.get(index as usize).copied()
            });
            prop_assert_eq!(counted, Some(whole));
            let place = (values.len() - 1) * usize::from(per_mille) / 1_000;
            prop_assert!(values[place] <= whole);
            prop_assert!(whole <= values[(place + 1).min(values.len() - 1)]);
            prop_assert!(quantile(&values, per_mille.saturating_sub(100)) <= Some(whole));
        }
    }
}
