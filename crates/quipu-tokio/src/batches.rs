//! Datagrams on their way to the kernel, in batches that it takes in one call.
//!
//! Each batch is of one socket, route and ECN mark, and its datagrams have one size, so that the
//! kernel can segment it. The engine writes into the batch that it wrote into last; where a datagram
//! turns out to be for another one, it is copied there.

use std::io;
use std::sync::Arc;

use quipu_base::Instant;
use quipu_quic::{Outbox, Route, Transmit};

use crate::socket::{Refusal, Socket};

/// Bytes of a batch, at most: what fits a UDP datagram, which the kernel makes of it first.
const MAX_BYTES: usize = 65_000;

/// Datagrams of a batch, at most. <https://man7.org/linux/man-pages/man7/udp.7.html>, UDP_SEGMENT.
const MAX_SEGMENTS: usize = 64;

/// Batches at a time. Our choice: more than a poll has routes, unless sockets take nothing.
const MAX_BATCHES: usize = 16;

/// Bytes that go to the kernel before others may use the endpoint again. Our choice: 0.2 ms of work.
const MAX_TURN: usize = 4 * MAX_BYTES;

/// Bytes of a batch's buffer: a datagram is written behind all others before it is known where it
/// belongs, and the largest has 65,527 bytes.
const BUFFER: usize = 2 * 65_527;

/// Why a batch could not be sent, other than for want of room: datagrams of that route are lost.
#[derive(Debug)]
pub(crate) struct SendFailure {
    pub(crate) route: Route,
    pub(crate) error: io::Error,
    /// The network may have said so of other datagrams of the socket, and the host not.
    pub(crate) doubtful: bool,
}

/// Datagrams that belong together.
struct Batch {
    buffer: Box<[u8]>,
    /// Where they go; `None`: the batch is free.
    to: Option<Target>,
    /// Bytes in it.
    filled: usize,
    datagrams: usize,
    /// Size of each datagram but the last.
    segment: usize,
    /// It takes no more: its last datagram is shorter.
    closed: bool,
    /// How many batches were begun before it.
    age: u64,
}

#[derive(Clone, Copy)]
struct Target {
    socket: usize,
    route: Route,
    ecn: u8,
}

impl Target {
    fn matches(&self, route: &Route, ecn: u8) -> bool {
        self.ecn == ecn && self.route == *route && self.route.interface == route.interface
    }
}

/// What was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounters {
    /// Calls of the kernel.
    pub calls: u64,
    /// Datagrams that it took.
    pub datagrams: u64,
    /// Bytes of those.
    pub bytes: u64,
    /// Datagrams that it refused, which are lost.
    pub refused: u64,
    /// Times that a socket held all that the kernel lets it hold.
    pub blocked: u64,
}

/// All batches of an endpoint, with its sockets.
pub(crate) struct Batches {
    sockets: Vec<Arc<Socket>>,
    /// Since when datagrams may leave by each.
    since: Vec<Instant>,
    /// Sockets that take nothing at present.
    blocked: Vec<bool>,
    /// Some may have to be renewed.
    stale: bool,
    batches: Vec<Batch>,
    /// The batch that is written into.
    current: usize,
    /// Bytes that went to the kernel in this turn.
    turn: usize,
    /// Batches that were begun.
    begun: u64,
    failures: Vec<SendFailure>,
    counters: SendCounters,
}

impl Batches {
    pub(crate) fn new() -> Self {
        Batches {
            sockets: Vec::new(),
            since: Vec::new(),
            blocked: Vec::new(),
            stale: false,
            batches: vec![Batch::new()],
            current: 0,
            turn: 0,
            begun: 0,
            failures: Vec::new(),
            counters: SendCounters::default(),
        }
    }

    /// Datagrams may leave by that socket, too.
    pub(crate) fn add(&mut self, socket: Arc<Socket>, now: Instant) {
        self.sockets.push(socket);
        self.since.push(now);
        self.blocked.push(false);
    }

    pub(crate) fn sockets(&self) -> &[Arc<Socket>] {
        &self.sockets
    }

    /// A socket may have to be [renewed](Socket::renewed).
    pub(crate) fn set_stale(&mut self) {
        self.stale = true;
    }

    /// Renews the sockets that have to be. True if any was. To be called within a runtime.
    pub(crate) fn renew_sockets(&mut self) -> bool {
        if !std::mem::take(&mut self.stale) {
            return false;
        }
        let mut any = false;
        for socket in &mut self.sockets {
            if let Some(renewed) = socket.renewed() {
                *socket = Arc::new(renewed);
                any = true;
            }
        }
        any
    }

