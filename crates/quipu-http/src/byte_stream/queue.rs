//! Bodies that wait for the pipe, and the stream policy that picks the next DATA frame.

use std::collections::BTreeMap;

use bytes::Bytes;
use quipu_base::{Bytes as Amount, Instant, Offset, PacketNumber, PathId, StreamId};
use quipu_policy::{
    ConnView, Event, Kind, Notes, PathKey, Paths, Piece, Priorities, PriorityEdit, SentPacket,
    SentTable, Span, StreamKey, StreamPolicy, StreamTable as _, Turn, View,
};

use super::table::Table;
use super::window::{DEFAULT_WINDOW, SendWindow};
use crate::h2::FrameStreamId;
use crate::h2::frame::encode_data_header;

/// The pipe, where events name a path. Stream policies read no path.
const PIPE: PathKey = PathKey { slot: 0, id: PathId(0) };

/// Bodies, their order, and the peer's credit.
pub(super) struct Queue {
    policy: Box<dyn StreamPolicy>,
    seen: Seen,
    by_id: BTreeMap<StreamId, StreamKey>,
    /// Credit of the connection.
    window: SendWindow,
    /// Credit that a stream begins with.
    initial_window: u32,
    /// Most octets of a frame.
    frame_size: Amount,
    /// DATA frames so far.
    frames: u64,
    /// Times that the policy named nothing that can go although something could.
    overridden: u64,
    /// Whether frames went since the policy was told of a rest.
    drained_due: bool,
}

/// What a policy reads.
struct Seen {
    conn: ConnView,
    paths: Paths,
    table: Table,
    priorities: Priorities,
}

/// What a DATA frame did to its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// More of it waits.
    More,
    /// Nothing waits, but it has not ended.
    Nothing,
    /// It has ended.
    Ended,
}

/// None: nothing in the pipe is anyone's to send again.
struct NoPackets;

impl SentTable for NoPackets {
    fn next_sent(&self, _: PathKey, _: Option<PacketNumber>) -> Option<SentPacket<'_>> {
        None
    }
}

impl Seen {
    fn view(&self, now: Instant) -> View<'_> {
        View {
            now,
            conn: &self.conn,
            paths: &self.paths,
            streams: &self.table,
            sent: &NoPackets,
            priorities: &self.priorities,
        }
    }
}

impl Queue {
    pub(super) fn new(policy: Box<dyn StreamPolicy>, frame_size: u32) -> Self {
        let window = SendWindow::new(DEFAULT_WINDOW);
        Queue {
            policy,
            seen: Seen {
                conn: ConnView { credit: Amount(window.credit()), ..ConnView::default() },
                paths: Paths::new(),
                table: Table::default(),
                priorities: Priorities::new(),
            },
            by_id: BTreeMap::new(),
            window,
            initial_window: DEFAULT_WINDOW,
            frame_size: Amount(u64::from(frame_size)),
            frames: 0,
            overridden: 0,
            drained_due: false,
        }
    }

    /// Times that the policy named nothing that can go although something could.
    pub(super) fn overridden(&self) -> u64 {
        self.overridden
    }

    /// Octets that wait.
    pub(super) fn unsent(&self) -> Amount {
        self.seen.conn.unsent
    }

    /// Whether something of a stream can still be written.
    pub(super) fn is_open(&self, id: StreamId) -> bool {
        self.body_key(id).is_some()
    }

    pub(super) fn open(&mut self, id: StreamId, now: Instant) {
        let key = self.seen.table.open(id, now, SendWindow::new(self.initial_window));
        self.by_id.insert(id, key);
        self.tell(now, &Event::Opened(key));
    }

    /// Appends to a body; false if it has ended or never began.
    #[must_use]
    pub(super) fn write(&mut self, id: StreamId, octets: Bytes, now: Instant) -> bool {
        let Some(key) = self.body_key(id) else { return false };
        let Some(body) = self.seen.table.body_mut(key) else { return false };
        if !octets.is_empty() {
            self.seen.conn.unsent += Amount(octets.len() as u64);
            body.write(octets);
            self.tell(now, &Event::Written(key));
            self.settle(key, now);
        }
        true
    }

