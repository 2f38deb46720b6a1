//! `sec`: stream earliest completion.

use std::cell::Cell;

use quipu_base::{Bytes, Duration, Instant, Seed};
use rand_core::Rng;
use smallvec::SmallVec;

use super::allotting::{Allotter, Cause, Effect, NO_LIMIT};
use super::by_stream::ByStream;
use super::lanes::{Lanes, is_sized};
use super::waterfill::{Pipe, Shares, best_single, clamp, fill};
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathView, Piece, View};
use crate::stream::ActiveTree;
use crate::stream::gps::finish_order;
use crate::stream::{RoundRobin, StreamPolicy, Turn, remaining, total};

/// What a stream's bytes on a path add to the wait of the streams behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queue {
    /// The time that the path takes to send them.
    #[default]
    Pipelined,
    /// That and the path's delay, as in the paper and its code: as if a stream began only when the
    /// one before it was acknowledged. Later streams hardly use long paths.
    Paper,
}

/// What is done about shares below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clamp {
    /// There are none: the paths used are chosen so that all end together
    /// ([`fill`](super::waterfill::fill)).
    #[default]
    Fill,
    /// They become zero, and a random path with bytes makes up for it, as in the paper
    /// ([`clamp`](super::waterfill::clamp)).
    Paper,
}

/// What is done about streams whose size nobody told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unknown {
    /// While one of them is ready, all streams take turns and no path is limited, as in the paper.
    #[default]
    Turns,
    /// What is buffered counts as the size, as in the code.
    Buffered,
}

/// When allotments are made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quotas {
    /// Before each send batch if estimates have moved, and when streams or paths change, as in the
    /// paper.
    #[default]
    Renewed,
    /// Only when streams or paths change, or nothing can be sent: what was allotted stays allotted
    /// while rates and delays move. For comparison; our choice.
    Fixed,
}

/// The algorithm of `sec`: streams in the order in which fair sharing by the tree would finish them,
/// one after the other, and each split over the paths so that it ends as early as can be behind
/// those before it.
///
/// The order is that of [`finish_order`] over the bytes that the ready streams have still to send. A
/// path delays stream `i` by `d_ij`, its own delay and the wait for the streams before; the
/// stream's bytes are split by water-filling ([`waterfill`](super::waterfill)) on `d_ij`; its share
/// adds to the path's wait ([`Queue`]). A stream of less than a packet goes to the path on which it
/// ends first, whole. Allotments are counts, not ranges: a path takes the lowest pending bytes.
/// While a path has no sample, nothing is limited.
///
/// Rows of the allotment are worked out one stream after the other, when a path has used up what
/// the rows before gave it.
///
/// Source: "A Multipath QUIC Scheduler for Mobile HTTP/2" (Wang, Gao, Xu, APNet 2019) and its code
/// (`rainbowsnail/mp-quic`, branch `apnet19`). Ours: water-filling where the paper cuts; the order
/// of deep trees, which the code computes without handing shares on; that the waits pipeline; the
/// end of waits: after half of the least round-trip time without sending, the open paths get all.
/// The code mends sums at the first path that can take it, the paper at a random one, and we with
/// the paper. The code's small streams leave on the other paths what the stream before them had
/// there, which is not copied.
pub struct Sec {
    queue: Queue,
    clamp: Clamp,
    unknown: Unknown,
    quotas: Quotas,
    seed: Seed,
    tree: ActiveTree<()>,
    turns: RoundRobin,
    /// True while streams take turns.
    by_turns: bool,
    /// A stream left since it was found that they must.
    one_left: bool,
    /// The estimates that the rows rest on.
    lanes: Lanes,
    /// By lane: the wait for the rows worked out so far.
    waits: Vec<Duration>,
    order: Vec<StreamKey>,
    /// By stream: the place in `order`, if that stream is there.
    places: ByStream<usize>,
    /// What each stream's size was when the rows were begun, in the same order.
    totals: Vec<Bytes>,
    /// Bytes left by row and lane, for the rows worked out so far.
    left: Vec<Bytes>,
    rows: usize,
    /// By lane: no row before this has bytes left there.
    cursors: Vec<usize>,
    /// How often the rows were begun: each time another random stream.
    begun: u64,
}

