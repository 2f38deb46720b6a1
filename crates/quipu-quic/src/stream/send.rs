//! The sending half of a stream: what was written, sent, lost and acknowledged.

use std::collections::VecDeque;

use bytes::Bytes;
use quipu_base::Offset;
use quipu_policy::{Class, Kind, PathKey, Run, Span};
use smallvec::SmallVec;

use crate::range_map::RangeMap;

/// The largest offset of a stream. <https://www.rfc-editor.org/rfc/rfc9000#section-4.5>
pub const MAX_OFFSET: u64 = (1 << 62) - 1;

/// What a frame that was just placed turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// First time, again, or a copy.
    pub kind: Kind,
    /// True if the frame must carry FIN.
    pub fin: bool,
}

/// Where the end of the stream is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fin {
    /// The application may write more.
    Open,
    /// To be sent; `again` if it was sent before.
    Pending { again: bool },
    /// Sent.
    InFlight,
    /// The peer has it.
    Acked,
}

/// Written bytes that are kept until acknowledged.
#[derive(Debug)]
struct Chunk {
    start: u64,
    data: Bytes,
}

impl Chunk {
    fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }
}

/// The sending half of a stream.
///
/// Every byte is in one of four states: *fresh* (at or above `high_sent`, or a hole below it),
/// *in flight* (some packet that the engine counts upon carries it), *pending again* (lost), or
/// *acknowledged*. Only the second and third are stored as ranges; what is below `high_sent` and
/// in neither is acknowledged. In-order sending and acknowledging touches one range.
///
/// Carriers of a byte are counted only where there is more than the usual one: a copy adds one,
/// and a loss takes one away before it makes bytes pending.
#[derive(Debug)]
pub struct SendHalf {
    chunks: VecDeque<Chunk>,
    in_flight: RangeMap<()>,
    /// Below `high_sent`: holes and lost bytes.
    pending: RangeMap<Class>,
    /// Carriers beyond the first of bytes in flight; all carriers of pending bytes.
    extra_carriers: RangeMap<u32>,
    pending_bytes: u64,
    hole_bytes: u64,
    high_sent: u64,
    written: u64,
    credit_end: u64,
    fin: Fin,
    extra_fin_carriers: u32,
}

impl SendHalf {
    /// An empty half that may send up to `credit_end`.
    pub fn new(credit_end: Offset) -> Self {
        SendHalf {
            chunks: VecDeque::new(),
            in_flight: RangeMap::new(),
            pending: RangeMap::new(),
            extra_carriers: RangeMap::new(),
            pending_bytes: 0,
            hole_bytes: 0,
            high_sent: 0,
            written: 0,
            credit_end: credit_end.0,
            fin: Fin::Open,
            extra_fin_carriers: 0,
        }
    }

    /// True if the peer has all that was written, and the end if there is one.
    pub fn is_all_delivered(&self) -> bool {
        self.unsent() == 0
            && self.in_flight.is_empty()
            && self.pending.is_empty()
            && matches!(self.fin, Fin::Open | Fin::Acked)
    }

