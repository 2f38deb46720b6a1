//! Where finished datagrams go.

use quipu_policy::PathKey;

use crate::route::Route;

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
///
/// # What the engine keeps to
///
/// It calls these methods only while it is polled
/// ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit),
/// [`Connection::poll_transmit`](crate::Connection::poll_transmit)). For each datagram, in this order
/// and with nothing of another datagram between:
///
/// 1. [`has_room`](Outbox::has_room) for the datagram's path, until that says yes; it may be asked
///    more often than needed.
/// 2. [`buffer`](Outbox::buffer), once. The engine keeps what it is given until the datagram is
///    finished, and asks for nothing else meanwhile.
/// 3. [`send`](Outbox::send), once, with the path that was asked for and a length between 1 and the
///    size asked for.
///
/// The third is left out where it turns out that nothing can be written. Then the buffer is given
/// up: its content is void, and the next datagram begins with the first step again.
///
/// # What an outbox keeps to
///
/// - **Room is asked by path.** Each path may have a socket or a queue of its own. A yes holds until
///   the next `send`; asking changes nothing.
/// - **A no is no loss.** The engine stops there and its poll returns
///   [`Drain::Full`](crate::Drain::Full), also if another path has room: of the datagram that found
///   none, no packet number is used, no frame taken and no policy told. The driver polls again when
///   there is room; what goes then is chosen anew, except that policies which had said all they had
///   to say are not asked again.
/// - **A buffer may hold anything.** The engine writes all bytes of a datagram, and none behind them.
///   A buffer shorter than asked for makes shorter datagrams, too short for a handshake.
/// - **What is sent has left**, as far as the engine knows. An outbox that throws it away is a link
///   that loses it.
pub trait Outbox {
    /// True if one more datagram for `path` can be taken now. A path's key is that of the polled
    /// connection; another connection's paths have the same keys. Datagrams of an endpoint that
    /// belong to no connection have path 0 in slot 0.
    fn has_room(&self, path: PathKey) -> bool;

    /// The buffer of the next datagram, at least `size` bytes long, with any content.
    fn buffer(&mut self, size: usize) -> &mut [u8];

    /// The datagram is finished: the first `transmit.len` bytes of the buffer last given.
    fn send(&mut self, transmit: Transmit);
}
