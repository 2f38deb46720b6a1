//! What every path carried, as far as it may still need a copy.

use std::collections::VecDeque;

use quipu_base::Instant;

use crate::key::{PathKey, Span, StreamKey};
use crate::seam::view::{Kind, Piece, SentPacket, StreamTable};

/// Frames sent by path, in order of sending. What is acknowledged or pending again is dropped when
/// it comes to either end, so the log is about as long as what is in flight.
#[derive(Clone, Debug, Default)]
pub(super) struct SentLog {
    /// By path slot.
    lanes: Vec<Lane>,
}

#[derive(Clone, Debug, Default)]
struct Lane {
    path: Option<PathKey>,
    frames: VecDeque<Sent>,
}

/// A frame that is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) stream: StreamKey,
    pub(super) span: Span,
    pub(super) at: Instant,
}

impl SentLog {
    /// A frame left on a path; copies and bare ends of streams are not kept.
    pub(super) fn push(&mut self, packet: &SentPacket<'_>, piece: &Piece) {
        if piece.kind == Kind::Copy || piece.span.is_empty() {
            return;
        }
        let slot = packet.path.index();
        if self.lanes.len() <= slot {
            self.lanes.resize_with(slot + 1, Lane::default);
        }
        let Some(lane) = self.lanes.get_mut(slot) else { return };
        if lane.path != Some(packet.path) {
            *lane = Lane { path: Some(packet.path), frames: VecDeque::new() };
        }
        lane.frames.push_back(Sent { stream: piece.stream, span: piece.span, at: packet.sent_at });
    }

    /// The first frame sent on a path of those in flight, as far as it is in flight.
    pub(super) fn oldest(&mut self, path: PathKey, table: &dyn StreamTable) -> Option<Sent> {
        let frames = self.frames(path)?;
        while let Some(front) = frames.front_mut() {
            if let Some(sent) = still_in_flight(front, table) {
                return Some(sent);
            }
            frames.pop_front();
        }
        None
    }

    /// The last frame sent on a path of those in flight, as far as it is in flight.
    pub(super) fn newest(&mut self, path: PathKey, table: &dyn StreamTable) -> Option<Sent> {
        let frames = self.frames(path)?;
        while let Some(back) = frames.back_mut() {
            if let Some(sent) = still_in_flight(back, table) {
                return Some(sent);
            }
            frames.pop_back();
        }
        None
    }

    /// The last frame sent on a path needs no copy.
    pub(super) fn drop_newest(&mut self, path: PathKey) {
        if let Some(frames) = self.frames(path) {
            frames.pop_back();
        }
    }

    /// A copy left: of its frame, if that is the oldest or newest of its path, the rest is kept.
    pub(super) fn copied(&mut self, stream: StreamKey, span: Span) {
        let holds = |sent: &Sent| sent.stream == stream && sent.span.contains(span.start);
        for lane in &mut self.lanes {
            if let Some(front) = lane.frames.front_mut().filter(|sent| holds(sent)) {
                front.span = Span::new(span.end, front.span.end);
                if front.span.is_empty() {
                    lane.frames.pop_front();
                }
            } else if let Some(back) = lane.frames.back_mut().filter(|sent| holds(sent)) {
                back.span = Span::new(span.end, back.span.end);
                if back.span.is_empty() {
                    lane.frames.pop_back();
                }
            }
        }
    }

    /// Drops what is no longer in flight from the front of every path.
    pub(super) fn trim(&mut self, table: &dyn StreamTable) {
        for slot in 0..self.lanes.len() {
            if let Some(path) = self.lanes.get(slot).and_then(|lane| lane.path) {
                self.oldest(path, table);
            }
        }
    }

    /// A path is gone.
    pub(super) fn forget(&mut self, path: PathKey) {
        if let Some(frames) = self.frames(path) {
            frames.clear();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.frames.is_empty())
    }

    fn frames(&mut self, path: PathKey) -> Option<&mut VecDeque<Sent>> {
        let lane = self.lanes.get_mut(path.index())?;
        (lane.path == Some(path)).then_some(&mut lane.frames)
    }
}

/// The lowest part of a frame that is in flight; what lies before it is cut off.
fn still_in_flight(sent: &mut Sent, table: &dyn StreamTable) -> Option<Sent> {
    let found = table.unacked_from(sent.stream, sent.span.start)?.intersection(sent.span)?;
    sent.span.start = found.start;
    Some(Sent { span: found, ..*sent })
}
