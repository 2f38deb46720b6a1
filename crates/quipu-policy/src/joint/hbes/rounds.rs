//! The stream layer of HBES: rounds by weight, packet by packet.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::key::StreamKey;
use crate::priority::{DEFAULT_WEIGHT, TreeEdit};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};
use crate::stream::{ActiveTree, Change};
use crate::stream::{StreamPolicy, Turn};

/// Streams in order of weight, heaviest first, take turns of one packet. Each has as many tokens as
/// its weight and is passed over when they are used up. When one of the heaviest has used its own,
/// all that have none left get theirs again. So heavy streams end a round alone.
///
/// Of the dependency tree only each stream's own weight counts. Equal weights go by identifier. A
/// token given back after its round has ended is lost: approximate.
///
/// Source: the default stream scheduler ("PRR") in the code of `ytxing/mpquic-hbes`. Our repairs:
/// the heaviest is that of the ready streams, and tokens are also renewed when no ready stream has
/// any, where the published code would send nothing; no free packet before the first token. A turn
/// costs O(log n), amortised.
#[derive(Clone, Debug)]
pub struct PriorityRounds {
    /// For the streams' weights.
    tree: ActiveTree<()>,
    /// By stream slot.
    shares: Vec<Share>,
    /// Ready streams.
    ready: BTreeSet<Rank>,
    /// Those of them that have tokens.
    served: BTreeSet<Rank>,
    /// Streams without tokens.
    spent: Vec<StreamKey>,
    /// Whose turn it is: the first at this one or after it, else the first of all.
    cursor: Bound<Rank>,
    /// The answer, until something changes it.
    turn: Option<Rank>,
}

/// Heaviest first, then lowest identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    lightness: u16,
    stream: StreamKey,
}

#[derive(Clone, Copy, Debug, Default)]
struct Share {
    stream: Option<StreamKey>,
    /// Set while the stream is ready.
    rank: Option<Rank>,
    /// Tokens left.
    tokens: u16,
}

impl PriorityRounds {
    /// A policy that knows no stream.
    pub fn new() -> Self {
        PriorityRounds {
            tree: ActiveTree::new(),
            shares: Vec::new(),
            ready: BTreeSet::new(),
            served: BTreeSet::new(),
            spent: Vec::new(),
            cursor: Bound::Unbounded,
            turn: None,
        }
    }

    fn weight(&self, stream: StreamKey) -> u16 {
        let place = self.tree.place_of(stream);
        place.map_or(DEFAULT_WEIGHT, |place| self.tree.weight(place))
    }

    fn rank(&self, stream: StreamKey) -> Rank {
        Rank { lightness: u16::MAX - self.weight(stream), stream }
    }

    fn share(&mut self, stream: StreamKey) -> &mut Share {
        if self.shares.len() <= stream.index() {
            self.shares.resize(stream.index() + 1, Share::default());
        }
        let known = self.shares[stream.index()].stream == Some(stream);
        if !known {
            let tokens = self.weight(stream);
            self.shares[stream.index()] = Share { stream: Some(stream), rank: None, tokens };
        }
        &mut self.shares[stream.index()]
    }

    fn is_ready(&mut self, stream: StreamKey) -> bool {
        self.share(stream).rank.is_some()
    }

    /// Brings a stream's rank and membership up to date.
    fn refresh(&mut self, stream: StreamKey, ready: bool) {
        let (weight, rank) = (self.weight(stream), self.rank(stream));
        self.turn = None;
        let share = self.share(stream);
        share.tokens = share.tokens.min(weight);
        let tokens = share.tokens;
        if let Some(old) = std::mem::replace(&mut share.rank, ready.then_some(rank)) {
            self.ready.remove(&old);
            self.served.remove(&old);
        }
        if ready {
            self.ready.insert(rank);
            if tokens > 0 {
                self.served.insert(rank);
            }
        }
        self.renew_if_spent();
    }

    /// A new round if no ready stream has tokens.
    fn renew_if_spent(&mut self) {
        if self.served.is_empty() && !self.ready.is_empty() {
            self.renew();
        }
    }

    fn renew(&mut self) {
        self.turn = None;
        let mut spent = std::mem::take(&mut self.spent);
        for stream in spent.drain(..) {
            let weight = self.weight(stream);
            let known = self.shares.get_mut(stream.index());
            if let Some(share) = known.filter(|share| share.stream == Some(stream)) {
                share.tokens = weight;
                self.served.extend(share.rank);
            }
        }
        self.spent = spent;
    }

    fn next_rank(&mut self) -> Option<Rank> {
        if self.turn.is_none() {
            let from_cursor = self.served.range((self.cursor, Bound::Unbounded)).next();
            self.turn = from_cursor.or_else(|| self.served.first()).copied();
        }
        self.turn
    }
}

impl Default for PriorityRounds {
    fn default() -> Self {
        PriorityRounds::new()
    }
}

