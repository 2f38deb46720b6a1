//! `rfc9218`: urgency levels, one stream after the other or in turns.
//!
//! Source: <https://www.rfc-editor.org/rfc/rfc9218#section-10>. Lower urgency numbers go first,
//! strictly; inside a level non-incremental streams go one at a time in order of identifier, and
//! incremental ones take turns of one packet. Which of both kinds goes first the RFC leaves open.
//! Non-incremental ones do by default, as in Cloudflare's quiche (read in code); packets alternate
//! between the kinds with [`Mixed::Fair`]. The starvation guard is our reconstruction.

use super::heap::{Heap, Positions};
use super::preemption::Preemptions;
use super::rr::RoundRobin;
use super::{StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};

/// <https://www.rfc-editor.org/rfc/rfc9218#section-4.1>
const LEVELS: usize = 8;
/// With the guard, one packet in so many goes to the next lower level.
// https://www.rfc-editor.org/rfc/rfc9218#section-10
//# It is RECOMMENDED that servers avoid such starvation where possible.
const GUARD: u64 = 64;

/// Who goes first if a level has streams of both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mixed {
    /// The non-incremental ones.
    #[default]
    First,
    /// Packets alternate between the two kinds.
    Fair,
}

/// Extensible priorities. O(log n), O(1) for incremental streams.
///
/// Each time bytes are taken counts as one packet.
#[derive(Clone, Debug, Default)]
pub struct UrgencyLevels {
    levels: [Level; LEVELS],
    positions: Positions,
    /// By slot: the ready stream and where it is.
    places: Vec<Option<(StreamKey, Place)>>,
    mixed: Mixed,
    guard: bool,
    /// Packets so far.
    packets: u64,
    preemptions: Preemptions<Place>,
}

/// Where a stream stands, in order of service but for turns: level; whether incremental; identifier
/// if not.
type Place = (u8, bool, u64);

/// The ready streams of one urgency.
#[derive(Clone, Debug, Default)]
struct Level {
    /// Non-incremental ones by identifier.
    sequential: Heap<u64>,
    /// Incremental ones.
    turns: RoundRobin,
    /// Whether the last packet was of a non-incremental one.
    last_sequential: bool,
}

impl Level {
    fn next(&self, mixed: Mixed) -> Option<StreamKey> {
        let sequential = self
            .sequential
            .first()
            .map(|(id, slot)| StreamKey { slot, id: quipu_base::StreamId(id) });
        match (sequential, self.turns.current()) {
            (Some(_), Some(incremental)) if mixed == Mixed::Fair && self.last_sequential => {
                Some(incremental)
            }
            (sequential, incremental) => sequential.or(incremental),
        }
    }
}

impl UrgencyLevels {
    /// A policy that knows no stream. With `guard`, one packet in 64 goes to the next lower level
    /// that has something to send.
    pub fn new(mixed: Mixed, guard: bool) -> Self {
        UrgencyLevels { mixed, guard, ..UrgencyLevels::default() }
    }

    fn place(&self, stream: StreamKey) -> Option<Place> {
        let (key, place) = (*self.places.get(stream.index())?)?;
        (key == stream).then_some(place)
    }

    fn insert(&mut self, stream: StreamKey, view: &View<'_>) {
        let Some(priority) = view.streams.get(stream).map(|stream| stream.priority) else { return };
        // https://www.rfc-editor.org/rfc/rfc9218#section-10
        //# It is RECOMMENDED that, when possible, servers respect the urgency parameter (Section
        //# 4.1), sending higher-urgency responses before lower-urgency responses. It is
        //# RECOMMENDED that, when possible, servers respect the incremental parameter (Section
        //# 4.2).
        let urgency = priority.urgency.min(LEVELS as u8 - 1);
        let id = if priority.incremental { 0 } else { stream.id.0 };
        let place = (urgency, priority.incremental, id);
        let level = &mut self.levels[usize::from(urgency)];
        if priority.incremental {
            // https://www.rfc-editor.org/rfc/rfc9218#section-10
            //# Incremental responses of the same urgency SHOULD be served by sharing bandwidth
            //# among them.
            level.turns.push(stream);
        } else {
            // https://www.rfc-editor.org/rfc/rfc9218#section-10
            //# Non-incremental responses of the same urgency SHOULD be served by prioritizing
            //# bandwidth allocation in ascending order of the stream ID, which corresponds to the
            //# order in which clients make requests.
            level.sequential.set(&mut self.positions, stream.slot, stream.id.0);
        }
        if self.places.len() <= stream.index() {
            self.places.resize(stream.index() + 1, None);
        }
        self.places[stream.index()] = Some((stream, place));
    }

