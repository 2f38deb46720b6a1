//! Where finished datagrams go.

use std::net::SocketAddr;

use quipu_policy::PathKey;

/// The addresses of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Route {
    /// Our address.
    pub local: SocketAddr,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// A finished datagram's envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// The path it belongs to.
    pub path: PathKey,
    /// From where to where.
    pub route: Route,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// Bytes of UDP payload.
    pub len: usize,
}

/// Where finished datagrams go: batches of a socket, or the buffers of a simulator. The engine
/// writes in place.
pub trait Outbox {
    /// True if one more datagram for `path` can be taken now.
    fn has_room(&self, path: PathKey) -> bool;

    /// A buffer for the next datagram, at least `size` bytes long.
    fn buffer(&mut self, size: usize) -> &mut [u8];

    /// The datagram is finished: the first `transmit.len` bytes of the buffer last given.
    fn send(&mut self, transmit: Transmit);
}
