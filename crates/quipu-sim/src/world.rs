//! The world: nodes, links, and the loop over what happens next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_base::{Bytes, Duration, Instant, Seed};
use quipu_link::radio::Transmitter;
use quipu_link::{Departure, HostCosts, HostJitter, LinkConfig, LinkStats, Offer, Verdict, ecn};

use crate::hosted::Hosted;
use crate::network::{Forwarded, Network, Wiring};
use crate::outgoing::Outbox;
use crate::parked::Parked;
use crate::pool::{DatagramPool, SlotId};
use crate::wake::WakeUps;
use crate::{
    Departed, Envelope, EventQueue, Fate, Hop, Interface, LinkId, Node, NodeId, Observer, Outgoing,
    PathLinks, Received, RunEnd, RunError, Sent, TopologyError,
};

/// As many events at one instant are taken for a loop without end.
const MAX_EVENTS_AT_ONE_INSTANT: u64 = 1_000_000;
/// Between two looks at the flag that stops a world: some milliseconds of work.
const EVENTS_BETWEEN_LOOKS: u64 = 1_024;

/// What holds for a whole world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorldConfig {
    /// All chance in the world's links and hosts derives from it.
    pub seed: Seed,
    /// Greatest random processing delay of each host per datagram; zero turns it off. See
    /// [`HostJitter`]. Default 100 µs.
    pub host_jitter: Duration,
    /// Longest UDP payload in bytes. Default 1,472: an Ethernet frame without fragments.
    pub max_payload: usize,
    /// As many events are taken for a run without end. Default 10^10: about an hour of work.
    pub event_limit: u64,
}

/// Nodes and links in virtual time, from [`Instant::ZERO`] on.
///
/// Events are taken one at a time, in order of (time, order of creation); after each, the node
/// concerned sends all that it wants to send. `N` is one type for all nodes: an enum, or a
/// `Box<dyn Node>`.
#[derive(Debug)]
pub struct World<N, O = ()> {
    now: Instant,
    events: EventQueue<Event>,
    nodes: Vec<Host<N>>,
    network: Network,
    pool: DatagramPool,
    parked: Parked,
    outbox: Outbox,
    /// Datagrams of one poll to which no route leads; empty between polls.
    unrouted: Vec<(SlotId, Envelope)>,
    observer: O,
    stats: WorldStats,
    event_limit: u64,
    events_at_now: u64,
    stop: Option<Arc<AtomicBool>>,
}

/// What a world has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldStats {
    /// Events taken: arrivals at nodes and at the second and later links of routes, departures from
    /// managed queues, wake-ups, and what [hosts that take time](World::add_host) do.
    pub events: u64,
    /// Datagrams that nodes sent.
    pub sent: u64,
    /// Datagrams that nodes received, copies included.
    pub received: u64,
    /// Datagrams dropped because no route leads from their local to their remote address.
    pub no_route: u64,
    /// Datagrams dropped because they were longer than [`WorldConfig::max_payload`].
    pub oversized: u64,
    /// Times that a socket of a host [that takes time](World::add_host) became full.
    pub full_sockets: u64,
}

#[derive(Debug)]
struct Host<N> {
    node: N,
    wake_ups: WakeUps,
    /// What it costs; `None`: nothing.
    hosted: Option<Box<Hosted>>,
    /// Whether the node has been polled since it was added.
    started: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival(SlotId),
    /// A datagram comes to the next link of its route.
    Hop(SlotId),
    /// A managed queue lets its next datagram leave.
    Departure(LinkId),
    WakeUp(NodeId),
    /// A host that takes time has a turn.
    Turn(NodeId),
    /// The timer of such a host fires, if it was not armed anew since.
    Timer(NodeId),
    /// A full socket of such a host takes datagrams again.
    Writable(NodeId),
    /// A datagram leaves such a host.
    Leave(SlotId),
}

impl WorldConfig {
    /// The defaults, with this seed.
    pub fn new(seed: Seed) -> Self {
        WorldConfig {
            seed,
            host_jitter: HostJitter::DEFAULT,
            max_payload: 1_472,
            event_limit: 10_000_000_000,
        }
    }
}

impl<N: Node> World<N> {
    /// An empty world that nobody observes.
    pub fn new(config: WorldConfig) -> Self {
        World::with_observer(config, ())
    }
}