    fn remove(&mut self, stream: StreamKey) {
        let Some((urgency, incremental, _)) = self.place(stream) else { return };
        let level = &mut self.levels[usize::from(urgency)];
        if incremental {
            level.turns.remove(stream.slot);
        } else {
            level.sequential.remove(&mut self.positions, stream.slot);
        }
        self.places[stream.index()] = None;
    }

    fn reprioritise(&mut self, stream: StreamKey, view: &View<'_>) {
        let Some(old) = self.place(stream) else {
            // All that it has may be planned, by the priority that it had.
            if view.streams.get(stream).is_some_and(|stream| stream.is_ready()) {
                self.preemptions.on_change();
            }
            return;
        };
        let priority = view.streams.get(stream).map(|stream| stream.priority);
        let same = priority.is_some_and(|new| (new.urgency, new.incremental) == (old.0, old.1));
        if !same {
            self.remove(stream);
            self.insert(stream, view);
            self.preemptions.on_change();
        }
    }

    /// The level of a stream that is not ready.
    fn level_of(stream: StreamKey, view: &View<'_>) -> Option<(usize, bool)> {
        let priority = view.streams.get(stream)?.priority;
        Some((usize::from(priority.urgency).min(LEVELS - 1), priority.incremental))
    }
}

impl StreamPolicy for UrgencyLevels {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let mut levels = self.levels.iter().filter_map(|level| level.next(self.mixed));
        let first = levels.next()?;
        let guarded = self.guard && self.packets % GUARD == GUARD - 1;
        let second = if guarded { levels.next() } else { None };
        Some(Turn::unlimited(second.unwrap_or(first)))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Ready(stream) => {
                self.insert(stream, view);
                if let Some(place) = self.place(stream) {
                    self.preemptions.on_ready(stream, place);
                }
            }
            Event::Stopped(stream) | Event::Closed(stream) => self.remove(stream),
            Event::Reprioritised(stream) => self.reprioritise(stream, view),
            Event::Placed { piece, .. } => self.preemptions.on_placed(piece),
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let place = self.place(turn.stream);
        self.preemptions.on_taken(turn, kind, place);
        self.packets += 1;
        if let Some((urgency, incremental, _)) = place {
            let level = &mut self.levels[usize::from(urgency)];
            level.last_sequential = !incremental;
            level.turns.on_taken(turn, kind, view);
        }
    }

    fn on_returned(&mut self, turn: Turn, view: &View<'_>) {
        if turn.max.is_zero() {
            return;
        }
        let place = self.place(turn.stream);
        self.preemptions.on_returned(turn, place.is_some());
        self.packets = self.packets.saturating_sub(1);
        let level = place.map(|(urgency, incremental, _)| (usize::from(urgency), incremental));
        let Some((level, incremental)) = level.or_else(|| Self::level_of(turn.stream, view)) else {
            return;
        };
        let level = &mut self.levels[level];
        // So that its kind has the next packet.
        level.last_sequential = incremental;
        if incremental {
            level.turns.on_returned(turn, view);
        }
    }

    fn order(&self) -> u64 {
        self.preemptions.count()
    }

    fn stays_with(&self, stream: StreamKey) -> bool {
        // Otherwise it matters how many packets went.
        let ignores_packets = !self.guard && self.mixed == Mixed::First;
        ignores_packets
            && self.place(stream).is_some_and(|(urgency, incremental, _)| {
                let level = &self.levels[usize::from(urgency)];
                !incremental || level.turns.stays_with(stream)
            })
    }
}

#[cfg(test)]
mod tests;
