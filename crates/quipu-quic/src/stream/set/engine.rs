//! What the connection does with the sending halves, and what policies read of them.

use quipu_base::{Bytes, Offset};
use quipu_policy::seam::referee;
use quipu_policy::{PathKey, Refusal, Run, Span, StreamKey, StreamTable, StreamView};

use super::{SendState, StreamEvent, Streams};
use crate::stream::send::{Placed, SendHalf};

impl Streams {
    /// What a frame may carry of a stream that policies see: from `from`, which must be pending,
    /// or from the lowest pending byte; cut to `max`, to the run's end, to stream credit and to
    /// connection credit, which a skip costs too. Empty for a bare FIN.
    ///
    /// # Errors
    /// Why the policy's answer must be refused.
    pub fn fit(&self, key: StreamKey, from: Option<Offset>, max: Bytes) -> Result<Span, Refusal> {
        referee::fit(self, self.conn.credit, key, from, max)
    }

    fn cut(&self, half: &SendHalf, at: Offset, max: Bytes) -> Option<Span> {
        let span = half.pending_from(at)?.span;
        if span.is_empty() {
            return Some(span);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-2.2
        //# An endpoint MUST NOT send data on any stream without ensuring that it is within the
        //# flow control limits set by its peer.
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# Senders MUST NOT send data in excess of either limit.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.9
        //# The sum of the final sizes on all streams -- including streams in terminal states --
        //# MUST NOT exceed the value advertised by a receiver.
        let allowed = half.high_sent().advanced(self.conn.credit);
        let end = span.end.min(span.start.advanced(max)).min(allowed);
        (span.start < end).then_some(Span { start: span.start, end })
    }

    /// True if a control stream may have something to send.
    pub fn has_control_data(&self) -> bool {
        !self.control.is_empty() && self.next_control(Bytes::MAX).is_some()
    }

    /// What control streams have to send first: the lowest pending bytes of the control stream of
    /// lowest identifier, at most `max`; a bare FIN if nothing else.
    pub fn next_control(&self, max: Bytes) -> Option<(StreamKey, Span)> {
        self.control.iter().find_map(|&number| {
            let slot = &self.slots[number as usize];
            let SendState::Active(half) = &slot.send else { return None };
            if !half.has_pending() {
                return None;
            }
            Some((slot.key, self.cut(half, Offset::ZERO, max)?))
        })
    }

    /// Notes that a STREAM frame with the pending bytes `span` (as [`fit`](Self::fit) or
    /// [`next_control`](Self::next_control) gave it) is being written. The view and the credit
    /// change at once; edges wait in the queue. `None` if the stream is gone.
    pub fn place(&mut self, key: StreamKey, span: Span) -> Option<Placed> {
        let half = self.send_half_mut(key)?;
        let before = half.high_sent();
        let placed = half.place(span);
        let after = half.high_sent();
        let drained = after > before && after == half.written() && !half.is_finished();
        self.sent += after.since(before).0;
        if drained && self.is_visible(key) {
            self.events.push_back(StreamEvent::Drained(key.id));
        }
        self.sync(key.slot);
        self.update_blocked();
        Some(placed)
    }

    /// Notes that a STREAM frame with a copy of `span` is being written, of bytes in flight, as
    /// [`fit_copy`](referee::fit_copy) gave it: its loss is counted. A probe repeats bytes without
    /// being noted here; its loss counts for nothing. `None` if the stream is gone.
    pub fn place_copy(&mut self, key: StreamKey, span: Span) -> Option<Placed> {
        Some(self.send_half_mut(key)?.place_copy(span))
    }

    /// True if a frame that ends at `end` would carry FIN.
    pub fn ends_at(&self, key: StreamKey, end: Offset) -> bool {
        self.send_half(key).is_some_and(|half| half.is_finished() && half.written() == end)
    }

    /// Copies bytes that are placed or to be placed to the front of `buffer`. False if they are
    /// gone or `buffer` is too short.
    pub fn copy_to(&self, key: StreamKey, span: Span, buffer: &mut [u8]) -> bool {
        self.send_half(key).is_some_and(|half| half.copy_to(span, buffer))
    }

    /// The lowest stretch of a frame that the peer is not known to have, pending again or not: what
    /// a probe of a silent path repeats. Empty if only the frame's FIN is left.
    pub fn first_unacked(&self, key: StreamKey, span: Span, fin: bool) -> Option<Span> {
        self.send_half(key)?.first_unacked(span, fin)
    }

    /// Notes that the peer has a frame. Returns how many of its bytes are acknowledged for the
    /// first time; frames of streams that are gone are ignored.
    pub fn on_acked(&mut self, key: StreamKey, span: Span, fin: bool) -> Bytes {
        let Some(half) = self.send_half_mut(key) else { return Bytes::ZERO };
        let newly = half.on_acked(span, fin);
        if half.is_all_acked() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-3.3
            //# A sender MUST NOT send any of these frames from a terminal state ("Data Recvd" or
            //# "Reset Recvd").
            self.slots[key.index()].send = SendState::Done;
            self.hide(key.slot);
            self.events.push_back(StreamEvent::Finished(key.id));
            self.close_if_done(key.slot);
        } else {
            self.sync(key.slot);
        }
        Bytes(newly)
    }

    /// Notes that a frame must not be counted upon any more: its packet was lost on `origin`, or
    /// that path is suspect, abandoned or closed. **Once per frame**: a packet given up with its
    /// path is not told again when it is declared lost. A late acknowledgement still counts.
    ///
    /// What is pending again is appended to `requeued`, unless the stream is hidden from policies.
    pub fn on_lost(
        &mut self,
        key: StreamKey,
        span: Span,
        fin: bool,
        origin: PathKey,
        requeued: &mut Vec<(StreamKey, Span)>,
    ) {
        let visible = self.is_visible(key);
        let Some(half) = self.send_half_mut(key) else { return };
        half.on_lost(span, fin, origin, |span| {
            if visible {
                requeued.push((key, span));
            }
        });
        self.sync(key.slot);
    }

    /// True if the peer has all that was written to streams, all ends and all resets.
    pub fn is_all_delivered(&self) -> bool {
        self.conn.unsent.is_zero()
            && self.slots.iter().filter(|slot| slot.live).all(|slot| match &slot.send {
                SendState::Done => true,
                SendState::Active(half) => half.is_all_delivered(),
                SendState::Resetting { .. } => false,
            })
    }

    /// The views that policies see, in order of slot: for telling a new policy of all streams.
    pub fn views(&self) -> impl Iterator<Item = &StreamView> {
        self.views.iter().filter(|view| view.key.id != super::HIDDEN)
    }

    fn seen(&self, stream: StreamKey) -> Option<&SendHalf> {
        self.get(stream)?;
        self.send_half(stream)
    }
}

impl StreamTable for Streams {
    fn get(&self, stream: StreamKey) -> Option<&StreamView> {
        self.views.get(stream.index()).filter(|view| view.key == stream)
    }

    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        self.seen(stream)?.pending_from(at)
    }

    fn pending_before(&self, stream: StreamKey, at: Offset) -> Option<Run> {
        self.seen(stream)?.pending_before(at)
    }

    fn unacked_from(&self, stream: StreamKey, at: Offset) -> Option<Span> {
        self.seen(stream)?.unacked_from(at)
    }
}
