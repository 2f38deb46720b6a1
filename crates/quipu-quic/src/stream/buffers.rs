//! Buffers of received bytes: those of datagrams, kept instead of copied, and others.

/// Bytes of spent buffers kept at most, of a connection until it comes to rest and of an endpoint; our
/// choice.
const MAX_SPENT: usize = 2 << 20;

/// Bytes of spent buffers that a connection at rest keeps at most; our choice: one for the next
/// datagram.
const MAX_AT_REST: usize = 2 << 10;

/// A connection at rest keeps room for so many spent buffers: a receiver comes to rest after every packet.
const KEPT_AT_REST: usize = 4;

/// Bytes of a buffer into which small pieces are copied one behind the other, at most; our choice.
pub(super) const MAX_SHARED: usize = 16 << 10;

/// Smaller buffers are not kept for another use; our choice.
const LEAST_SPENT: usize = 512;

/// Buffers that were read and can be used again, and the buffer of the datagram that is being read.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Last in, first out: what was used last is still in the processor's cache.
    spent: Vec<Box<[u8]>>,
    spent_bytes: usize,
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
        Buffers { spent: Vec::new(), spent_bytes: 0, lent: None }
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

    /// A buffer of exactly `length` bytes, with any content; if there is none, one of `spares`.
    pub(crate) fn exact(&mut self, length: usize, spares: &mut Spares) -> Box<[u8]> {
        self.take(length, length).unwrap_or_else(|| spares.take(length))
    }

    /// A buffer of `length` bytes or somewhat more, with any content.
    pub(crate) fn about(&mut self, length: usize) -> Box<[u8]> {
        self.take(length, 2 * length).unwrap_or_else(|| vec![0; length].into_boxed_slice())
    }

    /// The buffer that was spent last, if its length fits.
    fn take(&mut self, least: usize, most: usize) -> Option<Box<[u8]>> {
        let fits = |buffer: &mut Box<[u8]>| (least..=most).contains(&buffer.len());
        let buffer = self.spent.pop_if(fits)?;
        self.spent_bytes -= buffer.len();
        Some(buffer)
    }

    /// A buffer was read.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        if buffer.len() >= LEAST_SPENT && self.spent_bytes < MAX_SPENT {
            self.spent_bytes += buffer.len();
            self.spent.push(buffer);
        }
    }

    #[cfg(test)]
    pub(super) fn spent(&self) -> usize {
        self.spent.len()
    }

    /// Takes a large buffer of those that connections at rest have left, if no buffer is left here.
    pub(crate) fn take_large(&mut self, spares: &mut Spares) {
        if self.spent.is_empty()
            && let Some(buffer) = spares.large.pop()
        {
            spares.bytes -= buffer.len();
            self.give(buffer);
        }
    }

    /// The connection comes to rest: others may use the spent buffers.
    pub(crate) fn drain_into(&mut self, spares: &mut Spares) {
        if self.spent.is_empty() || self.spent_bytes <= MAX_AT_REST && !spares.is_used {
            return;
        }
        for buffer in self.spent.drain(..) {
            spares.give(buffer);
        }
        self.spent_bytes = 0;
        if self.spent.capacity() > KEPT_AT_REST {
            self.spent = Vec::new();
        }
    }
}

/// Spent buffers of all connections of an endpoint.
#[derive(Debug, Default)]
pub struct Spares {
    /// Buffers are lent to the endpoint: each that is kept takes another's place.
    is_used: bool,
    buffers: Vec<Box<[u8]>>,
    /// Those of [`MAX_SHARED`] bytes.
    large: Vec<Box<[u8]>>,
    /// Of both.
    bytes: usize,
}

impl Spares {
    /// None yet.
    pub const fn new() -> Self {
        Spares { is_used: false, buffers: Vec::new(), large: Vec::new(), bytes: 0 }
    }

    /// A buffer of exactly `length` bytes, with any content.
    fn take(&mut self, length: usize) -> Box<[u8]> {
        self.is_used = true;
        // Those of another length are of a time when datagrams were longer or shorter.
        while let Some(buffer) = self.buffers.pop() {
            self.bytes -= buffer.len();
            if buffer.len() == length {
                return buffer;
            }
        }
        vec![0; length].into_boxed_slice()
    }

    fn give(&mut self, buffer: Box<[u8]>) {
        let kind = match buffer.len() {
            MAX_SHARED => &mut self.large,
            _ if self.is_used => &mut self.buffers,
            _ => return,
        };
        if self.bytes < MAX_SPENT {
            self.bytes += buffer.len();
            kind.push(buffer);
        }
    }

    /// No connection is left.
    pub(crate) fn clear(&mut self) {
        *self = Spares::new();
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
        let (mut buffers, mut spares) = (Buffers::new(), Spares::new());
        buffers.give(vec![1; 1_472].into());
        assert_eq!(buffers.exact(1_452, &mut spares)[0], 0);
        assert_eq!(buffers.about(500)[0], 0, "too large");
        assert_eq!(buffers.exact(1_472, &mut spares)[0], 1);
        buffers.give(vec![2; 1_472].into());
        buffers.give(vec![2; 10].into());
        buffers.drain_into(&mut spares);
        assert_eq!(spares.buffers.len(), 1);
        let mut other = Buffers::new();
        assert_eq!(other.exact(1_472, &mut spares)[0], 2);
    }

    #[test]
    fn what_is_kept_for_another_use_is_bounded() {
        let (mut buffers, mut spares) = (Buffers::new(), Spares::new());
        spares.is_used = true;
        for _ in 0..3 {
            for _ in 0..1_000 {
                buffers.give(vec![0; 6_000].into());
            }
            assert!((MAX_SPENT..MAX_SPENT + 6_000).contains(&buffers.spent_bytes));
            buffers.drain_into(&mut spares);
            assert_eq!(buffers.spent_bytes, 0);
            assert!(buffers.spent.capacity() <= KEPT_AT_REST);
            assert!((MAX_SPENT..MAX_SPENT + 6_000).contains(&spares.bytes));
        }
        spares.clear();
        // Nobody lends buffers: one for the next datagram is enough.
        for count in [1, 2] {
            (0..count).for_each(|_| buffers.give(vec![0; 1_500].into()));
            buffers.drain_into(&mut spares);
            assert_eq!((buffers.spent.len(), spares.bytes), (usize::from(count == 1), 0));
        }
    }

    #[test]
    fn large_buffers_are_left_for_others_also_where_none_are_lent() {
        let (mut buffers, mut spares) = (Buffers::new(), Spares::new());
        buffers.take_large(&mut spares);
        assert_eq!(buffers.spent(), 0);
        (0..3).for_each(|_| buffers.give(vec![7; MAX_SHARED].into()));
        buffers.give(vec![7; 1_500].into());
        buffers.drain_into(&mut spares);
        assert_eq!((buffers.spent(), spares.bytes), (0, 3 * MAX_SHARED));
        let mut other = Buffers::new();
        other.take_large(&mut spares);
        other.take_large(&mut spares);
        assert_eq!((other.spent(), spares.bytes), (1, 2 * MAX_SHARED));
        assert_eq!(other.about(MAX_SHARED)[0], 7);
    }
}
