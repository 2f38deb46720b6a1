//! Making connection IDs.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-5.1>

use crate::config::ConfigError;
use crate::random::{NoRandomness, Randomness};
use crate::wire::ConnectionId;

/// The shortest connection IDs that an endpoint may issue, in bytes. Our choice: shorter ones would
/// collide, and with none a connection could have one path only.
pub const MIN_LENGTH: usize = 4;

/// Makes the connection IDs of an endpoint. Those of one connection, on all its paths, come from the
/// same generator.
pub trait ConnectionIdGenerator: Send + Sync {
    /// The length in bytes of each, [`MIN_LENGTH`] to [`ConnectionId::MAX_LENGTH`]; always the same,
    /// since a short header does not tell it.
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.2
    //# An endpoint that uses this design MUST either use the same connection ID length for all
    //# connections or encode the length of the connection ID such that it can be recovered without
    //# state.
    fn length(&self) -> usize;

    /// Makes one. It must be so random that whoever knows others cannot guess it, and so that it is
    /// not tied to a connection.
    ///
    /// # Errors
    /// [`NoRandomness`] if `random` fails.
    fn generate(&self, random: &mut dyn Randomness) -> Result<ConnectionId, NoRandomness>;

    /// True if `cid` may come from this generator rather than from that of another endpoint behind
    /// the same address.
    fn is_own(&self, cid: &ConnectionId) -> bool;
}

/// Random connection IDs, whose first byte may name the shard that reads them.
///
/// Several endpoints can share an address, each with a thread and a socket of its own, if the host
/// picks the socket of a datagram by its connection ID. The first byte of each connection ID modulo
/// the number of shards is the shard's index: one byte at a fixed place, which a packet filter can
/// read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomIds {
    length: usize,
    /// The endpoint's index, and the number of shards.
    shard: Option<(u8, u16)>,
}

/// Eight bytes without a shard: as unique as random numbers need to be.
impl Default for RandomIds {
    fn default() -> Self {
        RandomIds { length: 8, shard: None }
    }
}

impl RandomIds {
    /// Connection IDs of `length` bytes, 4 to 20.
    ///
    /// # Errors
    /// [`ConfigError`] for any other length.
    pub fn new(length: usize) -> Result<Self, ConfigError> {
        check_length(length)?;
        Ok(RandomIds { length, shard: None })
    }

    /// The same for shard `index`, counted from 0, of `count`, which is 1 to 256.
    ///
    /// # Errors
    /// [`ConfigError`] if there are no or too many shards, or none of that index.
    pub fn for_shard(self, index: u8, count: u16) -> Result<Self, ConfigError> {
        if !(1..=256).contains(&count) {
            return Err(wrong("shard count", count.into(), "1 to 256"));
        }
        if u16::from(index) >= count {
            return Err(wrong("shard index", index.into(), "below the number of shards"));
        }
        Ok(RandomIds { shard: Some((index, count)), ..self })
    }

    /// The shard whose connection ID that is: the own one, or another of as many; `None` if there are no
    /// shards, or if connection IDs of another length are issued.
    pub fn shard_of(&self, cid: &ConnectionId) -> Option<u8> {
        let (_, count) = self.shard.filter(|_| cid.length() == self.length)?;
        // Below `count`, which is 256 at most.
        Some((u16::from(*cid.as_bytes().first()?) % count) as u8)
    }
}

fn wrong(field: &'static str, value: usize, expected: &'static str) -> ConfigError {
    ConfigError { field, value: value.to_string(), expected }
}

/// # Errors
/// If connection IDs may not have that length.
pub(crate) fn check_length(length: usize) -> Result<(), ConfigError> {
    if (MIN_LENGTH..=ConnectionId::MAX_LENGTH).contains(&length) {
        return Ok(());
    }
    Err(wrong("connection ID length", length, "4 to 20 bytes"))
}

impl ConnectionIdGenerator for RandomIds {
    fn length(&self) -> usize {
        self.length
    }

    fn generate(&self, random: &mut dyn Randomness) -> Result<ConnectionId, NoRandomness> {
        let mut bytes = [0; ConnectionId::MAX_LENGTH];
        let bytes = bytes.get_mut(..self.length).unwrap_or_default();
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1
        //# Connection IDs MUST NOT contain any information that can be used by an external observer
        //# (that is, one that does not cooperate with the issuer) to correlate them with other
        //# connection IDs for the same connection.
        // All connections of an endpoint share its shard; all else is random.
        random.fill(bytes)?;
        if let (Some((index, count)), Some(first)) = (self.shard, bytes.first_mut()) {
            let (index, count) = (u16::from(index), count);
            // As many bytes leave this remainder.
            let choices = (256 - index).div_ceil(count);
            let chosen = ((u32::from(*first) * u32::from(choices)) >> 8) as u16;
            // At most 255.
            *first = (index + count * chosen) as u8;
        }
        Ok(ConnectionId::new(bytes).unwrap_or_default())
    }

    fn is_own(&self, cid: &ConnectionId) -> bool {
        let of_shard = |(index, _): (u8, u16)| self.shard_of(cid) == Some(index);
        cid.length() == self.length && self.shard.is_none_or(of_shard)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use quipu_base::Seed;

    use super::*;
    use crate::random::Seeded;

    #[test]
    fn every_byte_that_leaves_the_remainder_and_no_other_begins_a_shards_ids() {
        let mut random = Seeded(Seed::new(1).stream("ids", 0));
        for count in [1, 2, 3, 7, 100, 255, 256] {
            for index in [0, (count - 1) / 2, count - 1] {
                let ids = RandomIds::new(4).unwrap().for_shard(index as u8, count).unwrap();
                let firsts: BTreeSet<u8> = (0..4000)
                    .map(|_| {
                        let cid = ids.generate(&mut random).unwrap();
                        assert!(ids.is_own(&cid));
                        cid.as_bytes()[0]
                    })
                    .collect();
                let expected: BTreeSet<u8> =
                    (0..=255).filter(|byte| u16::from(*byte) % count == index).collect();
                assert_eq!(firsts, expected, "shard {index} of {count}");
            }
        }
    }

    #[test]
    fn another_length_or_shard_is_not_its_own() {
        let ids = RandomIds::new(6).unwrap().for_shard(1, 4).unwrap();
        let cid = |bytes: &[u8]| ConnectionId::new(bytes).unwrap();
        assert!(ids.is_own(&cid(&[5, 0, 0, 0, 0, 0])));
        assert!(!ids.is_own(&cid(&[6, 0, 0, 0, 0, 0])));
        assert!(!ids.is_own(&cid(&[5, 0, 0, 0, 0])));
        assert!(!ids.is_own(&ConnectionId::EMPTY));
        assert_eq!(ids.shard_of(&cid(&[5, 0, 0, 0, 0, 0])), Some(1));
        assert_eq!(ids.shard_of(&cid(&[6, 0, 0, 0, 0, 0])), Some(2));
        assert_eq!(ids.shard_of(&cid(&[5, 0, 0, 0, 0])), None);
        assert_eq!(RandomIds::new(6).unwrap().shard_of(&cid(&[5, 0, 0, 0, 0, 0])), None);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for length in [0, 3, 21] {
            assert!(RandomIds::new(length).is_err());
        }
        for (index, count) in [(0, 0), (2, 2), (0, 257)] {
            assert!(RandomIds::default().for_shard(index, count).is_err());
        }
        assert_eq!(RandomIds::new(8), Ok(RandomIds::default()));
    }
}
