//! Two ends exchange streams over a wire that loses, repeats and reorders, under random scripts.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes as Chunk;
use proptest::prelude::*;
use quipu_base::PathId;
use quipu_policy::seam::referee::fit_copy;
use quipu_policy::{PathKey, Span, StreamTable};

use super::*;
use crate::stream::frames::ControlFrame;

const NOW: Instant = Instant::ZERO;
const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };
const MAX_STREAM: u64 = 3000;

const LIMITS: StreamLimits = StreamLimits {
    stream_window: 600,
    connection_window: 1000,
    bidirectional: 3,
    unidirectional: 2,
    cancels: CancelLimit { burst: 1_000, per_second: 33 },
    send_buffer: 800,
    unsent: 300,
};

const PEER: PeerLimits = PeerLimits {
    max_data: 1000,
    max_stream_data_bidi_local: 600,
    max_stream_data_bidi_remote: 600,
    max_stream_data_uni: 600,
    max_streams_bidi: 3,
    max_streams_uni: 2,
};

#[derive(Clone, Copy, Debug)]
enum Frame {
    Stream { key: StreamKey, span: Span, fin: bool },
    Control(ControlFrame),
}

#[derive(Clone, Debug)]
enum Op {
    Open(usize, bool),
    Write(usize, usize, u64),
    Finish(usize, usize),
    Reset(usize, usize),
    Stop(usize, usize),
    SetControl(usize, usize),
    Read(usize, u64),
    /// End, which stream, from which offset, how much.
    Send(usize, usize, u64, u64),
    SendControlStream(usize, u64),
    Copy(usize, usize, u64, u64),
    SendFrame(usize),
    Deliver(usize, usize),
    Ack(usize, usize),
    Lose(usize, usize),
    /// All stream bytes that may go are sent, arrive, are acknowledged and read.
    Exchange(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let end = 0usize..2;
    let pick = 0usize..8;
    prop_oneof![
        2 => (end.clone(), any::<bool>()).prop_map(|(end, uni)| Op::Open(end, uni)),
        4 => (end.clone(), pick.clone(), 0u64..900).prop_map(|(e, s, len)| Op::Write(e, s, len)),
        2 => (end.clone(), pick.clone()).prop_map(|(e, s)| Op::Finish(e, s)),
        1 => (end.clone(), pick.clone()).prop_map(|(e, s)| Op::Reset(e, s)),
        1 => (end.clone(), pick.clone()).prop_map(|(e, s)| Op::Stop(e, s)),
        1 => (end.clone(), pick.clone()).prop_map(|(e, s)| Op::SetControl(e, s)),
        4 => (end.clone(), 1u64..500).prop_map(|(e, max)| Op::Read(e, max)),
        6 => (end.clone(), pick.clone(), 0u64..1200, 1u64..300)
            .prop_map(|(e, s, from, max)| Op::Send(e, s, from, max)),
        2 => (end.clone(), 1u64..300).prop_map(|(e, max)| Op::SendControlStream(e, max)),
        2 => (end.clone(), pick.clone(), 0u64..1200, 1u64..300)
            .prop_map(|(e, s, from, max)| Op::Copy(e, s, from, max)),
        3 => end.clone().prop_map(Op::SendFrame),
        7 => (end.clone(), pick.clone()).prop_map(|(e, f)| Op::Deliver(e, f)),
        4 => (end.clone(), pick.clone()).prop_map(|(e, f)| Op::Ack(e, f)),
        3 => (end.clone(), pick).prop_map(|(e, f)| Op::Lose(e, f)),
        3 => end.prop_map(Op::Exchange),
    ]
}

/// One end, what its policy and its application know, and what it has on the wire.
struct End {
    streams: Streams,
    /// What the policy was told: stream by slot, and whether it is ready.
    policy: BTreeMap<u32, (StreamId, bool)>,
    /// Streams seen by the application, and whether reading may go on.
    seen: Vec<StreamId>,
    readable: Vec<StreamId>,
    read: BTreeMap<StreamId, u64>,
    /// Frames in flight, and whether they arrived.
    wire: Vec<(Frame, bool)>,
    sent: u64,
    /// Streams of which a write took a part, and that were not told of room since.
    short: BTreeSet<StreamId>,
}

fn byte(id: StreamId, at: u64) -> u8 {
    ((id.0 + 1) * 31 + at * 7) as u8
}

impl End {
    fn new(role: Role) -> Self {
        let mut streams = Streams::new(role, LIMITS);
        streams.set_peer_limits(PEER);
        End {
            streams,
            policy: BTreeMap::new(),
            seen: Vec::new(),
            readable: Vec::new(),
            read: BTreeMap::new(),
            wire: Vec::new(),
            sent: 0,
            short: BTreeSet::new(),
        }
    }

