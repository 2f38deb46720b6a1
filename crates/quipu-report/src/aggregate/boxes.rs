//! The numbers of a box plot.

use quipu_record::stats::five_numbers;

/// What a box and its whiskers are drawn from, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoxNumbers {
    /// How many values there are.
    pub count: usize,
    /// The least value.
    pub least: f64,
    /// End of the lower whisker: the least value at most 1.5 times the box below the box.
    pub low: f64,
    /// What a quarter of the values does not exceed.
    pub lower_quartile: f64,
    /// The middle value.
    pub median: f64,
    /// What three quarters of the values do not exceed.
    pub upper_quartile: f64,
    /// End of the upper whisker.
    pub high: f64,
    /// The largest value.
    pub most: f64,
}

/// The box of `values`, with whiskers as Tukey has them ("Exploratory Data Analysis", 1977). `None`
/// of nothing.
pub fn boxed(values: &[u64]) -> Option<BoxNumbers> {
    let five = five_numbers(values)?;
    let (lower, upper) = (five.lower_quartile as f64, five.upper_quartile as f64);
    let reach = 1.5 * (upper - lower);
    let inside = values.iter().map(|value| *value as f64);
    let inside = inside.filter(|value| *value >= lower - reach && *value <= upper + reach);
    // The middle half is always inside, if only by its ends.
    let (low, high) = inside.fold((lower, upper), |(low, high), value| {
        (if value < low { value } else { low }, if value > high { value } else { high })
    });
    Some(BoxNumbers {
        count: values.len(),
        least: five.least as f64,
        low,
        lower_quartile: lower,
        median: five.median as f64,
        upper_quartile: upper,
        high,
        most: five.most as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_far_away_is_beyond_the_whisker() {
        let numbers = boxed(&[10, 11, 12, 13, 14, 100]).unwrap();
        assert_eq!((numbers.low, numbers.high, numbers.most), (10.0, 14.0, 100.0));
        assert_eq!(numbers.count, 6);
        assert_eq!(boxed(&[]), None);
    }

    proptest! {
        /// Against counting: a quarter and a half of all values lie where they should.
        #[test]
        fn quartiles_split_the_values(values in prop::collection::vec(0_u64..10_000, 1..300)) {
            let numbers = boxed(&values).unwrap();
            let below = |limit: f64| values.iter().filter(|v| (**v as f64) < limit).count();
            let above = |limit: f64| values.iter().filter(|v| (**v as f64) > limit + 1.0).count();
            let all = values.len();
            // Between two values there may be one value more on a side.
            prop_assert!(below(numbers.lower_quartile) * 4 <= all + 3);
            prop_assert!(below(numbers.median) * 2 <= all && above(numbers.median) * 2 <= all);
            prop_assert!(above(numbers.upper_quartile) * 4 <= all + 3);
            let order = [
                numbers.least, numbers.low, numbers.lower_quartile, numbers.median,
                numbers.upper_quartile, numbers.high, numbers.most,
            ];
            prop_assert!(order.windows(2).all(|pair| pair[0] <= pair[1]), "{order:?}");
        }
    }
}
