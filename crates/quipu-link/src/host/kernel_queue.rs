//! What a socket's datagrams wait in before the first link.

use std::collections::VecDeque;

use quipu_base::{Bytes, Duration, Instant};

use super::HostCosts;

/// The queue between a socket and the first link: first in, first out, and it drops nothing.
///
/// A socket is full while it holds [`HostCosts::socket_buffer`] or more, and takes datagrams again once
/// it holds half of that or less, as sockets of Linux do (`sock_alloc_send_pskb` and `sock_writeable`,
/// include/net/sock.h). Here a byte is one of the packet; the kernel also counts what its buffers take in
/// memory.
#[derive(Debug)]
pub struct KernelQueue {
    costs: HostCosts,
    /// When each of those that wait leaves, and its bytes.
    waiting: VecDeque<(Instant, Bytes)>,
    /// Bytes of those.
    queued: Bytes,
    /// Bytes that the host has decided to send and is about to hand over.
    announced: Bytes,
    /// When the interface has sent all of it.
    free_at: Instant,
    full: bool,
    /// How often it became full.
    times_full: u64,
}

impl KernelQueue {
    /// An empty queue of a host with these `costs`.
    pub fn new(costs: &HostCosts) -> Self {
        KernelQueue {
            costs: *costs,
            waiting: VecDeque::new(),
            queued: Bytes::ZERO,
            announced: Bytes::ZERO,
            free_at: Instant::ZERO,
            full: false,
            times_full: 0,
        }
    }

    /// True if the socket takes nothing at present.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// How often the socket became full.
    pub fn times_full(&self) -> u64 {
        self.times_full
    }

    /// Bytes in it, of which those that have left by `now` are none.
    pub fn queued(&mut self, now: Instant) -> Bytes {
        while let Some(&(leaves_at, size)) = self.waiting.front()
            && leaves_at <= now
        {
            self.waiting.pop_front();
            self.queued -= size;
        }
        self.queued
    }

    /// The host has decided to send a datagram of `payload` bytes: it counts from now on.
    pub fn announce(&mut self, now: Instant, payload: Bytes) {
        self.announced += payload + self.costs.overhead;
        let held = self.queued(now) + self.announced;
        if !self.full && self.costs.socket_buffer.is_some_and(|buffer| held >= buffer) {
            self.full = true;
            self.times_full += 1;
        }
    }

    /// All that was announced has been handed over, or is not sent after all.
    pub fn end_announcements(&mut self) {
        self.announced = Bytes::ZERO;
    }

    /// A datagram of `payload` bytes comes at `at`, which is not before any other came: when it leaves.
    pub fn offer(&mut self, at: Instant, payload: Bytes) -> Instant {
        let size = payload + self.costs.overhead;
        let takes = self.costs.interface_rate.map_or(Duration::ZERO, |rate| rate.time_for(size));
        let leaves_at = self.free_at.max(at) + takes;
        self.free_at = leaves_at;
        self.queued += size;
        self.waiting.push_back((leaves_at, size));
        leaves_at
    }

    /// It is `now`: true if the socket takes datagrams again, which it did not before.
    pub fn unblock(&mut self, now: Instant) -> bool {
        let held = self.queued(now);
        let over = self.full && self.is_half(held);
        self.full &= !over;
        over
    }

    /// When a full socket takes datagrams again, if nothing else comes; `None` if it is not full.
    pub fn unblocks_at(&self, now: Instant) -> Option<Instant> {
        if !self.full {
            return None;
        }
        let mut left = self.queued;
        for (leaves_at, size) in &self.waiting {
            if self.is_half(left) {
                break;
            }
            left -= *size;
            if self.is_half(left) {
                return Some((*leaves_at).max(now));
            }
        }
        Some(now)
    }

    fn is_half(&self, held: Bytes) -> bool {
        self.costs.socket_buffer.is_none_or(|buffer| held.saturating_mul(2) <= buffer)
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::Rate;

    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// 10 Mbit/s: 1,250 B take 1 ms.
    fn queue(buffer: u64) -> KernelQueue {
        KernelQueue::new(&HostCosts {
            socket_buffer: Some(Bytes(buffer)),
            interface_rate: Some(Rate::from_mbit_per_sec(10)),
            ..HostCosts::IDEAL
        })
    }

    const PAYLOAD: Bytes = Bytes(1_222);

    #[test]
    fn datagrams_leave_one_after_the_other() {
        let mut queue = queue(10_000);
        assert_eq!(queue.offer(at(0), PAYLOAD), at(1));
        assert_eq!(queue.offer(at(0), PAYLOAD), at(2));
        assert_eq!(queue.queued(at(0)), Bytes(2_500));
        assert_eq!(queue.queued(at(1)), Bytes(1_250));
        assert_eq!(queue.offer(at(7), PAYLOAD), at(8));
        assert_eq!(queue.queued(at(8)), Bytes::ZERO);
    }

    #[test]
    fn a_socket_is_full_at_its_limit_and_writable_at_half_of_it() {
        let mut queue = queue(5_000);
        for announced in 1..=4 {
            assert!(!queue.is_full());
            queue.announce(at(0), PAYLOAD);
            assert_eq!(queue.is_full(), announced == 4);
        }
        for _ in 0..4 {
            queue.offer(at(0), PAYLOAD);
        }
        queue.end_announcements();
        // Two of four have left at 2 ms.
        assert_eq!(queue.unblocks_at(at(0)), Some(at(2)));
        assert!(!queue.unblock(at(1)) && queue.is_full());
        assert!(queue.unblock(at(2)) && !queue.is_full() && !queue.unblock(at(2)));
        assert_eq!((queue.unblocks_at(at(2)), queue.times_full()), (None, 1));
    }

    #[test]
    fn what_was_announced_and_never_came_fills_nothing_for_long() {
        let mut queue = queue(1_000);
        queue.announce(at(3), PAYLOAD);
        queue.end_announcements();
        assert!(queue.is_full());
        assert_eq!(queue.unblocks_at(at(3)), Some(at(3)));
        assert!(queue.unblock(at(3)));
    }

    #[test]
    fn without_a_limit_nothing_is_full() {
        let rate = Some(Rate::from_mbit_per_sec(10));
        let mut queue = KernelQueue::new(&HostCosts { interface_rate: rate, ..HostCosts::IDEAL });
        for _ in 0..1_000 {
            queue.announce(at(0), PAYLOAD);
            queue.offer(at(0), PAYLOAD);
        }
        assert!(!queue.is_full());
        assert_eq!(queue.queued(at(999)), Bytes(1_250));
    }
}
