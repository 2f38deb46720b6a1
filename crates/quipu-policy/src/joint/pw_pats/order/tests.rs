use super::*;
use crate::stream::testing::{Driver, runs};
use proptest::prelude::*;

#[test]
fn streams_go_one_after_the_other_heaviest_first() {
    let mut driver = Driver::new(WeightedOrder::default());
    driver.open_at(0, 0, 90, 2_000);
    driver.open_at(4, 0, 256, 3_000);
    driver.open_at(8, 0, 128, 2_000);
    let order = driver.packets(7, 1_000);
    assert_eq!(runs(&order), [(4, 3), (8, 2), (0, 2)]);
}

#[test]
fn of_three_streams_one_is_high() {
    let order = WeightedOrder::default();
    assert_eq!([1, 3, 4, 6, 7, 300].map(|n| order.high_of(n)), [1, 1, 2, 2, 3, 100]);
    assert_eq!(WeightedOrder::new(0.0, 0, 0).high_of(5), 0);
    assert_eq!(WeightedOrder::new(0.5, 4, 0).high_of(5), 4);
}

#[test]
fn low_streams_of_equal_weight_take_turns() {
    let mut driver = Driver::new(WeightedOrder::new(0.0, 0, 0));
    for id in [0, 4, 8] {
        driver.open_at(id, 0, 32, 3_000);
    }
    driver.open_at(12, 0, 8, 2_000);
    assert_eq!(driver.packets(11, 1_000), [0, 4, 8, 0, 4, 8, 0, 4, 8, 12, 12]);
}

#[test]
fn low_streams_have_their_share_if_one_is_given() {
    let mut driver = Driver::new(WeightedOrder::new(0.0, 1, 3));
    driver.open_at(0, 0, 256, 100_000);
    driver.open_at(4, 0, 8, 100_000);
    driver.open_at(8, 0, 8, 100_000);
    assert_eq!(driver.packets(9, 1_000), [0, 0, 4, 0, 0, 8, 0, 0, 4]);
}

#[test]
fn plans_taken_back_are_planned_alike() {
    for share in [0, 3] {
        let mut driver = Driver::new(WeightedOrder::new(0.0, 1, share));
        for (id, weight) in [(0, 8), (4, 256), (8, 8)] {
            driver.open_at(id, 0, weight, 100_000);
        }
        let plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
        let planned: Vec<u64> = plans.iter().map(|taken| taken.stream.id.0).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(6, 1_000), planned);
    }
}

#[test]
fn a_heavier_stream_moves_what_is_planned_of_lighter_ones() {
    let mut driver = Driver::new(WeightedOrder::default());
    driver.open_at(0, 0, 90, 5_000);
    driver.take(1_000);
    let before = driver.policy.order();
    driver.open_at(4, 0, 8, 1_000);
    assert_eq!(driver.policy.order(), before);
    driver.open_at(8, 0, 128, 1_000);
    assert!(driver.policy.order() > before);
}

proptest! {
    /// With `s_min` and α, the choice is that of a sorted list: its first, or, if the low streams
    /// are due or nothing is high, one of the best class beyond the high ones.
    #[test]
    fn the_order_is_that_of_a_sort(
        streams in prop::collection::vec((1..5u16, 1..6u64), 1..12),
        alpha in prop::sample::select(vec![0.0, 1.0 / 3.0, 1.0]),
        least_high in 0..3u32,
        share in prop::sample::select(vec![0u32, 2, 3]),
    ) {
        let mut driver = Driver::new(WeightedOrder::new(alpha, least_high, share));
        let mut left: Vec<(u16, u64, u64)> = Vec::new();
        for (index, &(weight, packets)) in streams.iter().enumerate() {
            let id = 4 * index as u64;
            driver.open_at(id, 0, weight, packets * 1_000);
            left.push((u16::MAX - weight, id, packets));
        }
        let mut since_low = 0;
        while !left.is_empty() {
            left.sort_unstable();
            let third = |n: usize| n.div_ceil(3);
            let n = left.len();
            let part = if alpha == 0.0 { 0 } else if alpha == 1.0 { n } else { third(n) };
            let high = part.max(least_high as usize).min(n);
            let sent = driver.packets(1, 1_000)[0];
            let index = left.iter().position(|&(_, id, _)| id == sent).unwrap();
            let due = share > 0 && since_low + 1 >= share && high < n;
            if due || high == 0 {
                prop_assert!(index >= high);
                prop_assert_eq!(left[index].0, left[high].0);
                since_low = 0;
            } else {
                prop_assert_eq!(index, 0);
                since_low += 1;
            }
            left[index].2 -= 1;
            left.retain(|&(_, _, packets)| packets > 0);
        }
    }
}
