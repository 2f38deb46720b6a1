//! Everything on every path.

use std::collections::VecDeque;

use quipu_base::Offset;

use crate::key::{PathKey, Span, StreamKey};
use crate::path::eligible;
use crate::reinject::Reinject;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathView, Piece, StreamTable, View};

/// Most spans kept; our choice. Beyond it the oldest are not copied any more.
const MOST_SPANS: usize = 65_536;

/// `redundant`: every path carries all that is not yet acknowledged.
///
/// What was sent is kept in a log. Each path has a cursor over it and takes, before anything fresh,
/// the oldest bytes that it has not carried, that are not acknowledged and that are in flight. So
/// a slow path skips what is acknowledged meanwhile, and goodput is about that of the best path.
/// Copies cost window on their path, no flow control. Optionally only streams up to some urgency
/// number are copied.
///
/// Source: the redundant scheduler of Linux MPTCP, read in code; confidence high.
#[derive(Clone, Debug)]
pub struct Redundant {
    most_urgency: u8,
    log: VecDeque<Entry>,
    /// Position of the log's front since the start.
    base: u64,
    /// By path slot.
    cursors: Vec<Option<Cursor>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    stream: StreamKey,
    span: Span,
    /// The path that carried it first.
    path: PathKey,
}

#[derive(Clone, Copy, Debug)]
struct Cursor {
    path: PathKey,
    /// Position of the entry to copy next, since the start.
    at: u64,
    /// From which byte of it.
    from: Offset,
}

impl Redundant {
    /// Copies the streams of urgency 0 to `most_urgency`; 7 for all.
    pub const fn new(most_urgency: u8) -> Self {
        Redundant { most_urgency, log: VecDeque::new(), base: 0, cursors: Vec::new() }
    }

    /// What `path` should carry next of what others carried. Passes over what needs no copy.
    fn backlog(&mut self, path: PathKey, table: &dyn StreamTable) -> Option<(StreamKey, Span)> {
        let cursor = self.cursors.get_mut(path.index())?.as_mut()?;
        if cursor.at < self.base {
            *cursor = Cursor { at: self.base, from: Offset::ZERO, ..*cursor };
        }
        while let Some(entry) = self.log.get((cursor.at - self.base) as usize) {
            let from = cursor.from.max(entry.span.start);
            let rest = Span::new(from, entry.span.end);
            if entry.path != path
                && let Some(found) = table.unacked_from(entry.stream, from)
                && let Some(span) = found.intersection(rest)
            {
                cursor.from = span.start;
                return Some((entry.stream, span));
            }
            *cursor = Cursor { at: cursor.at + 1, from: Offset::ZERO, ..*cursor };
        }
        None
    }

    /// A copy left: the cursor of its path moves on.
    fn copied(&mut self, path: PathKey, stream: StreamKey, span: Span) {
        let Some(cursor) = self.cursors.get_mut(path.index()).and_then(Option::as_mut) else {
            return;
        };
        let Some(index) = cursor.at.checked_sub(self.base) else { return };
        let Some(entry) = self.log.get(index as usize) else { return };
        if entry.stream == stream && entry.span.contains(span.start) {
            cursor.from = span.end;
            if span.end >= entry.span.end {
                *cursor = Cursor { at: cursor.at + 1, from: Offset::ZERO, ..*cursor };
            }
        }
    }

    fn log(&mut self, entry: Entry, view: &View<'_>) {
        let urgency = view.streams.get(entry.stream).map(|stream| stream.priority.urgency);
        if urgency.is_some_and(|urgency| urgency <= self.most_urgency) && !entry.span.is_empty() {
            self.log.push_back(entry);
        }
        if self.log.len() > MOST_SPANS {
            self.log.pop_front();
            self.base += 1;
        }
    }

    /// Forgets the oldest spans that nobody will copy.
    fn trim(&mut self, table: &dyn StreamTable) {
        while let Some(entry) = self.log.front() {
            let base = self.base;
            let passed = self.cursors.iter().flatten().all(|cursor| cursor.at > base);
            let in_flight = table
                .unacked_from(entry.stream, entry.span.start)
                .is_some_and(|found| found.intersection(entry.span).is_some());
            if !passed && in_flight {
                break;
            }
            self.log.pop_front();
            self.base += 1;
        }
    }
}

impl Default for Redundant {
    fn default() -> Self {
        Redundant::new(7)
    }
}

