//! A sender without paths, for unit tests of stream policies: streams with their pending bytes, and
//! a driver that asks and tells a policy as a `Pair` does.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration, Instant, Offset, PathId, StreamId};

use super::{StreamPolicy, Turn};
use crate::key::{PathKey, Span, StreamKey};
use crate::priority::{NodeId, Priorities, Priority, PriorityEdit};
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{
    Class, ConnView, Kind, Paths, Piece, Run, SentPacket, SentTable, StreamTable, StreamView, View,
};

const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };

/// A stream with its pending runs, by start.
#[derive(Clone, Debug)]
struct Sender {
    view: StreamView,
    pending: BTreeMap<u64, Run>,
    /// Sent and not acknowledged, by start.
    unacked: BTreeMap<u64, u64>,
    blocked: bool,
    ready: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Vec<Option<Sender>>);

struct NoPackets;

impl SentTable for NoPackets {
    fn next_sent(
        &self,
        _path: PathKey,
        _after: Option<quipu_base::PacketNumber>,
    ) -> Option<SentPacket<'_>> {
        None
    }
}

impl Streams {
    fn sender(&self, stream: StreamKey) -> Option<&Sender> {
        self.0.get(stream.index())?.as_ref().filter(|sender| sender.view.key == stream)
    }
}

impl StreamTable for Streams {
    fn get(&self, stream: StreamKey) -> Option<&StreamView> {
        self.sender(stream).map(|sender| &sender.view)
    }

    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        let sender = self.sender(stream).filter(|sender| !sender.blocked)?;
        sender.pending.values().find(|run| run.span.end > at || run.span.is_empty()).map(|run| {
            Run { span: Span::new(run.span.start.max(at), run.span.end), class: run.class }
        })
    }

    fn pending_before(&self, _stream: StreamKey, _at: Offset) -> Option<Run> {
        None
    }

    fn unacked_from(&self, stream: StreamKey, at: Offset) -> Option<Span> {
        let unacked = &self.sender(stream)?.unacked;
        unacked
            .iter()
            .find(|&(_, &end)| end > at.0)
            .map(|(&start, &end)| Span::new(Offset(start.max(at.0)), Offset(end)))
    }
}

/// What `send` did: whose bytes, and which.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) stream: StreamKey,
    pub(crate) span: Span,
    pub(crate) class: Class,
}

impl Taken {
    fn kind(self) -> Kind {
        if self.class == Class::Fresh { Kind::Fresh } else { Kind::Again }
    }
}

pub(crate) struct Driver<P> {
    pub(crate) policy: P,
    pub(crate) now: Instant,
    pub(crate) priorities: Priorities,
    conn: ConnView,
    paths: Paths,
    pub(crate) streams: Streams,
    by_id: BTreeMap<u64, StreamKey>,
}

impl<P: StreamPolicy> Driver<P> {
    pub(crate) fn new(policy: P) -> Self {
        Driver {
            policy,
            now: Instant::ZERO,
            priorities: Priorities::new(),
            conn: ConnView { credit: Bytes::MAX, ..ConnView::default() },
            paths: Paths::new(),
            streams: Streams::default(),
            by_id: BTreeMap::new(),
        }
    }

    pub(crate) fn tell(&mut self, event: &Event<'_>) {
        let view = View {
            now: self.now,
            conn: &self.conn,
            paths: &self.paths,
            streams: &self.streams,
            sent: &NoPackets,
            priorities: &self.priorities,
        };
        self.policy.on_event(event, &view);
    }

