//! Streams with bytes that cost no connection credit.

use std::collections::VecDeque;

use crate::key::StreamKey;

/// Streams with credit-free bytes, the oldest entry first: those with lost bytes, and apart from
/// them those with skipped bytes (holes) or a bare FIN.
///
/// Membership is a hint: whoever serves a stream looks whether something of it is pending that no
/// path holds, and takes it out if not. So adding twice, and bytes that an acknowledgement
/// settled meanwhile, do no harm. Every call costs O(1) amortised.
#[derive(Clone, Debug, Default)]
pub struct FreeSet {
    lost: Line,
    spare: Line,
}

/// Why a stream is in the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// It has lost bytes.
    Lost,
    /// It has skipped bytes, or nothing but its end to tell.
    Skipped,
}

impl FreeSet {
    /// No streams.
    pub fn new() -> Self {
        FreeSet::default()
    }

    /// Adds a stream at the end of the line, unless it is in it.
    pub fn add(&mut self, stream: StreamKey, why: Spare) {
        self.line_mut(why).add(stream);
    }

    /// Takes a stream out of one line.
    pub fn remove(&mut self, stream: StreamKey, why: Spare) {
        self.line_mut(why).remove(stream);
    }

    /// Forgets a stream that closed.
    pub fn forget(&mut self, stream: StreamKey) {
        self.lost.remove(stream);
        self.spare.remove(stream);
    }

    /// The stream that is longest in one line.
    pub fn first(&mut self, why: Spare) -> Option<StreamKey> {
        self.line_mut(why).first()
    }

    /// True if no stream is in that line.
    pub fn is_empty(&self, why: Spare) -> bool {
        match why {
            Spare::Lost => self.lost.members == 0,
            Spare::Skipped => self.spare.members == 0,
        }
    }

    fn line_mut(&mut self, why: Spare) -> &mut Line {
        match why {
            Spare::Lost => &mut self.lost,
            Spare::Skipped => &mut self.spare,
        }
    }
}

/// A queue without repeats. Those that left it stay in `order` until they come to its front or
/// outnumber the members.
#[derive(Clone, Debug, Default)]
struct Line {
    order: VecDeque<(u64, StreamKey)>,
    /// By stream slot: the ticket under which the stream stands in `order`.
    tickets: Vec<Option<u64>>,
    next_ticket: u64,
    members: usize,
}

impl Line {
    fn add(&mut self, stream: StreamKey) {
        if self.tickets.len() <= stream.index() {
            self.tickets.resize(stream.index() + 1, None);
        }
        if self.tickets[stream.index()].is_some() {
            return;
        }
        self.tickets[stream.index()] = Some(self.next_ticket);
        self.order.push_back((self.next_ticket, stream));
        self.next_ticket += 1;
        self.members += 1;
        if self.order.len() > 2 * self.members + 16 {
            let tickets = &self.tickets;
            self.order.retain(|(ticket, stream)| tickets[stream.index()] == Some(*ticket));
        }
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(ticket @ Some(_)) = self.tickets.get_mut(stream.index()) {
            *ticket = None;
            self.members -= 1;
        }
    }

    fn first(&mut self) -> Option<StreamKey> {
        while let Some(&(ticket, stream)) = self.order.front() {
            if self.tickets[stream.index()] == Some(ticket) {
                return Some(stream);
            }
            self.order.pop_front();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::StreamId;

    fn key(slot: u32) -> StreamKey {
        StreamKey { slot, id: StreamId(u64::from(slot) * 4) }
    }

    #[test]
    fn the_stream_that_lost_first_comes_first() {
        let mut set = FreeSet::new();
        set.add(key(5), Spare::Lost);
        set.add(key(1), Spare::Lost);
        set.add(key(5), Spare::Lost);
        assert_eq!(set.first(Spare::Lost), Some(key(5)));
        set.remove(key(5), Spare::Lost);
        assert_eq!(set.first(Spare::Lost), Some(key(1)));
        assert!(set.is_empty(Spare::Skipped));
    }

    #[test]
    fn a_stream_that_left_and_came_back_stands_at_the_end() {
        let mut set = FreeSet::new();
        set.add(key(0), Spare::Lost);
        set.add(key(1), Spare::Lost);
        set.remove(key(0), Spare::Lost);
        set.add(key(0), Spare::Lost);
        assert_eq!(set.first(Spare::Lost), Some(key(1)));
        set.forget(key(1));
        assert_eq!(set.first(Spare::Lost), Some(key(0)));
    }

    #[test]
    fn streams_that_come_and_go_behind_a_waiting_one_take_no_room() {
        let mut set = FreeSet::new();
        set.add(key(0), Spare::Skipped);
        for round in 0..10_000 {
            set.add(key(1 + round % 3), Spare::Skipped);
            set.forget(key(1 + round % 3));
        }
        assert_eq!(set.first(Spare::Skipped), Some(key(0)));
        assert!(set.spare.order.len() < 32);
    }
}