impl Sec {
    /// The algorithm; `seed` is for the draws of [`Clamp::Paper`].
    pub fn new(queue: Queue, clamp: Clamp, unknown: Unknown, seed: Seed) -> Self {
        Sec {
            queue,
            clamp,
            unknown,
            quotas: Quotas::default(),
            seed,
            tree: ActiveTree::new(),
            turns: RoundRobin::new(),
            by_turns: false,
            one_left: false,
            lanes: Lanes::default(),
            waits: Vec::new(),
            order: Vec::new(),
            places: ByStream::default(),
            totals: Vec::new(),
            left: Vec::new(),
            rows: 0,
            cursors: Vec::new(),
            begun: 0,
        }
    }

    /// The same with allotments that are made anew as `quotas` says.
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// The row of a stream.
    fn row_of(&self, stream: StreamKey) -> Option<usize> {
        self.places.get(stream).filter(|&row| self.order.get(row) == Some(&stream))
    }

    /// Bytes that a stream has left by lane; `None` if its row is not worked out.
    pub fn left(&self, stream: StreamKey) -> Option<&[Bytes]> {
        let lanes = self.lanes.lanes.len();
        let row = self.row_of(stream)?;
        self.left.get(row * lanes..(row + 1) * lanes)
    }

    /// Works out one row more; `false` if there is none.
    fn work_out_row(&mut self, view: &View<'_>, notes: &mut Notes) -> bool {
        let Some(&key) = self.order.get(self.rows) else { return false };
        let size = view.streams.get(key).map(remaining).unwrap_or_default();
        if !self.lanes.limited || size.is_zero() {
            self.left.extend(self.lanes.lanes.iter().map(|_| NO_LIMIT));
        } else {
            let (shares, end) = self.split(size);
            notes.add(|| Note {
                label: "ends after, seconds",
                path: None,
                stream: Some(key),
                score: end.as_secs_f64(),
            });
            self.queue_up(&shares);
            self.left.extend(shares);
        }
        self.rows += 1;
        true
    }

    /// Splits a stream's bytes behind those of the rows before; tells when the last one ends.
    fn split(&mut self, size: Bytes) -> (Shares, Duration) {
        let lanes = self.lanes.lanes.iter().zip(&self.waits);
        let pipes: SmallVec<[Pipe; 8]> =
            lanes.map(|(lane, &wait)| lane.pipe.behind(wait)).collect();
        if size < self.lanes.packet {
            let mut shares = Shares::from_elem(Bytes::ZERO, pipes.len());
            let Some(best) = best_single(size, &pipes) else { return (shares, Duration::ZERO) };
            shares[best] = size;
            return (shares, pipes[best].end(size));
        }
        match self.clamp {
            Clamp::Fill => fill(size, &pipes),
            Clamp::Paper => {
                let row = self.rows as u64;
                let seed = self.seed.child("sec", self.begun);
                let mut random = seed.stream("row", row);
                clamp(size, &pipes, &mut |count| {
                    (random.next_u64() % (count as u64).max(1)) as usize
                })
            }
        }
    }

    /// Adds a row's shares to the waits of the paths. A path that gets nothing of the row does not wait for
    /// it, though the printed formula adds a round trip to all: our choice.
    fn queue_up(&mut self, shares: &[Bytes]) {
        for ((lane, wait), &share) in self.lanes.lanes.iter().zip(&mut self.waits).zip(shares) {
            if share.is_zero() {
                continue;
            }
            let sending = lane.pipe.rate().time_for(share);
            *wait += match self.queue {
                Queue::Pipelined => sending,
                Queue::Paper => sending + lane.pipe.delay(),
            };
        }
    }