    /// Forgets the sockets that `keeps` does not, with what waits for them. It is told since when each is
    /// there.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&Socket, Instant) -> bool) {
        let mut at = 0;
        while at < self.sockets.len() {
            if keeps(&self.sockets[at], self.since[at]) {
                at += 1;
                continue;
            }
            self.sockets.remove(at);
            self.since.remove(at);
            self.blocked.remove(at);
            for batch in &mut self.batches {
                match &mut batch.to {
                    Some(to) if to.socket == at => batch.clear(),
                    Some(to) if to.socket > at => to.socket -= 1,
                    _ => {}
                }
            }
        }
    }

    pub(crate) fn counters(&self) -> SendCounters {
        self.counters
    }

    /// Others had their turn.
    pub(crate) fn begin_turn(&mut self) {
        self.turn = 0;
    }

    /// True if the socket of that number takes nothing at present.
    pub(crate) fn is_socket_blocked(&self, socket: usize) -> bool {
        self.blocked.get(socket).copied().unwrap_or(false)
    }

    /// The socket of that number takes datagrams again. True if it did not before.
    pub(crate) fn unblock(&mut self, socket: usize) -> bool {
        self.blocked.get_mut(socket).is_some_and(std::mem::take)
    }

    /// A datagram that the kernel refused; the oldest first.
    pub(crate) fn take_failures(&mut self) -> Vec<SendFailure> {
        std::mem::take(&mut self.failures)
    }

    /// True if datagrams wait for sockets that take nothing.
    pub(crate) fn holds_any(&self) -> bool {
        self.batches.iter().any(|batch| batch.to.is_some())
    }

    /// Passes on all that can go, the oldest first: a later batch of a route does not overtake.
    pub(crate) fn flush_all(&mut self) {
        let mut after = 0;
        loop {
            let waits = |batch: &&Batch| batch.to.is_some() && batch.age > after;
            let Some(next) = self.batches.iter().filter(waits).map(|batch| batch.age).min() else {
                return;
            };
            if let Some(at) = self.batches.iter().position(|batch| batch.age == next) {
                self.flush(at);
            }
            after = next;
        }
    }

    /// Passes a batch on; it stays if its socket takes nothing.
    fn flush(&mut self, at: usize) {
        let Some(batch) = self.batches.get_mut(at) else { return };
        let Some(target) = batch.to else { return };
        let Some(socket) = self.sockets.get(target.socket) else { return };
        if self.blocked[target.socket] {
            return;
        }
        let mut from = 0;
        while from < batch.filled {
            // Where the kernel segments nothing, each goes by itself.
            let datagrams = socket.max_segments().clamp(1, MAX_SEGMENTS);
            let until = batch.filled.min(from + datagrams * batch.segment);
            self.counters.calls += 1;
            let count = (until - from).div_ceil(batch.segment) as u64;
            match socket.send(&target.route, target.ecn, batch.segment, &batch.buffer[from..until])
            {
                Ok(()) => {
                    self.counters.datagrams += count;
                    self.counters.bytes += (until - from) as u64;
                    self.turn += until - from;
                }
                Err(refusal @ (Refusal::Full | Refusal::NotReady)) => {
                    self.counters.blocked += u64::from(matches!(refusal, Refusal::Full));
                    self.blocked[target.socket] = true;
                    batch.buffer.copy_within(from..batch.filled, 0);
                    batch.filled -= from;
                    batch.closed = true;
                    return;
                }
                Err(Refusal::Failed(error)) if error.kind() == io::ErrorKind::Interrupted => {
                    continue;
                }
                // Segmentation was refused, and is given up: once more, one by one.
                Err(_) if count > 1 && socket.max_segments() == 1 => continue,
                Err(Refusal::Failed(error)) => {
                    self.counters.refused += count;
                    // One that is too large was a probe.
                    if !quinn_udp::is_msg_size_err(&error) {
                        let (route, doubtful) = (target.route, socket.hears());
                        self.failures.push(SendFailure { route, error, doubtful });
                    }
                }
            }
            from = until;
        }
        batch.clear();
    }

    /// A batch without datagrams, if there is one or may be.
    fn free(&mut self) -> Option<usize> {
        let free = self.batches.iter().position(|batch| batch.to.is_none());
        free.or_else(|| {
            (self.batches.len() < MAX_BATCHES).then(|| {
                self.batches.push(Batch::new());
                self.batches.len() - 1
            })
        })
    }

    /// Moves a datagram that was written at the end of the current batch to where it belongs.
    fn place(&mut self, socket: usize, route: Route, ecn: u8, length: usize) {
        let (written_in, written_at) = (self.current, self.batches[self.current].filled);
        let of_route = |batch: &Batch| batch.to.is_some_and(|to| to.matches(&route, ecn));
        // At most one of a route is open.
        let open = self.batches.iter().position(|batch| of_route(batch) && !batch.closed);
        let open = open.filter(|&at| {
            let fits = self.batches[at].takes(length);
            if !fits {
                self.batches[at].closed = true;
                self.flush(at);
            }
            fits
        });
        let at = match open {
            Some(at) => at,
            // It is written where it stays, unless something is before it.
            None if self.batches[written_in].to.is_none() => written_in,
            None => match self.free() {
                Some(at) => at,
                // There was room when the engine asked.
                None => return,
            },
        };
        if (at, self.batches[at].filled) != (written_in, written_at) {
            let to = self.batches[at].filled;
            let (source, target) = two(&mut self.batches, written_in, at);
            match target {
                Some(target) => {
                    let datagram = &source.buffer[written_at..written_at + length];
                    target.buffer[to..to + length].copy_from_slice(datagram);
                }
                None => source.buffer.copy_within(written_at..written_at + length, to),
            }
        }
        let batch = &mut self.batches[at];
        if batch.to.is_none() {
            self.begun += 1;
            batch.age = self.begun;
            batch.to = Some(Target { socket, route, ecn });
        }
        batch.append(length);
        self.current = at;
        if batch.closed {
            self.flush(at);
        }
    }
}

