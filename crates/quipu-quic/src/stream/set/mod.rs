//! All streams of a connection.
//!
//! Split by who calls: [`app`] for the application, [`peer`] for frames of the peer, [`engine`] for
//! the connection's sending side and for policies, [`control`] for control frames. Here: the
//! storage, opening and closing, and what all of them keep up to date.

use std::collections::VecDeque;

use quipu_base::{Bytes, Instant, Offset, Role, StreamDirection, StreamId};
use quipu_policy::{ConnView, Priority, StreamKey, StreamView};

use crate::stream::buffers::Buffers;
use crate::stream::cancel::{CancelBudget, CancelLimit};
use crate::stream::flow::ReceiveWindow;
use crate::stream::frames::{Dirty, FrameQueue};
use crate::stream::index::SlotIndex;
use crate::stream::recv::RecvHalf;
use crate::stream::send::SendHalf;

mod app;
mod control;
mod engine;
mod peer;

pub use app::Read;

/// A frame that opens so many streams before its own opens them at once; where it opens more, those
/// before its own get a slot and are told once they are named, so that a few bytes of a peer cost
/// little. Our choice: more than packets on their way are overtaken by.
const MOST_OPENED: u64 = 64;

/// The view of a stream that policies must not see has this identifier, which no stream has.
const HIDDEN: StreamId = StreamId(u64::MAX);

/// Most streams of one kind over the life of a connection.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-4.6>
const MAX_STREAMS: u64 = 1 << 60;

/// What we allow the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Receive window of a stream, in bytes.
    pub stream_window: u64,
    /// Receive window of the connection, in bytes.
    pub connection_window: u64,
    /// Bidirectional streams that the peer may have open at a time.
    pub bidirectional: u64,
    /// Unidirectional streams that the peer may have open at a time.
    pub unidirectional: u64,
    /// How many of its streams the peer may cancel.
    pub cancels: CancelLimit,
    /// Bytes kept for sending, in all.
    pub send_buffer: u64,
    /// Bytes of a stream that were not sent yet.
    pub unsent: u64,
}

impl Default for StreamLimits {
    /// 6 MiB per stream and 15 MiB per connection, as Chrome has it; 1,000 streams of each kind, so
    /// that the limit shapes no experiment (our choice).
    fn default() -> Self {
        StreamLimits {
            stream_window: 6 << 20,
            connection_window: 15 << 20,
            bidirectional: 1000,
            unidirectional: 1000,
            cancels: CancelLimit::default(),
            send_buffer: 16 << 20,
            unsent: 1 << 20,
        }
    }
}

/// What the peer's transport parameters allow us, in its own terms.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-18.2>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerLimits {
    /// `initial_max_data`, in bytes.
    pub max_data: u64,
    /// `initial_max_stream_data_bidi_local`: bidirectional streams that the peer opens.
    pub max_stream_data_bidi_local: u64,
    /// `initial_max_stream_data_bidi_remote`: bidirectional streams that we open.
    pub max_stream_data_bidi_remote: u64,
    /// `initial_max_stream_data_uni`: unidirectional streams that we open.
    pub max_stream_data_uni: u64,
    /// `initial_max_streams_bidi`.
    pub max_streams_bidi: u64,
    /// `initial_max_streams_uni`.
    pub max_streams_uni: u64,
}

impl PeerLimits {
    /// The credit of a stream at the end of `role`.
    fn stream_data(&self, id: StreamId, role: Role) -> u64 {
        match (id.direction(), id.initiator() == role) {
            (StreamDirection::Bidirectional, true) => self.max_stream_data_bidi_remote,
            (StreamDirection::Bidirectional, false) => self.max_stream_data_bidi_local,
            (StreamDirection::Unidirectional, _) => self.max_stream_data_uni,
        }
    }
}