impl StreamPolicy for PriorityRounds {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        self.next_rank().map(|rank| Turn::unlimited(rank.stream))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        // Streams whose weight an edit may have changed.
        let mut moved = Vec::new();
        let is_edit = matches!(event, Event::Tree(_));
        self.tree.on_event(event, view.priorities, &mut |tree, change| match change {
            Change::Activated { node, .. } | Change::Weighted { node, .. } if is_edit => {
                moved.extend(tree.ready(node));
            }
            _ => {}
        });
        match *event {
            Event::Ready(stream) => self.refresh(stream, true),
            Event::Stopped(stream) => self.refresh(stream, false),
            Event::Closed(stream) => {
                self.refresh(stream, false);
                *self.share(stream) = Share::default();
            }
            Event::Tree(TreeEdit::Attached { stream, .. }) if self.is_ready(stream) => {
                self.refresh(stream, true);
            }
            _ => {}
        }
        for stream in moved {
            self.refresh(stream, true);
        }
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let rank = self.rank(turn.stream);
        let heaviest = self.ready.first().is_none_or(|first| rank.lightness <= first.lightness);
        if self.next_rank() == Some(rank) {
            self.cursor = Bound::Excluded(rank);
            self.turn = None;
        }
        let share = self.share(turn.stream);
        if share.tokens == 0 {
            return;
        }
        share.tokens -= 1;
        if share.tokens == 0 {
            self.turn = None;
            self.served.remove(&rank);
            self.spent.push(turn.stream);
            if heaviest {
                self.renew();
            }
            self.renew_if_spent();
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let (weight, rank) = (self.weight(turn.stream), self.rank(turn.stream));
        let share = self.share(turn.stream);
        share.tokens = (share.tokens + 1).min(weight);
        let ready = share.rank.is_some();
        if ready {
            self.served.insert(rank);
        }
        self.cursor = Bound::Included(rank);
        self.turn = None;
    }

    fn order(&self) -> u64 {
        self.tree.preemptions()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::testing::{Driver, runs};
    use proptest::prelude::*;

    #[test]
    fn streams_alternate_while_they_have_tokens_and_the_heaviest_ends_the_round() {
        let mut driver = Driver::new(PriorityRounds::new());
        driver.open_at(4, 0, 1, 100_000);
        driver.open_at(8, 0, 4, 100_000);
        driver.open_at(12, 0, 2, 100_000);
        let order = driver.packets(14, 1_000);
        assert_eq!(order, [8, 12, 4, 8, 12, 8, 8, 12, 4, 8, 12, 8, 8, 8]);
    }

    #[test]
    fn tokens_come_back_when_no_ready_stream_has_any() {
        let mut driver = Driver::new(PriorityRounds::new());
        driver.open_at(4, 0, 2, 100_000);
        driver.open_at(8, 0, 9, 100_000);
        driver.packets(2, 1_000);
        driver.block(8);
        assert_eq!(driver.packets(5, 1_000), [4; 5]);
        driver.unblock(8);
        assert_eq!(runs(&driver.packets(3, 1_000)).len(), 3);
    }

    #[test]
    fn plans_taken_back_are_planned_alike() {
        let mut driver = Driver::new(PriorityRounds::new());
        driver.open_at(0, 0, 8, 2_000);
        driver.open_at(4, 0, 8, 1_000);
        driver.open_at(8, 0, 5, 3_000);
        let plans: Vec<_> = (0..6).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(6, 1_000), [0, 4, 8, 0, 8, 8]);
    }

    proptest! {
        /// Against a list that is walked from the stream after the last one served.
        #[test]
        fn turns_are_those_of_a_walk(streams in prop::collection::vec((1..6u16, 1..9u64), 1..9)) {
            let mut driver = Driver::new(PriorityRounds::new());
            // Lightness, identifier, tokens, packets.
            let mut list: Vec<(u16, u64, u16, u64)> = Vec::new();
            for (index, &(weight, packets)) in streams.iter().enumerate() {
                let id = 4 * index as u64;
                driver.open_at(id, 0, weight, packets * 1_000);
                list.push((u16::MAX - weight, id, weight, packets));
            }
            list.sort_unstable();
            let renew = |list: &mut Vec<(u16, u64, u16, u64)>| {
                for entry in list.iter_mut().filter(|entry| entry.2 == 0) {
                    entry.2 = u16::MAX - entry.0;
                }
            };
            let mut last = (0, 0);
            while !list.is_empty() {
                let after = list.iter().position(|entry| (entry.0, entry.1) > last).unwrap_or(0);
                let walk = (after..list.len()).chain(0..after);
                let index = walk.into_iter().find(|&index| list[index].2 > 0).unwrap();
                last = (list[index].0, list[index].1);
                prop_assert_eq!(driver.packets(1, 1_000), [last.1]);
                list[index].2 -= 1;
                list[index].3 -= 1;
                let spent = |list: &[(u16, u64, u16, u64)]| list.iter().all(|entry| entry.2 == 0);
                if (list[index].2 == 0 && list[index].0 == list[0].0) || spent(&list) {
                    renew(&mut list);
                }
                list.retain(|entry| entry.3 > 0);
                if spent(&list) {
                    renew(&mut list);
                }
            }
        }
    }
}
