//! Buffers of received bytes: those of datagrams, kept instead of copied, and others.

/// Spent buffers kept at most; our choice. The endpoint takes them when a connection comes to rest.
const MAX_SPENT: usize = 64;

/// Smaller buffers are not kept for another use; our choice.
const LEAST_SPENT: usize = 512;

/// Buffers that were read and can be used again, and the buffer of the datagram that is being read.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Last in, first out: what was used last is still in the processor's cache.
    spent: Vec<Box<[u8]>>,
    lent: Option<Lent>,
}

/// A buffer that may be kept once its datagram was read.
#[derive(Clone, Copy, Debug)]
struct Lent {
    /// Address of its first byte.
    address: usize,
    length: usize,
    /// Some of its bytes are waited for.
    wanted: bool,
}

impl Buffers {
    /// None yet.
    pub const fn new() -> Self {
        Buffers { spent: Vec::new(), lent: None }
    }

    /// The datagram that is read next lies in `buffer`, which may be kept.
    pub(crate) fn lend(&mut self, buffer: &[u8]) {
        let (address, length) = (buffer.as_ptr() as usize, buffer.len());
        self.lent = Some(Lent { address, length, wanted: false });
    }

    /// The datagram was read. True if its buffer shall be kept.
    pub(crate) fn end_lending(&mut self) -> bool {
        self.lent.take().is_some_and(|lent| lent.wanted)
    }

    /// Whether to wait for the buffer of the datagram instead of copying `data` out of it: where in
    /// it `data` is. Of one datagram only one piece is waited for, and only if it takes half of the
    /// buffer, so that memory is in proportion to bytes.
    pub(crate) fn want(&mut self, data: &[u8]) -> Option<u32> {
        let lent = self.lent.as_mut().filter(|lent| !lent.wanted)?;
        let at = (data.as_ptr() as usize).checked_sub(lent.address)?;
        let fits = at.checked_add(data.len()).is_some_and(|end| end <= lent.length);
        if !fits || data.len() * 2 < lent.length {
            return None;
        }
        lent.wanted = true;
        u32::try_from(at).ok()
    }

    /// A buffer of exactly `length` bytes, with any content.
    pub(crate) fn exact(&mut self, length: usize) -> Box<[u8]> {
        match self.spent.last() {
            Some(buffer) if buffer.len() == length => self.spent.pop().unwrap_or_default(),
            _ => vec![0; length].into_boxed_slice(),
        }
    }

    /// A buffer of `length` bytes or somewhat more, with any content.
    pub(crate) fn about(&mut self, length: usize) -> Box<[u8]> {
        match self.spent.last() {
            Some(buffer) if (length..=2 * length).contains(&buffer.len()) => {
                self.spent.pop().unwrap_or_default()
            }
            _ => vec![0; length].into_boxed_slice(),
        }
    }

    /// A buffer was read.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        if buffer.len() >= LEAST_SPENT && self.spent.len() < MAX_SPENT {
            self.spent.push(buffer);
        }
    }

    /// Hands on the spent buffers for others to use.
    pub(crate) fn drain_spent(&mut self, take: impl FnMut(Box<[u8]>)) {
        self.spent.drain(..).for_each(take);
    }

    /// True if there are spent buffers.
    pub(crate) fn has_spent(&self) -> bool {
        !self.spent.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_large_piece_of_a_lent_buffer_is_waited_for() {
        let mut buffers = Buffers::new();
        let datagram = vec![0; 1_000];
        assert_eq!(buffers.want(&datagram), None, "not lent");
        buffers.lend(&datagram);
        assert_eq!(buffers.want(&datagram[100..599]), None, "less than half of it");
        assert_eq!(buffers.want(&[0; 900]), None, "other bytes");
        assert_eq!(buffers.want(&datagram[100..600]), Some(100));
        assert_eq!(buffers.want(&datagram[400..1_000]), None, "one is enough");
        assert!(buffers.end_lending());
        assert!(!buffers.end_lending());
    }

    #[test]
    fn buffers_that_fit_are_used_again() {
        let mut buffers = Buffers::new();
        buffers.give(vec![1; 1_472].into());
        assert_eq!(buffers.exact(1_452)[0], 0);
        assert_eq!(buffers.about(500)[0], 0, "too large");
        assert_eq!((buffers.exact(1_472)[0], buffers.has_spent()), (1, false));
        for _ in 0..100 {
            buffers.give(vec![0; 600].into());
            buffers.give(vec![0; 10].into());
        }
        let mut handed_on = 0;
        buffers.drain_spent(|_| handed_on += 1);
        assert_eq!(handed_on, MAX_SPENT);
    }
}
