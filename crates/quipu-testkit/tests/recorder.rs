//! What a recorder is told, held against the engine's own counters.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use quipu_base::{Duration, Instant, PathId, Rate, Role, Seed};
use quipu_link::{LinkConfig, Outage};
use quipu_quic::PathCounters;
use quipu_quic::recorder::{
    ConnectionState, Event, Outcome, PathEvent, Recorder, StreamSide, StreamState,
};
use quipu_quic::wire::{Frame, FrameType, PacketKind};
use quipu_sim::{EventHash, Interface, World, WorldConfig};
use quipu_testkit::{
    Action, ExchangeNode, NodeConfig, Plan, QuicNode, Scenario, Tls, client_address, server_address,
};

/// What one recorder was told.
#[derive(Clone, Debug, Default)]
struct Tally {
    last: Instant,
    events: u64,
    sent: BTreeMap<PathId, u64>,
    received: BTreeMap<PathId, u64>,
    lost: BTreeMap<PathId, u64>,
    changes: Vec<(PathId, PathEvent)>,
    states: Vec<ConnectionState>,
    streams: Vec<(StreamSide, StreamState)>,
    stream_bytes: BTreeMap<PathId, u64>,
    decisions: u64,
    placed: u64,
    candidates: u64,
    metrics: u64,
    timers_expired: u64,
    path_acks: u64,
}

#[derive(Clone, Default)]
struct Counting(Arc<Mutex<Tally>>);

impl Recorder for Counting {
    fn record(&mut self, now: Instant, event: &Event<'_>) {
        let mut tally = self.0.lock().unwrap();
        assert!(now >= tally.last, "time goes back: {event:?}");
        assert_eq!(tally.events == 0, matches!(event, Event::Started(_)));
        tally.last = now;
        tally.events += 1;
        match event {
            Event::PacketSent { packet, .. } => {
                *tally.sent.entry(packet.path).or_default() += 1;
                for frame in packet.frames() {
                    match frame.expect("what we wrote can be read") {
                        Frame::Stream(stream) => {
                            let bytes = stream.data.len() as u64;
                            *tally.stream_bytes.entry(packet.path).or_default() += bytes;
                        }
                        frame if frame.frame_type() == FrameType::PATH_ACK => tally.path_acks += 1,
                        _ => {}
                    }
                }
                if packet.kind == PacketKind::OneRtt {
                    assert!(packet.scid.is_empty());
                }
                assert!(packet.size > packet.payload.len() + 16);
            }
            Event::PacketReceived { packet, .. } => {
                *tally.received.entry(packet.path).or_default() += 1;
                assert!(packet.frames().all(|frame| frame.is_ok()));
            }
            Event::PacketLost { path, .. } => *tally.lost.entry(*path).or_default() += 1,
            Event::Path { path, change } => tally.changes.push((*path, *change)),
            Event::State(state) => tally.states.push(*state),
            Event::Stream { side, state, .. } => tally.streams.push((*side, *state)),
            Event::Scheduled(scheduled) => {
                tally.decisions += 1;
                tally.candidates += scheduled.candidates.len() as u64;
                tally.placed += u64::from(matches!(scheduled.outcome, Outcome::Sends { .. }));
            }
            Event::Metrics(_) => tally.metrics += 1,
            Event::TimerExpired { .. } => tally.timers_expired += 1,
            _ => {}
        }
    }
}

struct Ran {
    tallies: [Tally; 2],
    counters: [Vec<(PathId, PathCounters)>; 2],
    asked: [u64; 2],
    /// Hash of all datagrams, bytes included.
    trace: u64,
    ended_at: Instant,
}

