//! Bodies of responses: slices of one block of pseudo-random bytes, and hashes to check them by.
//!
//! No byte is made per packet: a body is a list of references into the block, from an offset of its
//! own, so that bytes of one object in the place of another's are noticed.

use std::sync::{Arc, LazyLock};

use bytes::Bytes as Buffer;
use quipu_base::{Bytes, Seed};
use quipu_web::page::{ObjectId, Page};
use rand::Rng;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Length of the block. Bodies longer than it repeat it.
const BLOCK: usize = 1 << 20;
/// Distance between the starts of neighbours: odd, so that all starts differ.
const STRIDE: usize = 7_919;

/// The block that all bodies of the process are slices of.
static SHARED: LazyLock<Buffer> = LazyLock::new(|| {
    let mut block = vec![0; BLOCK];
    Seed::new(0).stream("lab.body", 0).fill_bytes(&mut block);
    Buffer::from(block)
});

/// The bodies of one page.
#[derive(Clone, Debug)]
pub struct Bodies {
    hashes: Arc<[u64]>,
}

/// Checks one body as it arrives.
pub(crate) struct BodyCheck {
    hash: Xxh3,
    received: u64,
}

/// Parts of the block that make up the bytes from `from` on, `len` of them, of the body of the
/// object at `index`.
fn parts(index: usize, from: Bytes, len: Bytes) -> impl Iterator<Item = Buffer> {
    let from = (from.0 % BLOCK as u64) as usize;
    let mut start = (index.wrapping_mul(STRIDE) % BLOCK + from) % BLOCK;
    let mut left = len.0;
    std::iter::from_fn(move || {
        let room = (BLOCK - start) as u64;
        // At most BLOCK, so it fits.
        let take = left.min(room) as usize;
        if take == 0 {
            return None;
        }
        let part = SHARED.slice(start..start + take);
        left -= take as u64;
        start = 0;
        Some(part)
    })
}

impl Bodies {
    /// The bodies of `page`.
    pub(crate) fn new(page: &Page) -> Bodies {
        let hash = |(index, len): (usize, Bytes)| {
            let mut hash = Xxh3::new();
            parts(index, Bytes::ZERO, len).for_each(|part| hash.update(&part));
            hash.digest()
        };
        let lengths = page.objects().iter().map(|object| object.response_bytes);
        Bodies { hashes: lengths.enumerate().map(hash).collect() }
    }

    /// Bytes of the body of `object`: from `from` on, `len` of them, in parts.
    pub(crate) fn slice(object: ObjectId, from: Bytes, len: Bytes) -> impl Iterator<Item = Buffer> {
        parts(object.index(), from, len)
    }

    /// True if what `check` has seen is the body of `object`.
    pub(crate) fn matches(&self, object: ObjectId, check: &BodyCheck) -> bool {
        self.hashes.get(object.index()) == Some(&check.hash.digest())
    }
}

impl BodyCheck {
    pub(crate) fn new() -> BodyCheck {
        BodyCheck { hash: Xxh3::new(), received: 0 }
    }

    /// The next bytes of the body, in order.
    pub(crate) fn update(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.received += data.len() as u64;
    }

    /// Bytes so far.
    pub(crate) fn received(&self) -> Bytes {
        Bytes(self.received)
    }
}

/// Hash of a whole file, as results name it.
pub(crate) fn file_hash(bytes: &[u8]) -> String {
    format!("{:016x}", xxh3_64(bytes))
}

#[cfg(test)]
mod tests {
    use quipu_web::page::{Object, ObjectKind};

    use super::*;

    fn page(lengths: &[u64]) -> Page {
        let object = |(id, len): (u32, &u64)| {
            let url = format!("https://a.test/{id}");
            Object::new(ObjectId(id), url, ObjectKind::Image, Bytes(*len))
        };
        Page::new("p", (0..).zip(lengths).map(object).collect()).unwrap()
    }

    #[test]
    fn a_body_in_any_slices_matches_itself_alone() {
        let lengths = [0, 1, 5_000, 5_000, 3 * BLOCK as u64 + 17];
        let bodies = Bodies::new(&page(&lengths));
        for (index, len) in (0..).zip(lengths) {
            let mut check = BodyCheck::new();
            // Of any length: body and chunks divide nothing evenly.
            for from in (0..len).step_by(700_001) {
                let chunk = Bytes((len - from).min(700_001));
                for part in Bodies::slice(ObjectId(index), Bytes(from), chunk) {
                    part.chunks(1_333).for_each(|slice| check.update(slice));
                }
            }
            assert_eq!(check.received(), Bytes(len));
            for other in 0..5 {
                assert_eq!(bodies.matches(ObjectId(other), &check), other == index);
            }
        }
    }
}