/// Two batches of a list: the first, and the second unless they are one.
fn two(batches: &mut [Batch], a: usize, b: usize) -> (&mut Batch, Option<&mut Batch>) {
    match a.cmp(&b) {
        std::cmp::Ordering::Equal => (&mut batches[a], None),
        std::cmp::Ordering::Less => {
            let (left, right) = batches.split_at_mut(b);
            (&mut left[a], Some(&mut right[0]))
        }
        std::cmp::Ordering::Greater => {
            let (left, right) = batches.split_at_mut(a);
            (&mut right[0], Some(&mut left[b]))
        }
    }
}

impl Batch {
    fn new() -> Self {
        Batch {
            buffer: vec![0; BUFFER].into_boxed_slice(),
            to: None,
            filled: 0,
            datagrams: 0,
            segment: 0,
            closed: false,
            age: 0,
        }
    }

    fn clear(&mut self) {
        self.to = None;
        (self.filled, self.datagrams, self.segment, self.closed) = (0, 0, 0, false);
    }

    /// True if a datagram of that size may follow.
    fn takes(&self, length: usize) -> bool {
        // A lone datagram may be a probe that is larger than what the interface carries. The kernel
        // refuses a whole batch for that, and then no batch is segmented any more.
        let same = length == self.segment || length < self.segment && self.datagrams > 1;
        same && !self.closed && self.filled + length <= MAX_BYTES
    }

    fn append(&mut self, length: usize) {
        if self.datagrams == 0 {
            self.segment = length;
        }
        self.closed = length < self.segment || self.datagrams + 1 == MAX_SEGMENTS;
        self.filled += length;
        self.datagrams += 1;
    }
}

impl Outbox for Batches {
    fn has_room(&self) -> bool {
        let is_free = |batch: &Batch| batch.to.is_none();
        self.turn < MAX_TURN
            && (self.batches.len() < MAX_BATCHES || self.batches.iter().any(is_free))
    }

    fn is_blocked(&self, route: &Route) -> bool {
        let socket = self.sockets.iter().position(|socket| socket.serves(route));
        socket.is_some_and(|socket| self.blocked[socket])
    }

    fn buffer(&mut self, _size: usize) -> &mut [u8] {
        // Behind the fullest batch there is room for the largest datagram.
        let batch = &mut self.batches[self.current];
        &mut batch.buffer[batch.filled..]
    }

