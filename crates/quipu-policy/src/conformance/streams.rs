//! A table of streams with naive bookkeeping: for the mock engine, and for unit tests of policies.

use quipu_base::{Bytes, Instant, Offset, StreamId};

use crate::key::{PathKey, Span, StreamKey};
use crate::priority::Priority;
use crate::seam::view::{Class, Run, StreamTable, StreamView};

/// Where a stretch of bytes is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unsent,
    Lost(PathKey),
    Sent,
    Acked,
}

/// A stretch of equal bytes, up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    end: u64,
    state: State,
    /// Packets in flight that carry it.
    flights: u32,
}

/// The end of a stream, once the application finished it.
#[derive(Clone, Copy, Debug, Default)]
struct Fin {
    flights: u32,
    sent: bool,
    /// It was sent before and lost.
    again: bool,
    acked: bool,
}

#[derive(Clone, Debug)]
struct Stream {
    view: StreamView,
    stretches: Vec<Stretch>,
    fin: Fin,
    /// Bytes that left for the first time or again, copies excepted.
    sent: Bytes,
}

/// Streams with what is pending, in flight and acknowledged of each, as plain lists of stretches.
///
/// Every change brings the [`StreamView`] up to date. Slots are used again at once, the last freed
/// first.
#[derive(Clone, Debug, Default)]
pub struct Streams {
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    opened: u64,
}

impl Streams {
    /// No streams.
    pub fn new() -> Self {
        Streams::default()
    }

    /// A new stream with `credit` bytes of stream credit.
    pub fn open(&mut self, now: Instant, priority: Priority, credit: Bytes) -> StreamKey {
        let slot = self.free.pop().unwrap_or(self.slots.len() as u32);
        let key = StreamKey { slot, id: StreamId(self.opened * 4) };
        let view = StreamView {
            key,
            priority,
            seq: self.opened,
            opened_at: now,
            size: None,
            written: Offset::ZERO,
            fin: false,
            high_sent: Offset::ZERO,
            credit_end: Offset(credit.0),
            sendable: Bytes::ZERO,
            free: Bytes::ZERO,
            bare_fin: false,
        };
        self.opened += 1;
        self.insert(view);
        key
    }

    /// A stream that another engine opened: key, order and time are those of its `view`, and so is
    /// all that [`follow`](Self::follow) takes over. Nothing of it was sent. Nothing happens if its
    /// slot is taken.
    pub fn adopt(&mut self, view: &StreamView) {
        let slot = view.key.slot;
        if self.slots.get(view.key.index()).is_some_and(Option::is_some) {
            return;
        }
        self.free.retain(|&free| free != slot);
        self.free.extend(self.slots.len() as u32..slot);
        self.insert(StreamView {
            written: Offset::ZERO,
            fin: false,
            high_sent: Offset::ZERO,
            sendable: Bytes::ZERO,
            free: Bytes::ZERO,
            bare_fin: false,
            ..view.clone()
        });
        self.follow(view);
    }

