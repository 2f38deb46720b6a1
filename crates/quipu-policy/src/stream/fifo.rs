//! First in, first out: by the time at which the application wrote.
//!
//! Source: "Extending the ns-3 QUIC Module" (MSWiM 2020) and its module `signetlabdei/quic`, read in
//! code. What is written at once is a chunk; chunks go in order of (time of writing, stream,
//! offset). Lost bytes go before all new ones (`retx_first`, the default), or with the time of their
//! own chunk.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, Offset};

use super::heap::{Heap, Positions};
use super::{StreamPolicy, Turn};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::key::{Span, StreamKey};
use crate::seam::view::{Class, Kind, SentPacket, View};

/// First in, first out. O(log n).
///
/// A stream's chunks are kept until acknowledged, so that lost bytes keep their time. Bytes that
/// are planned for a path count as gone, in order from the front; bytes sent from the back of a
/// stream are taken for those in front, as to the time of their chunk.
#[derive(Clone, Debug, Default)]
pub struct Fifo {
    streams: Vec<Option<Chunks>>,
    positions: Positions,
    /// Ready streams by (time of the next chunk, identifier, slot).
    order: Heap<(Instant, u64, u32)>,
}

/// One stream's written chunks.
#[derive(Clone, Debug)]
struct Chunks {
    stream: StreamKey,
    /// In order of offset; the first begins at or before the first unacknowledged byte.
    chunks: VecDeque<Chunk>,
    /// End of what was written.
    written: Offset,
    /// Where the next fresh byte is taken.
    fresh: Offset,
    /// Lost stretches that are pending again, in order of offset.
    lost: VecDeque<Span>,
    ready: bool,
}

#[derive(Clone, Copy, Debug)]
struct Chunk {
    end: Offset,
    written_at: Instant,
}

impl Chunks {
    fn new(stream: StreamKey, fresh: Offset) -> Self {
        Chunks {
            stream,
            chunks: VecDeque::new(),
            written: Offset::ZERO,
            fresh,
            lost: VecDeque::new(),
            ready: false,
        }
    }

    /// The chunk that holds the byte at `at`; the last one for the end of the stream.
    fn chunk_at(&self, at: Offset) -> Option<Chunk> {
        let index = self.chunks.partition_point(|chunk| chunk.end <= at);
        self.chunks.get(index).or(self.chunks.back()).copied()
    }

    fn head(&self) -> Offset {
        self.lost.front().map_or(self.fresh, |span| span.start.min(self.fresh))
    }

    fn on_written(&mut self, written: Offset, now: Instant) {
        if written <= self.written {
            return;
        }
        self.written = written;
        match self.chunks.back_mut() {
            Some(last) if last.written_at == now => last.end = written,
            _ => self.chunks.push_back(Chunk { end: written, written_at: now }),
        }
    }

    fn on_requeued(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let index = self.lost.partition_point(|other| other.start < span.start);
        self.lost.insert(index, span);
    }

    fn on_taken(&mut self, bytes: Bytes, kind: Kind) {
        match kind {
            Kind::Again => {
                if let Some(first) = self.lost.front_mut() {
                    first.start = first.start.advanced(bytes);
                    if first.is_empty() {
                        self.lost.pop_front();
                    }
                }
            }
            Kind::Fresh => self.fresh = self.fresh.advanced(bytes),
            Kind::Copy => {}
        }
    }

    /// Brings the own account in line with what is pending, and forgets acknowledged chunks.
    fn reconcile(&mut self, view: &View<'_>) {
        let pending = |at| view.streams.pending_from(self.stream, at);
        while let Some(&first) = self.lost.front() {
            match pending(first.start).filter(|run| matches!(run.class, Class::Lost { .. })) {
                Some(run) if run.span.start == first.start => break,
                Some(run) if run.span.start < first.end => {
                    self.lost[0].start = run.span.start;
                    break;
                }
                _ => self.lost.pop_front(),
            };
        }
        let unacked = view.streams.unacked_from(self.stream, Offset::ZERO);
        let lowest = [unacked, pending(Offset::ZERO).map(|run| run.span)]
            .into_iter()
            .flatten()
            .map(|span| span.start)
            .min()
            .unwrap_or(self.fresh);
        // The last chunk stays: its time is that of a bare FIN.
        while self.chunks.len() > 1 && self.chunks.front().is_some_and(|c| c.end <= lowest) {
            self.chunks.pop_front();
        }
    }
}