impl Reinject for Redundant {
    fn next(
        &mut self,
        _instead_of: Option<StreamKey>,
        view: &View<'_>,
        _notes: &mut Notes,
    ) -> Option<(PathKey, StreamKey, Span)> {
        let rank = |path: &PathView| (path.srtt.is_none(), path.srtt, path.key);
        let mut best: Option<(&PathView, StreamKey, Span)> = None;
        for path in eligible(view.paths).filter(|path| path.is_open(view.now)) {
            if best.is_some_and(|(other, ..)| rank(other) < rank(path)) {
                continue;
            }
            if let Some((stream, span)) = self.backlog(path.key, view.streams) {
                best = Some((path, stream, span));
            }
        }
        best.map(|(path, stream, span)| (path.key, stream, span))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::PathUp(path) => {
                if self.cursors.len() <= path.index() {
                    self.cursors.resize(path.index() + 1, None);
                }
                self.cursors[path.index()] =
                    Some(Cursor { path, at: self.base, from: Offset::ZERO });
            }
            Event::PathGone(path) => {
                if let Some(cursor) = self.cursors.get_mut(path.index()) {
                    *cursor = cursor.filter(|cursor| cursor.path != path);
                }
            }
            Event::Placed { path, piece } if piece.kind == Kind::Copy => {
                self.copied(path, piece.stream, piece.span);
            }
            Event::Sent(packet) => {
                for piece in packet.pieces.iter().filter(|piece| piece.kind != Kind::Copy) {
                    let Piece { stream, span, .. } = *piece;
                    self.log(Entry { stream, span, path: packet.path }, view);
                }
            }
            Event::Acked(_) | Event::Closed(_) => self.trim(view.streams),
            _ => {}
        }
    }

    fn armed(&self) -> bool {
        !self.log.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use crate::seam::view::SentPacket;
    use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId};

    struct Scene {
        world: World,
        redundant: Redundant,
        stream: StreamKey,
        fast: PathKey,
        slow: PathKey,
    }

    impl Scene {
        fn new(redundant: Redundant) -> Self {
            let mut world = World::new(Bytes(100_000));
            let fast = world.add_path(PathId(0)).unwrap();
            let slow = world.add_path(PathId(1)).unwrap();
            world.set_path(fast, |path| path.srtt = Some(Duration::from_millis(20)));
            world.set_path(slow, |path| path.srtt = Some(Duration::from_millis(100)));
            let stream = world.streams.open(Instant::ZERO, Default::default(), Bytes(100_000));
            world.streams.write(stream, Bytes(50_000));
            let mut scene = Scene { world, redundant, stream, fast, slow };
            scene.tell(Event::PathUp(fast));
            scene.tell(Event::PathUp(slow));
            scene
        }

        fn tell(&mut self, event: Event<'_>) {
            self.redundant.on_event(&event, &self.world.view());
        }

        fn send(&mut self, path: PathKey, start: u64, end: u64, copy: bool) {
            let span = Span::new(Offset(start), Offset(end));
            let (piece, _) = self.world.place(self.stream, span, copy);
            self.tell(Event::Placed { path, piece });
            self.tell(Event::Sent(packet(path, &[piece])));
        }

        fn acknowledge(&mut self, start: u64, end: u64) {
            let span = Span::new(Offset(start), Offset(end));
            self.world.streams.acknowledge(self.stream, span, false, true);
            self.tell(Event::Acked(packet(self.fast, &[])));
        }

        fn next(&mut self) -> Option<(PathKey, u64, u64)> {
            let copy = self.redundant.next(None, &self.world.view(), &mut Notes::off());
            copy.map(|(path, _, span)| (path, span.start.0, span.end.0))
        }
    }

    fn packet(path: PathKey, pieces: &[Piece]) -> SentPacket<'_> {
        let (pn, bytes) = (PacketNumber(0), Bytes(1_240));
        SentPacket { path, pn, bytes, sent_at: Instant::ZERO, pieces }
    }

    #[test]
    fn each_path_copies_what_the_other_sent_oldest_first() {
        let mut scene = Scene::new(Redundant::default());
        let (fast, slow) = (scene.fast, scene.slow);
        scene.send(fast, 0, 1_200, false);
        scene.send(slow, 1_200, 2_400, false);
        assert_eq!(scene.next(), Some((fast, 1_200, 2_400)));
        scene.send(fast, 1_200, 2_400, true);
        assert_eq!(scene.next(), Some((slow, 0, 1_200)));
        scene.send(slow, 0, 1_000, true);
        assert_eq!(scene.next(), Some((slow, 1_000, 1_200)), "the copy was cut");
        scene.send(slow, 1_000, 1_200, true);
        assert_eq!(scene.next(), None);
    }

    #[test]
    fn what_is_acknowledged_is_skipped_and_forgotten() {
        let mut scene = Scene::new(Redundant::default());
        let (fast, slow) = (scene.fast, scene.slow);
        for start in [0, 1_200, 2_400] {
            scene.send(fast, start, start + 1_200, false);
        }
        scene.acknowledge(0, 2_000);
        assert_eq!(scene.next(), Some((slow, 2_000, 2_400)));
        assert!(scene.redundant.armed());
        scene.acknowledge(2_000, 3_600);
        assert_eq!(scene.next(), None);
        assert!(!scene.redundant.armed());
    }

    #[test]
    fn bytes_that_are_pending_again_are_no_copies() {
        let mut scene = Scene::new(Redundant::default());
        let fast = scene.fast;
        scene.send(fast, 0, 1_200, false);
        let span = Span::new(Offset(0), Offset(1_200));
        scene.world.streams.lose(scene.stream, span, false, fast, &mut Vec::new());
        assert_eq!(scene.next(), None);
        let slow = scene.slow;
        scene.send(slow, 0, 1_200, false);
        assert_eq!(scene.next(), Some((fast, 0, 1_200)), "sent again, it is copied again");
    }

    #[test]
    fn a_path_that_comes_late_begins_with_the_oldest_in_flight() {
        let mut scene = Scene::new(Redundant::default());
        let (fast, slow) = (scene.fast, scene.slow);
        scene.send(fast, 0, 1_200, false);
        scene.send(slow, 0, 1_200, true);
        let third = scene.world.add_path(PathId(2)).unwrap();
        scene.tell(Event::PathUp(third));
        assert_eq!(scene.next(), Some((third, 0, 1_200)));
        scene.tell(Event::PathGone(third));
        assert_eq!(scene.next(), None);
    }

    #[test]
    fn only_urgent_streams_are_copied_if_asked_so() {
        let mut scene = Scene::new(Redundant::new(1));
        let fast = scene.fast;
        scene.send(fast, 0, 1_200, false);
        assert_eq!(scene.next(), None, "the default urgency is 3");
    }
}