    fn insert(&mut self, view: StreamView) {
        let at = view.key.index();
        let stream = Stream { view, stretches: Vec::new(), fin: Fin::default(), sent: Bytes::ZERO };
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, || None);
        }
        self.slots[at] = Some(stream);
    }

    /// Takes over what application and peer did to a stream since, as another engine's `view`
    /// shows it: bytes and end written, size, priority, credit. True if something is new.
    pub fn follow(&mut self, view: &StreamView) -> bool {
        let Some(own) = self.get(view.key) else { return false };
        let same = (own.written, own.fin, own.size, own.priority, own.credit_end)
            == (view.written, view.fin, view.size, view.priority, view.credit_end);
        if same {
            return false;
        }
        let more = view.written.since(own.written);
        self.write(view.key, more);
        self.edit(view.key, |stream| {
            stream.view.fin |= view.fin;
            stream.view.size = view.size;
            stream.view.priority = view.priority;
            stream.view.credit_end = view.credit_end;
        });
        true
    }

    /// The application wrote `bytes` more.
    pub fn write(&mut self, key: StreamKey, bytes: Bytes) {
        self.edit(key, |stream| {
            if !stream.view.fin && bytes.0 > 0 {
                stream.view.written = stream.view.written.advanced(bytes);
                let end = stream.view.written.0;
                match stream.stretches.last_mut() {
                    Some(last) if last.state == State::Unsent => last.end = end,
                    _ => {
                        stream.stretches.push(Stretch { end, state: State::Unsent, flights: 0 });
                    }
                }
            }
        });
    }

    /// The application finished the stream.
    pub fn finish(&mut self, key: StreamKey) {
        self.edit(key, |stream| stream.view.fin = true);
    }

    /// The application told the size.
    pub fn set_size(&mut self, key: StreamKey, size: Bytes) {
        self.edit(key, |stream| stream.view.size = Some(size));
    }

    /// The application told the priority.
    pub fn set_priority(&mut self, key: StreamKey, priority: Priority) {
        self.edit(key, |stream| stream.view.priority = priority);
    }

    /// The peer granted credit up to `end`.
    pub fn grant(&mut self, key: StreamKey, end: Offset) {
        self.edit(key, |stream| {
            stream.view.credit_end = stream.view.credit_end.max(end);
        });
    }

    /// A frame left: for the first time or again if `copy` is false. Returns true if it told the
    /// end of the stream.
    pub fn place(&mut self, key: StreamKey, span: Span, copy: bool) -> bool {
        let fin = self.ends_at(key, span.end);
        self.edit(key, |stream| {
            stream.change(span, |stretch| {
                stretch.flights += 1;
                if !copy {
                    stretch.state = State::Sent;
                }
            });
            if !copy {
                stream.sent += span.len();
                stream.view.high_sent = stream.view.high_sent.max(span.end);
            }
            if fin {
                // As with bytes: what is pending of a copy stays pending.
                stream.fin.sent |= !copy;
                stream.fin.flights += 1;
            }
        });
        fin
    }

    /// A frame was acknowledged, in a packet that counted as in flight if `flying`. Returns true if
    /// that was the last of the stream, which is then closed.
    pub fn acknowledge(&mut self, key: StreamKey, span: Span, fin: bool, flying: bool) -> bool {
        let mut closed = false;
        self.edit(key, |stream| {
            stream.change(span, |stretch| {
                stretch.state = State::Acked;
                stretch.flights = stretch.flights.saturating_sub(u32::from(flying));
            });
            if fin {
                stream.fin.acked = true;
                stream.fin.flights = stream.fin.flights.saturating_sub(u32::from(flying));
            }
            closed = stream.fin.acked
                && stream.stretches.iter().all(|stretch| stretch.state == State::Acked);
        });
        if closed {
            self.close(key);
        }
        closed
    }

    /// A frame that counted as in flight does so no more. What nobody acknowledged and no other
    /// packet in flight carries is pending again; those spans are added to `requeued`, an empty one
    /// for a bare FIN.
    pub fn lose(
        &mut self,
        key: StreamKey,
        span: Span,
        fin: bool,
        origin: PathKey,
        requeued: &mut Vec<Span>,
    ) {
        let before = requeued.len();
        self.edit(key, |stream| {
            stream.change(span, |stretch| {
                stretch.flights = stretch.flights.saturating_sub(1);
                if stretch.flights == 0 && stretch.state == State::Sent {
                    stretch.state = State::Lost(origin);
                }
            });
            let mut at = span.start;
            while let Some(run) = stream.pending_from(at).filter(|run| run.span.start < span.end) {
                let lost_now = matches!(run.class, Class::Lost { origin: by } if by == origin);
                if let Some(part) = run.span.intersection(span).filter(|_| lost_now) {
                    requeued.push(part);
                }
                at = run.span.end;
            }
            if fin {
                stream.fin.flights = stream.fin.flights.saturating_sub(1);
                if stream.fin.flights == 0 && stream.fin.sent && !stream.fin.acked {
                    stream.fin.sent = false;
                    stream.fin.again = true;
                    if requeued.len() == before {
                        requeued.push(Span::new(stream.view.written, stream.view.written));
                    }
                }
            }
        });
    }

    /// Takes a stream out, with all that is pending of it.
    pub fn close(&mut self, key: StreamKey) {
        if self.get(key).is_some() {
            self.slots[key.index()] = None;
            self.free.push(key.slot);
        }
    }

    /// Keys of all live streams, in order of slot.
    pub fn keys(&self) -> impl Iterator<Item = StreamKey> {
        self.slots.iter().flatten().map(|stream| stream.view.key)
    }

    /// Views of all live streams, in order of slot.
    pub fn iter(&self) -> impl Iterator<Item = &StreamView> {
        self.slots.iter().flatten().map(|stream| &stream.view)
    }

    /// Bytes of all streams that were never sent.
    pub fn unsent(&self) -> Bytes {
        let unsent = |stream: &Stream| -> u64 {
            let states = stream.spans().filter(|(_, stretch)| stretch.state == State::Unsent);
            states.map(|(span, _)| span.len().0).sum()
        };
        Bytes(self.slots.iter().flatten().map(unsent).sum())
    }

    /// Bytes of a stream that left for the first time or again, copies excepted.
    pub fn sent_of(&self, key: StreamKey) -> Bytes {
        self.stream(key).map_or(Bytes::ZERO, |stream| stream.sent)
    }

    /// True if bytes of a stream that were lost are pending.
    pub fn has_lost(&self, key: StreamKey) -> bool {
        self.stream(key).is_some_and(|stream| {
            stream.stretches.iter().any(|stretch| matches!(stretch.state, State::Lost(_)))
        })
    }

    /// True if a frame of a stream that ends at `end` carries FIN.
    pub fn ends_at(&self, key: StreamKey, end: Offset) -> bool {
        self.get(key).is_some_and(|view| view.fin && view.written == end)
    }

    /// True if the end of a stream was sent and lost, whether it is pending or not.
    pub fn is_end_lost(&self, key: StreamKey) -> bool {
        self.stream(key).is_some_and(|stream| stream.fin.again)
    }

    fn stream(&self, key: StreamKey) -> Option<&Stream> {
        self.slots.get(key.index())?.as_ref().filter(|stream| stream.view.key == key)
    }

    fn edit(&mut self, key: StreamKey, edit: impl FnOnce(&mut Stream)) {
        let stream = self.slots.get_mut(key.index()).and_then(Option::as_mut);
        if let Some(stream) = stream.filter(|stream| stream.view.key == key) {
            edit(stream);
            stream.update();
        }
    }
}

