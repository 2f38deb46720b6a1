use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

fn pipe(delay_ms: u64, bytes_per_sec: u64) -> Pipe {
    Pipe::new(Duration::from_millis(delay_ms), Rate::from_bytes_per_sec(bytes_per_sec))
}

fn bytes(shares: &[Bytes]) -> Vec<u64> {
    shares.iter().map(|share| share.0).collect()
}

/// 375 and 875 kB/s, 20 and 100 ms.
fn two() -> [Pipe; 2] {
    [pipe(20, 375_000), pipe(100, 875_000)]
}

#[test]
fn both_paths_end_together() {
    let (shares, level) = fill(Bytes(100_000), &two());
    assert_eq!(bytes(&shares), [51_000, 49_000]);
    assert_eq!(level, Duration::from_millis(156));
}

#[test]
fn a_path_that_would_end_later_gets_nothing() {
    let (shares, level) = fill(Bytes(20_000), &two());
    assert_eq!(bytes(&shares), [20_000, 0]);
    // 20 ms and 53.3 ms, rounded up to a nanosecond.
    assert_eq!(level, Duration::from_nanos(73_333_334));
}

#[test]
fn the_rest_goes_to_the_path_that_ends_first() {
    // 3 1/3 bytes each, and all end together: the lowest index.
    let equal = [pipe(0, 1_000); 3];
    assert_eq!(bytes(&fill(Bytes(10), &equal).0), [4, 3, 3]);
    assert_eq!(bytes(&fill(Bytes(11), &equal).0), [5, 3, 3]);
    // Level 1.8 ms: 1.8 and 3.2 bytes; rounded down they end at 1 and 1.7 ms.
    let unequal =
        [pipe(0, 1_000), Pipe::new(Duration::from_micros(200), Rate::from_bytes_per_sec(2_000))];
    assert_eq!(bytes(&fill(Bytes(5), &unequal).0), [2, 3]);
}

#[test]
fn nothing_and_no_pipes_split_into_nothing() {
    assert_eq!(bytes(&fill(Bytes(5), &[]).0), Vec::<u64>::new());
    assert_eq!(bytes(&fill(Bytes::ZERO, &two()).0), [0, 0]);
    assert_eq!(best_single(Bytes(5), &[]), None);
}

#[test]
fn values_beyond_all_bounds_stay_within_128_bits() {
    let huge = Pipe::new(Duration::MAX, Rate::from_bits_per_sec(u64::MAX));
    let slow = Pipe::new(Duration::MAX, Rate::ZERO);
    let fast = Pipe::new(Duration::ZERO, Rate::from_bits_per_sec(u64::MAX));
    for pipes in [vec![huge; 32], vec![slow; 32], vec![fast, huge, slow], vec![fast; 32]] {
        let (shares, _) = fill(Bytes::MAX, &pipes);
        assert_eq!(shares.iter().map(|share| share.0).sum::<u64>(), MAX_SIZE);
        let (shares, _) = clamp(Bytes::MAX, &pipes, &mut |_| 0);
        assert_eq!(shares.iter().map(|share| share.0).sum::<u64>(), MAX_SIZE);
        assert!(best_single(Bytes::MAX, &pipes).is_some());
    }
}

#[test]
fn the_papers_cut_takes_what_is_too_much_from_paths_in_use() {
    // The level of all three, 2.736 s, gives 1,363 bytes to each of the first two; 1,726 too many.
    let pipes = [pipe(10, 500), pipe(10, 500), pipe(20_000, 100)];
    assert_eq!(bytes(&clamp(Bytes(1_000), &pipes, &mut |_| 0).0), [0, 1_000, 0]);
    assert_eq!(bytes(&clamp(Bytes(1_000), &pipes, &mut |count| count - 1).0), [1_000, 0, 0]);
    assert_eq!(bytes(&fill(Bytes(1_000), &pipes).0), [500, 500, 0]);
}

#[test]
fn the_papers_cut_is_the_optimum_where_nothing_is_cut() {
    let (shares, level) = clamp(Bytes(100_000), &two(), &mut |_| 1);
    assert_eq!(bytes(&shares), [51_000, 49_000]);
    assert_eq!(level, Duration::from_millis(156));
}

fn pipes() -> impl Strategy<Value = Vec<Pipe>> {
    let any = (0..300 * MS, 8_000..8_000_000u64).prop_map(|(delay, bits)| {
        Pipe::new(Duration::from_nanos(delay), Rate::from_bits_per_sec(bits))
    });
    prop::collection::vec(any, 1..6)
}

