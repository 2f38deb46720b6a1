//! A hash of parts and of where each ends.

use xxhash_rust::xxh3::Xxh3;

/// Collects parts.
#[derive(Default)]
pub(crate) struct Hash(Xxh3);

impl Hash {
    /// Adds a part.
    pub(crate) fn add(&mut self, part: impl AsRef<[u8]>) {
        let part = part.as_ref();
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Of all parts (XXH3, 128 bits).
    pub(crate) fn end(&self) -> u128 {
        self.0.digest128()
    }
}
