//! Tokens that were used.

use quipu_base::Duration;

/// Bits that a token sets; our choice: with 16 bits of room for each token, one of 400 tokens is taken
/// for a used one.
const BITS: u64 = 4;

/// Remembers which tokens were used, in bounded memory: two Bloom filters, one for the tokens of the
/// present period and one for those of the period before. A period is as long as tokens are valid, so
/// that none outlives its filter.
///
/// A filter never forgets: no token is taken twice. When it fills up, ever more tokens that were not
/// used are taken for used ones, and their clients prove their addresses in another way.
#[derive(Debug)]
pub(super) struct UsedTokens {
    /// Bytes of each filter; zero: nothing is remembered.
    size: usize,
    period: Duration,
    /// Number of the present period since the Unix epoch.
    current: u64,
    /// Of this period and the one before; empty until something is remembered.
    filters: [Vec<u8>; 2],
}

impl UsedTokens {
    /// `size`: bytes of each filter. `lifetime`: of the tokens.
    pub(super) fn new(size: usize, lifetime: Duration) -> Self {
        UsedTokens { size, period: lifetime, current: 0, filters: Default::default() }
    }

    /// True if that token was used, or may have been. `id` is random, and its own.
    pub(super) fn contains(&mut self, unix_time: Duration, id: &[u8; 16]) -> bool {
        self.turn_over(unix_time);
        let places: [_; BITS as usize] = self.places(id);
        self.filters.iter().any(|filter| {
            places.iter().all(|&(byte, bit)| filter.get(byte).is_some_and(|byte| byte & bit != 0))
        })
    }

    /// The token was used, which was made at `made_at`.
    pub(super) fn insert(&mut self, unix_time: Duration, made_at: Duration, id: &[u8; 16]) {
        self.turn_over(unix_time);
        if self.size == 0 {
            return;
        }
        let places = self.places(id);
        let before = self.number(made_at) < self.current;
        let [present, past] = &mut self.filters;
        let filter = if before { past } else { present };
        filter.resize(self.size, 0);
        for (byte, bit) in places {
            if let Some(byte) = filter.get_mut(byte) {
                *byte |= bit;
            }
        }
    }

    fn number(&self, unix_time: Duration) -> u64 {
        unix_time.as_nanos() / self.period.as_nanos().max(1)
    }

    /// Forgets tokens that are not valid any more.
    fn turn_over(&mut self, unix_time: Duration) {
        let number = self.number(unix_time);
        if number <= self.current {
            return;
        }
        let [present, past] = &mut self.filters;
        std::mem::swap(present, past);
        present.fill(0);
        if number > self.current + 1 {
            past.fill(0);
        }
        self.current = number;
    }

    /// The bits of a token: byte and mask. Double hashing, for which the random ID is the hash.
    fn places(&self, id: &[u8; 16]) -> [(usize, u8); BITS as usize] {
        let [start, step] = [0, 8].map(|at| {
            let half = id.get(at..at + 8).and_then(<[u8]>::first_chunk::<8>);
            half.map_or(0, |half| u64::from_le_bytes(*half))
        });
        let bits = (self.size as u64 * 8).max(1);
        std::array::from_fn(|nth| {
            let bit = start.wrapping_add(step.wrapping_mul(nth as u64)) % bits;
            ((bit / 8) as usize, 1 << (bit % 8))
        })
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;
    use rand_core::Rng;

    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn ids(count: usize) -> Vec<[u8; 16]> {
        let mut random = Seed::new(1).stream("ids", 0);
        (0..count)
            .map(|_| {
                let mut id = [0; 16];
                random.fill_bytes(&mut id);
                id
            })
            .collect()
    }

    #[test]
    fn no_token_is_taken_twice_and_few_are_mistaken() {
        let mut used = UsedTokens::new(8 << 10, DAY);
        let ids = ids(8_192);
        let (first, second) = ids.split_at(4_096);
        for id in first {
            used.insert(DAY, DAY, id);
        }
        assert!(first.iter().all(|id| used.contains(DAY, id)));
        let mistaken = second.iter().filter(|id| used.contains(DAY, id)).count();
        assert!(mistaken < 40, "{mistaken} of {}", second.len());
    }

    #[test]
    fn a_token_is_remembered_for_as_long_as_it_is_valid() {
        let noon = |day: u64| DAY.saturating_mul(2 * day + 1).divided_by(2);
        for age in [Duration::ZERO, DAY.divided_by(2), DAY] {
            let mut used = UsedTokens::new(1 << 10, DAY);
            let made_at = noon(10);
            let used_at = made_at + age;
            let [id, ..] = ids(1)[..] else { return };
            used.insert(used_at, made_at, &id);
            let last = made_at + DAY;
            assert!(used.contains(last.max(used_at), &id), "{age}");
        }
        let mut used = UsedTokens::new(1 << 10, DAY);
        let [id, ..] = ids(1)[..] else { return };
        used.insert(noon(10), noon(10), &id);
        assert!(!used.contains(noon(13), &id), "nobody asks any more");
        // The clock goes back: what is known stays known.
        used.insert(noon(13), noon(13), &id);
        assert!(used.contains(noon(1), &id));
    }

    #[test]
    fn without_memory_nothing_is_remembered() {
        let mut used = UsedTokens::new(0, DAY);
        used.insert(DAY, DAY, &[1; 16]);
        assert!(!used.contains(DAY, &[1; 16]));
    }
}
