//! Nodes on hosts that take time.

use quipu_base::Bytes;

use super::{Event, World};
use crate::hosted::{Batcher, Hosted};
use crate::pool::SlotId;
use crate::{Node, NodeId, Observer, Outgoing};

impl<N: Node, O: Observer> World<N, O> {
    fn hosted(&mut self, id: NodeId) -> Option<&mut Hosted> {
        self.nodes[id.index()].hosted.as_deref_mut()
    }

    /// A datagram comes to the node's host, if it has one that takes time: true then.
    pub(super) fn arrive_at_host(&mut self, id: NodeId, slot: SlotId) -> bool {
        let now = self.now;
        let Some(hosted) = self.hosted(id) else { return false };
        hosted.receive(slot);
        if let Some(at) = hosted.next_wake(now) {
            self.events.push(at, Event::Turn(id));
        }
        true
    }

    /// The node is to be polled; true if its host does that when it comes to it.
    pub(super) fn call_host(&mut self, id: NodeId) -> bool {
        let Some(hosted) = self.hosted(id) else { return false };
        hosted.call();
        self.call_turn(id);
        true
    }

    /// The timer of a host may fire.
    pub(super) fn host_timer(&mut self, id: NodeId) {
        let now = self.now;
        if self.hosted(id).is_some_and(|hosted| hosted.timer.fire(now)) {
            self.call_turn(id);
        }
    }

    /// A socket of a host may take datagrams again.
    pub(super) fn host_writable(&mut self, id: NodeId) {
        if let Some(hosted) = self.hosted(id) {
            hosted.sockets.fired();
            self.call_turn(id);
        }
    }

    /// Makes an event of the next turn, if none waits.
    fn call_turn(&mut self, id: NodeId) {
        let now = self.now;
        if let Some(at) = self.hosted(id).and_then(|hosted| hosted.next_turn(now)) {
            self.events.push(at, Event::Turn(id));
        }
    }

    /// A host takes what has come or, once that is done, lets its node do all that is due.
    pub(super) fn host_turn(&mut self, id: NodeId) {
        let now = self.now;
        let Some(hosted) = self.hosted(id) else { return };
        if !hosted.has_turn(now) {
            return;
        }
        let takes = hosted.take(now);
        if !takes.is_zero() {
            self.events.push(now + takes, Event::Turn(id));
            return;
        }
        let (datagrams, mut active) = hosted.begin_turn();
        active |= !datagrams.is_empty();
        for slot in datagrams {
            self.hand_over(slot);
        }
        let host = &mut self.nodes[id.index()];
        let Some(hosted) = host.hosted.as_deref_mut() else { return };
        if hosted.sockets.unblock(now) {
            host.node.handle_unblocked(now);
            active = true;
        }
        if host.node.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.observer.on_timeout(now, id);
            host.node.handle_timeout(now);
            active = true;
        }
        hosted.free_at = now;
        if active {
            self.poll_host(id);
        }
        self.arm_host(id);
    }

    /// Lets a node send all that it wants to: batch after batch goes to the kernel's queues.
    fn poll_host(&mut self, id: NodeId) {
        let now = self.now;
        let host = &mut self.nodes[id.index()];
        let Some(hosted) = host.hosted.as_deref_mut() else { return };
        let (pool, outbox) = (&mut self.pool, &mut self.outbox);
        let mut outgoing = Outgoing::from_host(pool, outbox, &mut hosted.sockets, now);
        host.node.poll_transmit(now, &mut outgoing);
        drop(outgoing);
        let mut datagrams = std::mem::take(&mut self.outbox.datagrams);
        let mut batcher = Batcher::new(hosted.costs.send_batch);
        for (slot, envelope) in datagrams.drain(..) {
            batcher.add(slot, envelope, self.pool.get_mut(slot).payload().len());
        }
        self.outbox.datagrams = datagrams;
        for batch in batcher.finish() {
            hosted.free_at += hosted.costs.sending(batch.slots.len());
            let route = self.network.route(id, &batch.envelope);
            for slot in batch.slots {
                let datagram = self.pool.get_mut(slot);
                let size = Bytes(datagram.payload().len() as u64);
                let Some(route) = route else {
                    self.unrouted.push((slot, batch.envelope));
                    continue;
                };
                (datagram.route, datagram.hop, datagram.ecn) = (route, 0, batch.envelope.ecn);
                let leaves_at = hosted.sockets.offer(hosted.free_at, batch.envelope.local, size);
                self.events.push(leaves_at, Event::Leave(slot));
            }
        }
        hosted.sockets.end_announcements();
        let mut unrouted = std::mem::take(&mut self.unrouted);
        for (slot, envelope) in unrouted.drain(..) {
            self.stats.sent += 1;
            self.drop_unrouted(slot, id, envelope);
        }
        self.unrouted = unrouted;
    }

    /// Makes events of the node's deadline, of room in full sockets, and of what came meanwhile.
    fn arm_host(&mut self, id: NodeId) {
        let now = self.now;
        let host = &mut self.nodes[id.index()];
        let Some(hosted) = host.hosted.as_deref_mut() else { return };
        if let Some(at) = hosted.timer.arm(hosted.free_at, host.node.poll_timeout()) {
            self.events.push(at, Event::Timer(id));
        }
        for at in hosted.sockets.await_room(now) {
            self.events.push(at, Event::Writable(id));
        }
        if hosted.has_more() {
            self.call_turn(id);
        }
    }

    /// A datagram leaves its host and is offered to the first link of its route.
    pub(super) fn leave(&mut self, slot: SlotId) {
        let datagram = self.pool.get_mut(slot);
        let (route, ecn) = (datagram.route, datagram.ecn);
        self.stats.sent += 1;
        self.offer(self.network.sender(route), slot, self.network.envelope(route, ecn));
    }
}