    fn pick(&self, stream: usize) -> Option<StreamId> {
        self.seen.get(self.seen.len().checked_sub(1 + stream)?).copied()
    }

    fn write(&mut self, id: StreamId, len: u64) {
        let Some(key) = self.streams.key(id) else { return };
        let Some(half) = self.streams.send_half(key) else { return };
        let start = half.written().0;
        let end = (start + len).min(MAX_STREAM);
        let data: Chunk = (start..end).map(|at| byte(id, at)).collect();
        let finished = half.is_finished();
        let (length, room) = (data.len(), self.streams.send_room(id));
        let taken = self.streams.write(id, data);
        assert_eq!(taken.is_ok(), !finished);
        if let Ok(taken) = taken {
            assert_eq!(taken, length.min(room));
            if taken < length {
                self.short.insert(id);
            }
        }
    }

    fn place(&mut self, key: StreamKey, span: Span) {
        let before = self.streams.send_half(key).map(SendHalf::high_sent).unwrap();
        let placed = self.streams.place(key, span).unwrap();
        self.sent += self.streams.send_half(key).unwrap().high_sent().since(before).0;
        self.wire.push((Frame::Stream { key, span, fin: placed.fin }, false));
    }

    fn send_all(&mut self) {
        while let Some((key, span)) = self.streams.next_control(Bytes(200)) {
            self.place(key, span);
        }
        let keys: Vec<StreamKey> = self.streams.views().map(|view| view.key).collect();
        for key in keys {
            while let Ok(span) = self.streams.fit(key, None, Bytes(200)) {
                self.place(key, span);
            }
        }
    }

