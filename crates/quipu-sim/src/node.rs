//! What a host is to the simulator.

use std::net::SocketAddr;

use quipu_base::Instant;

use crate::Outgoing;

/// A host: datagrams and time come in, datagrams and a deadline come out.
///
/// The world calls [`poll_transmit`](Node::poll_transmit) and then
/// [`poll_timeout`](Node::poll_timeout) once after the node was added and after each input, which
/// is one datagram, one timeout, or one [`World::update`](crate::World::update). On a
/// [host that takes time](crate::World::add_host) an input is all that the host takes in one turn, and
/// deadlines come late.
pub trait Node {
    /// A datagram has arrived. The payload may be changed in place, as decryption does; it is the
    /// node's for this call only.
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]);

    /// The same with the buffer that holds the payload, as its first `length` bytes. The node may keep
    /// the buffer and leave another one of the same length, with any content.
    fn handle_buffer(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        if let Some(payload) = buffer.get_mut(..length) {
            self.handle_datagram(now, envelope, payload);
        }
    }

    /// The deadline has come. Called at the deadline exactly, or later as the node's host does, and not
    /// before.
    fn handle_timeout(&mut self, now: Instant);

    /// A socket of the node's host that was full ([`Outgoing::is_blocked`]) takes datagrams again. Only
    /// [hosts that take time](crate::World::add_host) have such.
    fn handle_unblocked(&mut self, _now: Instant) {}

    /// Sends all that the node wants to send at `now`.
    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>);

    /// When [`handle_timeout`](Node::handle_timeout) is to be called; `None`: never. An instant
    /// in the past counts as `now`. To move it later costs nothing.
    fn poll_timeout(&self) -> Option<Instant>;
}

/// What goes with a datagram, as the node at hand sees it: `local` is its own address both for
/// what it sends and for what it receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The node's own address.
    pub local: SocketAddr,
    /// The address of the other side.
    pub remote: SocketAddr,
    /// The two bits of explicit congestion notification, 0 to 3.
    /// <https://www.rfc-editor.org/rfc/rfc3168#section-5>
    pub ecn: u8,
}

/// A node of one world, counted from zero in the order in which they were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Position among the nodes of the world, from zero.
    pub const fn index(self) -> usize {
        // At least 32 bits wide on every platform that can hold a world.
        self.0 as usize
    }
}

impl<N: Node + ?Sized> Node for Box<N> {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        (**self).handle_datagram(now, envelope, payload);
    }

    fn handle_buffer(
        &mut self,
        now: Instant,
        envelope: &Envelope,
        buffer: &mut Box<[u8]>,
        length: usize,
    ) {
        (**self).handle_buffer(now, envelope, buffer, length);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn handle_unblocked(&mut self, now: Instant) {
        (**self).handle_unblocked(now);
    }

    fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        (**self).poll_transmit(now, out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }
}
