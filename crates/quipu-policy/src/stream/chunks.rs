//! What was written to one stream, chunk by chunk.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, Offset};

use crate::key::{Span, StreamKey};
use crate::seam::view::{Class, Kind, View};

/// One stream's written chunks.
#[derive(Clone, Debug)]
pub(super) struct Chunks {
    pub(super) stream: StreamKey,
    /// In order of offset; the first begins at or before the first unacknowledged byte.
    chunks: VecDeque<Chunk>,
    /// End of what was written.
    written: Offset,
    /// Where the next fresh byte is taken.
    fresh: Offset,
    /// Lost stretches that are pending again, in order of offset.
    lost: VecDeque<Span>,
    pub(super) ready: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    /// Where it ends.
    pub(super) end: Offset,
    /// When it should go: chunks are ranked by it.
    pub(super) due: Instant,
}

impl Chunks {
    /// Nothing written; `fresh` bytes were sent before this account began.
    pub(super) fn new(stream: StreamKey, fresh: Offset) -> Self {
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
    pub(super) fn chunk_at(&self, at: Offset) -> Option<Chunk> {
        let index = self.chunks.partition_point(|chunk| chunk.end <= at);
        self.chunks.get(index).or(self.chunks.back()).copied()
    }

    /// Where the next byte is taken.
    pub(super) fn head(&self) -> Offset {
        self.lost.front().map_or(self.fresh, |span| span.start.min(self.fresh))
    }

    /// More was written, as a chunk of its own unless it is due with the last one.
    pub(super) fn on_written(&mut self, written: Offset, due: Instant) {
        if written <= self.written {
            return;
        }
        self.written = written;
        match self.chunks.back_mut() {
            Some(last) if last.due == due => last.end = written,
            _ => self.chunks.push_back(Chunk { end: written, due }),
        }
    }

    /// Sent bytes are pending again.
    pub(super) fn on_requeued(&mut self, span: Span) {
        if span.is_empty() {
            return;
        }
        let index = self.lost.partition_point(|other| other.start < span.start);
        self.lost.insert(index, span);
    }

    /// Bytes were sent or planned.
    pub(super) fn on_taken(&mut self, bytes: Bytes, kind: Kind) {
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

    /// A plan of fresh bytes was taken back; lost bytes are never planned.
    pub(super) fn on_returned(&mut self, bytes: Bytes) {
        self.fresh = Offset(self.fresh.0.saturating_sub(bytes.0));
    }

    /// Brings the own account in line with what is pending, and forgets acknowledged chunks.
    pub(super) fn reconcile(&mut self, view: &View<'_>) {
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
        // The last chunk stays: it ranks a bare FIN.
        while self.chunks.len() > 1 && self.chunks.front().is_some_and(|c| c.end <= lowest) {
            self.chunks.pop_front();
        }
    }
}
