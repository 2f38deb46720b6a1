//! `fifo` and `edf`: by what was written when.
//!
//! Source: "Extending the ns-3 QUIC Module" (MSWiM 2020) and its module `signetlabdei/quic`, read in
//! code. What is written at once is a chunk; chunks go in order of (due time, stream, offset), and
//! within a stream always in order of offset.
//!
//! - `fifo`: a chunk is due when it was written.
//! - `edf`, earliest deadline first: a latency later, that of its stream at the time of writing, else
//!   of all. What is late goes all the same.
//!
//! Lost bytes go before all new ones (`retx_first`), or keep the due time of the chunk that they were
//! part of. To `fifo` that is nearly the same, as what was sent was due before what was not.

use quipu_base::{Bytes, Duration, Instant, Offset};

use super::chunks::Chunks;
use super::ready_queue::ReadyQueue;
use super::{StreamPolicy, Turn};
use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, SentPacket, View};

/// First in, first out; or earliest deadline first. O(log n).
///
/// A stream's chunks are kept until acknowledged, so that lost bytes keep their due time. Bytes that
/// are planned for a path count as gone, in order from the front; bytes sent from the back of a
/// stream are taken for those in front, as to the due time of their chunk.
#[derive(Clone, Debug)]
pub struct ByChunk {
    streams: Vec<Option<Chunks>>,
    /// Ready streams by due time of the next chunk.
    queue: ReadyQueue<Instant>,
    /// From writing to deadline, where no other is told; `None`: chunks are due when written.
    latency: Option<Duration>,
}

impl ByChunk {
    /// First in, first out.
    pub fn fifo() -> Self {
        ByChunk { streams: Vec::new(), queue: ReadyQueue::default(), latency: None }
    }

    /// Earliest deadline first: `latency` after writing, unless a stream's own is told
    /// ([`PriorityEdit::Deadline`](crate::PriorityEdit::Deadline)). Another latency holds for what
    /// is written from then on.
    pub fn edf(latency: Duration) -> Self {
        ByChunk { latency: Some(latency), ..ByChunk::fifo() }
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
        if let Some(Some(old)) = self.streams.get(stream.index()) {
            self.queue.remove(old.stream);
        }
        if self.streams.len() <= stream.index() {
            self.streams.resize(stream.index() + 1, None);
        }
        self.streams[stream.index()] = Some(Chunks::new(stream, sent));
    }

    fn close(&mut self, stream: StreamKey) {
        if self.chunks_mut(stream).is_some() {
            self.queue.remove(stream);
            self.streams[stream.index()] = None;
        }
    }

    /// When the next byte of a ready stream is due.
    fn due(&mut self, stream: StreamKey) -> Option<Instant> {
        let chunks = self.chunks_mut(stream).filter(|chunks| chunks.ready)?;
        Some(chunks.chunk_at(chunks.head()).map_or(Instant::ZERO, |chunk| chunk.due))
    }

    /// Puts a ready stream where its next byte belongs.
    fn reorder(&mut self, stream: StreamKey) {
        if let Some(due) = self.due(stream) {
            self.queue.set_rank(stream, due);
        }
    }

    fn set_ready(&mut self, stream: StreamKey, ready: bool) {
        if let Some(chunks) = self.chunks_mut(stream) {
            chunks.ready = ready;
        }
        match self.due(stream) {
            Some(due) => self.queue.insert(stream, due),
            None => self.queue.remove(stream),
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

impl StreamPolicy for ByChunk {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        let (stream, _) = self.queue.first()?;
        let chunks = self.streams.get(stream.index())?.as_ref()?;
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
                let Some(stream_view) = view.streams.get(stream) else { return };
                let latency =
                    self.latency.map(|latency| stream_view.priority.latency.unwrap_or(latency));
                let due = view.now + latency.unwrap_or(Duration::ZERO);
                if let Some(chunks) = self.chunks_mut(stream) {
                    chunks.on_written(stream_view.written, due);
                }
            }
            Event::Requeued { stream, span, .. } => {
                if let Some(chunks) = self.chunks_mut(stream) {
                    chunks.on_requeued(span);
                    self.reorder(stream);
                }
                if let Some(due) = self.due(stream) {
                    self.queue.preemptions.compare(due);
                }
            }
            Event::Ready(stream) => {
                self.open(stream, view);
                self.set_ready(stream, true);
            }
            Event::Stopped(stream) => self.set_ready(stream, false),
            Event::Closed(stream) => self.close(stream),
            Event::Acked(packet) => self.on_acked(&packet, view),
            Event::Placed { piece, .. } => self.queue.preemptions.on_placed(piece),
            _ => {}
        }
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, _view: &View<'_>) {
        self.queue.preemptions.on_taken(turn, kind, self.queue.rank(turn.stream));
        if let Some(chunks) = self.chunks_mut(turn.stream) {
            chunks.on_taken(turn.max, kind);
            self.reorder(turn.stream);
        }
    }

    fn on_returned(&mut self, turn: Turn, _view: &View<'_>) {
        if let Some(chunks) = self.chunks_mut(turn.stream) {
            chunks.on_returned(turn.max);
            let ready = chunks.ready;
            self.queue.preemptions.on_returned(turn, ready);
            self.reorder(turn.stream);
        }
    }

    fn order(&self) -> u64 {
        self.queue.preemptions.count()
    }
}

#[cfg(test)]
mod tests;
