//! The way out of a node.

use crate::Envelope;
use crate::pool::{DatagramPool, SlotId};

/// Takes the datagrams that a node sends.
///
/// A datagram is written into [`Outgoing::buffer`] in place and handed over with
/// [`Outgoing::send`], in as many turns as there are datagrams.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pool: &'a mut DatagramPool,
    outbox: &'a mut Outbox,
    /// The buffer that is being written.
    current: Option<SlotId>,
}

/// Datagrams that a node has sent and the links have not yet seen.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) datagrams: Vec<(SlotId, Envelope)>,
    /// Datagrams that were longer than a buffer, dropped.
    pub(crate) oversized: u64,
}

impl<'a> Outgoing<'a> {
    pub(crate) fn new(pool: &'a mut DatagramPool, outbox: &'a mut Outbox) -> Self {
        Outgoing { pool, outbox, current: None }
    }

    /// The buffer of the next datagram, with any content. Its length is the longest UDP payload
    /// that the world carries. The same buffer until the next [`Outgoing::send`].
    #[inline]
    pub fn buffer(&mut self) -> &mut [u8] {
        let slot = self.current();
        self.pool.get_mut(slot).buffer()
    }

    /// Sends the first `len` bytes of the buffer, from `envelope.local` to `envelope.remote`.
    ///
    /// Without a route between the two, the datagram is dropped and counted, as by a host that
    /// does not have the address; so is one longer than the buffer.
    #[inline]
    pub fn send(&mut self, envelope: &Envelope, len: usize) {
        if len > self.pool.size() {
            self.outbox.oversized += 1;
            return;
        }
        let slot = self.current();
        self.pool.set_len(slot, len);
        self.outbox.datagrams.push((slot, *envelope));
        self.current = None;
    }

    /// Looks at the datagrams sent so far, as something between the node and its links would: it
    /// may change where they come from or go to and what they hold, and those that `keep` refuses
    /// are gone.
    pub fn filter(&mut self, mut keep: impl FnMut(&mut Envelope, &mut [u8]) -> bool) {
        let pool = &mut *self.pool;
        self.outbox.datagrams.retain_mut(|(slot, envelope)| {
            let kept = keep(envelope, pool.get_mut(*slot).payload());
            if !kept {
                pool.give_back(*slot);
            }
            kept
        });
    }

    #[inline]
    fn current(&mut self) -> SlotId {
        *self.current.get_or_insert_with(|| self.pool.take())
    }
}

impl Drop for Outgoing<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.current.take() {
            self.pool.give_back(slot);
        }
    }
}
