//! Datagram buffers of one size that are used again and again, by the next world of a thread too.

use std::cell::RefCell;

/// Bytes of buffers that a thread keeps between one world and the next, at most; our choice.
const MOST_KEPT: usize = 4 << 20;

/// Payloads of at most so many bytes wait without a buffer: most acknowledgements. With the rest of
/// [`Datagram`] they fill two cache lines; our choice.
const SHORT: usize = 96;

thread_local! {
    /// Buffers of worlds that ended. Their content is never seen: what is sent was written before.
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// All datagrams on their way, in buffers of one size. Short ones give their buffer back while they
/// are, so that as many of them as a long link carries do not take the buffers that are in the
/// processor's cache.
#[derive(Debug)]
pub(crate) struct DatagramPool {
    size: usize,
    datagrams: Vec<Datagram>,
    free: Vec<SlotId>,
    /// Last in, first out: the buffer used last is still in the processor's cache.
    spare: Vec<Box<[u8]>>,
}

/// A place for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotId(u32);

/// A datagram on its way.
#[derive(Debug)]
pub(crate) struct Datagram {
    /// Empty while `short` has the payload.
    buffer: Box<[u8]>,
    short: [u8; SHORT],
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
        DatagramPool { size, datagrams: Vec::new(), free: Vec::new(), spare: Vec::new() }
    }

    /// The size of each buffer.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A place with a buffer of any content.
    #[inline]
    pub(crate) fn take(&mut self) -> SlotId {
        let buffer = self.take_buffer();
        let slot = self.free.pop().unwrap_or_else(|| self.grow());
        self.get_mut(slot).buffer = buffer;
        slot
    }

    /// Gives a place and its buffer back.
    #[inline]
    pub(crate) fn give_back(&mut self, slot: SlotId) {
        self.free.push(slot);
        let buffer = std::mem::take(&mut self.get_mut(slot).buffer);
        self.keep_buffer(buffer);
    }

    /// The first `len` bytes of the buffer are the payload; more than it holds counts as all.
    #[inline]
    pub(crate) fn set_len(&mut self, slot: SlotId, len: usize) {
        let datagram = self.get_mut(slot);
        datagram.len = len.min(datagram.buffer.len());
        if datagram.len <= SHORT {
            let buffer = std::mem::take(&mut datagram.buffer);
            // All of it at once is cheaper than as much as counts.
            match buffer.first_chunk() {
                Some(front) => datagram.short = *front,
                None => datagram.short[..datagram.len].copy_from_slice(&buffer[..datagram.len]),
            }
            self.keep_buffer(buffer);
        }
    }

    /// The buffer, to be exchanged for another of its length, and how much of it is payload.
    #[inline]
    pub(crate) fn lend(&mut self, slot: SlotId) -> (&mut Box<[u8]>, usize) {
        if self.get_mut(slot).buffer.is_empty() {
            let mut buffer = self.take_buffer();
            let datagram = self.get_mut(slot);
            match buffer.first_chunk_mut() {
                Some(front) => *front = datagram.short,
                None => buffer[..datagram.len].copy_from_slice(&datagram.short[..datagram.len]),
            }
            datagram.buffer = buffer;
        }
        let datagram = self.get_mut(slot);
        (&mut datagram.buffer, datagram.len)
    }

    /// A place with the same content, length, place on its route and ECN as `slot`.
    pub(crate) fn copy(&mut self, slot: SlotId) -> SlotId {
        let copy = self.take();
        let [original, twin] = self
            .datagrams
            .get_disjoint_mut([slot.index(), copy.index()])
            .expect("a slot that is taken is not handed out again");
        twin.buffer[..original.len].copy_from_slice(original.payload());
        twin.ecn = original.ecn;
        (twin.route, twin.hop) = (original.route, original.hop);
        let len = original.len;
        self.set_len(copy, len);
        copy
    }

    /// The datagram in `slot`.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: SlotId) -> &mut Datagram {
        &mut self.datagrams[slot.index()]
    }

    /// Places made so far.
    #[cfg(test)]
    pub(crate) fn made(&self) -> usize {
        self.datagrams.len()
    }

    #[inline]
    fn take_buffer(&mut self) -> Box<[u8]> {
        self.spare.pop().unwrap_or_else(|| self.make_buffer())
    }

    #[inline]
    fn keep_buffer(&mut self, buffer: Box<[u8]>) {
        if !buffer.is_empty() {
            self.spare.push(buffer);
        }
    }

    #[cold]
    fn make_buffer(&self) -> Box<[u8]> {
        let kept = KEPT.with_borrow_mut(|kept| kept.pop_if(|buffer| buffer.len() == self.size));
        kept.unwrap_or_else(|| vec![0; self.size].into_boxed_slice())
    }

    #[cold]
    fn grow(&mut self) -> SlotId {
        let slot = u32::try_from(self.datagrams.len()).expect("memory ends before 2^32 datagrams");
        let (buffer, short) = (Box::default(), [0; SHORT]);
        self.datagrams.push(Datagram { buffer, short, len: 0, route: 0, hop: 0, ecn: 0 });
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
            let on_their_way = self.datagrams.drain(..).map(|datagram| datagram.buffer);
            let buffers = self.spare.drain(..).chain(on_their_way);
            kept.extend(buffers.filter(|buffer| !buffer.is_empty()).take(room));
        });
    }
}

impl Datagram {
    /// The whole buffer, to write into.
    #[inline]
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffer
    }

    /// The payload.
    #[inline]
    pub(crate) fn payload(&mut self) -> &mut [u8] {
        let bytes = if self.buffer.is_empty() { &mut self.short[..] } else { &mut self.buffer[..] };
        &mut bytes[..self.len]
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
        pool.set_len(original, 3);
        let copy = pool.copy(original);
        pool.get_mut(original).payload().fill(b'x');
        assert_eq!(pool.get_mut(copy).payload(), b"abc");
        assert_eq!(pool.lend(copy).0.len(), 4);
    }

    #[test]
    fn short_datagrams_on_their_way_hold_no_buffer() {
        for (len, buffers) in [(0, 1), (SHORT, 1), (SHORT + 1, 10)] {
            let mut pool = DatagramPool::new(1_200);
            let slots: Vec<SlotId> = (0..10_u8)
                .map(|number| {
                    let slot = pool.take();
                    pool.get_mut(slot).buffer().fill(number);
                    pool.set_len(slot, len);
                    slot
                })
                .collect();
            for (number, &slot) in (0_u8..).zip(&slots) {
                assert_eq!(pool.get_mut(slot).payload(), vec![number; len]);
                let (buffer, lent) = pool.lend(slot);
                assert_eq!((buffer.len(), lent), (1_200, len));
                assert_eq!(buffer[..len], vec![number; len]);
                pool.give_back(slot);
            }
            assert_eq!(pool.spare.len(), buffers, "{len} bytes");
        }
    }
}