impl<N: Node, O: Observer> World<N, O> {
    /// An empty world.
    pub fn with_observer(config: WorldConfig, observer: O) -> Self {
        World {
            now: Instant::ZERO,
            events: EventQueue::new(),
            nodes: Vec::new(),
            network: Network::new(config.seed, config.host_jitter),
            pool: DatagramPool::new(config.max_payload),
            parked: Parked::default(),
            outbox: Outbox::default(),
            unrouted: Vec::new(),
            observer,
            stats: WorldStats::default(),
            event_limit: config.event_limit,
            events_at_now: 0,
            stop: None,
        }
    }

    /// Ends all running with [`RunError::Stopped`] soon after `flag` is set, whoever sets it: within about a
    /// thousand events. What such a world has done by then is not said, and no result.
    pub fn stop_on(&mut self, flag: Arc<AtomicBool>) {
        self.stop = Some(flag);
    }

    /// Adds a node. It is polled for the first time when the world next runs.
    pub fn add_node(&mut self, node: N) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let mut wake_ups = WakeUps::default();
        if let Some(at) = wake_ups.arm(self.now, Some(self.now)) {
            self.events.push(at, Event::WakeUp(id));
        }
        self.nodes.push(Host { node, wake_ups, hosted: None, started: false });
        self.network.add_node();
        id
    }

    /// The same on a host with these costs. Its chance depends on the world's seed and on how many nodes
    /// were added before. Observers see a datagram as sent when it leaves the kernel's queue, and as received
    /// when it is handed over.
    ///
    /// # Errors
    /// If no host can have such costs.
    pub fn add_host(&mut self, node: N, costs: &HostCosts) -> Result<NodeId, TopologyError> {
        costs.validate()?;
        let id = self.add_node(node);
        if !costs.is_ideal() {
            let [timer, wake] = ["host.timer", "host.wake"]
                .map(|name| self.network.seed().stream(name, id.index() as u64));
            self.nodes[id.index()].hosted = Some(Box::new(Hosted::new(costs, timer, wake)));
        }
        Ok(id)
    }

    /// Adds one direction of a link, over which routes may lead. Its chance depends on the world's
    /// seed and on how many links were added before.
    ///
    /// # Errors
    /// If `config` makes no link.
    pub fn add_link(&mut self, config: &LinkConfig) -> Result<LinkId, TopologyError> {
        self.network.add_link(config)
    }

    /// Adds one direction of a link over the radio, which shares airtime with other links of its
    /// medium: see [`quipu_link::Link::over_radio`]. Its chance derives as that of other links; that
    /// of the radio is the transmitter's own, for which [`World::seed`] is there.
    ///
    /// # Errors
    /// If `config` makes no link, or has a rate or a trace.
    pub fn add_radio_link(
        &mut self,
        config: &LinkConfig,
        transmitter: Transmitter,
    ) -> Result<LinkId, TopologyError> {
        self.network.add_radio_link(config, transmitter)
    }

    /// The seed from which all chance in links and hosts derives.
    pub fn seed(&self) -> Seed {
        self.network.seed()
    }

    /// Lets datagrams go from one interface to another over `links`, one behind the other. Several
    /// routes may share a link, as at a bottleneck.
    ///
    /// A link is offered a datagram at the instant at which it leaves the link before; of those
    /// that come at the same instant, the one first that left its last link or node first. Only
    /// the receiving node adds host jitter, and only once: what lies between links takes no time.
    ///
    /// # Errors
    /// If there is no link or more than 65,535, if there is such a route already, or if a node or
    /// link is of another world.
    pub fn add_route(
        &mut self,
        from: Interface,
        to: Interface,
        links: &[LinkId],
    ) -> Result<(), TopologyError> {
        self.network.add_route(from, to, links)
    }

    /// Adds a path of its own between a client's and a server's interface: two links, two routes.
    ///
    /// # Errors
    /// As [`World::add_link`] and [`World::add_route`].
    pub fn add_path(
        &mut self,
        client: Interface,
        server: Interface,
        up: &LinkConfig,
        down: &LinkConfig,
    ) -> Result<PathLinks, TopologyError> {
        let links = PathLinks { up: self.add_link(up)?, down: self.add_link(down)? };
        self.add_route(client, server, &[links.up])?;
        self.add_route(server, client, &[links.down])?;
        Ok(links)
    }

    /// The time of the last event, or the end of the last [`World::run_until`] if that is later.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// When the next event happens.
    pub fn next_event_at(&self) -> Option<Instant> {
        self.events.next_at()
    }

    /// A node.
    ///
    /// # Panics
    /// If `id` is of another world.
    pub fn node(&self, id: NodeId) -> &N {
        &self.nodes[id.index()].node
    }

    /// Changes a node from outside, as its application would, and lets it send.
    ///
    /// # Panics
    /// If `id` is of another world.
    pub fn update<R>(&mut self, id: NodeId, change: impl FnOnce(&mut N, Instant) -> R) -> R {
        let result = change(&mut self.nodes[id.index()].node, self.now);
        self.poll(id);
        result
    }

    /// What the link has seen.
    ///
    /// # Errors
    /// If `link` is of another world.
    pub fn link_stats(&self, link: LinkId) -> Result<&LinkStats, TopologyError> {
        self.network.stats(link)
    }

    /// Bytes that wait in front of the link or are being sent now, headers included.
    ///
    /// # Errors
    /// If `link` is of another world.
    pub fn queued(&self, link: LinkId) -> Result<Bytes, TopologyError> {
        self.network.queued(self.now, link)
    }

    /// The same at `at`, if nothing is offered to the link before; an instant that has passed
    /// counts as the present. To be asked between events, as after [`World::run_while`].
    ///
    /// # Errors
    /// If `link` is of another world.
    pub fn queued_at(&self, link: LinkId, at: Instant) -> Result<Bytes, TopologyError> {
        self.network.queued(self.now.max(at), link)
    }

    /// What the world has done so far.
    pub fn stats(&self) -> WorldStats {
        let hosts = self.nodes.iter().filter_map(|host| host.hosted.as_deref());
        let full_sockets = hosts.map(|hosted| hosted.sockets.times_full()).sum();
        WorldStats { oversized: self.outbox.oversized, full_sockets, ..self.stats }
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Ends the world and gives back its nodes, in the order in which they were added, and the
    /// observer.
    pub fn into_parts(self) -> (Vec<N>, O) {
        (self.nodes.into_iter().map(|host| host.node).collect(), self.observer)
    }

    /// Ends the world and gives what lay between its nodes. Links remember what was offered to them: of a world
    /// that was not run they are as new.
    pub fn into_wiring(self) -> Wiring {
        self.network.into_wiring()
    }

    /// Takes the next event and returns its time; `None` if there is none.
    ///
    /// # Errors
    /// If the run seems to have no end, or was stopped.
    pub fn step(&mut self) -> Result<Option<Instant>, RunError> {
        let Some((at, event)) = self.events.pop() else { return Ok(None) };
        self.count_event(at)?;
        match event {
            Event::Arrival(slot) => self.arrive(slot),
            Event::Hop(slot) => self.hop(slot),
            Event::Departure(link) => {
                self.parked.fired(link);
                self.depart(link);
            }
            Event::WakeUp(node) => self.wake_up(node),
            Event::Turn(node) => self.host_turn(node),
            Event::Timer(node) => self.host_timer(node),
            Event::Writable(node) => self.host_writable(node),
            Event::Leave(slot) => self.leave(slot),
        }
        Ok(Some(at))
    }

    /// Runs all events up to `until`, that instant included. Then `until` is the present.
    ///
    /// # Errors
    /// If the run seems to have no end, or was stopped.
    pub fn run_until(&mut self, until: Instant) -> Result<RunEnd, RunError> {
        let end = self.run_while(until, |_| true)?;
        self.now = self.now.max(until);
        Ok(end)
    }

    /// Runs as long as `condition` holds, at most to `until`, that instant included. The condition
    /// is asked before each event. The present is then that of the last event.
    ///
    /// # Errors
    /// If the run seems to have no end, or was stopped.
    pub fn run_while(
        &mut self,
        until: Instant,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<RunEnd, RunError> {
        loop {
            if !condition(self) {
                return Ok(RunEnd::Condition);
            }
            match self.events.next_at() {
                None => return Ok(RunEnd::Idle),
                Some(at) if at > until => return Ok(RunEnd::TimeLimit),
                Some(_) => self.step()?,
            };
        }
    }

    fn count_event(&mut self, at: Instant) -> Result<(), RunError> {
        if self.now < at {
            self.now = at;
            self.events_at_now = 0;
        }
        self.stats.events += 1;
        self.events_at_now += 1;
        if self.stats.events > self.event_limit {
            return Err(RunError::EventLimit { limit: self.event_limit, now: self.now });
        }
        if self.events_at_now > MAX_EVENTS_AT_ONE_INSTANT {
            return Err(RunError::NoProgress { events: self.events_at_now, now: self.now });
        }
        if self.stats.events.is_multiple_of(EVENTS_BETWEEN_LOOKS)
            && self.stop.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
        {
            return Err(RunError::Stopped { now: self.now });
        }
        Ok(())
    }

    fn arrive(&mut self, slot: SlotId) {
        let id = self.network.receiver(self.pool.get_mut(slot).route);
        if self.nodes[id.index()].hosted.is_some() && self.arrive_at_host(id, slot) {
            return;
        }
        self.hand_over(slot);
        self.poll(id);
    }

    /// Gives a datagram to the node at which it has arrived.
    #[inline(always)]
    fn hand_over(&mut self, slot: SlotId) {
        let datagram = self.pool.get_mut(slot);
        let destination = self.network.destination(datagram.route, datagram.ecn);
        let (id, envelope, payload) = (destination.node, destination.envelope, datagram.payload());
        let received = Received { node: id, envelope, payload, link: destination.link };
        self.observer.on_received(self.now, &received);
        self.stats.received += 1;
        let (buffer, length) = self.pool.lend(slot);
        let size = buffer.len();
        self.nodes[id.index()].node.handle_buffer(self.now, &envelope, buffer, length);
        debug_assert_eq!(buffer.len(), size, "a node leaves a buffer of the same length");
        self.pool.give_back(slot);
    }

    fn wake_up(&mut self, id: NodeId) {
        let host = &mut self.nodes[id.index()];
        host.wake_ups.fired();
        if host.hosted.is_some() {
            // The first one, as of every node; its host has a timer of its own.
            if !host.started {
                self.poll(id);
            }
            return;
        }
        let due = host.node.poll_timeout().is_some_and(|deadline| deadline <= self.now);
        if due {
            self.observer.on_timeout(self.now, id);
            host.node.handle_timeout(self.now);
        }
        if due || !host.started {
            self.poll(id);
        } else {
            self.arm(id);
        }
    }

    /// Lets a node send all that it wants to, and re-arms its deadline.
    fn poll(&mut self, id: NodeId) {
        let host = &mut self.nodes[id.index()];
        host.started = true;
        if host.hosted.is_some() && self.call_host(id) {
            return;
        }
        let host = &mut self.nodes[id.index()];
        host.node.poll_transmit(self.now, &mut Outgoing::new(&mut self.pool, &mut self.outbox));
        let mut datagrams = std::mem::take(&mut self.outbox.datagrams);
        for (slot, envelope) in datagrams.drain(..) {
            self.send(id, slot, envelope);
        }
        // The next turn uses the same memory.
        self.outbox.datagrams = datagrams;
        self.arm(id);
    }

    fn arm(&mut self, id: NodeId) {
        let host = &mut self.nodes[id.index()];
        if let Some(at) = host.wake_ups.arm(self.now, host.node.poll_timeout()) {
            self.events.push(at, Event::WakeUp(id));
        }
    }

    fn send(&mut self, id: NodeId, slot: SlotId, envelope: Envelope) {
        self.stats.sent += 1;
        let datagram = self.pool.get_mut(slot);
        let Some(route) = self.network.route(id, &envelope) else {
            return self.drop_unrouted(slot, id, envelope);
        };
        (datagram.route, datagram.hop, datagram.ecn) = (route, 0, envelope.ecn);
        self.offer(id, slot, envelope);
    }

    /// Drops a datagram that no route takes.
    #[cold]
    fn drop_unrouted(&mut self, slot: SlotId, id: NodeId, envelope: Envelope) {
        let payload = self.pool.get_mut(slot).payload();
        let sent = Sent { node: id, envelope, payload, fate: Fate::NoRoute };
        self.observer.on_sent(self.now, &sent);
        self.stats.no_route += 1;
        self.pool.give_back(slot);
    }

    /// Offers a datagram, which knows its route, to the first link of that.
    #[inline(always)]
    fn offer(&mut self, id: NodeId, slot: SlotId, envelope: Envelope) {
        let datagram = self.pool.get_mut(slot);
        let route = datagram.route;
        let payload = datagram.payload();
        let size = Bytes(payload.len() as u64);
        let Some(forwarded) = self.network.forward(self.now, route, size, envelope.ecn) else {
            return self.enqueue(slot, Some(id));
        };
        let fate = Fate::Offered { link: forwarded.link, verdict: forwarded.verdict };
        self.observer.on_sent(self.now, &Sent { node: id, envelope, payload, fate });
        self.follow(slot, &forwarded);
    }

    /// Offers a datagram that has come through a link to the next one of its route.
    #[inline(never)]
    fn hop(&mut self, slot: SlotId) {
        let datagram = self.pool.get_mut(slot);
        // A route has at most 65,535 links.
        datagram.hop += 1;
        let (route, hop) = (datagram.route, datagram.hop);
        let envelope = self.network.envelope(route, datagram.ecn);
        let payload = datagram.payload();
        let size = Bytes(payload.len() as u64);
        let forwarded = self.network.forward_behind(self.now, route, hop, size, envelope.ecn);
        let Some(forwarded) = forwarded else { return self.enqueue(slot, None) };
        let Forwarded { link, verdict, .. } = forwarded;
        self.observer.on_hop(self.now, &Hop { envelope, payload, link, verdict: Some(verdict) });
        self.follow(slot, &forwarded);
    }

    /// Lets happen what a link's answer brings.
    // Twice in the binary: for the first link, which most routes have alone, and for the others.
    #[inline(always)]
    fn follow(&mut self, slot: SlotId, forwarded: &Forwarded) {
        if let Verdict::Deliver { marked: true, .. } = forwarded.verdict {
            self.pool.get_mut(slot).ecn = ecn::CE;
        }
        let is_last = forwarded.is_last;
        let event = |slot| if is_last { Event::Arrival(slot) } else { Event::Hop(slot) };
        match forwarded.comes_at {
            Some(at) => self.events.push_in(forwarded.lane, at, event(slot)),
            None => self.pool.give_back(slot),
        }
        if let Some(at) = forwarded.copy_comes_at {
            let copy = self.pool.copy(slot);
            self.events.push(at, event(copy));
        }
    }

    /// Offers a datagram to the managed queue of the link to which it has come, as the first of its
    /// route if `sender` has just sent it.
    #[cold]
    #[inline(never)]
    fn enqueue(&mut self, slot: SlotId, sender: Option<NodeId>) {
        let datagram = self.pool.get_mut(slot);
        let (route, hop, ecn) = (datagram.route, datagram.hop, datagram.ecn);
        let envelope = self.network.envelope(route, ecn);
        let payload = datagram.payload();
        let size = Bytes(payload.len() as u64);
        let Some((link, offer)) = self.network.enqueue(self.now, route, hop, size, ecn) else {
            return self.pool.give_back(slot);
        };
        let verdict = match offer {
            Offer::Dropped(reason) => Some(Verdict::Dropped(reason)),
            Offer::Queued(_) => None,
        };
        match sender {
            Some(node) => {
                let fate = match verdict {
                    Some(verdict) => Fate::Offered { link, verdict },
                    None => Fate::Queued { link },
                };
                self.observer.on_sent(self.now, &Sent { node, envelope, payload, fate });
            }
            None => self.observer.on_hop(self.now, &Hop { envelope, payload, link, verdict }),
        }
        match offer {
            Offer::Dropped(_) => self.pool.give_back(slot),
            Offer::Queued(ticket) => {
                self.parked.keep(link, ticket, slot);
                self.depart(link);
            }
        }
    }

    /// Lets happen what the managed queue in front of `link` has decided, and makes an event of its
    /// next decision.
    fn depart(&mut self, link: LinkId) {
        while let Some(Departure { ticket, verdict }) = self.network.depart(self.now, link) {
            let slot = self.parked.slot(link, ticket);
            let datagram = self.pool.get_mut(slot);
            let (route, hop) = (datagram.route, datagram.hop);
            let envelope = self.network.envelope(route, datagram.ecn);
            let departed = Departed { envelope, payload: datagram.payload(), link, verdict };
            self.observer.on_departed(self.now, &departed);
            let forwarded = self.network.follow(route, hop, verdict);
            self.follow(slot, &forwarded);
        }
        if let Some(at) = self.parked.arm(link, self.network.next_departure(link)) {
            self.events.push(at, Event::Departure(link));
        }
    }
}

mod hosted;
#[cfg(test)]
mod tests;
