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

/// Where finished datagrams go: batches of sockets, or the buffers of a simulator. The engine
/// writes in place.
///
/// Two things can stop a datagram, and they differ:
///
/// - The outbox is **full**: its batch holds all it can ([`has_room`](Outbox::has_room)). The engine
///   stops at once, its poll returns [`Drain::Full`](crate::Drain::Full), and the driver passes the
///   batch on and polls again. How large batches are changes no decision.
/// - A route is **blocked**: its socket takes nothing at present
///   ([`is_blocked`](Outbox::is_blocked)). The engine treats the path as closed, tells the policies,
///   goes on with all others, and its poll returns [`Drain::Blocked`](crate::Drain::Blocked). The
///   driver polls again once the socket takes datagrams.
///
/// # What the engine keeps to
///
/// It calls these methods only while it is polled
/// ([`Endpoint::poll_transmit`](crate::Endpoint::poll_transmit),
/// [`Connection::poll_transmit`](crate::Connection::poll_transmit)). For each datagram, in this order
/// and with nothing of another datagram between:
///
/// 1. [`has_room`](Outbox::has_room), until that says yes; it may be asked more often than needed.
/// 2. [`buffer`](Outbox::buffer), once. The engine keeps what it is given until the datagram is
///    finished, and asks for nothing else meanwhile.
/// 3. [`send`](Outbox::send), once, with a route that was not blocked when last asked and a length
///    between 1 and the size asked for.
///
/// The third is left out where it turns out that nothing can be written. Then the buffer is given
/// up: its content is void, and the next datagram begins with the first step again.
///
/// Whether a route is blocked is asked when a poll begins and after each datagram on that route.
///
/// # What an outbox keeps to
///
/// - **A yes holds** until the next `send`; asking changes nothing.
/// - **A no is no loss.** Of the datagram that found no room, no packet number is used, no frame
///   taken and no policy told. When the driver polls again, the choice is made anew, except that
///   policies that had said all they had to say are not asked again.
/// - **A buffer may hold anything.** The engine writes all bytes of a datagram, and none behind them.
///   A buffer shorter than asked for makes shorter datagrams, too short for a handshake.
/// - **What is sent has left**, as far as the engine knows. An outbox that throws it away is a link
///   that loses it.
pub trait Outbox {
    /// True if one more datagram can be taken now, whatever its route.
    fn has_room(&self) -> bool;

    /// True if nothing can be sent over `route` at present. Never, unless the outbox says so.
    fn is_blocked(&self, route: &Route) -> bool {
        let _ = route;
        false
    }

    /// The buffer of the next datagram, at least `size` bytes long, with any content.
    fn buffer(&mut self, size: usize) -> &mut [u8];

    /// The datagram is finished: the first `transmit.len` bytes of the buffer last given.
    fn send(&mut self, transmit: Transmit);
}
