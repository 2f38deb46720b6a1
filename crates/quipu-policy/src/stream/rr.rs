//! Round robin: streams take turns of one packet, or of one frame.
//!
//! Source: the stream map of the multipath QUIC prototype `qdeconinck/mp-quic`, read in code. There
//! a packet is filled with frames of several streams (`unit=frame`); one stream per packet is ours
//! and the default, as one lost packet then stalls one stream only.

use super::{StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// Round robin over the streams with something to send, in order of becoming ready; a stream that
/// becomes ready joins at the end of the ring. O(1).
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    slots: Vec<Option<Link>>,
    first: Option<u32>,
    last: Option<u32>,
    /// Whose turn it is.
    cursor: Option<u32>,
    /// A stream whose plan was just taken back while it was not in the ring.
    returned: Option<StreamKey>,
}

/// A stream in the ring, with its neighbours.
#[derive(Clone, Copy, Debug)]
struct Link {
    stream: StreamKey,
    previous: Option<u32>,
    next: Option<u32>,
}

impl RoundRobin {
    /// A ring without streams.
    pub fn new() -> Self {
        RoundRobin::default()
    }

    fn link(&self, slot: u32) -> Option<&Link> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn link_mut(&mut self, slot: u32) -> Option<&mut Link> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Whose turn it is.
    pub(super) fn current(&self) -> Option<StreamKey> {
        Some(self.link(self.cursor?)?.stream)
    }

    fn has(&self, stream: StreamKey) -> bool {
        self.link(stream.slot).is_some_and(|link| link.stream == stream)
    }

    /// A stream becomes ready.
    pub(super) fn push(&mut self, stream: StreamKey) {
        if self.has(stream) {
            return;
        }
        self.remove(stream.slot);
        if self.slots.len() <= stream.index() {
            self.slots.resize(stream.index() + 1, None);
        }
        let regains_turn = self.returned.take() == Some(stream);
        let next = self.cursor.filter(|_| regains_turn);
        let previous = match next.and_then(|slot| self.link_mut(slot)) {
            Some(link) => link.previous.replace(stream.slot),
            None => self.last.replace(stream.slot),
        };
        match previous.and_then(|slot| self.link_mut(slot)) {
            Some(link) => link.next = Some(stream.slot),
            None => self.first = Some(stream.slot),
        }
        self.slots[stream.index()] = Some(Link { stream, previous, next });
        if regains_turn || self.cursor.is_none() {
            self.cursor = Some(stream.slot);
        }
    }

    /// The stream in that slot is ready no more.
    pub(super) fn remove(&mut self, slot: u32) {
        let Some(Link { previous, next, .. }) =
            self.slots.get_mut(slot as usize).and_then(Option::take)
        else {
            return;
        };
        match previous.and_then(|slot| self.link_mut(slot)) {
            Some(link) => link.next = next,
            None => self.first = next,
        }
        match next.and_then(|slot| self.link_mut(slot)) {
            Some(link) => link.previous = previous,
            None => self.last = previous,
        }
        if self.cursor == Some(slot) {
            self.cursor = next.or(self.first);
        }
    }
}

impl StreamPolicy for RoundRobin {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        self.current().map(Turn::unlimited)
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        match *event {
            Event::Ready(stream) => self.push(stream),
            Event::Stopped(stream) | Event::Closed(stream) if self.has(stream) => {
                self.remove(stream.slot);
            }
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, _kind: Kind, _view: &View<'_>) {
        // Lost bytes that go out of turn move nothing, a bare FIN is no turn.
        if self.cursor == Some(turn.stream.slot) && !turn.max.is_zero() {
            self.cursor = self.link(turn.stream.slot).and_then(|link| link.next).or(self.first);
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        if self.has(turn.stream) {
            self.cursor = Some(turn.stream.slot);
        } else {
            self.returned = Some(turn.stream);
        }
    }

    /// A ring of one.
    fn stays_with(&self, stream: StreamKey) -> bool {
        self.first == self.last && self.current() == Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::testing::Driver;

    #[test]
    fn streams_take_turns_in_order_of_becoming_ready() {
        let mut driver = Driver::new(RoundRobin::new());
        for id in [4, 8, 0] {
            driver.open(id, 3_000);
        }
        assert_eq!(driver.packets(7, 1_000), [4, 8, 0, 4, 8, 0, 4]);
    }

    #[test]
    fn a_blocked_stream_is_passed_over_and_joins_at_the_end() {
        let mut driver = Driver::new(RoundRobin::new());
        for id in [0, 4, 8] {
            driver.open(id, 9_000);
        }
        assert_eq!(driver.packets(1, 1_000), [0]);
        driver.block(4);
        assert_eq!(driver.packets(2, 1_000), [8, 0]);
        driver.unblock(4);
        assert_eq!(driver.packets(4, 1_000), [8, 4, 0, 8]);
    }

    #[test]
    fn a_bare_fin_uses_no_turn() {
        let mut driver = Driver::new(RoundRobin::new());
        driver.open(0, 3_000);
        driver.open(4, 0);
        driver.open(8, 3_000);
        assert_eq!(driver.packets(3, 1_000), [0, 4, 8]);
        assert_eq!(driver.packets(2, 1_000), [0, 8]);
    }

    #[test]
    fn a_plan_taken_back_gives_the_turn_back() {
        let mut driver = Driver::new(RoundRobin::new());
        for id in [0, 4, 8] {
            driver.open(id, 9_000);
        }
        let first = driver.take(1_000);
        let second = driver.take(1_000);
        driver.give_back(second);
        driver.give_back(first);
        assert_eq!(driver.packets(3, 1_000), [0, 4, 8]);
    }

    #[test]
    fn plans_of_all_that_streams_have_go_back_in_their_order() {
        let mut driver = Driver::new(RoundRobin::new());
        for id in [0, 4, 8] {
            driver.open(id, 1_000);
        }
        let plans: Vec<_> = (0..3).map(|_| driver.take(1_000)).collect();
        for taken in plans.into_iter().rev() {
            driver.give_back(taken);
        }
        assert_eq!(driver.packets(3, 1_000), [0, 4, 8]);
    }
}