    fn with_policy<R>(&mut self, call: impl FnOnce(&mut P, &View<'_>) -> R) -> R {
        let view = View {
            now: self.now,
            conn: &self.conn,
            paths: &self.paths,
            streams: &self.streams,
            sent: &NoPackets,
            priorities: &self.priorities,
        };
        call(&mut self.policy, &view)
    }

    pub(crate) fn advance(&mut self, time: Duration) {
        self.now += time;
    }

    pub(crate) fn key(&self, id: u64) -> StreamKey {
        self.by_id[&id]
    }

    /// A node of the tree; 0 names the root.
    pub(crate) fn node(&mut self, node: u64, parent: u64, weight: u16) {
        let parent = if parent == 0 { NodeId::ROOT } else { NodeId(parent) };
        let edit = PriorityEdit::Insert { node: NodeId(node), parent, weight, exclusive: false };
        self.edit(&edit, None);
    }

    pub(crate) fn edit(&mut self, edit: &PriorityEdit, stream: Option<StreamKey>) {
        for edit in self.priorities.apply(edit, stream).unwrap() {
            self.tell(&Event::Tree(edit));
        }
    }

    /// A stream without bytes.
    pub(crate) fn create(&mut self, id: u64, size: Option<u64>) -> StreamKey {
        let slot = self.streams.0.len();
        let key = StreamKey { slot: slot as u32, id: StreamId(id) };
        let view = StreamView {
            key,
            priority: Priority::default(),
            seq: slot as u64,
            opened_at: self.now,
            size: size.map(Bytes),
            written: Offset::ZERO,
            fin: false,
            high_sent: Offset::ZERO,
            credit_end: Offset(u64::MAX),
            sendable: Bytes::ZERO,
            free: Bytes::ZERO,
            bare_fin: false,
        };
        self.streams.0.push(Some(Sender {
            view,
            pending: BTreeMap::new(),
            unacked: BTreeMap::new(),
            blocked: false,
            ready: false,
        }));
        self.by_id.insert(id, key);
        self.tell(&Event::Opened(key));
        key
    }

    /// A finished stream of so many bytes, of unknown total size.
    pub(crate) fn open(&mut self, id: u64, bytes: u64) -> StreamKey {
        let key = self.create(id, None);
        self.write(id, bytes, true);
        key
    }

    /// The same, with a node of its own in the tree.
    pub(crate) fn open_at(&mut self, id: u64, parent: u64, weight: u16, bytes: u64) -> StreamKey {
        let key = self.create(id, None);
        self.node(1_000 + id, parent, weight);
        let node = NodeId(1_000 + id);
        self.edit(&PriorityEdit::Attach { node, stream: key.id }, Some(key));
        self.write(id, bytes, true);
        key
    }

    pub(crate) fn write(&mut self, id: u64, bytes: u64, fin: bool) {
        let key = self.key(id);
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        let start = sender.view.written;
        sender.view.written = start.advanced(Bytes(bytes));
        sender.view.fin = fin;
        if bytes > 0 {
            let span = Span::new(start, sender.view.written);
            sender.pending.insert(start.0, Run { span, class: Class::Fresh });
        } else if fin && sender.pending.is_empty() {
            let span = Span::new(start, start);
            sender.pending.insert(start.0, Run { span, class: Class::Fresh });
        }
        self.count(key);
        self.tell(&Event::Written(key));
        self.settle(key);
    }

    /// Bytes `start..end`, sent before, are lost and pending again.
    pub(crate) fn lose(&mut self, id: u64, start: u64, end: u64) {
        let key = self.key(id);
        let span = Span::new(Offset(start), Offset(end));
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        sender.pending.insert(start, Run { span, class: Class::Lost { origin: PATH } });
        sender.unacked.remove(&start);
        self.count(key);
        self.tell(&Event::Requeued { stream: key, span, origin: PATH });
        self.settle(key);
    }

    /// Tells a stream's total size.
    pub(crate) fn set_size(&mut self, id: u64, size: u64) {
        let key = self.key(id);
        self.streams.0[key.index()].as_mut().unwrap().view.size = Some(Bytes(size));
        self.tell(&Event::Sized(key));
    }

    /// Changes what is said of a stream's priority.
    pub(crate) fn set_priority(&mut self, id: u64, priority: Priority) {
        let key = self.key(id);
        self.streams.0[key.index()].as_mut().unwrap().view.priority = priority;
        self.tell(&Event::Reprioritised(key));
    }

    pub(crate) fn block(&mut self, id: u64) {
        self.set_blocked(id, true);
    }

    pub(crate) fn unblock(&mut self, id: u64) {
        self.set_blocked(id, false);
    }

    fn set_blocked(&mut self, id: u64, blocked: bool) {
        let key = self.key(id);
        self.streams.0[key.index()].as_mut().unwrap().blocked = blocked;
        self.settle(key);
    }

    pub(crate) fn close(&mut self, id: u64) {
        let key = self.key(id);
        self.streams.0[key.index()] = None;
        self.priorities.detach(key);
        self.tell(&Event::Closed(key));
    }

    /// Brings the view up to date.
    fn count(&mut self, key: StreamKey) {
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        let pending = sender.pending.values().filter(|_| !sender.blocked);
        let bytes: Bytes = pending.clone().map(|run| run.span.len()).sum();
        let free = pending.clone().filter(|run| run.span.end <= sender.view.high_sent);
        let (free, bare_fin) =
            (free.map(|run| run.span.len()).sum(), pending.clone().any(|run| run.span.is_empty()));
        (sender.view.sendable, sender.view.free) = (bytes, free);
        sender.view.bare_fin = bare_fin;
    }

    /// Brings the view up to date and tells the edge.
    fn settle(&mut self, key: StreamKey) {
        self.count(key);
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        let ready = sender.view.is_ready();
        if std::mem::replace(&mut sender.ready, ready) != ready {
            self.tell(&if ready { Event::Ready(key) } else { Event::Stopped(key) });
        }
    }

    pub(crate) fn is_ready(&self, stream: StreamKey) -> bool {
        self.streams.sender(stream).is_some_and(|sender| sender.ready)
    }

    pub(crate) fn any_ready(&self) -> bool {
        self.streams.0.iter().flatten().any(|sender| sender.ready)
    }

    /// What is said of a stream's priority.
    pub(crate) fn priority(&self, id: u64) -> Priority {
        self.streams.get(self.key(id)).unwrap().priority
    }

    /// The weight that holds for a stream.
    pub(crate) fn weight(&self, stream: StreamKey) -> u64 {
        self.priorities.node_of(stream).map_or(16, |node| node.weight.into())
    }

    /// What of a stream was written and waits to be sent, planned bytes and holes included.
    pub(crate) fn pending_bytes(&self, stream: StreamKey) -> u64 {
        let sender = self.streams.sender(stream).unwrap();
        let lost = sender.pending.range(..sender.view.high_sent.0);
        sender.view.written.since(sender.view.high_sent).0
            + lost.map(|(_, run)| run.span.len().0).sum::<u64>()
    }

    /// The lowest pending byte of a stream.
    pub(crate) fn head(&self, stream: StreamKey) -> u64 {
        self.streams.pending_from(stream, Offset::ZERO).map_or(u64::MAX, |run| run.span.start.0)
    }

    /// The streams that are ready.
    pub(crate) fn ready(&self) -> impl Iterator<Item = &StreamView> {
        self.streams.0.iter().flatten().filter(|sender| sender.ready).map(|sender| &sender.view)
    }

    /// What the policy notes of the next turn: label, stream, score.
    pub(crate) fn notes(&mut self) -> Vec<(&'static str, u64, f64)> {
        let mut notes = Notes::on();
        self.with_policy(|policy, view| policy.next(view, &mut notes));
        let streams = |note: &Note| note.stream.map_or(u64::MAX, |stream| stream.id.0);
        notes.take().iter().map(|note| (note.label, streams(note), note.score)).collect()
    }

    /// Pending bytes of a stream.
    pub(crate) fn left(&self, stream: StreamKey) -> u64 {
        self.streams.get(stream).map_or(0, |view| view.sendable.0)
    }

    /// Whose turn it is; asked twice.
    pub(crate) fn peek(&mut self) -> Option<Turn> {
        self.with_policy(|policy, view| {
            let turn = policy.next(view, &mut Notes::off());
            assert_eq!(turn, policy.next(view, &mut Notes::off()), "asked twice");
            turn
        })
    }

    /// Sends the next packet of at most `payload` bytes.
    pub(crate) fn send(&mut self, payload: u64) -> Option<Taken> {
        self.next_packet(payload, true)
    }

    /// Plans the next packet of at most `payload` bytes.
    pub(crate) fn plan(&mut self, payload: u64) -> Option<Taken> {
        self.next_packet(payload, false)
    }

    fn next_packet(&mut self, payload: u64, at_once: bool) -> Option<Taken> {
        let turn = self.peek()?;
        let key = turn.stream;
        let run = self.streams.pending_from(key, Offset::ZERO).expect("the stream is ready");
        let len = run.span.len().min(turn.max).min(Bytes(payload));
        let span = Span::from_len(run.span.start, len);
        assert!(run.span.is_empty() || !len.is_zero(), "a turn of no bytes");
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        sender.pending.remove(&run.span.start.0);
        if span.end < run.span.end {
            let rest = Span::new(span.end, run.span.end);
            sender.pending.insert(rest.start.0, Run { span: rest, class: run.class });
        }
        let taken = Taken { stream: key, span, class: run.class };
        if at_once {
            self.mark_sent(taken);
        }
        let kind = taken.kind();
        self.with_policy(|policy, view| {
            policy.on_taken(Turn { stream: key, max: len }, kind, view);
        });
        if at_once {
            self.tell_placed(taken);
        }
        self.settle(key);
        Some(taken)
    }

    /// Sends what was planned.
    pub(crate) fn place(&mut self, taken: Taken) {
        self.mark_sent(taken);
        self.tell_placed(taken);
        self.settle(taken.stream);
    }

    fn mark_sent(&mut self, taken: Taken) {
        let Taken { stream, span, .. } = taken;
        let sender = self.streams.0[stream.index()].as_mut().unwrap();
        if !span.is_empty() {
            sender.unacked.insert(span.start.0, span.end.0);
        }
        sender.view.high_sent = sender.view.high_sent.max(span.end);
        self.count(stream);
    }

    fn tell_placed(&mut self, taken: Taken) {
        let piece = Piece { stream: taken.stream, span: taken.span, kind: taken.kind() };
        self.tell(&Event::Placed { path: PATH, piece });
    }

    /// The same when something must be ready.
    pub(crate) fn take(&mut self, payload: u64) -> Taken {
        self.plan(payload).expect("a stream is ready")
    }

    /// Takes back what `take` planned.
    pub(crate) fn give_back(&mut self, taken: Taken) {
        let key = taken.stream;
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        let run = Run { span: taken.span, class: taken.class };
        sender.pending.insert(taken.span.start.0, run);
        self.with_policy(|policy, view| {
            policy.on_returned(Turn { stream: key, max: taken.span.len() }, view);
        });
        self.settle(key);
    }

    /// Stream identifiers of the next packets.
    pub(crate) fn packets(&mut self, count: usize, payload: u64) -> Vec<u64> {
        (0..count).map_while(|_| self.send(payload)).map(|taken| taken.stream.id.0).collect()
    }

    /// Sends until nothing is left; for each stream the bytes sent by all when it ended.
    pub(crate) fn drain(&mut self, payload: u64) -> BTreeMap<u64, u64> {
        let (mut sent, mut ended) = (0, BTreeMap::new());
        while let Some(taken) = self.send(payload) {
            sent += taken.span.len().0;
            ended.insert(taken.stream.id.0, sent);
        }
        ended
    }

    /// Everything sent of `id` up to `end` is acknowledged.
    pub(crate) fn acknowledge(&mut self, id: u64, end: u64) {
        let key = self.key(id);
        let sender = self.streams.0[key.index()].as_mut().unwrap();
        sender.unacked.retain(|_, &mut until| until > end);
        let piece =
            Piece { stream: key, span: Span::new(Offset(0), Offset(end)), kind: Kind::Fresh };
        let packet = SentPacket {
            path: PATH,
            pn: quipu_base::PacketNumber(0),
            bytes: Bytes(end),
            sent_at: self.now,
            pieces: &[piece],
        };
        self.tell(&Event::Acked(packet));
    }
}

/// Runs of equal identifiers: (identifier, length).
pub(crate) fn runs(order: &[u64]) -> Vec<(u64, usize)> {
    order.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect()
}

impl StreamPolicy for Box<dyn StreamPolicy> {
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        (**self).next(view, notes)
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        (**self).on_event(event, view);
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>) {
        (**self).on_taken(turn, kind, view);
    }

    fn on_returned(&mut self, turn: Turn, view: &View<'_>) {
        (**self).on_returned(turn, view);
    }

    fn order(&self) -> u64 {
        (**self).order()
    }

    fn stays_with(&self, stream: StreamKey) -> bool {
        (**self).stays_with(stream)
    }
}
