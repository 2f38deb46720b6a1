//! Splitting bytes over paths so that all paths end at the same time: water-filling.
//!
//! A path is a [`Pipe`]: its first byte counts after `delay`, the others follow at `rate`. `S` bytes
//! on it end at `delay + S/rate`. The split of `SIZE` bytes with the earliest end uses the paths of
//! least delay and fills each up to the same level `K`, as water fills a vessel with a stepped
//! floor: `S_j = rate_j·(K − delay_j)`, and `K = (SIZE + Σ rate_k·delay_k)/Σ rate_k` over the paths
//! used.
//!
//! All of it is computed in integers, exactly, and then rounded: see [`fill`].
//!
//! Source: the system of equations of "A Multipath QUIC Scheduler for Mobile HTTP/2" (Wang, Gao, Xu,
//! APNet 2019). Its printed closed form has a minus where the plus of `K` belongs, and `RTT_j` inside
//! the sum where `RTT_k` belongs; its code has it right. The choice of the paths used is ours: the
//! paper and its code use all of them and then cut ([`clamp`]).

use quipu_base::{Bytes, Duration, Rate};
use smallvec::SmallVec;

/// A path as a fluid model sees it.
///
/// Beyond 137 Gbit/s, five hours of delay or 32 PB to split, values count as that: so 128 bits hold
/// every product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipe {
    delay: Duration,
    rate: Rate,
}

/// Bytes by pipe, in the order of the pipes.
pub type Shares = SmallVec<[Bytes; 8]>;

const MAX_DELAY: u64 = 1 << 44;
const MAX_RATE: u64 = 1 << 37;
const MAX_SIZE: u64 = 1 << 55;
/// Nanoseconds times bits per second for one byte.
const BYTE: u128 = 8_000_000_000;

impl Pipe {
    /// A pipe whose first byte counts after `delay`, and the others at `rate`, which is at least
    /// one bit per second.
    pub fn new(delay: Duration, rate: Rate) -> Self {
        Pipe {
            delay: Duration::from_nanos(delay.as_nanos().min(MAX_DELAY)),
            rate: Rate::from_bits_per_sec(rate.bits_per_sec().clamp(1, MAX_RATE)),
        }
    }

    /// When the first byte counts.
    pub const fn delay(self) -> Duration {
        self.delay
    }

    /// How fast the others follow.
    pub const fn rate(self) -> Rate {
        self.rate
    }

    /// When the last of `bytes` counts, rounded up.
    pub fn end(self, bytes: Bytes) -> Duration {
        self.delay + self.rate.time_for(bytes)
    }

    /// The same pipe with `wait` before it.
    #[must_use]
    pub fn behind(self, wait: Duration) -> Self {
        Pipe::new(self.delay + wait, self.rate)
    }

    /// The pipe with the share of its rate that is due to `weight` beside `others`; at least one bit
    /// per second.
    #[must_use]
    pub fn shared(self, weight: u64, others: u64) -> Self {
        let part = u128::from(self.bits()) * u128::from(weight);
        let share = part / (u128::from(weight) + u128::from(others)).max(1);
        Pipe::new(self.delay, Rate::from_bits_per_sec(share as u64))
    }

    const fn bits(self) -> u64 {
        self.rate.bits_per_sec()
    }

    /// When the last of `bytes` counts, as a fraction: (numerator, denominator).
    fn exact_end(self, bytes: u64) -> (u128, u128) {
        let rate = u128::from(self.bits());
        (u128::from(self.delay.as_nanos()) * rate + u128::from(bytes) * BYTE, rate)
    }
}

/// The common end `K` as an exact fraction, in nanoseconds.
#[derive(Clone, Copy)]
struct Level {
    numerator: u128,
    /// Sum of rates, in bits per second.
    rates: u128,
}

impl Level {
    fn of(size: u64) -> Self {
        Level { numerator: u128::from(size) * BYTE, rates: 0 }
    }

    fn add(&mut self, pipe: Pipe) {
        self.numerator += u128::from(pipe.bits()) * u128::from(pipe.delay.as_nanos());
        self.rates += u128::from(pipe.bits());
    }

    /// `K − delay` times the sum of rates; zero if the pipe's first byte comes later than that.
    fn above(self, pipe: Pipe) -> u128 {
        self.numerator.saturating_sub(u128::from(pipe.delay.as_nanos()) * self.rates)
    }

