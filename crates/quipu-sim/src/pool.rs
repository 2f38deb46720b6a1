//! Datagram buffers of one size that are used again and again, by the next world of a thread too.

use std::cell::RefCell;

/// Bytes of buffers that a thread keeps between one world and the next, at most; our choice.
const MOST_KEPT: usize = 4 << 20;

thread_local! {
    /// Buffers of worlds that ended. Their content is never seen: what is sent was written before.
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// All datagrams on their way, in buffers of one size.
#[derive(Debug)]
pub(crate) struct DatagramPool {
    size: usize,
    datagrams: Vec<Datagram>,
    /// Last in, first out: the buffer used last is still in the processor's cache.
    free: Vec<SlotId>,
}

/// A buffer of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct Datagram {
    buffer: Box<[u8]>,
    len: usize,
    /// Index of the route that it takes.
    pub(crate) route: u32,
    /// Position on the route of the link to which it was offered last, from zero.
    pub(crate) hop: u16,
    pub(crate) ecn: u8,
}

impl DatagramPool {
    /// A pool of buffers of `size` bytes, made when they are needed.
    pub(crate) fn new(size: usize) -> Self {
        DatagramPool { size, datagrams: Vec::new(), free: Vec::new() }
    }

    /// The size of each buffer.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A buffer with any content.
    #[inline]
    pub(crate) fn take(&mut self) -> SlotId {
        match self.free.pop() {
            Some(slot) => slot,
            None => self.grow(),
        }
    }

    /// Gives a buffer back.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: SlotId) {
        self.free.push(slot);
    }

    /// A buffer with the same content, length, place on its route and ECN as `slot`.
    pub(crate) fn copy(&mut self, slot: SlotId) -> SlotId {
        let copy = self.take();
        let [original, twin] = self
            .datagrams
            .get_disjoint_mut([slot.index(), copy.index()])
            .expect("a slot that is taken is not handed out again");
        twin.buffer[..original.len].copy_from_slice(&original.buffer[..original.len]);
        (twin.len, twin.ecn) = (original.len, original.ecn);
        (twin.route, twin.hop) = (original.route, original.hop);
        copy
    }

    /// The datagram in `slot`.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: SlotId) -> &mut Datagram {
        &mut self.datagrams[slot.index()]
    }

    /// Buffers made so far.
    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        self.datagrams.len()
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        let slot =
            u32::try_from(self.datagrams.len()).expect("memory ends before 2^32 datagram buffers");
        let kept = KEPT.with_borrow_mut(|kept| kept.pop_if(|buffer| buffer.len() == self.size));
        let buffer = kept.unwrap_or_else(|| vec![0; self.size].into_boxed_slice());
        self.datagrams.push(Datagram { buffer, len: 0, route: 0, hop: 0, ecn: 0 });
        SlotId(slot)
    }
}

impl Drop for DatagramPool {
    fn drop(&mut self) {
        // A thread that ends keeps nothing.
        let _ = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.last().is_some_and(|buffer| buffer.len() != self.size) {
                kept.clear();
            }
            let room = (MOST_KEPT / self.size.max(1)).saturating_sub(kept.len());
            kept.extend(self.datagrams.drain(..).take(room).map(|datagram| datagram.buffer));
        });
    }
}

impl Datagram {
    /// The whole buffer, to write into.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// Sets how much of the buffer is payload; more than the buffer holds counts as all.
    #[inline]
    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len.min(self.buffer.len());
    }

    /// The buffer, to be exchanged for another of its length, and how much of it is payload.
    #[inline]
    pub(crate) fn lend(&mut self) -> (&mut Box<[u8]>, usize) {
        (&mut self.buffer, self.len)
    }

    /// The payload.
    #[inline]
    pub(crate) fn payload(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.len]
    }
}

impl SlotId {
    const fn index(self) -> usize {
        // At least 32 bits wide on every platform that can hold a world.
        self.0 as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_given_back_is_used_again() {
        let mut pool = DatagramPool::new(100);
        let (first, second) = (pool.take(), pool.take());
        assert_ne!(first, second);
        pool.give_back(first);
        assert_eq!(pool.take(), first);
        assert_eq!(pool.made(), 2);
    }

    #[test]
    fn the_next_pool_of_a_thread_uses_the_same_buffers() {
        let address = |pool: &mut DatagramPool| {
            let slot = pool.take();
            pool.get_mut(slot).buffer().as_ptr() as usize
        };
        let first = address(&mut DatagramPool::new(1_000));
        assert_eq!(address(&mut DatagramPool::new(1_000)), first);
        // One of another size has others, and what is kept is bounded.
        let mut pool = DatagramPool::new(500);
        (0..2 * MOST_KEPT / 500).for_each(|_| _ = pool.take());
        assert_eq!(pool.get_mut(SlotId(0)).buffer().len(), 500);
        drop(pool);
        assert_eq!(KEPT.with_borrow(Vec::len), MOST_KEPT / 500);
    }

    #[test]
    fn a_copy_has_a_buffer_of_its_own() {
        let mut pool = DatagramPool::new(4);
        let original = pool.take();
        pool.get_mut(original).buffer().copy_from_slice(b"abcd");
        pool.get_mut(original).set_len(3);
        let copy = pool.copy(original);
        pool.get_mut(original).buffer().fill(b'x');
        assert_eq!(pool.get_mut(copy).payload(), b"abc");
    }
}
