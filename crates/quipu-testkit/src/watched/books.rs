//! What was told so far, and the order in which things may be told.

use quipu_base::{Bytes, Instant, Offset, PacketNumber};
use quipu_policy::{
    Ask, Event, Kind, PathKey, PathState, Paths, Piece, SentPacket, Span, StreamKey, View,
};

/// Everything that was told of one connection end.
pub(super) struct Books {
    declares_copies: bool,
    now: Instant,
    /// By slot.
    streams: Vec<Option<Known>>,
    /// By slot: the paths that are up.
    paths: [Option<KnownPath>; Paths::MAX],
    /// Frames placed since the last packet was sent.
    open: Option<(PathKey, Vec<Piece>)>,
    /// Packets acknowledged or lost, since anything else was told.
    settled: Option<(bool, PathKey, PacketNumber)>,
    /// The last stretch requeued, since anything else was told.
    requeued: Option<(PathKey, StreamKey, Span)>,
    /// The path of the last lost packet, until an acknowledgement or a rest.
    lost_on: Option<PathKey>,
    /// The path that left last.
    gone: Option<PathKey>,
    drained: bool,
    /// The policies took over from others, and are being told all that is.
    replayed: bool,
}

struct Known {
    key: StreamKey,
    ready: bool,
}

#[derive(Clone, Copy)]
struct KnownPath {
    key: PathKey,
    suspect: bool,
}

type Wrong = Option<&'static str>;

impl Books {
    pub(super) fn new(declares_copies: bool) -> Self {
        Books {
            declares_copies,
            now: Instant::ZERO,
            streams: Vec::new(),
            paths: [None; Paths::MAX],
            open: None,
            settled: None,
            requeued: None,
            lost_on: None,
            gone: None,
            drained: false,
            replayed: false,
        }
    }

    /// Nothing yet; first of all the present is told, as to policies that take over from others.
    pub(super) fn taking_over(declares_copies: bool) -> Self {
        Books { replayed: true, ..Books::new(declares_copies) }
    }

    pub(super) const fn declares_copies(&self) -> bool {
        self.declares_copies
    }

    /// The streams that are open.
    pub(super) fn streams(&self) -> impl Iterator<Item = StreamKey> {
        self.streams.iter().flatten().map(|known| known.key)
    }

    pub(super) fn open_streams(&self) -> usize {
        self.streams().count()
    }

    /// What is wrong with the state in which a question is asked.
    pub(super) fn on_question(&mut self, ask: Ask, view: &View<'_>) -> Wrong {
        self.replayed = false;
        let open = self.open.as_ref().map(|(path, _)| *path);
        match ask {
            Ask::Packet if open.is_some() => return Some("asked before `Sent`"),
            Ask::Fill { path, .. } if open != Some(path) => return Some("no packet is open"),
            Ask::Packet if view.paths.open(view.now).next().is_none() => {
                return Some("asked though no path is open");
            }
            _ => {}
        }
        let mut ready = 0;
        for known in self.streams.iter().flatten() {
            let Some(stream) = view.streams.get(known.key) else {
                return Some("a stream that was not closed is gone");
            };
            if stream.is_ready() != known.ready {
                return Some("asked before an edge was told");
            }
            ready += u32::from(known.ready);
        }
        if ready != view.conn.ready {
            return Some("another number of ready streams than was told");
        }
        check_in_flight(view)
    }