impl Fifo {
    /// A policy that knows no stream.
    pub fn new() -> Self {
        Fifo::default()
    }

    fn chunks_mut(&mut self, stream: StreamKey) -> Option<&mut Chunks> {
        self.streams.get_mut(stream.index())?.as_mut().filter(|chunks| chunks.stream == stream)
    }

    fn open(&mut self, stream: StreamKey, view: &View<'_>) {
        if self.chunks_mut(stream).is_some() {
            return;
        }
        // Not zero if the policy joins in mid-connection.
        let sent = view.streams.get(stream).map_or(Offset::ZERO, |view| view.high_sent);
        self.order.remove(&mut self.positions, stream.slot);
        if self.streams.len() <= stream.index() {
            self.streams.resize(stream.index() + 1, None);
        }
        self.streams[stream.index()] = Some(Chunks::new(stream, sent));
    }

    fn close(&mut self, stream: StreamKey) {
        if self.chunks_mut(stream).is_some() {
            self.order.remove(&mut self.positions, stream.slot);
            self.streams[stream.index()] = None;
        }
    }

    /// Puts a stream where its next byte belongs.
    fn reorder(&mut self, stream: StreamKey) {
        let Some(chunks) = self.chunks_mut(stream) else { return };
        let time = chunks.chunk_at(chunks.head()).map_or(Instant::ZERO, |chunk| chunk.written_at);
        let key = (time, stream.id.0, stream.slot);
        if chunks.ready {
            self.order.set(&mut self.positions, stream.slot, key);
        } else {
            self.order.remove(&mut self.positions, stream.slot);
        }
    }

    fn on_acked(&mut self, packet: &SentPacket<'_>, view: &View<'_>) {
        for piece in packet.pieces {
            if let Some(chunks) = self.chunks_mut(piece.stream) {
                chunks.reconcile(view);
                self.reorder(piece.stream);
            }
        }
    }
}

impl StreamPolicy for Fifo {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let (_, slot) = self.order.first()?;
        let chunks = self.streams.get(slot as usize)?.as_ref()?;
        let head = chunks.head();
        let left = chunks.chunk_at(head).map_or(Bytes::ZERO, |chunk| chunk.end.since(head));
        // Nothing but the end of the stream is left, or more than this policy was told of.
        let max = if left.is_zero() { Bytes::MAX } else { left };
        Some(Turn { stream: chunks.stream, max })
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Opened(stream) => self.open(stream, view),
            Event::Written(stream) => {
                self.open(stream, view);
                let written = view.streams.get(stream).map_or(Offset::ZERO, |view| view.written);
                if let Some(chunks) = self.chunks_mut(stream) {
                    chunks.on_written(written, view.now);
                }
            }
            Event::Requeued { stream, span, .. } => {
                if let Some(chunks) = self.chunks_mut(stream) {
                    chunks.on_requeued(span);
                    self.reorder(stream);
                }
            }
            Event::Ready(stream) | Event::Stopped(stream) => {
                self.open(stream, view);
                if let Some(chunks) = self.chunks_mut(stream) {
                    chunks.ready = matches!(event, Event::Ready(_));
                    self.reorder(stream);
                }
            }
            Event::Closed(stream) => self.close(stream),
            Event::Acked(packet) => self.on_acked(&packet, view),
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, _view: &View<'_>) {
        if let Some(chunks) = self.chunks_mut(turn.stream) {
            chunks.on_taken(turn.max, kind);
            self.reorder(turn.stream);
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        // Lost bytes are never planned ahead, so these are fresh.
        if let Some(chunks) = self.chunks_mut(turn.stream) {
            chunks.fresh = Offset(chunks.fresh.0.saturating_sub(turn.max.0));
            self.reorder(turn.stream);
        }
    }
}

#[cfg(test)]
mod tests;
