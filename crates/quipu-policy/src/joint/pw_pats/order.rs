//! The order of streams of PW-PATS.

use std::collections::BTreeSet;

use quipu_base::StreamId;

use super::priority_factor;
use crate::joint::by_stream::ByStream;
use crate::key::StreamKey;
use crate::priority::TreeEdit;
use crate::seam::decision::{Note, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Kind, StreamView, View};
use crate::stream::{ActiveTree, Change};
use crate::stream::{Heap, Positions, Preemptions, StreamPolicy, Turn, weight};

/// High streams first, one after the other, heaviest first, ties by arrival; then the low ones,
/// heaviest first, packet by packet among equal weights.
///
/// High are the first `max(S_min, ⌈α·N⌉)` of the N streams with something to send, planned or not.
/// The paper gives no value for α and S_min; 1/3 and 1 are our choice, and make exactly the style
/// sheet's stream high in its tests with three. Of equal weights the lowest urgency number goes
/// first, as with `strict`. Streams whose bytes are all planned count as high: they were planned
/// first. Optionally low streams have one packet in every `share`, against starvation; ours, off by
/// default. O(log n).
#[derive(Clone, Debug)]
pub struct WeightedOrder {
    alpha: f64,
    least_high: u32,
    share: u32,
    /// Which streams an edit of the tree concerns.
    tree: ActiveTree<()>,
    /// The ready streams.
    standings: ByStream<Standing>,
    /// The ready streams; every high one ranks before every low one.
    high: BTreeSet<(Rank, StreamKey)>,
    low: BTreeSet<(Rank, StreamKey)>,
    /// The low ones by class and turn.
    turns: Heap<(Class, i64, StreamId)>,
    positions: Positions,
    /// Turns before all others, and after them.
    first_turn: i64,
    last_turn: i64,
    /// Packets of high streams since the last one of a low stream.
    since_low: u32,
    preemptions: Preemptions<Rank>,
}

/// Weight, heaviest first, and urgency.
type Class = (u16, u8);

/// Class and order of arrival.
type Rank = (Class, u64);

#[derive(Clone, Copy, Debug)]
struct Standing {
    rank: Rank,
    high: bool,
}

impl WeightedOrder {
    /// The order with α, S_min and the low streams' share: one packet in so many; zero or one: none.
    pub fn new(alpha: f64, least_high: u32, share: u32) -> Self {
        WeightedOrder {
            alpha,
            least_high,
            share: if share < 2 { u32::MAX } else { share },
            tree: ActiveTree::new(),
            standings: ByStream::default(),
            high: BTreeSet::new(),
            low: BTreeSet::new(),
            turns: Heap::default(),
            positions: Positions::default(),
            first_turn: 0,
            last_turn: 0,
            since_low: 0,
            preemptions: Preemptions::default(),
        }
    }

    /// How many of `active` streams are high.
    fn high_of(&self, active: usize) -> usize {
        // Less than a millionth above a whole number is rounding: 1/3 of 3 is one stream.
        let share = libm::ceil(self.alpha * active as f64 - 1e-6);
        (share as usize).max(self.least_high as usize)
    }

    /// Moves streams between high and low as their number asks.
    fn balance(&mut self, view: &View<'_>) {
        let ready = self.high.len() + self.low.len();
        let active = (view.conn.ready as usize).max(ready);
        let high = self.high_of(active).saturating_sub(active - ready);
        while self.high.len() < high
            && let Some(first) = self.low.pop_first()
        {
            self.turns.remove(&mut self.positions, first.1.slot);
            self.insert_high(first);
        }
        while self.high.len() > high
            && let Some(last) = self.high.pop_last()
        {
            self.insert_low(last, false);
        }
    }

    fn insert_high(&mut self, (rank, stream): (Rank, StreamKey)) {
        self.standings.set(stream, Standing { rank, high: true });
        self.high.insert((rank, stream));
    }

    fn insert_low(&mut self, (rank, stream): (Rank, StreamKey), regains_turn: bool) {
        self.standings.set(stream, Standing { rank, high: false });
        self.low.insert((rank, stream));
        let turn = if regains_turn { self.turn_before_all() } else { self.turn_after_all() };
        self.turns.set(&mut self.positions, stream.slot, (rank.0, turn, stream.id));
    }

    fn turn_before_all(&mut self) -> i64 {
        self.first_turn -= 1;
        self.first_turn
    }