    /// What is wrong with an event, by what was told before and by what the view shows.
    pub(super) fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Wrong {
        let back_in_time = view.now < self.now;
        self.now = view.now;
        let drained = std::mem::replace(&mut self.drained, matches!(event, Event::Drained));
        if !matches!(event, Event::Acked(_) | Event::Lost(_)) {
            self.settled = None;
        }
        if !matches!(event, Event::Requeued { .. }) {
            self.requeued = None;
        }
        self.replayed &= matches!(
            event,
            Event::PathUp(_)
                | Event::PathSuspect(_)
                | Event::Tree(_)
                | Event::Opened(_)
                | Event::Sized(_)
                | Event::Written(_)
                | Event::Ready(_)
                | Event::Sent(_)
        );
        let wrong = match *event {
            Event::Opened(key) => self.on_opened(key, view),
            Event::Ready(key) => self.on_edge(key, true, view),
            Event::Stopped(key) => self.on_edge(key, false, view),
            Event::Closed(key) => self.on_closed(key, view),
            Event::Sized(key) | Event::Written(key) | Event::Reprioritised(key) => {
                self.check_stream(key, view)
            }
            Event::Placed { path, piece } => self.on_placed(path, piece, view),
            Event::Sent(packet) if self.replayed => check_listed(&packet, view),
            Event::Sent(packet) => self.on_sent(&packet, view),
            Event::Acked(packet) => self.on_settled(true, &packet, view),
            Event::Lost(packet) => {
                self.lost_on = Some(packet.path);
                self.on_settled(false, &packet, view)
            }
            Event::Requeued { stream, span, origin } => {
                self.on_requeued(stream, span, origin, view)
            }
            Event::PathUp(key) => self.on_path_up(key, view),
            Event::PathSuspect(key) => self.on_suspicion(key, true, view),
            Event::PathRevived(key) => self.on_suspicion(key, false, view),
            Event::PathGone(key) => self.on_path_gone(key, view),
            Event::Drained if drained => Some("told twice"),
            Event::Drained if self.open.is_some() => Some("a packet is open"),
            Event::Drained => {
                self.lost_on = None;
                check_in_flight(view)
            }
            Event::Refused(_) => Some("an answer was refused"),
            _ => None,
        };
        if back_in_time { Some("time went back") } else { wrong }
    }

    fn known(&mut self, key: StreamKey) -> Option<&mut Known> {
        self.streams.get_mut(key.index())?.as_mut().filter(|known| known.key == key)
    }

    fn check_stream(&mut self, key: StreamKey, view: &View<'_>) -> Wrong {
        if self.known(key).is_none() {
            return Some("told of a stream that is not open");
        }
        view.streams.get(key).is_none().then_some("the view does not show the stream")
    }

    fn on_opened(&mut self, key: StreamKey, view: &View<'_>) -> Wrong {
        if self.streams.len() <= key.index() {
            self.streams.resize_with(key.index() + 1, || None);
        }
        let taken = self.streams[key.index()].replace(Known { key, ready: false }).is_some();
        if taken { Some("the slot is taken") } else { self.check_stream(key, view) }
    }

    fn on_edge(&mut self, key: StreamKey, ready: bool, view: &View<'_>) -> Wrong {
        let Some(known) = self.known(key) else {
            return Some("told of a stream that is not open");
        };
        if std::mem::replace(&mut known.ready, ready) == ready {
            return Some("edges do not alternate");
        }
        match view.streams.get(key) {
            None => Some("the view does not show the stream"),
            Some(stream) => (stream.is_ready() != ready).then_some("the view says otherwise"),
        }
    }

    fn on_closed(&mut self, key: StreamKey, view: &View<'_>) -> Wrong {
        if self.known(key).is_none() {
            return Some("told of a stream that is not open");
        }
        self.streams[key.index()] = None;
        view.streams.get(key).is_some().then_some("the view still shows the stream")
    }

    fn on_placed(&mut self, path: PathKey, piece: Piece, view: &View<'_>) -> Wrong {
        let (open, pieces) = self.open.get_or_insert_with(|| (path, Vec::new()));
        let elsewhere = *open != path;
        pieces.push(piece);
        if elsewhere {
            return Some("a packet of another path is open");
        }
        if piece.kind == Kind::Copy && !self.declares_copies {
            return Some("copies were not declared");
        }
        let Some(stream) = view.streams.get(piece.stream) else {
            return Some("the view does not show the stream");
        };
        let pending = view.streams.pending_from(piece.stream, piece.span.start);
        let still_pending = match pending {
            Some(run) if piece.span.is_empty() => run.span.is_empty(),
            Some(run) => run.span.start < piece.span.end,
            None => false,
        };
        if still_pending {
            return Some("what was placed is still pending");
        }
        (stream.high_sent < piece.span.end).then_some("`high_sent` does not hold it")
    }