/// A change of a stream that the policy is to be told, in the order of telling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// A stream that can send came to life.
    Opened(StreamKey),
    /// The application told its size.
    Sized(StreamKey),
    /// The application wrote or finished.
    Written(StreamKey),
    /// Its priority changed.
    Reprioritised(StreamKey),
    /// Its sending half is over: reset, or all acknowledged. Ends `Ready` without a `Stopped`.
    Closed(StreamKey),
    /// It has something to send, and had not when last told.
    Ready(StreamKey),
    /// It has nothing to send, and had when last told.
    Stopped(StreamKey),
}

/// What the application is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened a stream.
    Opened(StreamId),
    /// There are bytes, or the end, to read. Told again only after all was read.
    Readable(StreamId),
    /// All that was written has been sent once, and the stream is not finished: time to write
    /// more. Not told of control streams.
    Drained(StreamId),
    /// There is room again for bytes of a stream of which a write took a part only.
    Writable(StreamId),
    /// The peer has every byte that was written, and the end.
    Finished(StreamId),
    /// The peer wants no more; the stream was reset towards it with the same code.
    Stopped {
        /// Which stream.
        stream: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// The peer gave up sending; nothing more can be read.
    Reset {
        /// Which stream.
        stream: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// The peer allows more streams, after opening one was refused.
    Available(StreamDirection),
}

/// The sending half in its slot.
#[derive(Debug)]
enum SendState {
    /// Never was, or is over.
    Done,
    Active(SendHalf),
    /// Reset; the peer does not know yet.
    Resetting {
        code: u64,
        final_size: Offset,
    },
}

/// The receiving half in its slot.
#[derive(Debug)]
enum RecvState {
    /// Never was, or is over.
    Done,
    Active(RecvHalf),
}

/// Everything of a stream but its view.
#[derive(Debug)]
struct Slot {
    key: StreamKey,
    live: bool,
    control: bool,
    /// What `conn.unsent` counts of this stream.
    unsent: u64,
    /// What `sendable_beyond` counts of this stream.
    beyond: u64,
    /// What `buffered` counts of this stream.
    buffered: u64,
    /// `blocked_streams` counts this stream.
    blocked: bool,
    /// A write took a part only, and the application was not told of room since.
    wants_room: bool,
    /// What `conn.ready` counts.
    ready: bool,
    /// The policy knows of the stream.
    told_opened: bool,
    /// What the policy knows of `ready`.
    told_ready: bool,
    /// What the application knows.
    told_readable: bool,
    /// The peer cancelled it.
    cancelled: bool,
    /// The limit of the last STREAM_DATA_BLOCKED.
    blocked_at: Option<Offset>,
    stop_code: u64,
    dirty: Dirty,
    send: SendState,
    recv: RecvState,
    /// In `Streams::flips`; outlives the stream.
    flip_queued: bool,
    /// In `Streams::frames`; outlives the stream.
    frame_queued: bool,
    /// In `Streams::short`; outlives the stream.
    short_queued: bool,
}

/// Streams of one initiator and direction.
#[derive(Debug, Default)]
struct Space {
    index: SlotIndex,
    /// How many may be opened over the life of the connection.
    limit: u64,
    /// How many are over; counted for the peer's streams.
    closed: u64,
    /// Opening one was refused since the limit last moved.
    refused: bool,
    /// The limit of the last STREAMS_BLOCKED.
    blocked_at: Option<u64>,
}

/// All streams of a connection.
#[derive(Debug)]
pub struct Streams {
    role: Role,
    limits: StreamLimits,
    peer_limits: Option<PeerLimits>,
    /// By slot, beside `slots`: what policies read.
    views: Vec<StreamView>,
    slots: Vec<Slot>,
    free_slots: Vec<u32>,
    /// By the two low bits of the stream identifier.
    spaces: [Space; 4],
    next_seq: u64,
    conn: ConnView,
    /// Slots of control streams, in order of identifier.
    control: Vec<u32>,
    /// Sum over all streams of what stream credit lets go and connection credit must pay for.
    sendable_beyond: u64,
    /// Sum of what was ever sent, by highest offset.
    sent: u64,
    /// Bytes kept for sending.
    buffered: u64,
    /// Slots of streams that want room in the buffer of all.
    short: VecDeque<u32>,
    send_limit: u64,
    send_blocked: bool,
    /// Streams that have data beyond their credit.
    blocked_streams: u32,
    /// The limit of the last DATA_BLOCKED.
    blocked_at: Option<u64>,
    /// Sum of what was received, by highest offset.
    received: u64,
    window: ReceiveWindow,
    cancels: CancelBudget,
    buffers: Buffers,
    /// The slot of the stream that waits for the buffer of the present datagram.
    waits: Option<u32>,
    edges: VecDeque<Edge>,
    /// Slots whose readiness may differ from what the policy knows.
    flips: VecDeque<u32>,
    events: VecDeque<StreamEvent>,
    frames: FrameQueue,
}

impl Streams {
    /// No streams. Nothing can be opened or sent before
    /// [`set_peer_limits`](Self::set_peer_limits).
    pub fn new(role: Role, limits: StreamLimits) -> Self {
        let mut streams = Streams {
            role,
            limits,
            peer_limits: None,
            views: Vec::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            spaces: Default::default(),
            next_seq: 0,
            conn: ConnView::default(),
            control: Vec::new(),
            sendable_beyond: 0,
            sent: 0,
            buffered: 0,
            short: VecDeque::new(),
            send_limit: 0,
            send_blocked: false,
            blocked_streams: 0,
            blocked_at: None,
            received: 0,
            window: ReceiveWindow::new(limits.connection_window),
            cancels: CancelBudget::new(limits.cancels),
            buffers: Buffers::new(),
            waits: None,
            edges: VecDeque::new(),
            flips: VecDeque::new(),
            events: VecDeque::new(),
            frames: FrameQueue::default(),
        };
        streams.space_mut(role.peer(), StreamDirection::Bidirectional).limit =
            limits.bidirectional.min(MAX_STREAMS);
        streams.space_mut(role.peer(), StreamDirection::Unidirectional).limit =
            limits.unidirectional.min(MAX_STREAMS);
        streams
    }

    /// The connection as policies see it. `in_flight` is the connection's to keep.
    pub fn conn_view(&self) -> &ConnView {
        &self.conn
    }

    /// The same, for `in_flight`.
    pub fn conn_view_mut(&mut self) -> &mut ConnView {
        &mut self.conn
    }

    /// True if there may be a change to tell the policy.
    #[inline]
    pub fn has_edges(&self) -> bool {
        !self.edges.is_empty() || !self.flips.is_empty()
    }

    /// The next change to tell the policy. Changes of readiness come after all others, and only if
    /// they still hold: drain when the events that caused them were told.
    pub fn pop_edge(&mut self) -> Option<Edge> {
        while let Some(edge) = self.edges.pop_front() {
            let key = edge.key();
            if let Edge::Closed(_) = edge {
                return Some(edge);
            }
            // What ended before it was told is nobody's business.
            if self.is_visible(key) {
                self.slots[key.index()].told_opened |= matches!(edge, Edge::Opened(_));
                return Some(edge);
            }
        }
        while let Some(number) = self.flips.pop_front() {
            let slot = &mut self.slots[number as usize];
            slot.flip_queued = false;
            if slot.ready != slot.told_ready {
                slot.told_ready = slot.ready;
                let edge = if slot.ready { Edge::Ready } else { Edge::Stopped };
                return Some(edge(slot.key));
            }
        }
        None
    }

    /// The next news for the application.
    pub fn pop_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// The key of a live stream.
    pub fn key(&self, id: StreamId) -> Option<StreamKey> {
        Some(self.slots.get(self.slot_of(id)? as usize)?.key)
    }

    /// True if the stream is hidden from policies.
    pub fn is_control(&self, key: StreamKey) -> bool {
        self.slot(key).is_some_and(|slot| slot.control)
    }

    /// Number of live streams.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// True if no stream lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn space(&self, initiator: Role, direction: StreamDirection) -> &Space {
        &self.spaces[(StreamId::new(initiator, direction, 0).0 & 3) as usize]
    }

    fn space_mut(&mut self, initiator: Role, direction: StreamDirection) -> &mut Space {
        &mut self.spaces[(StreamId::new(initiator, direction, 0).0 & 3) as usize]
    }

    fn slot_of(&self, id: StreamId) -> Option<u32> {
        self.spaces[(id.0 & 3) as usize].index.get(id.index())
    }

    /// The slot of a live stream by key.
    fn slot(&self, key: StreamKey) -> Option<&Slot> {
        self.slots.get(key.index()).filter(|slot| slot.live && slot.key == key)
    }

    /// The sending half of a live stream by key.
    fn send_half(&self, key: StreamKey) -> Option<&SendHalf> {
        match &self.slot(key)?.send {
            SendState::Active(half) => Some(half),
            _ => None,
        }
    }

    fn send_half_mut(&mut self, key: StreamKey) -> Option<&mut SendHalf> {
        let slot = self.slots.get_mut(key.index());
        match &mut slot.filter(|slot| slot.live && slot.key == key)?.send {
            SendState::Active(half) => Some(half),
            _ => None,
        }
    }

    /// Opens the next stream of that initiator and direction. The caller checked the limit.
    fn open_next(
        &mut self,
        initiator: Role,
        direction: StreamDirection,
        now: Instant,
    ) -> StreamKey {
        let number = self.free_slots.pop().unwrap_or_else(|| self.add_slot());
        let space = self.space_mut(initiator, direction);
        // https://www.rfc-editor.org/rfc/rfc9000#section-2.1
        //# A QUIC endpoint MUST NOT reuse a stream ID within a connection.
        let id = StreamId::new(initiator, direction, space.index.opened());
        space.index.push(number);
        self.open_in(number, id, now)
    }

    /// Gives a stream its slot that a frame of a later one opened; `None` if it is over.
    fn open_implied(&mut self, id: StreamId, now: Instant) -> Option<u32> {
        let (initiator, direction) = (id.initiator(), id.direction());
        if !self.space(initiator, direction).index.is_implied(id.index()) {
            return None;
        }
        let number = self.free_slots.pop().unwrap_or_else(|| self.add_slot());
        self.space_mut(initiator, direction).index.fill(id.index(), number);
        self.open_in(number, id, now);
        self.events.push_back(StreamEvent::Opened(id));
        Some(number)
    }

    /// Begins a stream in that slot, which is free.
    fn open_in(&mut self, number: u32, id: StreamId, now: Instant) -> StreamKey {
        let direction = id.direction();
        let local = id.initiator() == self.role;
        let peer = self.peer_limits.unwrap_or_default();
        let (sends, receives, credit_end) = match (direction, local) {
            (StreamDirection::Bidirectional, true) => {
                (true, true, peer.max_stream_data_bidi_remote)
            }
            (StreamDirection::Bidirectional, false) => {
                (true, true, peer.max_stream_data_bidi_local)
            }
            (StreamDirection::Unidirectional, true) => (true, false, peer.max_stream_data_uni),
            (StreamDirection::Unidirectional, false) => (false, true, 0),
        };
        let key = StreamKey { slot: number, id };
        let window = self.limits.stream_window;
        let slot = &mut self.slots[key.index()];
        *slot = Slot {
            key,
            live: true,
            send: if sends {
                SendState::Active(SendHalf::new(Offset(credit_end)))
            } else {
                SendState::Done
            },
            recv: if receives { RecvState::Active(RecvHalf::new(window)) } else { RecvState::Done },
            flip_queued: slot.flip_queued,
            frame_queued: slot.frame_queued,
            short_queued: slot.short_queued,
            ..Slot::vacant()
        };
        self.views[key.index()] = StreamView {
            key: if sends { key } else { StreamKey { id: HIDDEN, ..key } },
            seq: self.next_seq,
            opened_at: now,
            credit_end: Offset(credit_end),
            ..vacant_view()
        };
        self.next_seq += 1;
        if sends {
            self.edges.push_back(Edge::Opened(key));
        }
        key
    }

    fn add_slot(&mut self) -> u32 {
        // Limits on streams keep this far below 2^32.
        let number = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        self.slots.push(Slot::vacant());
        self.views.push(vacant_view());
        number
    }

    /// Brings view, counts and edges of a stream up to date with its sending half.
    fn sync(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        let view = &mut self.views[number as usize];
        let (unsent, beyond, buffered, blocked_at) = match &slot.send {
            SendState::Active(half) => {
                view.written = half.written();
                view.fin = half.is_finished();
                view.high_sent = half.high_sent();
                view.credit_end = half.credit_end();
                view.sendable = Bytes(half.sendable());
                view.free = Bytes(half.free());
                view.bare_fin = half.bare_fin();
                let unsent = if slot.control { 0 } else { half.unsent() };
                let blocked = half.is_blocked().then(|| half.credit_end());
                (unsent, half.sendable() - half.free(), half.buffered(), blocked)
            }
            SendState::Done | SendState::Resetting { .. } => (0, 0, 0, None),
        };
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A sender SHOULD send a STREAM_DATA_BLOCKED or DATA_BLOCKED frame to indicate to the
        //# receiver that it has data to write but is blocked by flow control limits.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.13
        //# A sender SHOULD send a STREAM_DATA_BLOCKED frame (type=0x15) when it wishes to send
        //# data but is unable to do so due to stream-level flow control.
        if blocked_at.is_some() && blocked_at != slot.blocked_at {
            slot.blocked_at = blocked_at;
            slot.mark(Dirty::STREAM_BLOCKED, &mut self.frames);
        }
        if blocked_at.is_some() != slot.blocked {
            slot.blocked = blocked_at.is_some();
            self.blocked_streams =
                self.blocked_streams - u32::from(!slot.blocked) + u32::from(slot.blocked);
        }
        self.conn.unsent.0 = self.conn.unsent.0 - slot.unsent + unsent;
        slot.unsent = unsent;
        self.sendable_beyond = self.sendable_beyond - slot.beyond + beyond;
        slot.beyond = beyond;
        self.buffered = self.buffered - slot.buffered + buffered;
        slot.buffered = buffered;
        let ready = view.key.id != HIDDEN && view.is_ready();
        if ready != slot.ready {
            slot.ready = ready;
            if ready {
                self.conn.ready += 1;
            } else {
                self.conn.ready -= 1;
            }
            if !std::mem::replace(&mut slot.flip_queued, true) {
                self.flips.push_back(number);
            }
        }
        if slot.wants_room || !self.short.is_empty() {
            self.tell_room(number);
        }
    }

    /// Ends the sending half towards the policy, which is told nothing of a stream that it has not
    /// heard of yet.
    fn hide(&mut self, number: u32) {
        let view = &mut self.views[number as usize];
        let slot = &mut self.slots[number as usize];
        view.key.id = HIDDEN;
        if std::mem::take(&mut slot.told_opened) {
            self.edges.push_back(Edge::Closed(slot.key));
        }
        self.sync(number);
        self.slots[number as usize].told_ready = false;
    }

    /// Notes whether connection credit stops data.
    fn update_blocked(&mut self) {
        self.conn.credit = Bytes(self.send_limit.saturating_sub(self.sent));
        let stopped = self.conn.credit.is_zero() && self.sendable_beyond > 0;
        let blocked = stopped && self.peer_limits.is_some();
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A sender SHOULD send a STREAM_DATA_BLOCKED or DATA_BLOCKED frame to indicate to the
        //# receiver that it has data to write but is blocked by flow control limits.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.12
        //# A sender SHOULD send a DATA_BLOCKED frame (type=0x14) when it wishes to send data but
        //# is unable to do so due to connection-level flow control; see Section 4.
        if blocked && !self.send_blocked {
            self.conn.window_blocked += 1;
            if self.blocked_at.replace(self.send_limit) != Some(self.send_limit) {
                self.frames.connection.add(Dirty::DATA_BLOCKED);
            }
        }
        self.send_blocked = blocked;
    }

    /// Notes that the application will not read `bytes` again, or never.
    fn consumed(&mut self, bytes: u64) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.2
        //# Therefore, a receiver MUST NOT wait for a STREAM_DATA_BLOCKED or DATA_BLOCKED frame
        //# before sending a MAX_STREAM_DATA or MAX_DATA frame; doing so could result in the
        //# sender being blocked for the rest of the connection.
        if self.window.consume(bytes) {
            self.frames.connection.add(Dirty::MAX_DATA);
        }
    }

    /// Frees the slot if both halves are over.
    fn close_if_done(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.4
        //# Both endpoints MUST maintain flow control state for the stream in the unterminated
        //# direction until that direction enters a terminal state.
        if !slot.live
            || !matches!(slot.send, SendState::Done)
            || !matches!(slot.recv, RecvState::Done)
        {
            return;
        }
        slot.live = false;
        slot.dirty = Dirty::default();
        let key = slot.key;
        if slot.control {
            self.control.retain(|&other| other != number);
        }
        self.free_slots.push(number);
        let space = &mut self.spaces[(key.id.0 & 3) as usize];
        space.index.remove(key.id.index());
        if key.id.initiator() == self.role {
            return;
        }
        space.closed += 1;
        let direction = key.id.direction();
        let at_once = self.at_once(direction);
        let space = self.space_mut(self.role.peer(), direction);
        // A new limit is due when an eighth of the streams was closed: our choice.
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# An endpoint MUST NOT wait to receive this signal before advertising additional credit,
        //# since doing so will mean that the peer will be blocked for at least an entire round
        //# trip, and potentially indefinitely if the peer chooses not to send STREAMS_BLOCKED
        //# frames.
        if space.closed + at_once - space.limit >= at_once.div_ceil(8) {
            self.frames.connection.add(Dirty::max_streams(direction));
        }
    }

    /// Streams of the peer that it may have opened in all by now.
    pub fn peer_stream_limit(&self, direction: StreamDirection) -> u64 {
        self.space(self.role.peer(), direction).limit
    }

    /// Streams of the peer that may be open at a time.
    fn at_once(&self, direction: StreamDirection) -> u64 {
        match direction {
            StreamDirection::Bidirectional => self.limits.bidirectional,
            StreamDirection::Unidirectional => self.limits.unidirectional,
        }
        .min(MAX_STREAMS)
    }
}

