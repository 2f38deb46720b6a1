//! The mock's bookkeeping, kept up to date by what a real engine tells.
//!
//! Copied from the engine's view is what events do not carry: the present, path views, credit of
//! connection and streams, bytes written, sizes, priorities, names of nodes, and which lost packets
//! were acknowledged late. Worked out are pending runs with their classes, bytes in flight, bare
//! FINs, sums over streams, packets in flight, and the tree.

use quipu_base::Offset;
use quipu_policy::conformance::{Flight, World};
use quipu_policy::{
    Event, Joint, Kind, NodeId, PathKey, Piece, PriorityEdit, Run, SentPacket, Span, StreamKey,
    StreamTable, TreeEdit, View,
};

/// Which events a mirror misses: proof that what is compared can differ.
pub(super) type Deaf = fn(&Event<'_>) -> bool;

/// What the mock makes of the events of one connection end.
///
/// Of one ACK frame the engine applies everything before it tells anything. So does the mirror: it
/// keeps what is told until the frame is over, and tells its listener then.
pub(super) struct Mirror {
    world: World,
    requeue_after_pto: u32,
    deaf: Option<Deaf>,
    /// Frames placed since the last packet was sent, each with whether it told the end.
    open: Vec<(Piece, bool)>,
    /// What was told of one ACK frame, or of one path that is given up.
    news: Vec<News>,
    /// The path last suspected, timed out or gone: its bytes in flight are pending after that.
    given_up: Option<PathKey>,
    suspects: Vec<PathKey>,
    /// Packets lost of which an acknowledgement may yet come.
    lost: Vec<Flight>,
    /// Of streams, while they are walked.
    keys: Vec<StreamKey>,
    findings: Vec<String>,
}

enum News {
    Told(Event<'static>),
    Acked(Flight),
    Lost(Flight),
}

impl Mirror {
    /// Nothing yet. `requeue_after_pto`: as in [`ResendRules`](quipu_policy::ResendRules).
    pub(super) fn new(requeue_after_pto: u32, deaf: Option<Deaf>) -> Self {
        Mirror {
            world: World::default(),
            requeue_after_pto,
            deaf,
            open: Vec::new(),
            news: Vec::new(),
            given_up: None,
            suspects: Vec::new(),
            lost: Vec::new(),
            keys: Vec::new(),
            findings: Vec::new(),
        }
    }

    /// Other policies take over: what the engine tells them of the past is known.
    pub(super) fn take_over(&mut self, requeue_after_pto: u32) {
        self.requeue_after_pto = requeue_after_pto;
    }

    /// Differences found since the last call.
    pub(super) fn take_findings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.findings)
    }

    /// What the mock shows now, beside what the engine shows; and true if that is new although
    /// nothing was told.
    pub(super) fn view(&mut self, engine: &View<'_>, listener: &mut dyn Joint) -> (View<'_>, bool) {
        self.settle(listener);
        let new = self.copy(engine);
        self.copy_late_ends(engine);
        self.world.recount();
        (self.world.view(), new)
    }

    /// Takes in an event and passes it on.
    pub(super) fn on_event(
        &mut self,
        event: &Event<'_>,
        engine: &View<'_>,
        listener: &mut dyn Joint,
    ) {
        if self.deaf.is_some_and(|deaf| deaf(event)) {
            self.settle(listener);
            listener.on_event(event, &self.world.view());
            return;
        }
        match *event {
            Event::Acked(packet) => {
                let flight = self.take(&packet);
                self.news.push(News::Acked(flight));
            }
            Event::Lost(packet) => {
                let flight = self.take(&packet);
                self.news.push(News::Lost(flight));
            }
            Event::Requeued { stream, span, origin } => {
                self.news.push(News::Told(Event::Requeued { stream, span, origin }));
            }
            Event::PathRevived(path) => {
                self.begin_news(Event::PathRevived(path), engine, listener);
                self.suspects.retain(|&suspect| suspect != path);
            }
            Event::PathMeasured(path) => {
                if let [News::Told(Event::PathRevived(_))] = self.news[..] {
                    self.news.push(News::Told(Event::PathMeasured(path)));
                } else {
                    self.begin_news(Event::PathMeasured(path), engine, listener);
                }
                self.copy_late(path, engine);
                // Bytes behind which an end waited may be among them.
                self.copy_late_ends(engine);
            }
            _ => {
                self.settle(listener);
                self.copy(engine);
                self.apply(event, engine);
                self.world.recount();
                listener.on_event(event, &self.world.view());
            }
        }
    }

    fn begin_news(&mut self, event: Event<'static>, engine: &View<'_>, listener: &mut dyn Joint) {
        self.settle(listener);
        self.copy(engine);
        self.copy_late_ends(engine);
        self.news.push(News::Told(event));
    }

    /// Applies what was told of an ACK frame or of a path given up, and passes it on.
    fn settle(&mut self, listener: &mut dyn Joint) {
        let given_up = self.given_up.take();
        if self.news.is_empty() && given_up.is_none() {
            return;
        }
        let news = std::mem::take(&mut self.news);
        let mut lost = Vec::new();
        let mut told = Vec::new();
        for item in &news {
            match item {
                News::Acked(flight) => {
                    self.world.acknowledge(flight);
                }
                News::Lost(flight) => lost.push(flight.clone()),
                News::Told(Event::Requeued { stream, span, .. }) => told.push((*stream, *span)),
                News::Told(_) => {}
            }
        }
        let mut requeued = self.world.lose(&lost);
        if let Some(path) = given_up {
            requeued.extend(self.world.lose_path(path));
        }
        let (mut requeued, told) = (merged(requeued), merged(told));
        requeued.retain(|again| told.contains(again) || !self.acknowledge_late_end(*again));
        if requeued != told {
            self.findings
                .push(format!("told to be pending again {told:?}, but it is {requeued:?}"));
        }
        self.lost.extend(lost.into_iter().filter(|flight| !flight.pieces.is_empty()));
        self.world.recount();
        let view = self.world.view();
        for item in &news {
            match item {
                News::Acked(flight) => listener.on_event(&Event::Acked(flight.as_sent()), &view),
                News::Lost(flight) => listener.on_event(&Event::Lost(flight.as_sent()), &view),
                News::Told(event) => listener.on_event(event, &view),
            }
        }
    }

    /// The packet in flight that is acknowledged or lost.
    fn take(&mut self, packet: &SentPacket<'_>) -> Flight {
        let known = self.world.flights.take(packet.path, |flight| flight.pn == packet.pn).pop();
        match known {
            Some(flight) if flight.as_sent() == *packet => flight,
            _ => {
                self.findings.push(format!("{packet:?} settled, but {known:?} is in flight"));
                self.flight(packet, false)
            }
        }
    }

    fn flight(&self, packet: &SentPacket<'_>, counts: bool) -> Flight {
        let streams = &self.world.streams;
        let ends = |piece: &Piece| streams.ends_at(piece.stream, piece.span.end);
        Flight {
            path: packet.path,
            pn: packet.pn,
            bytes: packet.bytes,
            sent_at: packet.sent_at,
            fins: packet.pieces.iter().map(ends).collect(),
            pieces: packet.pieces.to_vec(),
            counts,
            acked_at: None,
        }
    }

    fn apply(&mut self, event: &Event<'_>, engine: &View<'_>) {
        match *event {
            Event::Opened(key) => {
                if let Some(view) = engine.streams.get(key) {
                    self.world.streams.adopt(view);
                }
            }
            Event::Closed(key) => {
                self.world.streams.close(key);
                self.world.priorities.detach(key);
            }
            Event::Tree(edit) => self.edit(edit, engine),
            Event::Placed { piece, .. } => {
                let credit = self.world.conn.credit;
                let copy = piece.kind == Kind::Copy;
                let (own, fin) = self.world.place(piece.stream, piece.span, copy);
                // What the engine shows is without this frame already.
                self.world.conn.credit = credit;
                if own != piece {
                    self.findings.push(format!("{piece:?} was placed as {own:?}"));
                }
                self.open.push((piece, fin));
            }
            Event::Sent(packet) => self.on_sent(&packet),
            Event::PathUp(path) => {
                let is_past = |other: PathKey| other.slot == path.slot && other != path;
                self.lost.retain(|flight| !is_past(flight.path));
            }
            Event::PathSuspect(path) if !self.suspects.contains(&path) => {
                self.suspects.push(path);
                self.give_up(path, engine);
            }
            Event::Pto(path) if self.suspects.contains(&path) => self.give_up(path, engine),
            Event::PathGone(path) => {
                self.suspects.retain(|&suspect| suspect != path);
                self.given_up = Some(path);
            }
            _ => {}
        }
    }

    /// The bytes in flight on a suspect path are pending again, if it was silent long enough.
    fn give_up(&mut self, path: PathKey, engine: &View<'_>) {
        let timeouts = engine.paths.get(path).map_or(0, |view| view.pto_count);
        if timeouts >= self.requeue_after_pto {
            self.given_up = Some(path);
        }
    }

    /// A packet of frames that were placed, or a probe, whose bytes are another packet's.
    fn on_sent(&mut self, packet: &SentPacket<'_>) {
        let known = self.world.flights.on(packet.path).any(|flight| flight.pn == packet.pn);
        if known {
            return;
        }
        let open = std::mem::take(&mut self.open);
        let mut flight = self.flight(packet, !open.is_empty());
        if !open.is_empty() {
            flight.fins = open.into_iter().map(|(_, fin)| fin).collect();
        }
        self.world.flights.push(flight);
    }

    fn edit(&mut self, edit: TreeEdit, engine: &View<'_>) {
        let tree = &mut self.world.priorities;
        let mut stream = None;
        let id = |node| tree.node(node).map(|view| view.id);
        let as_told = match edit {
            // Told again to policies that take over.
            TreeEdit::Inserted { node, .. } if tree.node(node).is_some() => return,
            TreeEdit::Inserted { node, parent, weight } => {
                let name = engine.priorities.node(node).map(|view| told_name(view.id));
                name.zip(id(parent)).map(|(node, parent)| PriorityEdit::Insert {
                    node,
                    parent,
                    weight,
                    exclusive: false,
                })
            }
            TreeEdit::Moved { node, parent } => {
                let weight = tree.node(node).map_or(16, |view| view.weight);
                id(node).zip(id(parent)).map(|(node, parent)| PriorityEdit::Move {
                    node,
                    parent,
                    weight,
                    exclusive: false,
                })
            }
            TreeEdit::Weighted { node, weight } => {
                id(node).map(|node| PriorityEdit::Weight { node, weight })
            }
            TreeEdit::Removed { node } => id(node).map(|node| PriorityEdit::Remove { node }),
            TreeEdit::Attached { node, stream: key } => {
                stream = Some(key);
                id(node).map(|node| PriorityEdit::Attach { node, stream: key.id })
            }
        };
        let done = as_told.map(|edit| tree.apply(&edit, stream));
        if !matches!(&done, Some(Ok(done)) if done[..] == [edit]) {
            self.findings.push(format!("{edit:?} was told, but the tree did {done:?}"));
        }
    }

    /// Copies what events do not carry. True if something of it is new, time aside.
    fn copy(&mut self, engine: &View<'_>) -> bool {
        self.world.now = engine.now;
        let mut new = self.world.conn != *engine.conn;
        if new {
            self.world.conn = engine.conn.clone();
        }
        if !self.world.paths.iter().eq(engine.paths.iter()) {
            self.world.paths = engine.paths.clone();
            new = true;
        }
        self.keys.extend(self.world.streams.keys());
        for key in self.keys.drain(..) {
            match engine.streams.get(key) {
                Some(view) => new |= self.world.streams.follow(view),
                // That it was closed is told later.
                None => self.world.streams.close(key),
            }
        }
        new
    }

    /// Copies late acknowledgements of packets lost on a path: bytes of theirs that the engine
    /// shows neither pending nor in flight.
    fn copy_late(&mut self, path: PathKey, engine: &View<'_>) {
        for flight in self.lost.iter().filter(|flight| flight.path == path) {
            for piece in &flight.pieces {
                let mut at = piece.span.start;
                while at < piece.span.end {
                    let pending = engine.streams.pending_from(piece.stream, at).map(|run| run.span);
                    let sent = engine.streams.unacked_from(piece.stream, at);
                    let rest = Span::new(piece.span.end, piece.span.end);
                    let next = [pending, sent].into_iter().flatten().fold(rest, Span::min);
                    let acked = Span::new(at, next.start);
                    self.world.streams.acknowledge(piece.stream, acked, false, false);
                    at = next.end;
                }
            }
        }
        let streams = &self.world.streams;
        let lives = |piece: &Piece| streams.get(piece.stream).is_some();
        self.lost.retain(|flight| flight.pieces.iter().any(lives));
    }

    /// Copies late acknowledgements of ends of streams: lost here, and not pending there. Where bytes
    /// are pending there, the end may wait behind them, and nothing is known of it yet.
    fn copy_late_ends(&mut self, engine: &View<'_>) {
        let acked: Vec<(StreamKey, Span)> = self
            .world
            .streams
            .iter()
            .filter(|own| own.bare_fin && self.world.streams.is_end_lost(own.key))
            .filter(|own| engine.streams.get(own.key).is_some())
            .filter(|own| engine.streams.pending_from(own.key, Offset::ZERO).is_none())
            .map(|own| (own.key, Span::new(own.written, own.written)))
            .collect();
        for (key, end) in acked {
            self.world.streams.acknowledge(key, end, true, false);
        }
    }

    /// The end of a stream is pending again here, but not there: a packet that carried it before was lost,
    /// and acknowledged late. Nothing showed that as long as another carried the end too. True if
    /// that can be.
    fn acknowledge_late_end(&mut self, (stream, span): (StreamKey, Span)) -> bool {
        let streams = &self.world.streams;
        let is_acked = |piece: &Piece| {
            let rest = [
                streams.pending_from(piece.stream, piece.span.start).map(|run| run.span),
                streams.unacked_from(piece.stream, piece.span.start),
            ];
            rest.into_iter().flatten().all(|rest| rest.start >= piece.span.end)
        };
        let carried = |flight: &Flight| {
            let mut ends = flight.pieces.iter().zip(&flight.fins).filter(|(_, fin)| **fin);
            ends.any(|(piece, _)| piece.stream == stream && is_acked(piece))
        };
        let is_late = span.is_empty() && self.lost.iter().any(carried);
        if is_late {
            self.world.streams.acknowledge(stream, span, true, false);
        }
        is_late
    }

    /// Where the mock and the engine differ.
    pub(super) fn difference(&self, engine: &View<'_>) -> Option<String> {
        let own = self.world.view();
        if own.conn != engine.conn {
            return Some(format!("{:?}, to the mock {:?}", engine.conn, own.conn));
        }
        let [tree, own_tree] = [engine, &own].map(|view| view.priorities.replay());
        if tree != own_tree {
            return Some(format!("{tree:?}, to the mock {own_tree:?}"));
        }
        self.world.streams.iter().find_map(|stream| {
            let theirs = engine.streams.get(stream.key);
            if theirs != Some(stream) {
                return Some(format!("{theirs:?}, to the mock {stream:?}"));
            }
            let [seen, own] = [engine.streams, own.streams]
                .map(|table| (pending(table, stream.key), in_flight(table, stream.key)));
            (seen != own).then(|| format!("{seen:?} of {:?}, to the mock {own:?}", stream.key))
        })
    }
}

