//! Stateless resets: whose a token is that ends a datagram, and what tells a peer that we know no
//! connection of its.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-10.3>

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

use quipu_base::{Duration, Instant};

use super::slab::ConnectionHandle;
use crate::random::{NoRandomness, Randomness};
use crate::wire::ResetToken;

/// The shortest stateless reset, in bytes.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3>
pub(super) const MIN_LENGTH: usize = 21;
/// The longest that we send: as long as a short packet of a connection. Our choice.
const MAX_LENGTH: usize = 43;

/// Reset tokens of peers by a hash with a key of its own: how long a look-up takes tells nobody
/// anything about a token.
pub(super) struct PeerTokens {
    key: RandomState,
    tokens: BTreeSet<(u64, ConnectionHandle)>,
}

impl PeerTokens {
    pub(super) fn new() -> Self {
        PeerTokens { key: RandomState::new(), tokens: BTreeSet::new() }
    }

    fn hash(&self, token: &ResetToken) -> u64 {
        self.key.hash_one(token.as_bytes())
    }

    pub(super) fn insert(&mut self, token: &ResetToken, handle: ConnectionHandle) {
        self.tokens.insert((self.hash(token), handle));
    }

    pub(super) fn remove(&mut self, token: &ResetToken, handle: ConnectionHandle) {
        self.tokens.remove(&(self.hash(token), handle));
    }

    /// The connections that may be meant, hardly ever more than one.
    pub(super) fn candidates(&self, token: &ResetToken) -> impl Iterator<Item = ConnectionHandle> {
        let hash = self.hash(token);
        let range = (hash, ConnectionHandle::FIRST)..=(hash, ConnectionHandle::LAST);
        self.tokens.range(range).map(|(_, handle)| *handle)
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

/// A limit on what is sent in a time: so much a second, and a tenth of that at once.
#[derive(Debug)]
pub(super) struct Rate {
    per_second: u32,
    /// How long the limit has yet to wait until all is allowed again, when it was last looked at.
    debt: Duration,
    looked_at: Instant,
}

impl Rate {
    /// As many in a second; zero: none.
    pub(super) fn new(per_second: u32) -> Self {
        Rate { per_second, debt: Duration::ZERO, looked_at: Instant::ZERO }
    }

    /// True if one more may go now, which then counts.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.per_second == 0 {
            return false;
        }
        let each = Duration::from_secs(1).divided_by(u64::from(self.per_second));
        let most = each.saturating_mul(u64::from(self.per_second.div_ceil(10)));
        self.debt = self.debt.saturating_sub(now.saturating_since(self.looked_at));
        self.looked_at = self.looked_at.max(now);
        let allowed = self.debt + each <= most;
        if allowed {
            self.debt += each;
        }
        allowed
    }
}

/// The stateless reset that answers a datagram of `trigger` bytes; `None` for one too short.
pub(super) fn stateless_reset(
    trigger: usize,
    token: &ResetToken,
    random: &mut dyn Randomness,
) -> Result<Option<Vec<u8>>, NoRandomness> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.3
    //# An endpoint MUST ensure that every Stateless Reset that it sends is smaller than the packet
    //# that triggered it, unless it maintains state sufficient to prevent looping.
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# An endpoint MUST NOT send a Stateless Reset that is three times or more larger than the
    //# packet it receives to avoid being used for amplification.
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# An endpoint that sends a Stateless Reset in response to a packet that is 43 bytes or shorter
    //# SHOULD send a Stateless Reset that is one byte shorter than the packet it responds to.
    let length = trigger.saturating_sub(1).min(MAX_LENGTH);
    if length < MIN_LENGTH {
        return Ok(None);
    }
    let mut datagram = vec![0; length];
    let (head, tail) = datagram.split_at_mut(length - ResetToken::LENGTH);
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# The remainder of the first byte and an arbitrary number of bytes following it are set to
    //# values that SHOULD be indistinguishable from random.
    random.fill(head)?;
    if let Some(first) = head.first_mut() {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
        //# Endpoints MUST send Stateless Resets formatted as a packet with a short header.
        *first = *first & 0x3f | 0x40;
    }
    tail.copy_from_slice(token.as_bytes());
    Ok(Some(datagram))
}

#[cfg(test)]
mod tests {
    use quipu_base::Seed;

    use super::*;
    use crate::random::Seeded;

    #[test]
    fn a_reset_is_shorter_than_its_trigger_and_looks_like_a_short_packet() {
        let mut random = Seeded(Seed::new(1).stream("resets", 0));
        let token = ResetToken::new([9; 16]);
        for trigger in 0..1500 {
            let reset = stateless_reset(trigger, &token, &mut random).unwrap();
            let Some(reset) = reset else {
                assert!(trigger < 22, "{trigger}");
                continue;
            };
            assert!(reset.len() < trigger && (21..=43).contains(&reset.len()), "{trigger}");
            assert_eq!(reset[0] & 0xc0, 0x40);
            assert!(reset.ends_with(&[9; 16]));
        }
        let lone = |random: &mut Seeded| stateless_reset(1200, &token, random).unwrap();
        assert_ne!(lone(&mut random), lone(&mut random), "all but the token is random");
    }

    #[test]
    fn two_ends_that_reset_each_other_come_to_an_end() {
        let mut random = Seeded(Seed::new(1).stream("resets", 0));
        let mut length = 1200;
        let mut sent = 0;
        while let Some(reset) =
            stateless_reset(length, &ResetToken::new([1; 16]), &mut random).unwrap()
        {
            length = reset.len();
            sent += 1;
        }
        assert!(sent <= 23, "{sent}");
    }

    #[test]
    fn a_rate_lets_through_what_it_says() {
        let second = |seconds: u64| Instant::ZERO + Duration::from_secs(seconds);
        let mut rate = Rate::new(100);
        let at_once = (0..1_000).filter(|_| rate.take(second(50))).count();
        assert_eq!(at_once, 10);
        let mut taken = 0;
        for millis in 0..10_000 {
            taken += usize::from(rate.take(second(50) + Duration::from_millis(millis)));
        }
        assert!((990..=1_000).contains(&taken), "{taken}");
        // A clock that goes back lets nothing more through.
        assert!(!rate.take(second(1)));
        assert!(!Rate::new(0).take(second(1)));
        assert!(Rate::new(1).take(second(1)));
    }

    #[test]
    fn a_token_is_found_until_it_is_removed() {
        let mut slab = super::super::slab::Slab::new();
        let [a, b] = [slab.insert(()).unwrap(), slab.insert(()).unwrap()];
        let (one, two) = (ResetToken::new([1; 16]), ResetToken::new([2; 16]));
        let mut tokens = PeerTokens::new();
        tokens.insert(&one, a);
        tokens.insert(&one, b);
        tokens.insert(&two, b);
        assert_eq!(tokens.candidates(&one).collect::<Vec<_>>(), [a, b]);
        tokens.remove(&one, a);
        assert_eq!(tokens.candidates(&one).collect::<Vec<_>>(), [b]);
        assert_eq!(tokens.candidates(&two).collect::<Vec<_>>(), [b]);
        assert_eq!(tokens.candidates(&ResetToken::new([3; 16])).count(), 0);
    }
}
