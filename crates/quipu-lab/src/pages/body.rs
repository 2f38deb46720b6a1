//! Bodies of responses: slices of one block of pseudo-random bytes, against which they are compared
//! as they arrive.
//!
//! No byte is made per packet: a body is a list of references into the block, from an offset of its
//! own, so that bytes of one object in the place of another's are noticed.

use std::ops::Range;
use std::sync::LazyLock;

use bytes::Bytes as Buffer;
use quipu_base::{Bytes, Seed};
use quipu_web::page::ObjectId;
use rand::Rng;
use xxhash_rust::xxh3::xxh3_64;

/// Length of the block. Bodies longer than it repeat it: prime, so that no frame or buffer begins where
/// it does, and short, so that it leaves the processor's cache to the engine.
const BLOCK: usize = 65_521;
/// Distance between the starts of neighbours: all starts differ.
const STRIDE: usize = 7_919;

/// The block that all bodies of the process are slices of.
static SHARED: LazyLock<Buffer> = LazyLock::new(|| {
    let mut block = vec![0; BLOCK];
    Seed::new(0).stream("lab.body", 0).fill_bytes(&mut block);
    Buffer::from(block)
});

/// Checks one body as it arrives.
pub(crate) struct BodyCheck {
    object: ObjectId,
    received: Bytes,
    /// Every byte so far was the body's.
    intact: bool,
}

/// Ranges of the block that make up the bytes from `from` on, `len` of them, of the body of
/// `object`.
fn ranges(object: ObjectId, from: Bytes, len: Bytes) -> impl Iterator<Item = Range<usize>> {
    let from = (from.0 % BLOCK as u64) as usize;
    let mut start = (object.index().wrapping_mul(STRIDE) % BLOCK + from) % BLOCK;
    let mut left = len.0;
    std::iter::from_fn(move || {
        let room = (BLOCK - start) as u64;
        // At most BLOCK, so it fits.
        let take = left.min(room) as usize;
        if take == 0 {
            return None;
        }
        let range = start..start + take;
        left -= take as u64;
        start = 0;
        Some(range)
    })
}

/// Bytes of the body of `object`: from `from` on, `len` of them, in parts.
pub(crate) fn body_parts(
    object: ObjectId,
    from: Bytes,
    len: Bytes,
) -> impl Iterator<Item = Buffer> {
    ranges(object, from, len).map(|range| SHARED.slice(range))
}

impl BodyCheck {
    /// Of the body of `object`.
    pub(crate) fn new(object: ObjectId) -> BodyCheck {
        BodyCheck { object, received: Bytes::ZERO, intact: true }
    }

    /// The next bytes of the body, in order.
    pub(crate) fn update(&mut self, data: &[u8]) {
        let mut rest = data;
        for range in ranges(self.object, self.received, Bytes(data.len() as u64)) {
            let (part, after) = rest.split_at(range.len());
            self.intact &= part == &SHARED[range];
            rest = after;
        }
        self.received += Bytes(data.len() as u64);
    }

    /// Bytes so far.
    pub(crate) fn received(&self) -> Bytes {
        self.received
    }

    /// True if what came is the body, which has `len` bytes.
    pub(crate) fn is_whole(&self, len: Bytes) -> bool {
        self.intact && self.received == len
    }
}

/// Hash of a whole file, as results name it.
pub(crate) fn file_hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_in_any_slices_matches_itself_alone() {
        let lengths = [0, 1, 5_000, 5_000, 3 * BLOCK as u64 + 17];
        for (index, len) in (0..).zip(lengths) {
            for other in 0..5 {
                let mut check = BodyCheck::new(ObjectId(other));
                // Of any length: body and chunks divide nothing evenly.
                for from in (0..len).step_by(700_001) {
                    let chunk = Bytes((len - from).min(700_001));
                    for part in body_parts(ObjectId(index), Bytes(from), chunk) {
                        part.chunks(1_333).for_each(|slice| check.update(slice));
                    }
                }
                assert_eq!(check.received(), Bytes(len));
                assert_eq!(check.is_whole(Bytes(len)), other == index || len == 0);
                assert!(!check.is_whole(Bytes(len + 1)));
            }
        }
    }

    #[test]
    fn one_wrong_byte_is_noticed() {
        let mut sent = Vec::new();
        body_parts(ObjectId(7), Bytes::ZERO, Bytes(3_000))
            .for_each(|part| sent.extend_from_slice(&part));
        for wrong in [0, 1_499, 2_999] {
            let mut came = sent.clone();
            came[wrong] ^= 1;
            let mut check = BodyCheck::new(ObjectId(7));
            came.chunks(1_000).for_each(|slice| check.update(slice));
            assert!(!check.is_whole(Bytes(3_000)), "{wrong}");
        }
    }
}
