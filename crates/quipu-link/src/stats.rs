//! What a link has seen.

use quipu_base::Bytes;

use crate::DropReason;

/// A number of datagrams and of their bytes on the link, headers included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Datagrams.
    pub datagrams: u64,
    /// Their bytes, headers included.
    pub bytes: Bytes,
}

/// What became of all datagrams offered to a link so far.
///
/// `offered` is always the sum of `delivered`, `waiting` and the five kinds of drops. A datagram
/// counts as soon as it is offered, though its arrival lies ahead; in a managed queue it counts as
/// waiting until it is sent or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// All datagrams offered.
    pub offered: Count,
    /// Those that arrive; copies do not count.
    pub delivered: Count,
    /// Those that found the queue full.
    pub dropped_by_queue: Count,
    /// Those that the management of the queue dropped.
    pub dropped_by_management: Count,
    /// Those that chance took.
    pub dropped_by_loss: Count,
    /// Those that met an outage.
    pub dropped_by_outage: Count,
    /// Those that were larger than the link's MTU.
    pub dropped_by_size: Count,
    /// Those that wait in a managed queue.
    pub waiting: Count,
    /// Copies that arrive beside their original.
    pub duplicated: Count,
    /// Those among the delivered that were picked to be late.
    pub late: Count,
    /// Those among the delivered that were marked with Congestion Experienced here.
    pub marked: Count,
    /// The most that was ever in the queue, headers included.
    pub max_queue: Bytes,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: Bytes) {
        self.datagrams += 1;
        self.bytes += bytes;
    }

    pub(crate) fn take(&mut self, bytes: Bytes) {
        self.datagrams = self.datagrams.saturating_sub(1);
        self.bytes -= bytes;
    }
}

impl LinkStats {
    /// All datagrams that do not arrive.
    pub fn dropped(&self) -> Count {
        let all = [
            self.dropped_by_queue,
            self.dropped_by_management,
            self.dropped_by_loss,
            self.dropped_by_outage,
            self.dropped_by_size,
        ];
        Count {
            datagrams: all.iter().map(|count| count.datagrams).sum(),
            bytes: all.iter().map(|count| count.bytes).sum(),
        }
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason, bytes: Bytes) {
        let count = match reason {
            DropReason::Loss => &mut self.dropped_by_loss,
            DropReason::Outage => &mut self.dropped_by_outage,
            DropReason::TooLarge => &mut self.dropped_by_size,
            DropReason::QueueFull => &mut self.dropped_by_queue,
            DropReason::Managed => &mut self.dropped_by_management,
        };
        count.add(bytes);
    }
}
