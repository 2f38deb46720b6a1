use std::collections::VecDeque;

use proptest::prelude::*;
use quipu_base::Rate;
use quipu_link::{Duplicate, Outage};

use super::*;
use crate::{EventHash, address};

mod hosts;
mod managed;
mod series;

/// Sends what it is given, keeps what it receives, and asks for the deadlines it is given.
#[derive(Debug, Default)]
struct Recorder {
    outbox: VecDeque<(Envelope, Vec<u8>)>,
    inbox: Vec<(Instant, Envelope, Vec<u8>)>,
    deadline: Option<Instant>,
    fired_at: Vec<Instant>,
    /// The next deadlines after now, taken one at each input.
    waits: VecDeque<Duration>,
    echoes: bool,
}

impl Recorder {
    fn next_deadline(&mut self, now: Instant) {
        self.deadline = self.waits.pop_front().map(|wait| now + wait);
    }
}

impl Node for Recorder {
    fn handle_datagram(&mut self, now: Instant, envelope: &Envelope, payload: &mut [u8]) {
        self.inbox.push((now, *envelope, payload.to_vec()));
        if self.echoes {
            self.outbox.push_back((*envelope, payload.to_vec()));
        }
        if !self.waits.is_empty() {
            self.next_deadline(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        assert_eq!(self.deadline.map(|deadline| deadline.max(now)), Some(now), "not due");
        self.fired_at.push(now);
        self.next_deadline(now);
    }

    fn poll_transmit(&mut self, _now: Instant, out: &mut Outgoing<'_>) {
        for (envelope, payload) in self.outbox.drain(..) {
            if let Some(buffer) = out.buffer().get_mut(..payload.len()) {
                buffer.copy_from_slice(&payload);
            }
            out.send(&envelope, payload.len());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

fn quiet() -> WorldConfig {
    WorldConfig { host_jitter: Duration::ZERO, ..WorldConfig::new(Seed::new(1)) }
}

fn delay(millis: u64) -> LinkConfig {
    LinkConfig { delay: Duration::from_millis(millis), ..LinkConfig::default() }
}

fn envelope(interface: u8, ecn: u8) -> Envelope {
    Envelope { local: address(1, interface, 1_000), remote: address(2, 0, 443), ecn }
}

fn back(envelope: Envelope) -> Envelope {
    Envelope { local: envelope.remote, remote: envelope.local, ..envelope }
}

/// A client with one interface for each link, and a server with one address.
struct Pair<O> {
    world: World<Recorder, O>,
    client: NodeId,
    server: NodeId,
    links: Vec<PathLinks>,
}

fn pair<O: Observer>(config: WorldConfig, observer: O, links: &[LinkConfig]) -> Pair<O> {
    let mut world = World::with_observer(config, observer);
    let client = world.add_node(Recorder::default());
    let server = world.add_node(Recorder::default());
    let links = (0..).zip(links).map(|(interface, link)| {
        let here = Interface { node: client, address: envelope(interface, 0).local };
        let there = Interface { node: server, address: envelope(interface, 0).remote };
        world.add_path(here, there, link, link).unwrap()
    });
    let links = links.collect();
    Pair { world, client, server, links }
}

impl<O: Observer> Pair<O> {
    fn client_sends(&mut self, envelope: Envelope, payload: &[u8]) {
        let datagram = (envelope, payload.to_vec());
        self.world.update(self.client, |client, _| client.outbox.push_back(datagram));
    }

    fn received(&self, node: NodeId) -> Vec<(u64, &[u8])> {
        let inbox = &self.world.node(node).inbox;
        inbox.iter().map(|(at, _, payload)| (at.as_nanos(), payload.as_slice())).collect()
    }
}

#[test]
fn a_datagram_arrives_with_payload_addresses_and_ecn() {
    let mut pair = pair(quiet(), (), &[delay(5), delay(7)]);
    pair.client_sends(envelope(1, 2), b"hello");
    assert_eq!(pair.world.run_until(millis(100)), Ok(RunEnd::Idle));
    assert_eq!(pair.world.now(), millis(100));
    let expected = (millis(7), back(envelope(1, 2)), b"hello".to_vec());
    assert_eq!(pair.world.node(pair.server).inbox, [expected]);
    assert_eq!(pair.world.link_stats(pair.links[1].up).unwrap().delivered.datagrams, 1);
    assert_eq!(pair.world.link_stats(pair.links[0].up).unwrap().offered.datagrams, 0);
}

#[test]
fn datagrams_of_one_instant_arrive_in_the_order_in_which_they_were_sent() {
    let mut pair = pair(quiet(), (), &[delay(5), delay(5)]);
    for (interface, payload) in [(1, b"a"), (0, b"b"), (1, b"c")] {
        pair.client_sends(envelope(interface, 0), payload);
    }
    pair.world.run_until(millis(5)).unwrap();
    let expected: [(u64, &[u8]); 3] = [(5_000_000, b"a"), (5_000_000, b"b"), (5_000_000, b"c")];
    assert_eq!(pair.received(pair.server), expected);
}

#[test]
fn datagrams_without_a_route_or_too_long_are_dropped_and_counted() {
    let mut pair = pair(quiet(), (), &[delay(5)]);
    pair.client_sends(envelope(9, 0), b"lost");
    pair.client_sends(envelope(0, 0), &[0; 1_473]);
    pair.client_sends(envelope(0, 0), &[0; 1_472]);
    pair.world.run_until(millis(10)).unwrap();
    let stats = pair.world.stats();
    assert_eq!((stats.no_route, stats.oversized, stats.received), (1, 1, 1));
}

#[test]
fn copies_arrive_as_datagrams_of_their_own() {
    let duplicate = Some(Duplicate { share: 1.0, after: Duration::from_millis(1) });
    let mut pair = pair(quiet(), (), &[LinkConfig { duplicate, ..delay(5) }]);
    pair.client_sends(envelope(0, 0), b"twice");
    pair.world.run_until(millis(10)).unwrap();
    let expected: [(u64, &[u8]); 2] = [(5_000_000, b"twice"), (6_000_000, b"twice")];
    assert_eq!(pair.received(pair.server), expected);
}

#[test]
fn a_path_can_be_cut_in_one_direction() {
    let cut = delay(5).with_outage(Outage::for_good(millis(20)));
    let mut world = World::new(quiet());
    let client = world.add_node(Recorder::default());
    let server = world.add_node(Recorder { echoes: true, ..Recorder::default() });
    let here = Interface { node: client, address: envelope(0, 0).local };
    let there = Interface { node: server, address: envelope(0, 0).remote };
    world.add_path(here, there, &delay(5), &cut).unwrap();
    for step in 0..10 {
        world.run_until(millis(step * 5)).unwrap();
        world.update(client, |node, _| node.outbox.push_back((envelope(0, 0), vec![0])));
    }
    world.run_until(millis(100)).unwrap();
    assert_eq!(world.node(server).inbox.len(), 10);
    // Sent at 0 and 5 ms, back at 10 and 15 ms; what would be back at 20 ms meets the cut.
    assert_eq!(world.node(client).inbox.len(), 2);
}

#[test]
fn host_jitter_delays_without_reordering() {
    let config = WorldConfig::new(Seed::new(1));
    let mut pair = pair(config, (), &[delay(5)]);
    for _ in 0..100 {
        pair.client_sends(envelope(0, 0), b"x");
        let next = pair.world.now() + Duration::from_micros(20);
        pair.world.run_until(next).unwrap();
    }
    pair.world.run_until(millis(100)).unwrap();
    let received = pair.received(pair.server);
    assert_eq!(received.len(), 100);
    assert!(received.is_sorted());
    for (index, (at, _)) in (0..).zip(&received) {
        let unhurried = 5_000_000 + index * 20_000;
        assert!((unhurried..=unhurried + 100_000).contains(at), "{index}: {at}");
    }
}

#[test]
fn a_deadline_that_moves_with_each_datagram_fires_once_and_exactly() {
    let mut pair = pair(quiet(), (), &[delay(5)]);
    let idle = Duration::from_millis(30);
    pair.world.update(pair.server, |server, _| server.waits = vec![idle; 1_000].into());
    for step in 0..1_000 {
        pair.world.run_until(millis(step)).unwrap();
        pair.client_sends(envelope(0, 0), b"x");
    }
    pair.world.update(pair.server, |server, _| server.waits.clear());
    pair.world.run_until(millis(2_000)).unwrap();
    let server = pair.world.node(pair.server);
    assert_eq!(server.inbox.len(), 1_000);
    // The last to move it arrived at 999 ms, before the waits were taken away.
    assert_eq!(server.fired_at, [millis(999 + 30)]);
    // 1,000 arrivals, the first poll of two nodes, and one wake-up about every 30 ms.
    assert!(pair.world.stats().events < 1_050, "{}", pair.world.stats().events);
}

#[test]
fn a_node_is_polled_when_the_world_starts() {
    let mut world = World::new(quiet());
    let waits = [Duration::from_millis(2), Duration::from_millis(3)];
    let node = Recorder { deadline: Some(millis(1)), waits: waits.into(), ..Recorder::default() };
    let node = world.add_node(node);
    assert_eq!(world.run_until(millis(100)), Ok(RunEnd::Idle));
    assert_eq!(world.node(node).fired_at, [millis(1), millis(3), millis(6)]);
}

#[test]
fn runs_without_end_are_stopped() {
    let mut endless = pair(WorldConfig { event_limit: 1_000, ..quiet() }, (), &[delay(5)]);
    for node in [endless.client, endless.server] {
        endless.world.update(node, |node, _| node.echoes = true);
    }
    endless.client_sends(envelope(0, 0), b"x");
    let error = endless.world.run_until(Instant::FAR_FUTURE);
    assert!(matches!(error, Err(RunError::EventLimit { limit: 1_000, .. })));

    let mut stuck = pair(quiet(), (), &[delay(0)]);
    for node in [stuck.client, stuck.server] {
        stuck.world.update(node, |node, _| (node.echoes, node.inbox) = (true, Vec::new()));
    }
    stuck.client_sends(envelope(0, 0), b"x");
    let error = stuck.world.run_until(Instant::FAR_FUTURE);
    assert!(matches!(error, Err(RunError::NoProgress { now: Instant::ZERO, .. })));
}

#[test]
fn a_flag_ends_a_run_that_would_go_on() {
    let mut endless = pair(quiet(), (), &[delay(5)]);
    for node in [endless.client, endless.server] {
        endless.world.update(node, |node, _| node.echoes = true);
    }
    endless.client_sends(envelope(0, 0), b"x");
    let flag = Arc::new(AtomicBool::new(false));
    endless.world.stop_on(Arc::clone(&flag));
    assert_eq!(endless.world.run_until(millis(10_000)), Ok(RunEnd::TimeLimit));
    flag.store(true, Ordering::Relaxed);
    let before = endless.world.stats().events;
    let error = endless.world.run_until(Instant::FAR_FUTURE);
    assert!(matches!(error, Err(RunError::Stopped { .. })), "{error:?}");
    let events = endless.world.stats().events - before;
    assert!(events <= 1_024, "{events}");
}

#[test]
fn a_run_stops_when_its_condition_no_longer_holds() {
    let mut pair = pair(quiet(), (), &[delay(5)]);
    pair.client_sends(envelope(0, 0), b"x");
    pair.client_sends(envelope(0, 0), b"y");
    let server = pair.server;
    let waiting = |world: &World<Recorder>| world.node(server).inbox.is_empty();
    assert_eq!(pair.world.run_while(millis(4), waiting), Ok(RunEnd::TimeLimit));
    assert_eq!(pair.world.run_while(millis(9), waiting), Ok(RunEnd::Condition));
    assert_eq!(pair.world.now(), millis(5));
    assert_eq!(pair.world.run_while(millis(9), |_| true), Ok(RunEnd::Idle));
}

#[test]
fn topologies_that_make_no_sense_are_refused() {
    let mut pair = pair(quiet(), (), &[delay(5)]);
    let here = Interface { node: pair.client, address: envelope(0, 0).local };
    let there = Interface { node: pair.server, address: envelope(0, 0).remote };
    let link = pair.links[0].up;
    let duplicate = pair.world.add_route(here, there, &[link]);
    assert!(matches!(duplicate, Err(TopologyError::DuplicateRoute { .. })));
    let nobody = Interface { node: NodeId(7), address: address(7, 0, 1) };
    let unknown = pair.world.add_route(here, nobody, &[link]);
    assert_eq!(unknown, Err(TopologyError::UnknownNode { node: 7, nodes: 2 }));
    let unknown = pair.world.add_route(there, here, &[LinkId(5)]);
    assert_eq!(unknown, Err(TopologyError::UnknownLink { link: 5, links: 2 }));
    let unknown = pair.world.add_route(there, here, &[link, LinkId(5)]);
    assert_eq!(unknown, Err(TopologyError::UnknownLink { link: 5, links: 2 }));
    for links in [0, 65_536] {
        let length = pair.world.add_route(there, here, &vec![link; links]);
        let (from, to) = (there.address, here.address);
        assert_eq!(length, Err(TopologyError::RouteLength { from, to, links }));
    }
    let invalid = pair.world.add_link(&delay(5).with_loss(2.0));
    assert!(matches!(invalid, Err(TopologyError::Link(_))));
}

#[test]
fn buffers_are_used_again() {
    let mut pair = pair(quiet(), (), &[delay(5)]);
    for step in 0..1_000 {
        pair.client_sends(envelope(0, 0), b"x");
        pair.world.run_until(millis(step)).unwrap();
    }
    // Five milliseconds' worth are on the way at a time.
    assert!(pair.world.pool.made() <= 10, "{}", pair.world.pool.made());
}

#[test]
fn a_queue_is_told_between_events_too() {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(20));
    let mut pair = pair(quiet(), (), &[link]);
    for _ in 0..3 {
        // With headers 1,250 B, which take 1 ms.
        pair.client_sends(envelope(0, 0), &[0; 1_222]);
    }
    let PathLinks { up, down } = pair.links[0];
    let at = |micros: u64| {
        pair.world.queued_at(up, Instant::ZERO + Duration::from_micros(micros)).unwrap().0
    };
    assert_eq!(pair.world.queued(up), Ok(Bytes(3_750)));
    assert_eq!([0, 999, 1_000, 2_500, 3_000].map(at), [3_750, 3_750, 2_500, 1_250, 0]);
    assert_eq!(pair.world.queued(down), Ok(Bytes::ZERO));
    pair.world.run_until(millis(2)).unwrap();
    assert_eq!(pair.world.queued_at(up, Instant::ZERO), Ok(Bytes(1_250)));
    let unknown = Err(TopologyError::UnknownLink { link: 5, links: 2 });
    assert_eq!(pair.world.queued(LinkId(5)), unknown);
}

/// Bounces datagrams over two lossy paths and returns the hash of the run.
fn bouncing(seed: u64) -> u64 {
    bouncing_seen(seed, Duration::from_secs(1))
}

/// The same, where the run is stopped `every` so long to look at it.
fn bouncing_seen(seed: u64, every: Duration) -> u64 {
    let link = LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(5))
        .with_loss(0.01)
        .with_jitter(Duration::from_millis(1));
    let config = WorldConfig::new(Seed::new(seed));
    let mut pair = pair(config, EventHash::with_payload(), &[link.clone(), link]);
    for node in [pair.client, pair.server] {
        pair.world.update(node, |node, _| node.echoes = true);
    }
    for index in 0..100u8 {
        pair.client_sends(envelope(index % 2, 0), &[index; 1_000]);
    }
    let mut until = Instant::ZERO;
    while until < millis(1_000) {
        until = millis(1_000).min(until + every);
        pair.world.run_while(until, |_| true).unwrap();
        for PathLinks { up, down } in &pair.links {
            for link in [*up, *down] {
                assert!(pair.world.queued_at(link, until).unwrap() <= Bytes(100 * 1_028));
            }
        }
    }
    pair.world.observer().value()
}

#[test]
fn a_run_that_is_looked_at_stays_the_same() {
    for micros in [7, 1_000, 333_333] {
        assert_eq!(bouncing_seen(1, Duration::from_micros(micros)), bouncing(1), "{micros}");
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    assert_eq!(bouncing(1), bouncing(1));
    assert_ne!(bouncing(1), bouncing(2));
}

#[test]
fn the_run_of_a_seed_never_changes_between_releases() {
    assert_eq!(format!("{:016x}", bouncing(1)), "d41d23a57a459a30");
}

/// Keeps the fate of what the client sends on its first interface.
#[derive(Default)]
struct Fates(Vec<Verdict>);

impl Observer for Fates {
    fn on_sent(&mut self, _now: Instant, sent: &Sent<'_>) {
        if let Fate::Offered { verdict, .. } = sent.fate
            && sent.envelope.local == envelope(0, 0).local
        {
            self.0.push(verdict);
        }
    }
}

#[test]
fn one_path_more_changes_no_chance_on_the_others() {
    let lossy = delay(5).with_loss(0.1);
    let fates = |links: &[LinkConfig]| {
        let mut pair = pair(WorldConfig::new(Seed::new(3)), Fates::default(), links);
        for index in 0..250 {
            pair.client_sends(envelope(index % 2, 0), b"x");
        }
        pair.world.into_parts().1.0
    };
    let alone = fates(std::slice::from_ref(&lossy));
    assert_eq!(alone.len(), 125);
    assert_eq!(alone, fates(&[lossy.clone(), lossy.with_jitter(Duration::from_millis(2))]));
}

proptest! {
    #[test]
    fn deadlines_fire_exactly_whatever_moves_them(
        waits in proptest::collection::vec(0u64..50, 1..100),
        arrivals in proptest::collection::vec(0u64..40, 0..100),
    ) {
        // The naive way: at each input the deadline is set anew, and the earlier of the next
        // arrival and the deadline comes next; an arrival first if both come at once.
        let mut pair = pair(quiet(), (), &[delay(0)]);
        let mut waits_left: VecDeque<_> =
            waits.iter().map(|&wait| Duration::from_millis(wait)).collect();
        let first = Instant::ZERO + waits_left[0];
        let later: VecDeque<_> = waits_left.drain(1..).collect();
        pair.world.update(pair.server, |server, _| {
            (server.deadline, server.waits) = (Some(first), later.clone());
        });

        let (mut deadline, mut waits_left, mut expected) = (Some(first), later, Vec::new());
        let mut expire_until = |limit: Instant, deadline: &mut Option<Instant>,
                                waits_left: &mut VecDeque<Duration>| {
            while let Some(due) = deadline.filter(|due| *due <= limit) {
                expected.push(due);
                *deadline = waits_left.pop_front().map(|wait| due + wait);
            }
        };
        let mut now = Instant::ZERO;
        for wait in arrivals {
            now += Duration::from_millis(wait);
            pair.world.run_until(now).unwrap();
            expire_until(now, &mut deadline, &mut waits_left);
            pair.client_sends(envelope(0, 0), b"x");
            pair.world.step().unwrap();
            if let Some(wait) = waits_left.pop_front() {
                deadline = Some(now + wait);
            }
        }
        pair.world.run_until(millis(1_000_000)).unwrap();
        expire_until(millis(1_000_000), &mut deadline, &mut waits_left);
        prop_assert_eq!(&pair.world.node(pair.server).fired_at, &expected);
    }
}