    fn read(&mut self, max: u64) {
        let Some(id) = self.readable.pop() else { return };
        let mut at = self.read.get(&id).copied().unwrap_or(0);
        let told = self.streams.read(id, max, &mut |part| {
            for &got in part {
                assert_eq!(got, byte(id, at), "{id} at {at}");
                at += 1;
            }
        });
        self.read.insert(id, at);
        // An error: the stream was reset or stopped meanwhile.
        if told.is_ok_and(|told| !told.end && told.bytes == max) {
            self.readable.push(id);
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.streams.pop_event() {
            match event {
                StreamEvent::Opened(id) => self.seen.push(id),
                StreamEvent::Readable(id) => self.readable.push(id),
                StreamEvent::Writable(id) => assert!(self.short.remove(&id), "{id}"),
                _ => {}
            }
        }
        while let Some(edge) = self.streams.pop_edge() {
            let key = edge.key();
            let known = self.policy.get(&key.slot).copied();
            if !matches!(edge, Edge::Opened(_)) {
                assert_eq!(known.map(|(id, _)| id), Some(key.id), "{edge:?}");
            }
            match edge {
                Edge::Opened(_) => {
                    assert_eq!(known, None, "slot used before Closed");
                    self.policy.insert(key.slot, (key.id, false));
                }
                Edge::Closed(_) => {
                    self.policy.remove(&key.slot);
                }
                Edge::Ready(_) | Edge::Stopped(_) => {
                    let ready = matches!(edge, Edge::Ready(_));
                    assert_eq!(known, Some((key.id, !ready)));
                    self.policy.insert(key.slot, (key.id, ready));
                }
                _ => {}
            }
        }
    }

    fn check(&self) {
        let views: BTreeMap<u32, (StreamId, bool)> = (self.streams.views())
            .map(|view| (view.key.slot, (view.key.id, view.is_ready())))
            .collect();
        assert_eq!(self.policy, views);
        let conn = self.streams.conn_view();
        assert_eq!(conn.ready as usize, views.values().filter(|(_, ready)| *ready).count());
        let mut unsent = 0;
        let mut beyond = 0;
        for slot in self.streams.slots.iter().filter(|slot| slot.live) {
            let Some(half) = self.streams.send_half(slot.key) else { continue };
            beyond += half.sendable() - half.free();
            if let Some(view) = self.streams.get(slot.key) {
                unsent += half.unsent();
                assert_eq!(view.sendable, Bytes(half.sendable()));
                assert_eq!(view.free, Bytes(half.free()));
                assert_eq!(view.bare_fin, half.bare_fin());
                assert_eq!(view.high_sent, half.high_sent());
            }
        }
        let halves = || {
            let live = self.streams.slots.iter().filter(|slot| slot.live);
            live.filter_map(|slot| Some((slot, self.streams.send_half(slot.key)?)))
        };
        assert_eq!(self.streams.buffered, halves().map(|(_, half)| half.buffered()).sum::<u64>());
        // Nobody waits for room in vain.
        let enough = LIMITS.send_buffer - LIMITS.send_buffer / 4;
        for (slot, _) in halves().filter(|(slot, _)| self.short.contains(&slot.key.id)) {
            assert!(slot.wants_room, "{}", slot.key.id);
            let short = self.streams.buffered > enough && slot.buffered > LIMITS.send_buffer / 32;
            assert!(short || slot.unsent > LIMITS.unsent / 2, "{}", slot.key.id);
            assert!(slot.control || slot.unsent <= LIMITS.unsent, "{}", slot.key.id);
        }
        let limited = halves().filter(|(slot, _)| !slot.control);
        let limited: u64 = limited.map(|(_, half)| half.buffered()).sum();
        assert!(limited <= LIMITS.send_buffer + 16 * LIMITS.send_buffer / 16, "{limited}");
        assert_eq!(conn.unsent, Bytes(unsent));
        assert_eq!(self.streams.sendable_beyond, beyond);
        assert_eq!(conn.credit, Bytes(self.streams.send_limit - self.sent));
        assert_eq!(self.streams.send_blocked, conn.credit.is_zero() && beyond > 0);
        let blocked = halves().filter(|(_, half)| half.is_blocked()).count();
        assert_eq!(self.streams.blocked_streams as usize, blocked);
    }
}

fn deliver(frame: Frame, from: &End, to: &mut End) {
    let streams = &mut to.streams;
    match frame {
        Frame::Stream { key, span, fin } => {
            let data: Vec<u8> = (span.start.0..span.end.0).map(|at| byte(key.id, at)).collect();
            let mut copied = vec![0; data.len()];
            if from.streams.copy_to(key, span, &mut copied) {
                assert_eq!(copied, data);
            }
            streams.on_stream_frame(key.id, span.start, fin, &data, NOW).unwrap();
        }
        Frame::Control(frame) => match frame {
            ControlFrame::MaxData { limit } => streams.on_max_data(limit),
            ControlFrame::MaxStreamData { stream, limit } => {
                streams.on_max_stream_data(stream.id, limit, NOW).unwrap();
            }
            ControlFrame::MaxStreams { direction, limit } => {
                streams.on_max_streams(direction, limit);
            }
            ControlFrame::StreamDataBlocked { stream, .. } => {
                streams.on_stream_data_blocked(stream.id, NOW).unwrap();
            }
            ControlFrame::ResetStream { stream, code, final_size } => {
                streams.on_reset_stream(stream.id, code, final_size, NOW).unwrap();
            }
            ControlFrame::StopSending { stream, code } => {
                streams.on_stop_sending(stream.id, code, NOW).unwrap();
            }
            ControlFrame::DataBlocked { .. } | ControlFrame::StreamsBlocked { .. } => {}
        },
    }
}

fn ack(end: &mut End, frame: Frame) {
    match frame {
        Frame::Stream { key, span, fin } => {
            end.streams.on_acked(key, span, fin);
        }
        Frame::Control(frame) => end.streams.on_frame_acked(&frame),
    }
}

fn lose(end: &mut End, frame: Frame) {
    match frame {
        Frame::Stream { key, span, fin } => {
            end.streams.on_lost(key, span, fin, PATH, &mut Vec::new());
        }
        Frame::Control(frame) => end.streams.requeue_frame(&frame),
    }
}

fn both(ends: &mut [End; 2], sender: usize) -> (&mut End, &mut End) {
    let [client, server] = ends;
    if sender == 0 { (client, server) } else { (server, client) }
}

fn apply(op: Op, ends: &mut [End; 2]) {
    match op {
        Op::Open(end, uni) => {
            let direction = [StreamDirection::Bidirectional, StreamDirection::Unidirectional];
            let end = &mut ends[end];
            if let Ok(id) = end.streams.open(direction[usize::from(uni)], NOW) {
                end.seen.push(id);
            }
        }
        Op::Write(end, stream, len) => {
            if let Some(id) = ends[end].pick(stream) {
                ends[end].write(id, len);
            }
        }
        Op::Finish(end, stream) => {
            if let Some(id) = ends[end].pick(stream) {
                let _ = ends[end].streams.finish(id);
            }
        }
        Op::Reset(end, stream) => {
            if let Some(id) = ends[end].pick(stream) {
                let _ = ends[end].streams.reset(id, 1);
            }
        }
        Op::Stop(end, stream) => {
            if let Some(id) = ends[end].pick(stream) {
                let _ = ends[end].streams.stop_sending(id, 2);
            }
        }
        Op::SetControl(end, stream) => {
            if let Some(id) = ends[end].pick(stream) {
                let _ = ends[end].streams.set_control(id);
            }
        }
        Op::Read(end, max) => ends[end].read(max),
        Op::Send(end, stream, from, max) => {
            let end = &mut ends[end];
            let Some(key) = end.pick(stream).and_then(|id| end.streams.key(id)) else { return };
            let from = end.streams.pending_from(key, Offset(from)).map(|run| run.span.start);
            if let Ok(span) = end.streams.fit(key, from, Bytes(max)) {
                end.place(key, span);
            }
        }
        Op::SendControlStream(end, max) => {
            if let Some((key, span)) = ends[end].streams.next_control(Bytes(max)) {
                ends[end].place(key, span);
            }
        }
        Op::Copy(end, stream, from, max) => {
            let end = &mut ends[end];
            let Some(key) = end.pick(stream).and_then(|id| end.streams.key(id)) else { return };
            let Some(span) = end.streams.unacked_from(key, Offset(from)) else { return };
            let span = fit_copy(&end.streams, key, span, Bytes(max)).unwrap();
            let placed = end.streams.place_copy(key, span).unwrap();
            end.wire.push((Frame::Stream { key, span, fin: placed.fin }, false));
        }
        Op::SendFrame(end) => {
            if let Some(frame) = ends[end].streams.pop_frame(|_| true) {
                ends[end].wire.push((Frame::Control(frame), false));
            }
        }
        Op::Deliver(end, index) => {
            let (from, to) = both(ends, end);
            let Some(&(frame, _)) = from.wire.get(index) else { return };
            deliver(frame, from, to);
            from.wire[index].1 = true;
        }
        Op::Ack(end, index) => {
            let end = &mut ends[end];
            if end.wire.get(index).is_some_and(|(_, arrived)| *arrived) {
                let (frame, _) = end.wire.remove(index);
                ack(end, frame);
            }
        }
        Op::Lose(end, index) => {
            let end = &mut ends[end];
            if index < end.wire.len() {
                let (frame, _) = end.wire.remove(index);
                lose(end, frame);
            }
        }
        Op::Exchange(end) => {
            let (from, to) = both(ends, end);
            let before = from.wire.len();
            from.send_all();
            for (frame, _) in from.wire.split_off(before) {
                deliver(frame, from, to);
                ack(from, frame);
            }
            to.drain();
            while !to.readable.is_empty() {
                to.read(u64::MAX);
            }
        }
    }
}

fn settle(ends: &mut [End; 2]) {
    for end in ends {
        end.drain();
        end.check();
    }
}

/// Ends every stream and moves frames without loss until nothing is left to move.
fn finish(ends: &mut [End; 2]) {
    for end in ends.iter_mut() {
        for id in end.seen.clone() {
            let _ = end.streams.finish(id);
        }
    }
    for _ in 0..10_000 {
        settle(ends);
        let mut moved = false;
        for sender in 0..2 {
            let (from, to) = both(ends, sender);
            for id in from.seen.clone() {
                let _ = from.streams.finish(id);
            }
            while !from.readable.is_empty() {
                from.read(u64::MAX);
            }
            while let Some(frame) = from.streams.pop_frame(|_| true) {
                from.wire.push((Frame::Control(frame), false));
            }
            from.send_all();
            for (frame, _) in std::mem::take(&mut from.wire) {
                moved = true;
                deliver(frame, from, to);
                ack(from, frame);
            }
        }
        if !moved {
            return;
        }
    }
    panic!("the two ends never come to rest");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_stream_ends_and_the_counts_always_hold(ops in prop::collection::vec(op(), 1..250)) {
        let mut ends = [End::new(Role::Client), End::new(Role::Server)];
        for op in ops {
            apply(op, &mut ends);
            settle(&mut ends);
        }
        finish(&mut ends);
        for end in &ends {
            prop_assert!(end.streams.is_empty(), "{:#?}", end.streams.slots);
            prop_assert_eq!(end.streams.conn_view().ready, 0);
            prop_assert_eq!(end.streams.conn_view().unsent, Bytes::ZERO);
        }
        prop_assert_eq!(ends[0].sent, ends[1].streams.received);
        prop_assert_eq!(ends[1].sent, ends[0].streams.received);
    }
}
