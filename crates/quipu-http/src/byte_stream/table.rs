//! Bodies that wait, as a stream policy sees them.

use std::collections::VecDeque;

use bytes::Bytes;
use quipu_base::{Bytes as Amount, Instant, Offset, StreamId};
use quipu_policy::{Class, Priority, Run, Span, StreamKey, StreamTable, StreamView};

use super::window::SendWindow;

/// The bodies of a connection, by slot.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Option<Body>>,
    free: Vec<u32>,
    next_seq: u64,
}

/// One stream's body, as far as it was written and is not in the pipe.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) view: StreamView,
    chunks: VecDeque<Bytes>,
    window: SendWindow,
    /// Whether its end is in the pipe.
    ended: bool,
    /// What the policy knows.
    pub(super) told_ready: bool,
}

impl Table {
    /// A body of which nothing is written, with the peer's credit.
    pub(super) fn open(&mut self, id: StreamId, now: Instant, window: SendWindow) -> StreamKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            // Far fewer requests than 2^32 are open at a time.
            (self.slots.len() - 1) as u32
        });
        let key = StreamKey { slot, id };
        let view = StreamView {
            key,
            priority: Priority::default(),
            seq: self.next_seq,
            opened_at: now,
            size: None,
            written: Offset::ZERO,
            fin: false,
            high_sent: Offset::ZERO,
            credit_end: Offset::ZERO,
            sendable: Amount::ZERO,
            free: Amount::ZERO,
            bare_fin: false,
        };
        self.next_seq += 1;
        let mut body =
            Body { view, chunks: VecDeque::new(), window, ended: false, told_ready: false };
        body.update();
        self.slots[key.index()] = Some(body);
        key
    }

    /// Forgets a body.
    pub(super) fn close(&mut self, key: StreamKey) -> Option<Body> {
        self.body(key)?;
        self.free.push(key.slot);
        self.slots[key.index()].take()
    }

    pub(super) fn body_mut(&mut self, key: StreamKey) -> Option<&mut Body> {
        self.slots.get_mut(key.index())?.as_mut().filter(|body| body.view.key == key)
    }

    fn body(&self, key: StreamKey) -> Option<&Body> {
        self.slots.get(key.index())?.as_ref().filter(|body| body.view.key == key)
    }

    /// Keys of all bodies, in order of slot.
    pub(super) fn keys(&self) -> impl Iterator<Item = StreamKey> {
        self.slots.iter().flatten().map(|body| body.view.key)
    }

    /// The ready stream of lowest identifier.
    pub(super) fn first_ready(&self) -> Option<StreamKey> {
        let ready = self.slots.iter().flatten().filter(|body| body.view.is_ready());
        ready.map(|body| body.view.key).min()
    }
}

impl Body {
    pub(super) fn write(&mut self, octets: Bytes) {
        if !octets.is_empty() {
            self.view.written = self.view.written.advanced(Amount(octets.len() as u64));
            self.chunks.push_back(octets);
            self.update();
        }
    }

    pub(super) fn finish(&mut self) {
        self.view.fin = true;
        self.update();
    }

    /// Octets that were written and are not in the pipe.
    pub(super) fn unsent(&self) -> Amount {
        self.view.written.since(self.view.high_sent)
    }

    /// Credit was given, or taken; false if it would be too much.
    #[must_use]
    pub(super) fn grow_window(&mut self, by: i64) -> bool {
        let fits = self.window.grow(by);
        self.update();
        fits
    }

    /// The first `len` octets go into the pipe, and the end if `ends`: `out` gets them.
    pub(super) fn take(&mut self, len: Amount, ends: bool, out: &mut dyn FnMut(Bytes)) {
        let mut left = len.0;
        while left > 0
            && let Some(mut chunk) = self.chunks.pop_front()
        {
            // A chunk that is longer than what is left is longer than a frame, so that it fits.
            let at = usize::try_from(left).unwrap_or(usize::MAX);
            if chunk.len() > at {
                self.chunks.push_front(chunk.split_off(at));
            }
            left -= chunk.len() as u64;
            out(chunk);
        }
        self.ended |= ends;
        self.window.take(len.0);
        self.view.high_sent = self.view.high_sent.advanced(len);
        self.update();
    }

    fn update(&mut self) {
        let credit = Amount(self.window.credit());
        let unsent = self.unsent();
        let view = &mut self.view;
        view.credit_end = view.high_sent.advanced(credit);
        view.sendable = unsent.min(credit);
        view.bare_fin = view.fin && unsent.is_zero() && !self.ended;
    }

    /// What can go, none of it ever sent.
    fn pending(&self) -> Option<Span> {
        let StreamView { high_sent, sendable, bare_fin, .. } = self.view;
        (!sendable.is_zero() || bare_fin).then(|| Span::from_len(high_sent, sendable))
    }
}

impl StreamTable for Table {
    fn get(&self, stream: StreamKey) -> Option<&StreamView> {
        self.body(stream).map(|body| &body.view)
    }

    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        let span = self.body(stream)?.pending()?;
        let start = span.start.max(at);
        let is_left = start < span.end || span.is_empty();
        is_left.then(|| Run { span: Span::new(start.min(span.end), span.end), class: Class::Fresh })
    }

    fn pending_before(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        let span = self.body(stream)?.pending()?;
        let end = span.end.min(at);
        let is_left = span.start < end || (span.is_empty() && span.end <= at);
        is_left.then(|| Run { span: Span::new(span.start, end), class: Class::Fresh })
    }

    /// Nothing: what is in the pipe cannot be copied from here.
    fn unacked_from(&self, _stream: StreamKey, _at: Offset) -> Option<Span> {
        None
    }
}