    /// Appends bytes. False, and nothing is written, after [`finish`](Self::finish) or if the
    /// stream would grow beyond [`MAX_OFFSET`].
    pub fn write(&mut self, data: Bytes) -> bool {
        let end = self.written.saturating_add(data.len() as u64);
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.5
        //# An endpoint MUST NOT send data on a stream at or beyond the final size.
        if self.is_finished() || end > MAX_OFFSET {
            return false;
        }
        if !data.is_empty() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-2.2
            //# The data at a given offset MUST NOT change if it is sent multiple times; an
            //# endpoint MAY treat receipt of different data at the same offset within a stream as
            //# a connection error of type PROTOCOL_VIOLATION.
            self.chunks.push_back(Chunk { start: self.written, data });
            self.written = end;
        }
        true
    }

    /// Ends the stream at what is written. False if it was ended before.
    pub fn finish(&mut self) -> bool {
        let first = !self.is_finished();
        if first {
            self.fin = Fin::Pending { again: false };
        }
        first
    }

    /// Raises the stream credit. Returns false if it did not grow.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-4.1>
    pub fn set_credit(&mut self, end: Offset) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A sender MUST ignore any MAX_STREAM_DATA or MAX_DATA frames that do not increase flow
        //# control limits.
        let grows = end.0 > self.credit_end;
        self.credit_end = self.credit_end.max(end.0);
        grows
    }

    /// Lowers the stream credit, but not below what was sent: limits of an earlier connection do not
    /// hold any more.
    pub fn lower_credit(&mut self, end: Offset) {
        self.credit_end = self.credit_end.min(end.0).max(self.high_sent);
    }

    /// Notes that a frame with the pending bytes `span`, or with a bare FIN at the end, was
    /// written. The bytes are pending no more; what was skipped below them becomes a hole.
    pub fn place(&mut self, span: Span) -> Placed {
        let (start, end) = (span.start.0, span.end.0);
        debug_assert!(end <= self.written.min(self.credit_end));
        let mut first_time = false;
        if start < self.high_sent {
            let SendHalf { pending, in_flight, pending_bytes, hole_bytes, .. } = self;
            pending.remove(start, end, |from, to, class| {
                in_flight.set(from, to, ());
                *pending_bytes -= to - from;
                if class == Class::Hole {
                    *hole_bytes -= to - from;
                    first_time = true;
                }
            });
        }
        if end > self.high_sent {
            if start > self.high_sent {
                self.pending.set(self.high_sent, start, Class::Hole);
                self.pending_bytes += start - self.high_sent;
                self.hole_bytes += start - self.high_sent;
            }
            self.in_flight.set(start.max(self.high_sent), end, ());
            self.high_sent = end;
            first_time = true;
        }
        let fin = self.is_finished() && end == self.written;
        if fin {
            match self.fin {
                Fin::Pending { again } => {
                    first_time |= span.is_empty() && !again;
                    self.fin = Fin::InFlight;
                }
                Fin::InFlight => self.extra_fin_carriers += 1,
                Fin::Open | Fin::Acked => {}
            }
        }
        Placed { kind: if first_time { Kind::Fresh } else { Kind::Again }, fin }
    }

    /// Notes that a frame with a copy of `span`, all of it sent before, was written. What is
    /// pending of it stays pending.
    pub fn place_copy(&mut self, span: Span) -> Placed {
        debug_assert!(span.end.0 <= self.high_sent);
        let mut covered: SmallVec<[(u64, u64, u32); 4]> = SmallVec::new();
        let (start, end) = (span.start.0, span.end.0);
        if !self.extra_carriers.is_empty() {
            self.extra_carriers.remove(start, end, |from, to, count| {
                covered.push((from, to, count));
            });
        }
        self.extra_carriers.set(start, end, 1);
        for (from, to, count) in covered {
            self.extra_carriers.set(from, to, count.saturating_add(1));
        }
        let fin = self.is_finished() && span.end.0 == self.written;
        if fin && self.fin != Fin::Acked {
            self.extra_fin_carriers += 1;
        }
        Placed { kind: Kind::Copy, fin }
    }

    /// Notes that the peer has the bytes `span` and, if `fin`, the end of the stream. Returns how
    /// many bytes it has for the first time.
    pub fn on_acked(&mut self, span: Span, fin: bool) -> u64 {
        let (start, end) = (span.start.0, span.end.0);
        let mut newly = 0;
        self.in_flight.remove(start, end, |from, to, ()| newly += to - from);
        if !self.pending.is_empty() {
            let SendHalf { pending, pending_bytes, hole_bytes, .. } = self;
            pending.remove(start, end, |from, to, class| {
                newly += to - from;
                *pending_bytes -= to - from;
                if class == Class::Hole {
                    *hole_bytes -= to - from;
                }
            });
        }
        if !self.extra_carriers.is_empty() {
            self.extra_carriers.remove(start, end, |_, _, _| {});
        }
        if fin && self.is_finished() {
            self.fin = Fin::Acked;
        }
        if newly > 0 {
            self.drop_acked_chunks();
        }
        newly
    }

    /// Notes that the engine counts no more upon a packet with `span` (and FIN, if `fin`): it was
    /// lost on `origin`, or that path is suspect or gone. To be told once per packet; a late
    /// acknowledgement may follow. Tells each stretch that became pending, in order; an empty one
    /// for a FIN without bytes.
    pub fn on_lost(
        &mut self,
        span: Span,
        fin: bool,
        origin: PathKey,
        mut became_pending: impl FnMut(Span),
    ) {
        let class = Class::Lost { origin };
        let mut told = false;
        let (start, end) = (span.start.0, span.end.0);
        let mut covered: SmallVec<[(u64, u64, u32); 4]> = SmallVec::new();
        if !self.extra_carriers.is_empty() {
            self.extra_carriers.remove(start, end, |from, to, count| {
                covered.push((from, to, count));
            });
        }
        let mut at = start;
        for &(from, to, count) in &covered {
            if count > 1 {
                self.extra_carriers.set(from, to, count - 1);
            }
            told |= self.requeue(at, from, class, &mut became_pending);
            at = to;
        }
        told |= self.requeue(at, end, class, &mut became_pending);
        if !fin {
            return;
        }
        if self.extra_fin_carriers > 0 {
            self.extra_fin_carriers -= 1;
        } else if self.fin == Fin::InFlight {
            self.fin = Fin::Pending { again: true };
            if !told {
                let end = Offset(self.written);
                became_pending(Span::new(end, end));
            }
        }
    }

    /// Makes pending what is in flight of `start..end`; true if there was something.
    fn requeue(
        &mut self,
        start: u64,
        end: u64,
        class: Class,
        became_pending: &mut impl FnMut(Span),
    ) -> bool {
        let SendHalf { in_flight, pending, pending_bytes, .. } = self;
        let mut any = false;
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# A sender SHOULD avoid retransmitting information from packets once they are
        //# acknowledged.
        in_flight.remove(start, end, |from, to, ()| {
            pending.set(from, to, class);
            *pending_bytes += to - from;
            became_pending(Span::new(Offset(from), Offset(to)));
            any = true;
        });
        any
    }

    /// Copies the bytes of `span` to the front of `buffer`. False if `buffer` is too short, or if
    /// some byte was not written or is acknowledged and gone; `buffer` is then half filled.
    pub fn copy_to(&self, span: Span, buffer: &mut [u8]) -> bool {
        let mut at = span.start.0;
        let mut rest = buffer;
        let first = match self.chunks.front() {
            Some(chunk) if chunk.end() > at => 0,
            _ => self.chunks.partition_point(|chunk| chunk.end() <= at),
        };
        for chunk in self.chunks.range(first..) {
            if at >= span.end.0 {
                break;
            }
            // Both differences are below the chunk's length, so they fit.
            let (Some(from), to) = (at.checked_sub(chunk.start), chunk.end().min(span.end.0))
            else {
                return false;
            };
            let part = &chunk.data[from as usize..(to - chunk.start) as usize];
            let Some((head, tail)) = std::mem::take(&mut rest).split_at_mut_checked(part.len())
            else {
                return false;
            };
            head.copy_from_slice(part);
            rest = tail;
            at = to;
        }
        at >= span.end.0
    }

    /// See [`StreamTable::pending_from`](quipu_policy::StreamTable::pending_from).
    pub fn pending_from(&self, at: Offset) -> Option<Run> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# Endpoints SHOULD prioritize retransmission of data over sending new data, unless
        //# priorities specified by the application indicate otherwise; see Section 2.3.
        if let Some(entry) = self.pending.from(at.0) {
            let start = Offset(entry.start.max(at.0));
            return Some(Run { span: Span { start, end: Offset(entry.end) }, class: entry.value });
        }
        let start = self.high_sent.max(at.0);
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# The data sent on a stream MUST NOT exceed the largest maximum stream data value
        //# advertised by the receiver.
        let end = self.written.min(self.credit_end);
        if start < end {
            let span = Span { start: Offset(start), end: Offset(end) };
            return Some(Run { span, class: Class::Fresh });
        }
        self.bare_fin_run().filter(|run| at <= run.span.start)
    }

    /// See [`StreamTable::pending_before`](quipu_policy::StreamTable::pending_before).
    pub fn pending_before(&self, at: Offset) -> Option<Run> {
        let end = self.written.min(self.credit_end).min(at.0);
        if self.high_sent < end {
            let span = Span { start: Offset(self.high_sent), end: Offset(end) };
            return Some(Run { span, class: Class::Fresh });
        }
        if let Some(entry) = self.pending.before(at.0) {
            let span = Span { start: Offset(entry.start), end: Offset(entry.end.min(at.0)) };
            return Some(Run { span, class: entry.value });
        }
        self.bare_fin_run().filter(|run| run.span.end <= at)
    }

    fn bare_fin_run(&self) -> Option<Run> {
        let end = Offset(self.written);
        self.bare_fin().then_some(Run { span: Span { start: end, end }, class: Class::Fresh })
    }

    /// See [`StreamTable::unacked_from`](quipu_policy::StreamTable::unacked_from).
    pub fn unacked_from(&self, at: Offset) -> Option<Span> {
        let entry = self.in_flight.from(at.0)?;
        Some(Span { start: Offset(entry.start.max(at.0)), end: Offset(entry.end) })
    }

    /// The lowest stretch of a frame's `span` that is not acknowledged, pending again or not: what
    /// a probe of a silent path repeats. Empty at the stream's end if the frame's FIN is all that
    /// is left.
    pub fn first_unacked(&self, span: Span, fin: bool) -> Option<Span> {
        let sent = self.unacked_from(span.start);
        let lost = self
            .pending
            .from(span.start.0)
            .map(|entry| Span::new(Offset(entry.start).max(span.start), Offset(entry.end)));
        let lowest = match (sent, lost) {
            (Some(sent), Some(lost)) => Some(sent.min(lost)),
            (sent, lost) => sent.or(lost),
        };
        let fin = fin && self.is_finished() && self.fin != Fin::Acked;
        let end = Offset(self.written);
        lowest
            .and_then(|lowest| lowest.intersection(span))
            .or_else(|| fin.then_some(Span { start: end, end }))
    }

    /// True if the application ended the stream.
    pub fn is_finished(&self) -> bool {
        self.fin != Fin::Open
    }

    /// True if the peer has every byte and the end.
    pub fn is_all_acked(&self) -> bool {
        self.fin == Fin::Acked
            && self.high_sent == self.written
            && self.in_flight.is_empty()
            && self.pending.is_empty()
    }

    /// True if nothing but the end of the stream is left to tell.
    pub fn bare_fin(&self) -> bool {
        matches!(self.fin, Fin::Pending { .. })
            && self.high_sent == self.written
            && self.pending.is_empty()
    }

    /// True if [`pending_from`](Self::pending_from) the first byte on there is something.
    #[inline]
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
            || self.high_sent < self.written.min(self.credit_end)
            || self.bare_fin()
    }

    /// Pending bytes within stream credit.
    pub fn sendable(&self) -> u64 {
        self.pending_bytes + self.written.min(self.credit_end).saturating_sub(self.high_sent)
    }

    /// Pending bytes below [`high_sent`](Self::high_sent).
    pub fn free(&self) -> u64 {
        self.pending_bytes
    }

    /// Bytes that are kept: all that were written, but for the chunks that are acknowledged with all
    /// before them.
    pub fn buffered(&self) -> u64 {
        self.chunks.front().map_or(0, |chunk| self.written - chunk.start)
    }

    /// Bytes that were never sent, within stream credit or not.
    pub fn unsent(&self) -> u64 {
        self.written - self.high_sent + self.hole_bytes
    }

    /// True if stream credit holds bytes back.
    pub fn is_blocked(&self) -> bool {
        self.high_sent == self.credit_end && self.written > self.credit_end
    }

    /// End of what was written.
    pub fn written(&self) -> Offset {
        Offset(self.written)
    }

    /// End of what was ever sent; the final size if the stream is reset now.
    pub fn high_sent(&self) -> Offset {
        Offset(self.high_sent)
    }

    /// End of the stream credit.
    pub fn credit_end(&self) -> Offset {
        Offset(self.credit_end)
    }

    /// All below is acknowledged.
    pub fn acked_prefix(&self) -> Offset {
        let in_flight = self.in_flight.first().map_or(self.high_sent, |entry| entry.start);
        let pending = self.pending.first().map_or(self.high_sent, |entry| entry.start);
        Offset(in_flight.min(pending))
    }

    fn drop_acked_chunks(&mut self) {
        let prefix = self.acked_prefix().0;
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= prefix) {
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests;
