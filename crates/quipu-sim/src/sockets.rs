//! The sockets of a host, one for each of its addresses.

use std::net::SocketAddr;

use quipu_base::{Bytes, Instant};
use quipu_link::{HostCosts, KernelQueue};

/// What waits in front of the links, by the address that it leaves from.
#[derive(Debug)]
pub(crate) struct Sockets {
    costs: HostCosts,
    sockets: Vec<Socket>,
}

#[derive(Debug)]
struct Socket {
    local: SocketAddr,
    queue: KernelQueue,
    /// Whether the event waits at which it takes datagrams again.
    awaited: bool,
}

impl Sockets {
    pub(crate) fn new(costs: &HostCosts) -> Self {
        Sockets { costs: *costs, sockets: Vec::new() }
    }

    /// True if the socket at `local` takes nothing at present.
    pub(crate) fn is_blocked(&self, local: SocketAddr) -> bool {
        self.sockets.iter().any(|socket| socket.local == local && socket.queue.is_full())
    }

    /// A datagram of `payload` bytes is to leave from `local`.
    pub(crate) fn announce(&mut self, now: Instant, local: SocketAddr, payload: Bytes) {
        self.queue(local).announce(now, payload);
    }

    /// What was announced has been handed over.
    pub(crate) fn end_announcements(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.queue.end_announcements());
    }

    /// A datagram comes to the kernel at `at`: when it leaves.
    pub(crate) fn offer(&mut self, at: Instant, local: SocketAddr, payload: Bytes) -> Instant {
        self.queue(local).offer(at, payload)
    }

    /// True if a socket takes datagrams again, which did not before.
    pub(crate) fn unblock(&mut self, now: Instant) -> bool {
        let unblocked = |socket: &mut Socket| socket.queue.unblock(now);
        // All of them, not up to the first.
        self.sockets.iter_mut().map(unblocked).fold(false, |any, one| any | one)
    }

    /// An event at which a socket may take datagrams again has happened.
    pub(crate) fn fired(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.awaited = false);
    }

    /// When full sockets take datagrams again for which no event waits; one does from now on.
    pub(crate) fn await_room(&mut self, now: Instant) -> impl Iterator<Item = Instant> {
        self.sockets.iter_mut().filter(|socket| !socket.awaited).filter_map(move |socket| {
            let at = socket.queue.unblocks_at(now)?;
            socket.awaited = true;
            Some(at)
        })
    }

    /// How often sockets became full.
    pub(crate) fn times_full(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.queue.times_full()).sum()
    }

    fn queue(&mut self, local: SocketAddr) -> &mut KernelQueue {
        let known = self.sockets.iter().position(|socket| socket.local == local);
        let at = known.unwrap_or_else(|| {
            let queue = KernelQueue::new(&self.costs);
            self.sockets.push(Socket { local, queue, awaited: false });
            self.sockets.len() - 1
        });
        &mut self.sockets[at].queue
    }
}
