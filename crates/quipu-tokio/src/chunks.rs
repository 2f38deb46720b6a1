//! Copies of what users write, in buffers that are used again.
//!
//! Data of a bulk transfer would otherwise be allocated and freed at the rate at which it is sent, and
//! allocators give such memory back to the kernel, which clears each page that it hands out again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Bytes of one copy, at most. Our choice: it is made while the endpoint is held, and lasts some
/// microseconds.
pub(crate) const MAX_COPY: usize = 64 << 10;

/// Shorter ones are allocated as long as they are.
const LEAST_SHARED: usize = MAX_COPY / 2;

/// Buffers that an endpoint keeps for other copies, at most. Our choice: 4 MiB, what one stream may have unsent
/// and three times that on the way.
const MAX_SPARES: usize = 64;

/// Buffers of an endpoint, each with room for [`MAX_COPY`] bytes.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Last in, first out: what was used last is still in the processor's cache.
    spares: Mutex<Vec<Vec<u8>>>,
}

impl Chunks {
    /// A copy of `data`, which is no longer than [`MAX_COPY`].
    pub(crate) fn copy(self: &Arc<Self>, data: &[u8]) -> Bytes {
        if data.len() < LEAST_SHARED {
            return Bytes::copy_from_slice(data);
        }
        let spare = self.spares().pop();
        let mut bytes = spare.unwrap_or_else(|| Vec::with_capacity(MAX_COPY));
        bytes.extend_from_slice(data);
        Bytes::from_owner(Chunk { bytes, home: Arc::clone(self) })
    }

    fn spares(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A copy, whose buffer goes home when the last one that reads it is gone.
struct Chunk {
    bytes: Vec<u8>,
    home: Arc<Chunks>,
}

impl AsRef<[u8]> for Chunk {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let mut spares = self.home.spares();
        if spares.len() < MAX_SPARES {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            spares.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_long_copies_are_used_again_once_nobody_reads_them() {
        let chunks = Arc::new(Chunks::default());
        let first = chunks.copy(&[1; MAX_COPY]);
        let part = first.slice(5..9);
        let place = first.as_ptr();
        drop(first);
        let second = chunks.copy(&[2; LEAST_SHARED]);
        assert_ne!(second.as_ptr(), place);
        assert_eq!(part, [1; 4][..]);
        drop(part);
        let third = chunks.copy(&[3; LEAST_SHARED + 1]);
        assert_eq!(third.as_ptr(), place);
        assert_eq!(third, [3; LEAST_SHARED + 1][..]);
    }

    #[test]
    fn short_copies_take_no_more_than_they_need_and_few_buffers_are_kept() {
        let chunks = Arc::new(Chunks::default());
        drop(chunks.copy(&[1; LEAST_SHARED - 1]));
        assert_eq!(chunks.spares().len(), 0);
        let many: Vec<Bytes> = (0..2 * MAX_SPARES).map(|_| chunks.copy(&[1; MAX_COPY])).collect();
        drop(many);
        assert_eq!(chunks.spares().len(), MAX_SPARES);
        assert!(chunks.spares().iter().all(|spare| spare.capacity() == MAX_COPY));
    }
}