impl Stream {
    fn spans(&self) -> impl Iterator<Item = (Span, &Stretch)> {
        let starts = std::iter::once(0).chain(self.stretches.iter().map(|stretch| stretch.end));
        starts
            .zip(&self.stretches)
            .map(|(start, stretch)| (Span::new(Offset(start), Offset(stretch.end)), stretch))
    }

    fn split(&mut self, at: Offset) {
        let index = self.stretches.partition_point(|stretch| stretch.end < at.0);
        let start = index.checked_sub(1).map_or(0, |before| self.stretches[before].end);
        if let Some(stretch) = self.stretches.get(index).copied()
            && start < at.0
            && at.0 < stretch.end
        {
            self.stretches.insert(index, Stretch { end: at.0, ..stretch });
        }
    }

    fn change(&mut self, span: Span, mut change: impl FnMut(&mut Stretch)) {
        if span.is_empty() {
            return;
        }
        self.split(span.start);
        self.split(span.end);
        let mut start = 0;
        for stretch in &mut self.stretches {
            if start >= span.start.0 && stretch.end <= span.end.0 {
                change(stretch);
            }
            start = stretch.end;
        }
        self.stretches.dedup_by(|later, earlier| {
            let equal = later.state == earlier.state && later.flights == earlier.flights;
            if equal {
                earlier.end = later.end;
            }
            equal
        });
    }

    fn update(&mut self) {
        let (mut sendable, mut free, mut rest) = (0, 0, 0);
        let mut start = 0;
        for stretch in &self.stretches {
            if matches!(stretch.state, State::Unsent | State::Lost(_)) {
                rest += stretch.end - start;
                let end = stretch.end.min(self.view.credit_end.0);
                sendable += end.saturating_sub(start);
                free += end.min(self.view.high_sent.0).saturating_sub(start);
            }
            start = stretch.end;
        }
        self.view.sendable = Bytes(sendable);
        self.view.free = Bytes(free);
        self.view.bare_fin = self.view.fin && rest == 0 && !self.fin.sent && !self.fin.acked;
    }

    /// All pending runs, lowest first; a bare FIN last.
    fn pending(&self) -> impl Iterator<Item = Run> {
        let fin = self.view.bare_fin.then_some(Run {
            span: Span::new(self.view.written, self.view.written),
            class: Class::Fresh,
        });
        let runs = self.spans().filter_map(|(span, stretch)| {
            let class = match stretch.state {
                State::Unsent if span.start >= self.view.high_sent => Class::Fresh,
                State::Unsent => Class::Hole,
                State::Lost(origin) => Class::Lost { origin },
                State::Sent | State::Acked => return None,
            };
            let span = Span::new(span.start, span.end.min(self.view.credit_end));
            (!span.is_empty()).then_some(Run { span, class })
        });
        runs.chain(fin)
    }

    fn pending_from(&self, at: Offset) -> Option<Run> {
        let run = self.pending().find(|run| run.span.end > at || run.span.is_empty())?;
        Some(Run { span: Span::new(run.span.start.max(at), run.span.end), ..run })
    }
}