    /// A frame was written: its bytes are no longer left.
    fn charge(&mut self, path: PathKey, piece: Piece, view: &View<'_>) {
        let Piece { stream, span, kind } = piece;
        self.turns.on_taken(Turn { stream, max: span.len() }, kind, view);
        if kind != Kind::Fresh {
            return;
        }
        let (Some(lane), Some(row)) = (self.lanes.index_of(path), self.row_of(stream)) else {
            return;
        };
        let at = row * self.lanes.lanes.len() + lane;
        if let Some(left) = self.left.get_mut(at).filter(|left| **left != NO_LIMIT) {
            *left = left.saturating_sub(span.len());
        }
    }

    /// True if a stream's total is another than its row rests on.
    fn has_other_total(&self, stream: StreamKey, view: &View<'_>) -> bool {
        let Some(known) = view.streams.get(stream) else { return false };
        if self.by_turns {
            return is_sized(known);
        }
        self.row_of(stream).is_some_and(|row| self.totals.get(row) != Some(&total(known)))
    }
}

impl Allotter for Sec {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        self.tree.on_event(event, view.priorities, &mut |_, _| {});
        self.turns.on_event(event, view);
        match *event {
            Event::Placed { path, piece } => {
                self.charge(path, piece, view);
                Effect::Keeps
            }
            Event::Ready(_) | Event::Tree(_) => Effect::Voids,
            Event::Sized(stream) | Event::Written(stream) if self.has_other_total(stream, view) => {
                Effect::Voids
            }
            Event::Stopped(_) | Event::Closed(_) if self.by_turns => {
                self.one_left = true;
                Effect::Ages
            }
            Event::Requeued { .. } => Effect::Ages,
            _ => Effect::Keeps,
        }
    }

    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>) {
        if self.by_turns && cause != Cause::Streams && !self.one_left {
            return;
        }
        if self.quotas == Quotas::Fixed && cause == Cause::Batch && !self.one_left {
            return;
        }
        self.one_left = false;
        self.begun += 1;
        self.lanes.clone_from(lanes);
        self.order.clear();
        self.totals.clear();
        self.left.clear();
        self.rows = 0;
        self.waits.clear();
        self.waits.resize(lanes.lanes.len(), Duration::ZERO);
        self.cursors.clear();
        self.cursors.resize(lanes.lanes.len(), 0);
        let all_sized = Cell::new(true);
        let order = finish_order(&self.tree, |key| {
            let Some(stream) = view.streams.get(key) else { return Bytes::ZERO };
            all_sized.set(all_sized.get() && is_sized(stream));
            remaining(stream)
        });
        self.by_turns = self.unknown == Unknown::Turns && !all_sized.get();
        if self.by_turns {
            return;
        }
        for (row, (key, _)) in order.into_iter().enumerate() {
            self.places.set(key, row);
            self.order.push(key);
            self.totals.push(view.streams.get(key).map(total).unwrap_or_default());
        }
    }

    fn next_on(&mut self, path: PathKey, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        if self.by_turns {
            return self.turns.next(view, notes);
        }
        let lane = self.lanes.index_of(path)?;
        loop {
            let row = self.cursors[lane];
            if row == self.rows && !self.work_out_row(view, notes) {
                return None;
            }
            let left = self.left[row * self.lanes.lanes.len() + lane];
            let stream = self.order[row];
            if !left.is_zero() && view.streams.get(stream).is_some_and(|view| view.is_ready()) {
                notes.add(|| Note {
                    label: "bytes allotted",
                    path: Some(path),
                    stream: Some(stream),
                    score: left.0 as f64,
                });
                return Some(Turn { stream, max: left });
            }
            self.cursors[lane] += 1;
        }
    }

    fn any_ready(&mut self, view: &View<'_>) -> Option<StreamKey> {
        self.turns.next(view, &mut Notes::off()).map(|turn| turn.stream)
    }

    fn waits_until(&self, _on: Option<&PathView>, view: &View<'_>) -> Instant {
        let least = view.paths.usable().filter_map(|path| path.srtt).min();
        view.now + least.unwrap_or_default().divided_by(2).max(Duration::from_millis(1))
    }
}

#[cfg(test)]
mod tests;