impl Slot {
    fn vacant() -> Self {
        Slot {
            key: StreamKey { slot: 0, id: HIDDEN },
            live: false,
            control: false,
            unsent: 0,
            beyond: 0,
            buffered: 0,
            blocked: false,
            wants_room: false,
            ready: false,
            told_opened: false,
            told_ready: false,
            told_readable: false,
            cancelled: false,
            blocked_at: None,
            stop_code: 0,
            dirty: Dirty::default(),
            send: SendState::Done,
            recv: RecvState::Done,
            flip_queued: false,
            frame_queued: false,
            short_queued: false,
        }
    }

    /// Notes that a control frame of this stream waits.
    fn mark(&mut self, flag: Dirty, frames: &mut FrameQueue) {
        self.dirty.add(flag);
        if !std::mem::replace(&mut self.frame_queued, true) {
            frames.slots.push_back(self.key.slot);
        }
    }
}

fn vacant_view() -> StreamView {
    StreamView {
        key: StreamKey { slot: 0, id: HIDDEN },
        priority: Priority::default(),
        seq: 0,
        opened_at: Instant::ZERO,
        size: None,
        written: Offset::ZERO,
        fin: false,
        high_sent: Offset::ZERO,
        credit_end: Offset::ZERO,
        sendable: Bytes::ZERO,
        free: Bytes::ZERO,
        bare_fin: false,
    }
}

#[cfg(test)]
mod random;
#[cfg(test)]
mod states;
#[cfg(test)]
mod tests;
