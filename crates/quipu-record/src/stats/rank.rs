//! Agreement of two orders of the same things.

/// Kendall's rank correlation τ_b of pairs `(in one order, in the other)`: pairs of things that both
/// orders have the same way round, less those that they have the other way round, by the geometric mean of
/// the pairs that each order tells apart. 1 for the same order, −1 for the reverse, 0 on average for
/// orders that have nothing to do with each other.
///
/// `None` if one of the orders tells nothing apart.
///
/// Source: Kendall, "The treatment of ties in ranking problems", Biometrika 33 (3), 1945.
pub fn kendall(pairs: &[(u64, u64)]) -> Option<f64> {
    let (mut same, mut reverse) = (0_u64, 0_u64);
    let (mut first, mut second) = (0_u64, 0_u64);
    for (index, one) in pairs.iter().enumerate() {
        for other in &pairs[..index] {
            let (here, there) = (one.0.cmp(&other.0), one.1.cmp(&other.1));
            first += u64::from(here.is_ne());
            second += u64::from(there.is_ne());
            if here.is_ne() && there.is_ne() {
                if here == there { same += 1 } else { reverse += 1 }
            }
        }
    }
    let apart = (first as f64 * second as f64).sqrt();
    (apart > 0.0).then(|| (same as f64 - reverse as f64) / apart)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_same_order_has_1_and_the_reverse_has_less_1() {
        assert_eq!(kendall(&[(1, 10), (2, 20), (3, 30)]), Some(1.0));
        assert_eq!(kendall(&[(1, 30), (2, 20), (3, 10)]), Some(-1.0));
    }

    #[test]
    fn one_exchange_of_neighbours_among_four_takes_a_third() {
        // Five pairs of six agree, one does not.
        let tau = kendall(&[(1, 1), (2, 3), (3, 2), (4, 4)]).unwrap();
        assert!((tau - 4.0 / 6.0).abs() < 1e-12, "{tau}");
    }

    #[test]
    fn ties_count_for_neither_side() {
        // Pairs apart: 3 and 2; both agree in 2.
        let tau = kendall(&[(1, 1), (2, 1), (3, 2)]).unwrap();
        assert!((tau - 2.0 / 6.0_f64.sqrt()).abs() < 1e-12, "{tau}");
        assert_eq!(kendall(&[(1, 1), (2, 1)]), None);
        assert_eq!(kendall(&[]), None);
    }

    proptest! {
        #[test]
        fn it_lies_between_the_extremes_and_does_not_know_which_order_is_first(
            pairs in proptest::collection::vec((0_u64..20, 0_u64..20), 0..30),
        ) {
            let swapped: Vec<(u64, u64)> = pairs.iter().map(|&(a, b)| (b, a)).collect();
            let tau = kendall(&pairs);
            prop_assert_eq!(tau, kendall(&swapped));
            if let Some(tau) = tau {
                prop_assert!((-1.0..=1.0).contains(&tau));
            }
        }
    }
}
