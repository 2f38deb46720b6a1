//! Datagrams that wait, first in, first out.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant};

use super::AqmLimit;
use crate::ecn;
use crate::link::{Drawn, Ticket};

/// A datagram that waits, with all that chance has already said about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticket: Ticket,
    /// Headers included.
    pub(crate) bytes: Bytes,
    pub(crate) enqueued_at: Instant,
    /// First outage that ends after the datagram was offered; it is lost if that begins before it
    /// has arrived.
    pub(crate) cut_at: Instant,
    pub(crate) drawn: Drawn,
    /// As it was offered: see [`ecn`].
    pub(crate) ecn: u8,
    /// Whether it is to arrive with [`ecn::CE`] in place of `ecn`.
    pub(crate) marked: bool,
}

impl Waiting {
    /// Marks it, if that can stand for dropping it. One that was marked elsewhere stays as it is.
    pub(crate) fn mark(&mut self) -> bool {
        self.marked |= ecn::can_be_marked(self.ecn);
        self.ecn != ecn::NOT_ECT
    }
}

/// Datagrams in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: Bytes,
}

impl Fifo {
    pub(crate) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_back(waiting);
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.bytes -= first.bytes;
        Some(first)
    }

    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a datagram of `bytes` fits; into an empty queue every one does.
    pub(crate) fn admits(&self, bytes: Bytes, limit: &AqmLimit) -> bool {
        self.is_empty() || limit.holds(self.len() + 1, self.bytes + bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use quipu_base::Duration;

    use super::*;

    /// A datagram of `bytes` that came at `enqueued_at`, with a number to know it by.
    pub(crate) fn datagram(number: u32, bytes: u64, enqueued_at: Instant) -> Waiting {
        Waiting {
            ticket: Ticket(number),
            bytes: Bytes(bytes),
            enqueued_at,
            cut_at: Instant::FAR_FUTURE,
            drawn: Drawn { lost: false, twice: false, way: (Duration::ZERO, false) },
            ecn: ecn::NOT_ECT,
            marked: false,
        }
    }

    #[test]
    fn bytes_are_those_of_what_waits() {
        let mut fifo = Fifo::default();
        for number in 1..4 {
            fifo.push(datagram(number, 100 * u64::from(number), Instant::ZERO));
        }
        assert_eq!((fifo.len(), fifo.bytes()), (3, Bytes(600)));
        assert_eq!(fifo.pop().map(|first| first.ticket), Some(Ticket(1)));
        assert_eq!((fifo.len(), fifo.bytes()), (2, Bytes(500)));
        let limit = |datagrams, bytes| AqmLimit { datagrams, bytes: Bytes(bytes) };
        assert!(fifo.admits(Bytes(100), &limit(3, 600)));
        assert!(!fifo.admits(Bytes(101), &limit(3, 600)));
        assert!(!fifo.admits(Bytes(1), &limit(2, 600)));
        assert!(Fifo::default().admits(Bytes(601), &limit(3, 600)));
    }
}
