//! What a recorder is told, held against the engine's own counters.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use quipu_base::{Instant, PathId};
use quipu_quic::recorder::{
    ConnectionState, Event, Outcome, PathEvent, Recorder, RecorderFactory, StreamSide, StreamState,
};
use quipu_quic::wire::{Frame, FrameType, PacketKind};

use crate::run::{Ran, run};

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

/// The run with what a recorder of each end was told.
fn tallied() -> (Ran, [Tally; 2]) {
    let recorders = [Counting::default(), Counting::default()];
    let factories = recorders
        .clone()
        .map(|recorder| -> RecorderFactory { Arc::new(move |_| Some(Box::new(recorder.clone()))) });
    let ran = run(Some(factories));
    (ran, recorders.map(|recorder| recorder.0.lock().unwrap().clone()))
}

#[test]
fn a_recorder_changes_no_byte() {
    let ((with, tallies), without) = (tallied(), run(None));
    assert_eq!((with.trace, with.ended_at), (without.trace, without.ended_at));
    assert!(tallies.iter().all(|tally| tally.events > 1_000));
}

#[test]
fn what_is_told_adds_up_to_the_counters() {
    let (ran, tallies) = tallied();
    for (tally, counters) in tallies.iter().zip(&ran.counters) {
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
    for (tally, asked) in tallies.iter().zip(ran.asked) {
        assert_eq!(tally.decisions, asked);
    }
    let server = &tallies[1];
    assert!(server.placed > 0 && server.candidates > 0);
    assert!(server.lost.values().sum::<u64>() > 10, "{:?}", server.lost);
    assert!(server.timers_expired > 0);
}

#[test]
fn the_life_of_paths_streams_and_connection_is_told_in_order() {
    let (_, tallies) = tallied();
    let [client, server] = &tallies;
    for tally in [client, server] {
        let of = |id: u32| -> Vec<&PathEvent> {
            tally.changes.iter().filter(|(path, _)| path.0 == id).map(|(_, c)| c).collect()
        };
        assert!(matches!(of(0).first(), Some(PathEvent::Assigned { .. })), "{:?}", of(0));
        assert!(of(0).iter().any(|change| matches!(change, PathEvent::Abandoned { .. })));
        assert_eq!(of(0).last(), Some(&&PathEvent::Dropped), "{:?}", of(0));
        assert!(matches!(of(1)[..2], [PathEvent::Assigned { .. }, PathEvent::Validated]));
        let shook = [ConnectionState::HandshakeComplete, ConnectionState::HandshakeConfirmed];
        assert_eq!(tally.states[..2], shook);
    }
    assert_eq!(client.states[2..], [ConnectionState::Closing, ConnectionState::Closed]);
    assert_eq!(server.states[2..], [ConnectionState::Draining, ConnectionState::Closed]);
    assert!(server.changes.contains(&(PathId(0), PathEvent::Suspect)), "{:?}", server.changes);
    let open = [StreamSide::Sending, StreamSide::Receiving].map(|side| (side, StreamState::Open));
    for tally in [client, server] {
        assert_eq!(tally.streams[..2], open);
    }
    assert!(client.streams.contains(&(StreamSide::Receiving, StreamState::DataRead)));
    assert_eq!(server.streams.last(), Some(&(StreamSide::Sending, StreamState::Closed)));
}
