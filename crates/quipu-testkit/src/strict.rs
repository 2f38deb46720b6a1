//! An outbox that holds the engine to its contract.

use std::cell::Cell;

use quipu_quic::{Outbox, Route, Transmit};

/// What a buffer holds when the engine gets it: not zeros, which could pass for padding.
const RUBBISH: u8 = 0xa5;

/// Passes datagrams on to another outbox, and panics where the engine breaks the contract of
/// [`Outbox`]. Each buffer is exactly as long as asked for, full of rubbish, and not the one before.
pub struct Strict<O> {
    inner: O,
    /// Room was found since the last buffer.
    room: Cell<bool>,
    /// The buffer of the datagram under construction.
    open: Option<Vec<u8>>,
    refused: Cell<bool>,
}

impl<O: Outbox> Strict<O> {
    /// Watches over what goes to `inner`.
    pub fn new(inner: O) -> Self {
        Strict { inner, room: Cell::new(false), open: None, refused: Cell::new(false) }
    }

    /// True if there was no room once: only then may the engine stop with more to send.
    pub fn has_refused(&self) -> bool {
        self.refused.get()
    }

    /// What it passes datagrams to.
    pub fn inner(&self) -> &O {
        &self.inner
    }

    /// The same, for good.
    pub fn into_inner(self) -> O {
        self.inner
    }
}

impl<O: Outbox> Outbox for Strict<O> {
    fn has_room(&self) -> bool {
        let room = self.inner.has_room();
        self.room.set(room);
        self.refused.set(self.refused.get() || !room);
        room
    }

    fn is_blocked(&self, route: &Route) -> bool {
        self.inner.is_blocked(route)
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        assert!(self.room.take(), "the engine asks for room before it takes a buffer");
        assert!(size > 0, "a buffer of no bytes");
        self.open.insert(vec![RUBBISH; size])
    }

    fn send(&mut self, transmit: Transmit) {
        let buffer = self.open.take();
        let buffer = buffer.expect("the engine takes a buffer for each datagram");
        assert!(!self.is_blocked(&transmit.route), "nothing is sent over a blocked route");
        let datagram = buffer.get(..transmit.len).filter(|datagram| !datagram.is_empty());
        let datagram = datagram.expect("a datagram of at least a byte, and within its buffer");
        self.inner.buffer(transmit.len)[..transmit.len].copy_from_slice(datagram);
        self.inner.send(transmit);
        self.room.set(false);
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::PathId;
    use quipu_policy::PathKey;

    use super::*;
    use crate::{client_address, server_address};

    /// Has room for two datagrams, and none for the route to the second client.
    #[derive(Default)]
    struct Kept {
        buffer: Vec<u8>,
        datagrams: Vec<Vec<u8>>,
    }

    impl Outbox for Kept {
        fn has_room(&self) -> bool {
            self.datagrams.len() < 2
        }

        fn is_blocked(&self, route: &Route) -> bool {
            route.remote == client_address(1)
        }

        fn buffer(&mut self, size: usize) -> &mut [u8] {
            self.buffer.resize(size, 0);
            &mut self.buffer
        }

        fn send(&mut self, transmit: Transmit) {
            self.datagrams.push(self.buffer[..transmit.len].to_vec());
        }
    }

    fn strict() -> Strict<Kept> {
        Strict::new(Kept::default())
    }

    fn transmit(client: u8, len: usize) -> Transmit {
        let route = Route::new(server_address(), client_address(client));
        Transmit { path: PathKey { slot: 0, id: PathId(0) }, route, ecn: 0, len }
    }

    #[test]
    fn a_datagram_that_keeps_the_contract_passes() {
        let mut outbox = strict();
        for content in [1, 2] {
            assert!(outbox.has_room());
            // The first buffer is given up.
            outbox.buffer(10).fill(9);
            assert!(outbox.has_room());
            assert!(outbox.buffer(3).iter().all(|&byte| byte == RUBBISH));
            outbox.open.as_mut().unwrap().fill(content);
            outbox.send(transmit(0, 2));
        }
        assert_eq!(outbox.inner().datagrams, [[1, 1], [2, 2]]);
        assert!(!outbox.has_refused());
        assert!(!outbox.has_room());
        assert!(outbox.has_refused());
    }

    #[test]
    #[should_panic(expected = "asks for room")]
    fn a_buffer_without_room_is_a_breach() {
        strict().buffer(10);
    }

    #[test]
    #[should_panic(expected = "asks for room")]
    fn a_second_buffer_for_one_datagram_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room();
        outbox.buffer(10);
        outbox.buffer(10);
    }

    #[test]
    #[should_panic(expected = "takes a buffer")]
    fn a_buffer_sent_twice_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room();
        outbox.buffer(10);
        outbox.send(transmit(0, 10));
        outbox.send(transmit(0, 10));
    }

    #[test]
    #[should_panic(expected = "within its buffer")]
    fn a_datagram_longer_than_was_asked_for_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room();
        outbox.buffer(10);
        outbox.send(transmit(0, 11));
    }

    #[test]
    #[should_panic(expected = "a blocked route")]
    fn a_datagram_over_a_blocked_route_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room();
        outbox.buffer(10);
        outbox.send(transmit(1, 10));
    }
}