/// The end of a split in nanoseconds.
fn end(shares: &[Bytes], pipes: &[Pipe]) -> f64 {
    let ends =
        shares.iter().zip(pipes).filter(|(share, _)| !share.is_zero()).map(|(share, pipe)| {
            let (numerator, denominator) = pipe.exact_end(share.0);
            numerator as f64 / denominator as f64
        });
    ends.fold(0.0, f64::max)
}

/// The least level over all sets of pipes: a set's level is an end that can be reached if no pipe of
/// it begins later.
fn least_level(size: u64, pipes: &[Pipe]) -> f64 {
    let mut least = f64::INFINITY;
    for set in 1u32..1 << pipes.len() {
        let members = || pipes.iter().enumerate().filter(|(index, _)| set >> index & 1 == 1);
        let rate: f64 = members().map(|(_, pipe)| pipe.bits() as f64).sum();
        let head: f64 =
            members().map(|(_, pipe)| pipe.bits() as f64 * pipe.delay.as_nanos() as f64).sum();
        let level = (size as f64 * BYTE as f64 + head) / rate;
        if members().all(|(_, pipe)| pipe.delay.as_nanos() as f64 <= level) {
            least = least.min(level);
        }
    }
    least
}

/// The earliest end of any split of a few bytes.
fn least_end(size: u64, pipes: &[Pipe], shares: &mut Vec<Bytes>) -> f64 {
    if shares.len() + 1 == pipes.len() {
        shares.push(Bytes(size));
        let end = end(shares, pipes);
        shares.pop();
        return end;
    }
    let mut least = f64::INFINITY;
    for here in 0..=size {
        shares.push(Bytes(here));
        least = least.min(least_end(size - here, pipes, shares));
        shares.pop();
    }
    least
}

proptest! {
    #[test]
    fn the_level_is_the_least_over_all_sets_of_paths(size in 1..10_000_000u64, pipes in pipes()) {
        let (shares, level) = fill(Bytes(size), &pipes);
        let least = least_level(size, &pipes);
        prop_assert!((level.as_nanos() as f64 - least).abs() <= least * 1e-9 + 1.0);
        prop_assert_eq!(shares.iter().map(|share| share.0).sum::<u64>(), size);
        // Rounding moves less than a byte per path.
        let slowest = pipes.iter().map(|pipe| pipe.bits()).min().unwrap_or(1);
        let rounding = pipes.len() as f64 * BYTE as f64 / slowest as f64;
        prop_assert!(end(&shares, &pipes) <= least + rounding);
    }

    #[test]
    fn no_split_of_a_few_bytes_ends_much_earlier(size in 1..24u64, pipes in pipes()) {
        let pipes = &pipes[..pipes.len().min(3)];
        let (shares, level) = fill(Bytes(size), pipes);
        let least = least_end(size, pipes, &mut Vec::new());
        prop_assert!(level.as_nanos() as f64 <= least + 1.0, "the level is a lower bound");
        let slowest = pipes.iter().map(|pipe| pipe.bits()).min().unwrap_or(1);
        let rounding = pipes.len() as f64 * BYTE as f64 / slowest as f64;
        prop_assert!(end(&shares, pipes) <= least + rounding);
    }

    #[test]
    fn the_papers_cut_splits_all_and_never_ends_earlier(
        size in 1..10_000_000u64,
        pipes in pipes(),
        draws in prop::collection::vec(0..8usize, 8),
    ) {
        let mut next = draws.iter().cycle();
        let (shares, _) = clamp(Bytes(size), &pipes, &mut |_| *next.next().unwrap_or(&0));
        prop_assert_eq!(shares.iter().map(|share| share.0).sum::<u64>(), size);
        prop_assert!(end(&shares, &pipes) >= least_level(size, &pipes) * (1.0 - 1e-9));
    }

    #[test]
    fn one_path_for_all_is_the_one_that_ends_first(size in 1..10_000u64, pipes in pipes()) {
        let best = best_single(Bytes(size), &pipes).unwrap_or(usize::MAX);
        let ends: Vec<Duration> = pipes.iter().map(|pipe| pipe.end(Bytes(size))).collect();
        prop_assert!(ends.iter().all(|&end| ends[best] <= end + Duration::from_nanos(1)));
    }
}