    /// Ends a body; false if it has ended or never began.
    #[must_use]
    pub(super) fn finish(&mut self, id: StreamId, now: Instant) -> bool {
        let Some(key) = self.body_key(id) else { return false };
        if let Some(body) = self.seen.table.body_mut(key) {
            body.finish();
        }
        self.tell(now, &Event::Written(key));
        self.settle(key, now);
        true
    }

    /// Forgets a stream with all that waits of it; false if it is forgotten already.
    pub(super) fn close(&mut self, id: StreamId, now: Instant) -> bool {
        let Some(key) = self.by_id.remove(&id) else { return false };
        if let Some(body) = self.seen.table.close(key) {
            self.seen.conn.unsent = self.seen.conn.unsent.saturating_sub(body.unsent());
            self.seen.conn.ready -= u32::from(body.told_ready);
        }
        self.seen.priorities.detach(key);
        self.tell(now, &Event::Closed(key));
        true
    }

    /// The peer gave credit for a stream that is open, or for the connection; false if too much.
    #[must_use]
    pub(super) fn grow(&mut self, stream: Option<StreamId>, by: u32, now: Instant) -> bool {
        let Some(id) = stream else {
            let fits = self.window.grow(i64::from(by));
            self.seen.conn.credit = Amount(self.window.credit());
            return fits;
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9
        //# A receiver MUST NOT treat this as an error (see Section 5.1).
        let Some(&key) = self.by_id.get(&id) else { return true };
        self.grow_stream(key, i64::from(by), now)
    }

    /// The peer gives streams another credit to begin with; false if some have too much then.
    #[must_use]
    pub(super) fn set_initial_window(&mut self, octets: u32, now: Instant) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.2
        //# When the value of SETTINGS_INITIAL_WINDOW_SIZE changes, a receiver
        //# MUST adjust the size of all stream flow-control windows that it
        //# maintains by the difference between the new value and the old value.
        let by = i64::from(octets) - i64::from(self.initial_window);
        self.initial_window = octets;
        let keys: Vec<StreamKey> = self.seen.table.keys().collect();
        keys.into_iter().all(|key| self.grow_stream(key, by, now))
    }

    fn grow_stream(&mut self, key: StreamKey, by: i64, now: Instant) -> bool {
        let fits = self.seen.table.body_mut(key).is_none_or(|body| body.grow_window(by));
        self.settle(key, now);
        fits
    }

    /// Edits priorities or a size; what cannot be has no effect.
    pub(super) fn edit(&mut self, edit: &PriorityEdit, now: Instant) {
        let stream = match *edit {
            PriorityEdit::Attach { stream, .. }
            | PriorityEdit::Urgency { stream, .. }
            | PriorityEdit::Deadline { stream, .. }
            | PriorityEdit::Size { stream, .. } => match self.by_id.get(&stream) {
                Some(&key) => Some(key),
                None => return,
            },
            _ => None,
        };
        let Ok(edits) = self.seen.priorities.apply(edit, stream) else { return };
        let touched = edits.iter().filter_map(|edit| self.seen.priorities.touched(edit));
        let mut changed: Vec<StreamKey> = stream.into_iter().chain(touched).collect();
        let Seen { priorities, table, .. } = &mut self.seen;
        changed.retain(|&key| {
            let Some(body) = table.body_mut(key) else { return false };
            let mut priority = priorities.complete(key, body.view.priority);
            if let PriorityEdit::Deadline { latency, .. } = *edit
                && stream == Some(key)
            {
                priority.latency = Some(latency);
            }
            std::mem::replace(&mut body.view.priority, priority) != priority
        });
        for edit in edits {
            self.tell(now, &Event::Tree(edit));
        }
        for key in changed {
            self.tell(now, &Event::Reprioritised(key));
        }
        if let PriorityEdit::Size { size, .. } = *edit
            && let Some(key) = stream
            && let Some(body) = self.seen.table.body_mut(key)
        {
            body.view.size = Some(size);
            self.tell(now, &Event::Sized(key));
        }
    }