    fn send(&mut self, transmit: Transmit) {
        let Transmit { route, ecn, len, .. } = transmit;
        let Some(socket) = self.sockets.iter().position(|socket| socket.serves(&route)) else {
            // Its socket was removed: a link that loses all.
            self.counters.refused += 1;
            return;
        };
        self.place(socket, route, ecn, len);
        if !self.has_room() {
            self.flush_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    use quipu_base::PathId;
    use quipu_policy::PathKey;

    use super::*;
    use crate::socket::{KERNEL_BUFFER, Sharing};

    struct Peer {
        socket: UdpSocket,
        route: Route,
    }

    /// Batches of one socket, and so many peers of it.
    async fn peers(count: usize) -> (Batches, Vec<Peer>) {
        let socket = Arc::new(
            Socket::listen("127.0.0.1:0".parse().unwrap(), KERNEL_BUFFER, Sharing::Alone).unwrap(),
        );
        let local = socket.local();
        std::future::poll_fn(|cx| socket.poll_writable(cx)).await;
        let mut batches = Batches::new();
        batches.add(socket, Instant::ZERO);
        let peer = |_| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let remote: SocketAddr = socket.local_addr().unwrap();
            Peer { socket, route: Route::new(local, remote) }
        };
        (batches, (0..count).map(peer).collect())
    }

    fn send(batches: &mut Batches, route: Route, mark: u8, len: usize) {
        assert!(batches.has_room());
        batches.buffer(1_500)[..len].fill(mark);
        let path = PathKey { slot: 0, id: PathId::ZERO };
        batches.send(Transmit { path, route, ecn: 0, len });
    }

    fn received(peer: &Peer, count: usize) -> Vec<(u8, usize)> {
        let mut buffer = [0; 2_000];
        let one = |_| {
            let len = peer.socket.recv(&mut buffer).expect("a datagram comes");
            assert!(buffer[..len].iter().all(|byte| *byte == buffer[0]), "datagrams were mixed up");
            (buffer[0], len)
        };
        (0..count).map(one).collect()
    }

    #[tokio::test]
    async fn datagrams_of_one_route_go_in_one_call_and_in_order() {
        let (mut batches, peers) = peers(1).await;
        let sizes = [1_200, 1_200, 1_200, 300, 1_200, 1_400, 1_200];
        for (mark, len) in (1..).zip(sizes) {
            send(&mut batches, peers[0].route, mark, len);
        }
        batches.flush_all();
        let expected: Vec<_> = (1..).zip(sizes).collect();
        assert_eq!(received(&peers[0], 7), expected);
        // Four; then each alone, since it was not followed by one of its size.
        assert_eq!((batches.counters().calls, batches.counters().datagrams), (4, 7));
        assert!(!batches.holds_any());
    }

    #[tokio::test]
    async fn routes_in_turn_fill_a_batch_each() {
        let (mut batches, peers) = peers(3).await;
        for mark in 0..30 {
            send(&mut batches, peers[usize::from(mark % 3)].route, mark, 1_000);
        }
        batches.flush_all();
        for (nth, peer) in (0..).zip(&peers) {
            let expected: Vec<_> = (0..10).map(|turn| (3 * turn + nth, 1_000)).collect();
            assert_eq!(received(peer, 10), expected);
        }
        assert_eq!(batches.counters().calls, 3);
    }

    #[tokio::test]
    async fn what_a_blocked_socket_does_not_take_waits_in_order() {
        let (mut batches, peers) = peers(1).await;
        batches.blocked[0] = true;
        assert!(batches.is_blocked(&peers[0].route));
        let mut mark = 0;
        while batches.has_room() {
            // Every second one ends a batch.
            mark += 1;
            send(&mut batches, peers[0].route, mark, if mark % 3 == 0 { 100 } else { 200 });
        }
        assert!(usize::from(mark) >= MAX_BATCHES && batches.holds_any());
        assert!(batches.unblock(0) && !batches.unblock(0));
        batches.flush_all();
        let marks: Vec<u8> =
            received(&peers[0], mark.into()).into_iter().map(|(mark, _)| mark).collect();
        assert_eq!(marks, (1..=mark).collect::<Vec<_>>());
        assert!(batches.has_room() && !batches.holds_any());
    }

    #[tokio::test]
    async fn a_turn_ends_and_64_segments_are_a_batch() {
        let (mut batches, peers) = peers(1).await;
        for _ in 0..64 {
            send(&mut batches, peers[0].route, 1, 100);
        }
        assert_eq!(batches.counters().calls, 1);
        while batches.has_room() {
            send(&mut batches, peers[0].route, 2, 1_400);
        }
        assert!(batches.counters().bytes < (MAX_TURN + MAX_BYTES) as u64);
        batches.begin_turn();
        assert!(batches.has_room());
    }

    #[tokio::test]
    async fn a_route_that_leads_nowhere_is_told() {
        let (mut batches, peers) = peers(1).await;
        let route = Route::new(peers[0].route.local, "192.0.2.1:9".parse().unwrap());
        send(&mut batches, route, 1, 100);
        batches.flush_all();
        let failures = batches.take_failures();
        assert_eq!(failures.len(), 1, "127.0.0.1 reaches no other host");
        assert_eq!(batches.counters().refused, 1);
    }
}