    fn turn_after_all(&mut self) -> i64 {
        self.last_turn += 1;
        self.last_turn
    }

    fn rank(stream: &StreamView, view: &View<'_>) -> Rank {
        let lightness = u16::MAX - weight(stream.key, view);
        ((lightness, stream.priority.urgency), stream.seq)
    }

    fn insert(&mut self, stream: StreamKey, regains_turn: bool, view: &View<'_>) {
        let Some(of) = view.streams.get(stream) else { return };
        let rank = WeightedOrder::rank(of, view);
        if self.high.last().is_some_and(|last| (rank, stream) < *last) {
            self.insert_high((rank, stream));
        } else {
            self.insert_low((rank, stream), regains_turn);
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        let Some(Standing { rank, high }) = self.standings.get(stream) else { return };
        self.standings.remove(stream);
        if high {
            self.high.remove(&(rank, stream));
        } else {
            self.low.remove(&(rank, stream));
            self.turns.remove(&mut self.positions, stream.slot);
        }
    }

    /// A stream may have another rank.
    fn refresh(&mut self, stream: StreamKey, view: &View<'_>) {
        let Some(of) = view.streams.get(stream) else { return };
        match self.standings.get(stream) {
            Some(standing) if standing.rank == WeightedOrder::rank(of, view) => {}
            Some(_) => {
                self.remove(stream);
                self.insert(stream, false, view);
                self.preemptions.on_change();
            }
            // All that it has is planned, by whatever rank it had.
            None if of.is_ready() => self.preemptions.on_change(),
            None => {}
        }
    }
}

impl Default for WeightedOrder {
    fn default() -> Self {
        WeightedOrder::new(1.0 / 3.0, 1, 0)
    }
}

impl StreamPolicy for WeightedOrder {
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        self.balance(view);
        let high = self.high.first().map(|&(_, stream)| stream);
        let low = self.turns.first().map(|((_, _, id), slot)| StreamKey { slot, id });
        let low_is_due = self.since_low >= self.share - 1;
        let stream = if low_is_due { low.or(high) } else { high.or(low) }?;
        notes.add(|| Note {
            label: "priority factor",
            path: None,
            stream: Some(stream),
            score: priority_factor(weight(stream, view)),
        });
        Some(Turn::unlimited(stream))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let mut moved = Vec::new();
        let is_edit = matches!(event, Event::Tree(_));
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, .. } | Change::Weighted { node, .. } if is_edit => {
                moved.extend(tree.ready(node));
            }
            _ => {}
        });
        match *event {
            Event::Ready(stream) => {
                let news = self.preemptions.is_news(stream);
                self.insert(stream, !news, view);
                if let Some(standing) = self.standings.get(stream).filter(|_| news) {
                    self.preemptions.compare(standing.rank);
                }
            }
            Event::Stopped(stream) | Event::Closed(stream) => self.remove(stream),
            Event::Reprioritised(stream) | Event::Tree(TreeEdit::Attached { stream, .. }) => {
                self.refresh(stream, view);
            }
            Event::Placed { piece, .. } => self.preemptions.on_placed(piece),
            _ => {}
        }
        for stream in moved {
            self.refresh(stream, view);
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, _view: &View<'_>) {
        let standing = self.standings.get(turn.stream);
        self.preemptions.on_taken(turn, kind, standing.map(|standing| standing.rank));
        let Some(standing) = standing.filter(|_| !turn.max.is_zero()) else { return };
        if !standing.high {
            self.since_low = 0;
            let key = (standing.rank.0, self.turn_after_all(), turn.stream.id);
            self.turns.set(&mut self.positions, turn.stream.slot, key);
        } else {
            self.since_low = self.since_low.saturating_add(1);
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        let standing = self.standings.get(turn.stream);
        self.preemptions.on_returned(turn, standing.is_some());
        let Some(standing) = standing.filter(|_| !turn.max.is_zero()) else { return };
        if !standing.high {
            // Its packet is due again.
            self.since_low = self.share - 1;
            let key = (standing.rank.0, self.turn_before_all(), turn.stream.id);
            self.turns.set(&mut self.positions, turn.stream.slot, key);
        } else {
            self.since_low = self.since_low.saturating_sub(1);
        }
    }

    fn order(&self) -> u64 {
        self.preemptions.count()
    }
}

#[cfg(test)]
mod tests;
