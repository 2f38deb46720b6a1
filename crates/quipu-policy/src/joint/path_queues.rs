//! A queue per path, in which the streams allotted to it share by weight.

use quipu_base::{Bytes, StreamId};
use smallvec::SmallVec;

use super::allotting::{Effect, NO_LIMIT};
use super::lanes::Lanes;
use crate::key::{PathKey, StreamKey};
use crate::priority::DEFAULT_WEIGHT;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, Piece, StreamView, View};
use crate::stream::{FluidWrr, RoundRobin, StreamPolicy, Turn, total};

/// The weight of a stream: that of its node of the dependency tree, 16 without one.
pub(super) fn weight_of(stream: &StreamView, view: &View<'_>) -> u16 {
    let node = stream.priority.node.and_then(|node| view.priorities.node(node));
    node.map_or(DEFAULT_WEIGHT, |node| node.weight)
}

/// What each stream has left on each path, and on each path the order of the streams that are ready
/// and have something left there: weighted sharing over the dependency tree ([`FluidWrr`]).
///
/// A stream that is ready without having anything left, or whose allotments were taken back, is
/// *loose*: it waits to be placed.
#[derive(Clone, Default)]
pub(super) struct PathQueues {
    /// Knows every stream and node, none of them ready: the start of a path's order.
    template: FluidWrr,
    /// By path slot.
    queues: Vec<Option<PathQueue>>,
    /// By stream slot.
    rows: Vec<Option<Row>>,
    loose: Vec<StreamKey>,
    ready: RoundRobin,
}

#[derive(Clone)]
struct PathQueue {
    path: PathKey,
    order: FluidWrr,
    /// Sum of the weights of the streams that have something left here.
    weight: u64,
}

#[derive(Clone)]
struct Row {
    stream: StreamKey,
    ready: bool,
    loose: bool,
    weight: u16,
    left: SmallVec<[(PathKey, Bytes); 4]>,
}

