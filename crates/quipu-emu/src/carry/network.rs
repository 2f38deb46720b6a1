//! Packets on their way over links: what is due next, and where it comes out. Neither a clock nor a device is here.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use quipu_base::{Bytes, Instant};
use quipu_link::{Answer, AnyLink, Departure, LinkStats, Verdict, ecn};

use super::pool::{Packet, PacketId, Pool};
use crate::links::LinkId;
use crate::packet;

/// Whence and whither, by way of which links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    /// One at least.
    pub(crate) links: Vec<LinkId>,
    /// Number of the device to which packets go in the end.
    pub(crate) to: usize,
}

/// All links, and the packets on them.
#[derive(Debug)]
pub(crate) struct Network {
    pool: Pool,
    links: Vec<Carried>,
    routes: Vec<Route>,
    /// By time, then in order of making.
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    made: u64,
    /// Copies that found no room.
    no_room: u64,
}

/// A link, and what waits in its managed queue.
#[derive(Debug)]
struct Carried {
    link: AnyLink,
    /// By ticket; of those that nobody has, any.
    waiting: Vec<PacketId>,
    /// Whether the event of its next departure waits.
    armed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A packet leaves a link.
    Arrival(PacketId),
    /// A managed queue lets its next packet leave.
    Departure(LinkId),
}

/// A packet that has come out of its last link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) packet: PacketId,
    pub(crate) at: Instant,
    /// Number of the device.
    pub(crate) to: usize,
}

impl Network {
    pub(crate) fn new(pool: Pool, links: Vec<AnyLink>, routes: Vec<Route>) -> Self {
        let events = BinaryHeap::new();
        let mut network = Network { pool, links: Vec::new(), routes, events, made: 0, no_room: 0 };
        network.renew(links);
        network
    }

    /// Begins anew, with these links and nothing on them.
    pub(crate) fn renew(&mut self, links: Vec<AnyLink>) {
        let carried = |link| Carried { link, waiting: Vec::new(), armed: false };
        self.links = links.into_iter().map(carried).collect();
        self.events.clear();
        self.pool.give_back_all();
        self.no_room = 0;
    }

    /// A packet to be filled and then [sent](Self::send) or [discarded](Self::discard); `None` if as many as there may
    /// be are under way.
    pub(crate) fn empty_packet(&mut self) -> Option<PacketId> {
        self.pool.take()
    }

    pub(crate) fn packet(&mut self, id: PacketId) -> &mut Packet {
        self.pool.get(id)
    }

    pub(crate) fn discard(&mut self, id: PacketId) {
        self.pool.give_back(id);
    }

    /// Lets a packet go over `route` from `now` on.
    pub(crate) fn send(&mut self, now: Instant, id: PacketId, route: u32, header: packet::Header) {
        let packet = self.pool.get(id);
        (packet.route, packet.hop) = (route, 0);
        (packet.ecn, packet.flow) = (header.ecn, header.flow);
        self.offer(now, id);
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next packet that has come out of its last link by `now`. It is to be discarded after use.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<Due> {
        loop {
            let Reverse((at, _, event)) = *self.events.peek()?;
            if at > now {
                return None;
            }
            self.events.pop();
            match event {
                Event::Departure(link) => {
                    self.links[link.index()].armed = false;
                    self.depart(at, link);
                }
                Event::Arrival(id) => {
                    let packet = self.pool.get(id);
                    packet.hop += 1;
                    let route = &self.routes[packet.route as usize];
                    if packet.hop as usize == route.links.len() {
                        return Some(Due { packet: id, at, to: route.to });
                    }
                    // The next link takes it when it is due, not when somebody looked.
                    self.offer(at, id);
                }
            }
        }
    }

    pub(crate) fn stats(&self) -> impl Iterator<Item = &LinkStats> {
        self.links.iter().map(|carried| carried.link.stats())
    }

    /// Copies that were not made because as many packets as there may be were under way.
    pub(crate) fn no_room(&self) -> u64 {
        self.no_room
    }

    /// Packets under way.
    pub(crate) fn under_way(&self) -> usize {
        self.pool.used()
    }

    /// Offers a packet to the next link of its route.
    fn offer(&mut self, at: Instant, id: PacketId) {
        let packet = self.pool.get(id);
        let link = self.routes[packet.route as usize].links[packet.hop as usize];
        let size = Bytes(packet.length as u64);
        let carried = &mut self.links[link.index()];
        match carried.link.offer(at, size, packet.ecn, packet.flow) {
            Answer::Decided(verdict) => self.follow(id, verdict),
            Answer::Waits(ticket) => {
                let waiting = &mut carried.waiting;
                if waiting.len() <= ticket.index() {
                    waiting.resize(ticket.index() + 1, id);
                }
                waiting[ticket.index()] = id;
                self.depart(at, link);
            }
        }
    }

    /// Lets happen what a managed queue has decided by `at`, and makes an event of its next decision.
    fn depart(&mut self, at: Instant, link: LinkId) {
        while let Some(Departure { ticket, verdict }) = self.links[link.index()].link.depart(at) {
            let id = self.links[link.index()].waiting[ticket.index()];
            self.follow(id, verdict);
        }
        let carried = &mut self.links[link.index()];
        // Nothing lies after the end of time. A link that has an event waiting needs no other, as its next departure
        // never moves to an earlier time.
        let next = carried.link.next_departure().filter(|at| *at != Instant::FAR_FUTURE);
        if let Some(at) = next.filter(|_| !carried.armed) {
            carried.armed = true;
            self.push(at, Event::Departure(link));
        }
    }

    /// Lets happen what a link's verdict brings.
    fn follow(&mut self, id: PacketId, verdict: Verdict) {
        let Verdict::Deliver { at, duplicate_at, marked } = verdict else {
            return self.pool.give_back(id);
        };
        if marked {
            let packet = self.pool.get(id);
            packet.ecn = ecn::CE;
            packet::mark(packet.bytes_mut());
        }
        self.push(at, Event::Arrival(id));
        if let Some(at) = duplicate_at {
            match self.pool.copy(id) {
                Some(copy) => self.push(at, Event::Arrival(copy)),
                None => self.no_room += 1,
            }
        }
    }

    fn push(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.made, event)));
        self.made += 1;
    }
}

#[cfg(test)]
mod tests;