impl StreamTable for Streams {
    fn get(&self, stream: StreamKey) -> Option<&StreamView> {
        self.stream(stream).map(|stream| &stream.view)
    }

    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        self.stream(stream)?.pending_from(at)
    }

    fn pending_before(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        let stream = self.stream(stream)?;
        let before = |run: &Run| run.span.start < at || (run.span.is_empty() && run.span.end <= at);
        let run = stream.pending().filter(before).last()?;
        Some(Run { span: Span::new(run.span.start, run.span.end.min(at)), ..run })
    }

    fn unacked_from(&self, stream: StreamKey, at: Offset) -> Option<Span> {
        let mut found: Option<Span> = None;
        for (span, stretch) in self.stream(stream)?.spans() {
            let sent = stretch.state == State::Sent && span.end > at;
            match found {
                None if sent => found = Some(Span::new(span.start.max(at), span.end)),
                Some(before) if sent && before.end == span.start => {
                    found = Some(Span::new(before.start, span.end));
                }
                Some(_) => break,
                None => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::PathId;

    const PATH: PathKey = PathKey { slot: 0, id: PathId(0) };

    fn span(start: u64, end: u64) -> Span {
        Span::new(Offset(start), Offset(end))
    }

    #[test]
    fn lost_bytes_are_pending_again_until_any_packet_with_them_is_acknowledged() {
        let mut streams = Streams::new();
        let key = streams.open(Instant::ZERO, Priority::default(), Bytes(1000));
        streams.write(key, Bytes(300));
        streams.place(key, span(0, 100), false);
        streams.place(key, span(100, 200), false);
        streams.place(key, span(0, 100), true);
        let mut requeued = Vec::new();
        streams.lose(key, span(0, 100), false, PATH, &mut requeued);
        assert_eq!(requeued, [], "a copy still flies");
        streams.lose(key, span(0, 100), false, PATH, &mut requeued);
        assert_eq!(requeued, [span(0, 100)]);
        let run = streams.pending_from(key, Offset(50));
        let class = Class::Lost { origin: PATH };
        assert_eq!(run, Some(Run { span: span(50, 100), class }));
        let view = streams.get(key).cloned().unwrap();
        assert_eq!((view.sendable, view.free), (Bytes(200), Bytes(100)));
        streams.acknowledge(key, span(0, 100), false, false);
        let run = streams.pending_from(key, Offset::ZERO);
        assert_eq!(run, Some(Run { span: span(200, 300), class: Class::Fresh }));
        assert_eq!(streams.unacked_from(key, Offset::ZERO), Some(span(100, 200)));
    }

    #[test]
    fn skipped_bytes_are_holes_and_the_end_goes_alone_when_all_else_left() {
        let mut streams = Streams::new();
        let key = streams.open(Instant::ZERO, Priority::default(), Bytes(1000));
        streams.write(key, Bytes(300));
        assert!(!streams.place(key, span(200, 300), false));
        let run = streams.pending_from(key, Offset::ZERO);
        assert_eq!(run, Some(Run { span: span(0, 200), class: Class::Hole }));
        assert_eq!(
            streams.pending_before(key, Offset(150)),
            Some(Run { span: span(0, 150), class: Class::Hole })
        );
        streams.finish(key);
        assert!(!streams.get(key).is_some_and(|view| view.bare_fin));
        streams.place(key, span(0, 200), false);
        assert!(streams.get(key).is_some_and(|view| view.bare_fin && view.is_ready()));
        assert!(streams.place(key, span(300, 300), false));
        assert!(!streams.acknowledge(key, span(0, 300), false, true));
        assert!(streams.acknowledge(key, span(300, 300), true, true));
        assert_eq!(streams.get(key), None);
    }

    #[test]
    fn a_copy_with_the_end_leaves_the_end_pending() {
        let mut streams = Streams::new();
        let key = streams.open(Instant::ZERO, Priority::default(), Bytes(1000));
        streams.write(key, Bytes(100));
        streams.place(key, span(0, 100), false);
        streams.finish(key);
        assert!(streams.place(key, span(0, 100), true));
        let bare = Run { span: span(100, 100), class: Class::Fresh };
        assert_eq!(streams.pending_from(key, Offset::ZERO), Some(bare));
        assert_eq!(streams.pending_before(key, Offset(100)), Some(bare));
        let mut requeued = Vec::new();
        streams.lose(key, span(0, 100), true, PATH, &mut requeued);
        assert_eq!(requeued, [], "the end was pending already");
        assert!(!streams.is_end_lost(key));
    }

    #[test]
    fn an_adopted_stream_has_all_that_was_written_pending() {
        let mut other = Streams::new();
        let keys = [0; 3].map(|_| other.open(Instant::ZERO, Priority::default(), Bytes(150)));
        other.write(keys[2], Bytes(100));
        other.write(keys[2], Bytes(100));
        let mut streams = Streams::new();
        streams.adopt(other.get(keys[2]).unwrap());
        assert_eq!(streams.get(keys[2]), other.get(keys[2]));
        let run = Run { span: span(0, 150), class: Class::Fresh };
        assert_eq!(streams.pending_from(keys[2], Offset::ZERO), Some(run));
        assert!(!streams.follow(other.get(keys[2]).unwrap()));
        other.finish(keys[2]);
        assert!(streams.follow(other.get(keys[2]).unwrap()));
        let slots: Vec<u32> =
            [0; 3].map(|_| streams.open(Instant::ZERO, Priority::default(), Bytes(9)).slot).into();
        assert_eq!(slots, [1, 0, 3], "free slots come first");
    }
}