    /// The next DATA frame, as the policy has it: `out` gets it in parts. `None`: nothing can go.
    pub(super) fn next_frame(
        &mut self,
        now: Instant,
        out: &mut dyn FnMut(Bytes),
    ) -> Option<(StreamId, Left)> {
        if self.seen.conn.ready == 0 {
            return None;
        }
        let (key, span, max) = self.choose(now)?;
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.2.1
        //# A sender MUST respect flow-control limits imposed by a receiver.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.9.1
        //# The sender MUST NOT send a flow-controlled frame with a length that exceeds the space
        //# available in either of the flow-control windows advertised by the receiver.
        let len = span.len().min(max).min(self.frame_size).min(self.seen.conn.credit);
        if len.is_zero() && !span.is_empty() {
            // Credit of the connection is used up.
            return None;
        }
        let body = self.seen.table.body_mut(key)?;
        let span = Span::from_len(span.start, len);
        let ends = body.view.fin && span.end == body.view.written;
        // Streams are named by identifiers from frames, or made to fit them.
        let stream = FrameStreamId::try_from(key.id).ok()?;
        let mut header = Vec::with_capacity(crate::h2::frame::Header::LEN);
        // At most a frame.
        encode_data_header(stream, usize::try_from(len.0).unwrap_or(0), ends, &mut header);
        out(Bytes::from(header));
        body.take(len, ends, out);
        let left = match (ends, body.unsent().is_zero()) {
            (true, _) => Left::Ended,
            (false, true) => Left::Nothing,
            (false, false) => Left::More,
        };
        self.window.take(len.0);
        self.seen.conn.credit = Amount(self.window.credit());
        self.seen.conn.unsent = self.seen.conn.unsent.saturating_sub(len);
        self.frames += 1;
        self.tell_placed(key, span, now);
        if left == Left::Ended {
            self.close(key.id, now);
        }
        Some((key.id, left))
    }

    /// Whose turn it is, which of its octets can go, and how many at most.
    fn choose(&mut self, now: Instant) -> Option<(StreamKey, Span, Amount)> {
        let view = self.seen.view(now);
        let turn = self.policy.next(&view, &mut Notes::off());
        let pending = |key| Some(self.seen.table.pending_from(key, Offset::ZERO)?.span);
        if let Some(Turn { stream, max }) = turn
            && let Some(span) = pending(stream)
        {
            return Some((stream, span, max.max(Amount(1))));
        }
        let key = self.seen.table.first_ready()?;
        self.overridden += 1;
        Some((key, pending(key)?, Amount::MAX))
    }

    /// A frame is in the pipe, which to this layer is all that can become of it.
    fn tell_placed(&mut self, stream: StreamKey, span: Span, now: Instant) {
        let kind = Kind::Fresh;
        let turn = Turn { stream, max: span.len() };
        self.policy.on_taken(turn, kind, &self.seen.view(now));
        let piece = Piece { stream, span, kind };
        self.tell(now, &Event::Placed { path: PIPE, piece });
        self.settle(stream, now);
        let pn = PacketNumber(self.frames);
        let sent = SentPacket { path: PIPE, pn, bytes: span.len(), sent_at: now, pieces: &[piece] };
        self.tell(now, &Event::Sent(sent));
        self.tell(now, &Event::Acked(sent));
        self.drained_due = true;
    }

    /// No frame goes now.
    pub(super) fn rest(&mut self, now: Instant) {
        if std::mem::take(&mut self.drained_due) {
            self.tell(now, &Event::Drained);
        }
    }

    /// The key of a body that has not been ended.
    fn body_key(&self, id: StreamId) -> Option<StreamKey> {
        let &key = self.by_id.get(&id)?;
        self.seen.table.get(key).is_some_and(|view| !view.fin).then_some(key)
    }

    /// Tells the policy if a stream became ready, or is no longer.
    fn settle(&mut self, key: StreamKey, now: Instant) {
        let Some(body) = self.seen.table.body_mut(key) else { return };
        let ready = body.view.is_ready();
        if std::mem::replace(&mut body.told_ready, ready) == ready {
            return;
        }
        if ready {
            self.seen.conn.ready += 1;
            self.tell(now, &Event::Ready(key));
        } else {
            self.seen.conn.ready -= 1;
            self.tell(now, &Event::Stopped(key));
        }
    }

    fn tell(&mut self, now: Instant, event: &Event<'_>) {
        self.policy.on_event(event, &self.seen.view(now));
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Queue { window, frames, .. } = self;
        let conn = &self.seen.conn;
        f.debug_struct("Queue")
            .field("conn", conn)
            .field("window", window)
            .field("frames", frames)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