impl PathQueues {
    /// Follows an event. `Voids` if a stream became loose.
    pub(super) fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        match *event {
            Event::Opened(stream) => {
                self.tell_all(event, view);
                self.row(stream);
            }
            Event::Tree(_) => self.tell_all(event, view),
            Event::Ready(stream) => {
                self.ready.on_event(event, view);
                self.row(stream).ready = true;
                self.tell_those_with_some_left(stream, event, view);
                return self.loosen_if_empty(stream);
            }
            Event::Stopped(stream) => {
                self.ready.on_event(event, view);
                self.row(stream).ready = false;
                self.tell_those_with_some_left(stream, event, view);
                let all_sent = |it: &StreamView| it.high_sent.0 >= total(it).0;
                if view.streams.get(stream).is_some_and(all_sent) {
                    self.take_back(stream, view);
                }
            }
            Event::Closed(stream) => {
                self.ready.on_event(event, view);
                self.take_back(stream, view);
                self.tell_all(event, view);
                if let Some(row) = self.rows.get_mut(stream.index()) {
                    *row = None;
                }
            }
            Event::Placed { path, piece } if piece.kind == Kind::Fresh => {
                return self.charge(path, piece, view);
            }
            Event::PathGone(path) => {
                if let Some(queue) = self.queues.get_mut(path.index()) {
                    *queue = None;
                }
                return self.take_back_where(view, |row| row.left.iter().any(|it| it.0 == path));
            }
            _ => {}
        }
        Effect::Keeps
    }

    fn row(&mut self, stream: StreamKey) -> &mut Row {
        if self.rows.len() <= stream.index() {
            self.rows.resize(stream.index() + 1, None);
        }
        let row = &mut self.rows[stream.index()];
        if row.as_ref().is_some_and(|row| row.stream != stream) {
            *row = None;
        }
        row.get_or_insert_with(|| Row {
            stream,
            ready: false,
            loose: false,
            weight: 0,
            left: SmallVec::new(),
        })
    }

    /// Events that every path's order must follow.
    fn tell_all(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.template.on_event(event, view);
        for queue in self.queues.iter_mut().flatten() {
            queue.order.on_event(event, view);
        }
    }

    fn tell_those_with_some_left(&mut self, stream: StreamKey, event: &Event<'_>, view: &View<'_>) {
        let Some(Some(row)) = self.rows.get(stream.index()) else { return };
        for (path, left) in &row.left {
            if let Some(queue) = queue_mut(&mut self.queues, *path).filter(|_| !left.is_zero()) {
                queue.order.on_event(event, view);
            }
        }
    }

    fn charge(&mut self, path: PathKey, piece: Piece, view: &View<'_>) -> Effect {
        let Piece { stream, span, kind } = piece;
        let Some(Some(row)) = self.rows.get_mut(stream.index()) else { return Effect::Keeps };
        let Some((_, left)) = row.left.iter_mut().find(|(on, _)| *on == path) else {
            return Effect::Keeps;
        };
        let Some(queue) = queue_mut(&mut self.queues, path) else { return Effect::Keeps };
        queue.order.on_taken(Turn { stream, max: span.len() }, kind, view);
        if *left == NO_LIMIT || left.is_zero() {
            return Effect::Keeps;
        }
        *left = left.saturating_sub(span.len());
        if left.is_zero() {
            queue.weight -= u64::from(row.weight);
            queue.order.on_event(&Event::Stopped(stream), view);
        }
        self.loosen_if_empty(stream)
    }

    fn loosen_if_empty(&mut self, stream: StreamKey) -> Effect {
        let Some(Some(row)) = self.rows.get_mut(stream.index()) else { return Effect::Keeps };
        if row.loose || !row.ready || row.left.iter().any(|(_, left)| !left.is_zero()) {
            return Effect::Keeps;
        }
        row.loose = true;
        self.loose.push(stream);
        Effect::Voids
    }

    /// Takes a stream's allotments back; it is loose if it is ready.
    pub(super) fn take_back(&mut self, stream: StreamKey, view: &View<'_>) -> Effect {
        let Some(Some(row)) = self.rows.get_mut(stream.index()) else { return Effect::Keeps };
        for (path, _) in row.left.drain(..).filter(|(_, left)| !left.is_zero()) {
            let Some(queue) = queue_mut(&mut self.queues, path) else { continue };
            queue.weight -= u64::from(row.weight);
            if row.ready {
                queue.order.on_event(&Event::Stopped(stream), view);
            }
        }
        self.loosen_if_empty(stream)
    }

    fn take_back_where(&mut self, view: &View<'_>, which: impl Fn(&Row) -> bool) -> Effect {
        let mut effect = Effect::Keeps;
        for slot in 0..self.rows.len() {
            let Some(Some(row)) = self.rows.get(slot) else { continue };
            let stream = row.stream;
            if which(row) {
                effect = effect.max(self.take_back(stream, view));
            }
        }
        effect
    }

    /// Takes the allotments of all streams back.
    pub(super) fn take_back_all(&mut self, view: &View<'_>) {
        self.take_back_where(view, |row| !row.left.is_empty());
    }

    /// Takes the allotments of those streams back that have something left, but nothing on any of
    /// the lanes.
    pub(super) fn take_back_off(&mut self, lanes: &Lanes, view: &View<'_>) {
        let some_left = |row: &Row, on: &dyn Fn(PathKey) -> bool| {
            row.left.iter().any(|&(path, left)| !left.is_zero() && on(path))
        };
        let is_lane = |path| lanes.has(path);
        self.take_back_where(view, |row| some_left(row, &|_| true) && !some_left(row, &is_lane));
    }

    /// Takes the allotments of those streams back that are limited nowhere on more than one path:
    /// they were placed while there was no estimate.
    pub(super) fn take_back_unlimited(&mut self, view: &View<'_>) {
        self.take_back_where(view, |row| {
            row.left.len() > 1 && row.left.iter().all(|&(_, left)| left == NO_LIMIT)
        });
    }

    /// Takes the ready streams out that wait to be placed: by urgency, the heavier first, then by
    /// arrival.
    pub(super) fn take_loose(&mut self, view: &View<'_>) -> Vec<StreamKey> {
        let mut loose = std::mem::take(&mut self.loose);
        loose.retain(|stream| match self.rows.get_mut(stream.index()) {
            Some(Some(row)) if row.stream == *stream => std::mem::take(&mut row.loose) && row.ready,
            _ => false,
        });
        loose.sort_unstable_by_key(|&stream| match view.streams.get(stream) {
            Some(it) => (it.priority.urgency, u16::MAX - weight_of(it, view), it.seq, stream.id),
            None => (u8::MAX, 0, 0, StreamId(0)),
        });
        loose
    }

    /// Gives back the list of [`take_loose`](Self::take_loose), for its memory.
    pub(super) fn recycle(&mut self, mut list: Vec<StreamKey>) {
        list.clear();
        if self.loose.is_empty() {
            self.loose = list;
        }
    }

    /// Allots bytes of a stream that has none left.
    pub(super) fn place(
        &mut self,
        stream: StreamKey,
        shares: impl Iterator<Item = (PathKey, Bytes)>,
        view: &View<'_>,
    ) {
        let weight = view.streams.get(stream).map_or(DEFAULT_WEIGHT, |it| weight_of(it, view));
        let row = self.row(stream);
        row.left.clear();
        row.weight = weight;
        row.left.extend(shares.filter(|(_, share)| !share.is_zero()));
        let (ready, paths) = (row.ready, row.left.clone());
        for (path, _) in paths {
            if self.queues.len() <= path.index() {
                self.queues.resize(path.index() + 1, None);
            }
            let slot = &mut self.queues[path.index()];
            if slot.as_ref().is_none_or(|queue| queue.path != path) {
                *slot = Some(PathQueue { path, order: self.template.clone(), weight: 0 });
            }
            let Some(queue) = slot else { continue };
            queue.weight += u64::from(weight);
            if ready {
                queue.order.on_event(&Event::Ready(stream), view);
            }
        }
    }

    /// Sum of the weights of the streams that have something left on a path.
    pub(super) fn weight_on(&self, path: PathKey) -> u64 {
        let queue = self.queues.get(path.index()).and_then(Option::as_ref);
        queue.filter(|queue| queue.path == path).map_or(0, |queue| queue.weight)
    }

    /// What a stream has left, by path.
    pub(super) fn left(&self, stream: StreamKey) -> &[(PathKey, Bytes)] {
        match self.rows.get(stream.index()) {
            Some(Some(row)) if row.stream == stream => &row.left,
            _ => &[],
        }
    }

    /// The stream that is next on a path, and what it has left there.
    pub(super) fn next_on(
        &mut self,
        path: PathKey,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn> {
        let stream = queue_mut(&mut self.queues, path)?.order.next(view, notes)?.stream;
        let (_, max) = *self.left(stream).iter().find(|(on, _)| *on == path)?;
        Some(Turn { stream, max })
    }

    /// True if the stream was told to be ready.
    pub(super) fn is_ready(&self, stream: StreamKey) -> bool {
        let row = self.rows.get(stream.index()).and_then(Option::as_ref);
        row.is_some_and(|row| row.stream == stream && row.ready)
    }

    /// A ready stream.
    pub(super) fn any_ready(&mut self, view: &View<'_>) -> Option<StreamKey> {
        self.ready.next(view, &mut Notes::off()).map(|turn| turn.stream)
    }
}

fn queue_mut(queues: &mut [Option<PathQueue>], path: PathKey) -> Option<&mut PathQueue> {
    queues.get_mut(path.index())?.as_mut().filter(|queue| queue.path == path)
}