    /// `rate·(K − delay)`, rounded down to bytes.
    fn share(self, pipe: Pipe) -> u64 {
        let bytes = u128::from(pipe.bits()) * self.above(pipe) / (self.rates.max(1) * BYTE);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn time(self) -> Duration {
        let nanos = self.numerator.div_ceil(self.rates.max(1));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Splits `size` bytes over `pipes` so that the last of them counts as early as can be. Returns the
/// bytes by pipe, which sum up to `size` (up to 32 PB), and the level `K`, rounded up; zero and no
/// bytes without pipes.
///
/// Shares are rounded down to bytes; what that leaves, less than a byte per pipe, goes to the pipe
/// in use that would be the first to end, of equal ones that of lower index. O(P log P).
pub fn fill(size: Bytes, pipes: &[Pipe]) -> (Shares, Duration) {
    let size = size.0.min(MAX_SIZE);
    let mut shares: Shares = SmallVec::from_elem(Bytes::ZERO, pipes.len());
    let mut order: SmallVec<[usize; 8]> = (0..pipes.len()).collect();
    order.sort_unstable_by_key(|&index| (pipes[index].delay, index));
    let mut level = Level::of(size);
    let mut used = 0;
    for &index in &order {
        if used > 0 && level.above(pipes[index]) == 0 {
            break;
        }
        level.add(pipes[index]);
        used += 1;
    }
    let used = &order[..used];
    let mut left = size;
    for &index in used {
        shares[index] = Bytes(level.share(pipes[index]));
        left = left.saturating_sub(shares[index].0);
    }
    if let Some(first) = first_to_end(used.iter().copied(), pipes, |index| shares[index].0) {
        shares[first] += Bytes(left);
    }
    (shares, if pipes.is_empty() { Duration::ZERO } else { level.time() })
}

/// The split as the paper describes it: the level of all pipes together; shares below zero become
/// zero, and what the others then have too much is taken from one of them, which `draw` picks: told
/// how many there are, it names one. If that one has less than what is too much, another is drawn.
/// Where rounding left bytes over, that one gets them. Not optimal.
pub fn clamp(
    size: Bytes,
    pipes: &[Pipe],
    draw: &mut dyn FnMut(usize) -> usize,
) -> (Shares, Duration) {
    let size = size.0.min(MAX_SIZE);
    let mut level = Level::of(size);
    for &pipe in pipes {
        level.add(pipe);
    }
    let mut shares: Shares = pipes.iter().map(|&pipe| Bytes(level.share(pipe))).collect();
    let sum: u64 = shares.iter().map(|share| share.0).sum();
    let mut excess = sum.saturating_sub(size);
    let mut missing = size.saturating_sub(sum);
    while excess > 0 || missing > 0 {
        let above_zero = shares.iter().filter(|share| !share.is_zero()).count();
        // All are zero if there is less than a byte for each.
        let count = if above_zero > 0 { above_zero } else { shares.len() };
        if count == 0 {
            break;
        }
        let mut nth = draw(count).min(count - 1);
        for share in &mut shares {
            if above_zero > 0 && share.is_zero() {
                continue;
            }
            if nth == 0 {
                let taken = share.0.min(excess);
                *share = Bytes(share.0 - taken + missing);
                excess -= taken;
                missing = 0;
                break;
            }
            nth -= 1;
        }
    }
    (shares, if pipes.is_empty() { Duration::ZERO } else { level.time() })
}

/// The pipe on which all of `size` ends first; of equal ones that of lower index.
pub fn best_single(size: Bytes, pipes: &[Pipe]) -> Option<usize> {
    let size = size.0.min(MAX_SIZE);
    first_to_end(0..pipes.len(), pipes, |_| size)
}

/// Of some pipes with their bytes, the one that ends first; of equal ones that of lower index.
fn first_to_end(
    indices: impl Iterator<Item = usize>,
    pipes: &[Pipe],
    bytes: impl Fn(usize) -> u64,
) -> Option<usize> {
    let mut first: Option<(usize, (u128, u128))> = None;
    for index in indices {
        let end = pipes[index].exact_end(bytes(index));
        let earlier = first.is_none_or(|(other, least)| {
            let (this, that) = (end.0 * least.1, least.0 * end.1);
            this < that || (this == that && index < other)
        });
        if earlier {
            first = Some((index, end));
        }
    }
    first.map(|(index, _)| index)
}

#[cfg(test)]
mod tests;