/// A name that HTTP could have told, of a node that it did not tell: derived ones have names from
/// `1 << 62` on, which no edit may give. The mock derives nothing, it is told.
fn told_name(id: NodeId) -> NodeId {
    const KINDS: u32 = 62;
    const MOVED: u32 = 60;
    if id.0 >> KINDS == 0 || id == NodeId::ROOT {
        return id;
    }
    NodeId((id.0 >> KINDS) << MOVED | (id.0 & ((1 << MOVED) - 1)))
}

/// All that is pending of a stream.
fn pending(table: &dyn StreamTable, stream: StreamKey) -> Vec<Run> {
    let mut at = Offset::ZERO;
    let mut runs = Vec::new();
    while let Some(run) = table.pending_from(stream, at) {
        at = run.span.end;
        runs.push(run);
        if run.span.is_empty() {
            break;
        }
    }
    runs
}

/// All that is in flight of a stream.
fn in_flight(table: &dyn StreamTable, stream: StreamKey) -> Vec<Span> {
    let mut at = Offset::ZERO;
    std::iter::from_fn(|| {
        let span = table.unacked_from(stream, at)?;
        at = span.end;
        Some(span)
    })
    .collect()
}

/// The same bytes in as few spans as can be.
fn merged(mut spans: Vec<(StreamKey, Span)>) -> Vec<(StreamKey, Span)> {
    spans.sort_unstable();
    spans.dedup_by(|(later, next), (earlier, span)| {
        let joins = later == earlier && next.start <= span.end;
        if joins {
            span.end = span.end.max(next.end);
        }
        joins
    });
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::{Bytes, Instant, Seed};
    use quipu_policy::{BuildContext, PolicySpec, Registry};

    fn span(start: u64, end: u64) -> Span {
        Span::new(Offset(start), Offset(end))
    }

    /// An end that was lost waits behind bytes that were lost later, of which the mirror is not told
    /// before the end of the ACK frame: it was taken for acknowledged.
    #[test]
    fn an_end_that_waits_behind_lost_bytes_is_not_acknowledged() {
        let mut engine = World::new(Bytes(100_000));
        let path = PathKey { slot: 0, id: quipu_base::PathId(0) };
        let stream = engine.streams.open(Instant::ZERO, Default::default(), Bytes(100_000));
        engine.streams.write(stream, Bytes(1_000));
        engine.streams.place(stream, span(0, 1_000), false);
        engine.streams.finish(stream);
        assert!(engine.streams.place(stream, span(1_000, 1_000), false));
        engine.streams.lose(stream, span(1_000, 1_000), true, path, &mut Vec::new());
        let mut mirror = Mirror { world: engine.clone(), ..Mirror::new(1, None) };
        let waits = |mirror: &Mirror| mirror.world.streams.iter().any(|stream| stream.bare_fin);

        engine.streams.lose(stream, span(0, 500), false, path, &mut Vec::new());
        mirror.copy_late_ends(&engine.view());
        assert!(waits(&mirror));

        engine.streams.place(stream, span(0, 500), false);
        mirror.world = engine.clone();
        engine.streams.acknowledge(stream, span(1_000, 1_000), true, false);
        mirror.copy_late_ends(&engine.view());
        assert!(!waits(&mirror));
    }

    /// An engine with one path and a stream of 1,000 bytes, finished, whose first half was sent.
    fn half_sent() -> (World, PathKey, StreamKey) {
        let mut engine = World::new(Bytes(100_000));
        let path = engine.add_path(quipu_base::PathId(0)).expect("room for a path");
        let stream = engine.streams.open(Instant::ZERO, Default::default(), Bytes(100_000));
        engine.streams.write(stream, Bytes(1_000));
        engine.streams.finish(stream);
        engine.streams.place(stream, span(0, 500), false);
        (engine, path, stream)
    }

    /// A packet in flight with one piece, and whether that carries the stream's end.
    fn flight(path: PathKey, pn: u64, (piece, fin): (Piece, bool)) -> Flight {
        Flight {
            path,
            pn: quipu_base::PacketNumber(pn),
            bytes: Bytes(600),
            sent_at: Instant::ZERO,
            pieces: vec![piece],
            fins: vec![fin],
            counts: true,
            acked_at: None,
        }
    }

    /// The default policies, which nobody asks.
    fn plain() -> Box<dyn Joint> {
        let spec = PolicySpec::parse(&Registry::builtin(), "");
        let built = spec.and_then(|spec| spec.build(&BuildContext::new(Seed::new(1))));
        built.expect("the default policies").joint
    }

    /// The bytes behind which a lost end waited were acknowledged late, and the end with them; the policies
    /// had nothing more to ask before all came to rest.
    #[test]
    fn an_end_acknowledged_late_with_its_bytes_is_known_at_once() {
        let (mut engine, path, stream) = half_sent();
        let (piece, fin) = engine.place(stream, span(500, 1_000), false);
        engine.streams.lose(stream, span(500, 1_000), fin, path, &mut Vec::new());
        let flight = flight(path, 0, (piece, fin));
        let mut mirror = Mirror { world: engine.clone(), ..Mirror::new(1, None) };
        mirror.lost.push(flight);

        engine.streams.acknowledge(stream, span(500, 1_000), fin, false);
        let mut deaf = plain();
        mirror.on_event(&Event::PathMeasured(path), &engine.view(), &mut *deaf);
        mirror.world.recount();
        assert_eq!(mirror.difference(&engine.view()), None);
    }

    /// A packet with the end was lost while a copy carried the end too, and acknowledged late; then the
    /// copy was lost.
    #[test]
    fn an_end_acknowledged_late_is_not_pending_again_when_its_copy_is_lost() {
        let (mut engine, path, stream) = half_sent();
        let mut send = |pn, copy| flight(path, pn, engine.place(stream, span(500, 1_000), copy));
        let (first, copy) = (send(0, false), send(1, true));
        let mut deaf = plain();
        for is_late in [true, false] {
            let mut mirror = Mirror { world: engine.clone(), ..Mirror::new(1, None) };
            mirror.news.push(News::Lost(first.clone()));
            mirror.settle(&mut *deaf);
            if is_late {
                let mut engine = engine.clone();
                engine.streams.acknowledge(stream, span(500, 1_000), true, false);
                mirror.copy_late(path, &engine.view());
            }
            assert_eq!(mirror.take_findings(), Vec::<String>::new());
            mirror.news.push(News::Lost(copy.clone()));
            mirror.settle(&mut *deaf);
            assert_eq!(mirror.take_findings().is_empty(), is_late);
        }
    }
}
