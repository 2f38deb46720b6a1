//! What connections carry: bytes that differ everywhere, the same at both ends.

use quipu_base::Seed;
use rand_core::Rng;

/// Bytes of the table that all transfers are pieces of.
const TABLE: usize = 1 << 20;

/// The longest piece.
pub(crate) const LONGEST: usize = TABLE / 2;

/// The bytes of all transfers.
pub(crate) struct Noise(Vec<u8>);

impl Noise {
    pub(crate) fn new(seed: Seed) -> Self {
        let mut table = vec![0; TABLE];
        seed.stream("noise", 0).fill_bytes(&mut table);
        Noise(table)
    }

    /// The piece of that key; `length`: at most [`LONGEST`].
    pub(crate) fn piece(&self, key: u64, length: usize) -> &[u8] {
        let from = (key % (TABLE - LONGEST) as u64) as usize;
        &self.0[from..from + length.min(LONGEST)]
    }
}

/// A request: what follows it, what is wanted back, and from where in the table both are.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) up: usize,
    pub(crate) down: usize,
    pub(crate) key: u64,
}

impl Request {
    pub(crate) const LENGTH: usize = 24;

    pub(crate) fn to_bytes(self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        for (place, value) in
            bytes.chunks_exact_mut(8).zip([self.up as u64, self.down as u64, self.key])
        {
            place.copy_from_slice(&value.to_be_bytes());
        }
        bytes
    }

    /// `None` if a length is beyond [`LONGEST`].
    pub(crate) fn parse(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let mut values = bytes
            .chunks_exact(8)
            .map(|part| part.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)));
        let mut next = || values.next();
        let (up, down, key) = (next()?, next()?, next()?);
        let fits = up <= LONGEST as u64 && down <= LONGEST as u64;
        fits.then_some(Request { up: up as usize, down: down as usize, key })
    }

    /// The key of the answer.
    pub(crate) fn back(self) -> u64 {
        self.key.rotate_left(31) ^ 0x5bd1_e995
    }
}
