//! Blocks of received bytes, and the list of idle ones that a connection keeps.

/// Bytes of a block.
pub(crate) const BLOCK: u64 = 4096;
const LEN: usize = BLOCK as usize;
const WORDS: usize = LEN / 64;

/// Idle blocks kept at most: 4 MiB (our choice; more goes back to the allocator).
const MAX_IDLE: usize = 1024;

/// A stretch of `BLOCK` bytes of a stream, with a bit for each byte that came ahead of its turn.
///
/// A bitmap instead of a list of ranges: however a peer cuts its data, a block costs the same
/// memory and a frame costs its length.
#[derive(Debug)]
pub(crate) struct Block {
    data: [u8; LEN],
    filled: [u64; WORDS],
    marked: bool,
}

impl Block {
    /// Copies `data` to `at` (below `BLOCK`), as much as fits.
    pub(crate) fn put(&mut self, at: usize, data: &[u8]) {
        let end = (at + data.len()).min(LEN);
        if let Some(place) = self.data.get_mut(at..end) {
            place.copy_from_slice(&data[..place.len()]);
        }
    }

    /// The bytes `start..end`.
    pub(crate) fn bytes(&self, start: usize, end: usize) -> &[u8] {
        self.data.get(start..end.min(LEN)).unwrap_or_default()
    }

    /// Marks `start..end` as there.
    pub(crate) fn mark(&mut self, start: usize, end: usize) {
        self.marked = true;
        let end = end.min(LEN);
        let mut at = start;
        while at < end {
            let bit = at % 64;
            let count = (64 - bit).min(end - at);
            self.filled[at / 64] |= (u64::MAX >> (64 - count)) << bit;
            at += count;
        }
    }

    /// The end of the marked bytes from `at` on; `at` if it is not marked.
    pub(crate) fn marked_end(&self, mut at: usize) -> usize {
        while at < LEN {
            let bit = at % 64;
            let run = (!(self.filled[at / 64] >> bit)).trailing_zeros() as usize;
            at += run.min(64 - bit);
            if run < 64 - bit {
                break;
            }
        }
        at
    }
}

/// The idle blocks of a connection.
#[derive(Debug, Default)]
pub struct BlockPool {
    idle: Vec<Box<Block>>,
}

impl BlockPool {
    /// A pool without blocks.
    pub const fn new() -> Self {
        BlockPool { idle: Vec::new() }
    }

    pub(crate) fn take(&mut self) -> Box<Block> {
        self.idle.pop().unwrap_or_else(|| {
            Box::new(Block { data: [0; LEN], filled: [0; WORDS], marked: false })
        })
    }

    pub(crate) fn give(&mut self, mut block: Box<Block>) {
        if self.idle.len() < MAX_IDLE {
            if block.marked {
                block.filled = [0; WORDS];
                block.marked = false;
            }
            self.idle.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_end_where_the_first_gap_is() {
        let mut block = BlockPool::new().take();
        block.mark(3, 130);
        block.mark(200, LEN);
        assert_eq!(block.marked_end(0), 0);
        assert_eq!(block.marked_end(3), 130);
        assert_eq!(block.marked_end(64), 130);
        assert_eq!(block.marked_end(200), LEN);
        block.mark(130, 200);
        block.mark(0, 3);
        assert_eq!(block.marked_end(0), LEN);
    }

    #[test]
    fn a_block_comes_back_without_marks() {
        let mut pool = BlockPool::new();
        let mut block = pool.take();
        block.mark(0, 100);
        pool.give(block);
        assert_eq!(pool.take().marked_end(0), 0);
    }
}