    fn on_sent(&mut self, packet: &SentPacket<'_>, view: &View<'_>) -> Wrong {
        if let Some((path, pieces)) = self.open.take() {
            if path != packet.path || pieces != packet.pieces {
                return Some("other frames than were placed");
            }
        } else if packet.pieces.iter().any(|piece| piece.kind != Kind::Copy) {
            return Some("frames that were not placed");
        }
        let Some(path) = view.paths.get(packet.path) else {
            return Some("the view does not show the path");
        };
        if path.in_flight < packet.bytes || path.last_sent_at != Some(packet.sent_at) {
            return Some("the path's view does not hold it");
        }
        check_listed(packet, view).or_else(|| check_in_flight(view))
    }

    fn on_settled(&mut self, acked: bool, packet: &SentPacket<'_>, view: &View<'_>) -> Wrong {
        let last = self.settled.replace((acked, packet.path, packet.pn));
        if let Some((last_acked, path, pn)) = last {
            if acked && !last_acked {
                return Some("acknowledged after lost");
            }
            if acked == last_acked && path == packet.path && pn >= packet.pn {
                return Some("not in order of packet number");
            }
        }
        check_listed(packet, view).is_none().then_some("still among the packets in flight")
    }

    fn on_requeued(
        &mut self,
        stream: StreamKey,
        span: Span,
        origin: PathKey,
        view: &View<'_>,
    ) -> Wrong {
        let last = self.requeued.replace((origin, stream, span));
        let known = self.paths[origin.index()].filter(|path| path.key == origin);
        let suspect = known.is_some_and(|path| path.suspect);
        if !suspect && self.gone != Some(origin) && self.lost_on != Some(origin) {
            return Some("neither a loss nor the path's end was told before");
        }
        if let Some((path, other, before)) = last
            && path == origin
            && (other, before) > (stream, span)
        {
            return Some("not in order");
        }
        // A FIN goes with the last bytes where some are pending.
        let at = if span.is_empty() { Offset::ZERO } else { span.start };
        let pending = view.streams.pending_from(stream, at);
        let wrong = self.check_stream(stream, view);
        let credit_end = view.streams.get(stream).map(|it| it.credit_end);
        let holds = pending.is_some_and(|run| {
            span.is_empty() || (run.span.start == span.start && !run.span.is_empty())
        });
        wrong.or_else(|| {
            (!holds && credit_end > Some(span.start)).then_some("what was requeued is not pending")
        })
    }

    fn on_path_up(&mut self, key: PathKey, view: &View<'_>) -> Wrong {
        let path = KnownPath { key, suspect: false };
        if self.paths[key.index()].replace(path).is_some() {
            return Some("the slot is taken");
        }
        let usable = view.paths.get(key).is_some_and(|path| {
            // That it is suspect is told next.
            path.state == PathState::Usable || (self.replayed && path.state == PathState::Suspect)
        });
        (!usable).then_some("the view says otherwise")
    }

    fn on_suspicion(&mut self, key: PathKey, suspect: bool, view: &View<'_>) -> Wrong {
        let known = self.paths[key.index()].as_mut().filter(|path| path.key == key);
        let Some(known) = known else { return Some("told of a path that is not up") };
        if std::mem::replace(&mut known.suspect, suspect) == suspect {
            return Some("told twice");
        }
        let expected = if suspect { PathState::Suspect } else { PathState::Usable };
        let shown = view.paths.get(key).is_some_and(|path| path.state == expected);
        (!shown).then_some("the view says otherwise")
    }

    fn on_path_gone(&mut self, key: PathKey, view: &View<'_>) -> Wrong {
        // A path that was never proved goes without having been up.
        let twice = self.gone.replace(key) == Some(key);
        self.paths[key.index()].take_if(|path| path.key == key);
        if view.paths.get(key).is_some() {
            return Some("the view still shows the path");
        }
        twice.then_some("told twice")
    }
}

fn check_listed(packet: &SentPacket<'_>, view: &View<'_>) -> Wrong {
    let before = packet.pn.0.checked_sub(1).map(PacketNumber);
    let listed = view.sent.next_sent(packet.path, before).map(|found| found.pn);
    (listed != Some(packet.pn)).then_some("not among the packets in flight")
}

fn check_in_flight(view: &View<'_>) -> Wrong {
    let sum: Bytes = view.paths.iter().map(|path| path.in_flight).sum();
    (sum != view.conn.in_flight).then_some("bytes in flight do not add up")
}