/// A download over two lossy paths; the first is cut after half a second, and later abandoned.
fn run(recorded: bool) -> Ran {
    let link = |mbit, millis| {
        LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(millis))
            .with_loss(0.01)
    };
    let at = |millis| Instant::ZERO + Duration::from_millis(millis);
    let paths = vec![link(20, 10).with_outage(Outage::for_good(at(500))), link(10, 25)];
    let scenario = Scenario::new(Plan::download(2_000_000), paths);
    let recorders = [Counting::default(), Counting::default()];
    let node = |role: Role, recorder: &Counting| {
        let mut config = NodeConfig::new(&scenario, role, Tls::Null { chain: 3_000 });
        if role == Role::Client {
            config.actions = vec![(at(900), Action::Abandon(PathId(0)))];
        }
        let node = QuicNode::new(config);
        let recorder = recorder.clone();
        if recorded {
            node.recorded(Arc::new(move |_| Some(Box::new(recorder.clone()))))
        } else {
            node
        }
    };
    let config = WorldConfig::new(Seed::new(1));
    let mut world = World::with_observer(config, EventHash::with_payload());
    let client = world.add_node(node(Role::Client, &recorders[0]));
    let server = world.add_node(node(Role::Server, &recorders[1]));
    let there = Interface { node: server, address: server_address() };
    for (path, link) in (0..).zip(&scenario.paths) {
        let here = Interface { node: client, address: client_address(path) };
        world.add_path(here, there, link, link).unwrap();
    }
    let has_all = |node: &QuicNode| node.exchange().is_some_and(|e| e.received_all_at().is_some());
    world.run_while(at(60_000), |world| !has_all(world.node(client))).unwrap();
    assert!(has_all(world.node(client)));
    // The path's state is dropped three probe timeouts after it was abandoned.
    let until = world.now() + Duration::from_secs(5);
    world.run_while(until, |_| true).unwrap();
    let ends = [client, server].map(|id| world.node(id).connection().unwrap());
    Ran {
        counters: ends.map(|connection| connection.path_counters()),
        asked: ends.map(|connection| connection.scheduler_counters().asked),
        tallies: recorders.map(|recorder| recorder.0.lock().unwrap().clone()),
        trace: world.observer().value(),
        ended_at: world.now(),
    }
}

#[test]
fn a_recorder_changes_no_byte() {
    let (with, without) = (run(true), run(false));
    assert_eq!((with.trace, with.ended_at), (without.trace, without.ended_at));
    assert_eq!(without.tallies[0].events, 0);
    assert!(with.tallies.iter().all(|tally| tally.events > 1_000));
}

#[test]
fn what_is_told_adds_up_to_the_counters() {
    let ran = run(true);
    for (tally, counters) in ran.tallies.iter().zip(&ran.counters) {
        for (path, counters) in counters {
            let told = |map: &BTreeMap<PathId, u64>| map.get(path).copied().unwrap_or_default();
            assert_eq!(told(&tally.sent), counters.packets_sent, "sent on {path}");
            assert_eq!(told(&tally.lost), counters.packets_lost, "lost on {path}");
            assert!(told(&tally.stream_bytes) >= counters.stream_bytes, "bytes on {path}");
            // Several packets of the handshake may come in one datagram.
            assert!(told(&tally.received) >= counters.packets_received, "received on {path}");
        }
        assert!(tally.metrics > 0 && tally.path_acks > 0);
    }
    for (tally, asked) in ran.tallies.iter().zip(ran.asked) {
        assert_eq!(tally.decisions, asked);
    }
    let server = &ran.tallies[1];
    assert!(server.placed > 0 && server.candidates > 0);
    assert!(server.lost.values().sum::<u64>() > 10, "{:?}", server.lost);
    assert!(server.timers_expired > 0);
}

#[test]
fn the_life_of_paths_streams_and_connection_is_told_in_order() {
    let ran = run(true);
    let [client, server] = &ran.tallies;
    for tally in [client, server] {
        let of = |id: u32| -> Vec<&PathEvent> {
            tally.changes.iter().filter(|(path, _)| path.0 == id).map(|(_, c)| c).collect()
        };
        assert!(matches!(of(0).first(), Some(PathEvent::Assigned { .. })), "{:?}", of(0));
        assert!(of(0).iter().any(|change| matches!(change, PathEvent::Abandoned { .. })));
        assert_eq!(of(0).last(), Some(&&PathEvent::Dropped), "{:?}", of(0));
        assert!(matches!(of(1)[..2], [PathEvent::Assigned { .. }, PathEvent::Validated]));
        let shook = [ConnectionState::HandshakeComplete, ConnectionState::HandshakeConfirmed];
        assert_eq!(tally.states, shook);
    }
    assert!(server.changes.contains(&(PathId(0), PathEvent::Suspect)), "{:?}", server.changes);
    let open = [StreamSide::Sending, StreamSide::Receiving].map(|side| (side, StreamState::Open));
    for tally in [client, server] {
        assert_eq!(tally.streams[..2], open);
    }
    assert!(client.streams.contains(&(StreamSide::Receiving, StreamState::DataRead)));
    assert_eq!(server.streams.last(), Some(&(StreamSide::Sending, StreamState::Closed)));
}
