//! An outbox that holds the engine to its contract.

use std::cell::Cell;

use quipu_policy::PathKey;
use quipu_quic::{Outbox, Transmit};

/// What a buffer holds when the engine gets it: not zeros, which could pass for padding.
const RUBBISH: u8 = 0xa5;

/// Passes datagrams on to another outbox, and panics where the engine breaks the contract of
/// [`Outbox`]. Each buffer is exactly as long as asked for, full of rubbish, and not the one before.
pub struct Strict<O> {
    inner: O,
    /// The path for which room was found since the last buffer.
    room: Cell<Option<PathKey>>,
    /// The path and the buffer of the datagram under construction.
    open: Option<(PathKey, Vec<u8>)>,
    refused: Cell<bool>,
}

impl<O: Outbox> Strict<O> {
    /// Watches over what goes to `inner`.
    pub fn new(inner: O) -> Self {
        Strict { inner, room: Cell::new(None), open: None, refused: Cell::new(false) }
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
    fn has_room(&self, path: PathKey) -> bool {
        let room = self.inner.has_room(path);
        self.room.set(room.then_some(path));
        self.refused.set(self.refused.get() || !room);
        room
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        let path = self.room.take();
        let path = path.expect("the engine asks for room before it takes a buffer");
        assert!(size > 0, "a buffer of no bytes");
        let (_, buffer) = self.open.insert((path, vec![RUBBISH; size]));
        buffer
    }

    fn send(&mut self, transmit: Transmit) {
        let open = self.open.take();
        let (path, buffer) = open.expect("the engine takes a buffer for each datagram");
        assert_eq!(transmit.path, path, "a datagram of the path for which room was asked");
        let datagram = buffer.get(..transmit.len).filter(|datagram| !datagram.is_empty());
        let datagram = datagram.expect("a datagram of at least a byte, and within its buffer");
        self.inner.buffer(transmit.len)[..transmit.len].copy_from_slice(datagram);
        self.inner.send(transmit);
        self.room.set(None);
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::PathId;
    use quipu_quic::Route;

    use super::*;
    use crate::{client_address, server_address};

    const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };
    const OTHER: PathKey = PathKey { slot: 1, id: PathId(1) };

    /// Has room for `PATH` alone.
    #[derive(Default)]
    struct Kept {
        buffer: Vec<u8>,
        datagrams: Vec<Vec<u8>>,
    }

    impl Outbox for Kept {
        fn has_room(&self, path: PathKey) -> bool {
            path == PATH
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

    fn transmit(path: PathKey, len: usize) -> Transmit {
        let route = Route::new(server_address(), client_address(0));
        Transmit { path, route, ecn: 0, len }
    }

    #[test]
    fn a_datagram_that_keeps_the_contract_passes() {
        let mut outbox = strict();
        for content in [1, 2] {
            assert!(outbox.has_room(PATH));
            // The first buffer is given up.
            outbox.buffer(10).fill(9);
            assert!(outbox.has_room(PATH));
            assert!(outbox.buffer(3).iter().all(|&byte| byte == RUBBISH));
            outbox.open.as_mut().unwrap().1.fill(content);
            outbox.send(transmit(PATH, 2));
        }
        assert_eq!(outbox.inner().datagrams, [[1, 1], [2, 2]]);
        assert!(!outbox.has_refused());
        assert!(!outbox.has_room(OTHER));
        assert!(outbox.has_refused());
    }

    #[test]
    #[should_panic(expected = "asks for room")]
    fn a_buffer_without_room_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room(OTHER);
        outbox.buffer(10);
    }

    #[test]
    #[should_panic(expected = "asks for room")]
    fn a_second_buffer_for_one_datagram_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room(PATH);
        outbox.buffer(10);
        outbox.buffer(10);
    }

    #[test]
    #[should_panic(expected = "takes a buffer")]
    fn a_buffer_sent_twice_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room(PATH);
        outbox.buffer(10);
        outbox.send(transmit(PATH, 10));
        outbox.send(transmit(PATH, 10));
    }

    #[test]
    #[should_panic(expected = "within its buffer")]
    fn a_datagram_longer_than_was_asked_for_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room(PATH);
        outbox.buffer(10);
        outbox.send(transmit(PATH, 11));
    }

    #[test]
    #[should_panic(expected = "for which room was asked")]
    fn a_datagram_of_another_path_is_a_breach() {
        let mut outbox = strict();
        outbox.has_room(PATH);
        outbox.buffer(10);
        outbox.send(transmit(OTHER, 10));
    }
}
