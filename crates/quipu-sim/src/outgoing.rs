//! The way out of a node.

use std::net::SocketAddr;

use quipu_base::{Bytes, Instant};

use crate::Envelope;
use crate::pool::{DatagramPool, SlotId};
use crate::sockets::Sockets;

/// Takes the datagrams that a node sends.
///
/// A datagram is written into [`Outgoing::buffer`] in place and handed over with
/// [`Outgoing::send`], in as many turns as there are datagrams.
#[derive(Debug)]
pub struct Outgoing<'a> {
    pool: &'a mut DatagramPool,
    outbox: &'a mut Outbox,
    /// Those of a host that takes time, and when they are used.
    sockets: Option<(&'a mut Sockets, Instant)>,
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
        Outgoing { pool, outbox, sockets: None, current: None }
    }

    pub(crate) fn from_host(
        pool: &'a mut DatagramPool,
        outbox: &'a mut Outbox,
        sockets: &'a mut Sockets,
        now: Instant,
    ) -> Self {
        Outgoing { pool, outbox, sockets: Some((sockets, now)), current: None }
    }

    /// True if the socket at the node's address `local` is full, what was sent in this turn included.
    /// What is sent from there nevertheless waits behind what is in the socket. Never, unless the node is
    /// on a [host that takes time](crate::World::add_host).
    pub fn is_blocked(&self, local: SocketAddr) -> bool {
        self.sockets.as_ref().is_some_and(|(sockets, _)| sockets.is_blocked(local))
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
        if let Some((sockets, now)) = &mut self.sockets {
            sockets.announce(*now, envelope.local, Bytes(len as u64));
        }
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
