//! What the application does with streams.

use bytes::Bytes;
use quipu_base::{Instant, StreamDirection, StreamId};
use quipu_policy::{Priority, StreamKey};

use super::{Edge, RecvState, SendState, StreamEvent, Streams};
use crate::stream::fault::{OpenError, StreamError};
use crate::stream::frames::Dirty;
use crate::stream::send::{MAX_OFFSET, SendHalf};

/// Bytes that a stream may buffer however much others do, unless that is more than a sixteenth of the
/// whole; our choice.
const MOST_OWN_SHARE: u64 = 16 << 10;

/// What a read brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Bytes given to the sink.
    pub bytes: u64,
    /// True if they were the last: the receiving half is over.
    pub end: bool,
}

impl Streams {
    /// Opens the next stream of ours in `direction`.
    ///
    /// # Errors
    /// [`OpenError::Limit`] if the peer allows no more yet.
    pub fn open(
        &mut self,
        direction: StreamDirection,
        now: Instant,
    ) -> Result<StreamId, OpenError> {
        let known = self.peer_limits.is_some();
        let space = self.space_mut(self.role, direction);
        let limit = space.limit;
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# Endpoints MUST NOT exceed the limit set by their peer.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.11
        //# An endpoint MUST NOT open more streams than permitted by the current stream limit set
        //# by its peer.
        if space.index.opened() >= limit {
            space.refused = true;
            // Once for each limit: an application may try again whenever it runs.
            if known && space.blocked_at.replace(limit) != Some(limit) {
                // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
                //# An endpoint that is unable to open a new stream due to the peer's limits
                //# SHOULD send a STREAMS_BLOCKED frame (Section 19.14).
                // https://www.rfc-editor.org/rfc/rfc9000#section-19.14
                //# A sender SHOULD send a STREAMS_BLOCKED frame (type=0x16 or 0x17) when it
                //# wishes to open a stream but is unable to do so due to the maximum stream limit
                //# set by its peer; see Section 19.11.
                self.frames.connection.add(Dirty::streams_blocked(direction));
            }
            return Err(OpenError::Limit { direction, limit });
        }
        Ok(self.open_next(self.role, direction, now).id)
    }

    /// Appends bytes to what is to be sent, at no cost of a copy: as many as there is
    /// [room](Self::send_room) for. Returns how many; if not all, [`StreamEvent::Writable`] follows.
    ///
    /// # Errors
    /// [`StreamError`] if the stream cannot send, was finished, or would grow too long.
    pub fn write(&mut self, id: StreamId, data: Bytes) -> Result<usize, StreamError> {
        let key = self.sending(id)?;
        let taken = self.room(key).min(data.len());
        self.append(key, data.slice(..taken))?;
        if taken < data.len() {
            let slot = &mut self.slots[key.index()];
            slot.wants_room = true;
            if self.buffered >= self.limits.send_buffer {
                self.queue_short(key.slot);
            }
        }
        Ok(taken)
    }

    /// The same for all bytes, whether there is room or not.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_all(&mut self, id: StreamId, data: Bytes) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        self.append(key, data)
    }

    fn append(&mut self, key: StreamKey, data: Bytes) -> Result<(), StreamError> {
        let empty = data.is_empty();
        let Some(half) = self.send_half_mut(key) else { return Err(StreamError::NotOpen(key.id)) };
        if !half.write(data) {
            return Err(if half.is_finished() {
                StreamError::Finished(key.id)
            } else {
                StreamError::TooLong(key.id)
            });
        }
        if !empty {
            self.written(key);
        }
        Ok(())
    }

    /// Bytes that a [write](Self::write) on a stream takes now; none if it cannot send.
    pub fn send_room(&self, id: StreamId) -> usize {
        self.sending(id).map_or(0, |key| self.room(key))
    }

    /// What is left of the buffer that all streams share, or of the little that each may use in any
    /// case: streams whose peer takes nothing do not stop the others. And no more than one may have
    /// unsent. Control streams are for those who limit themselves.
    fn room(&self, key: StreamKey) -> usize {
        let slot = &self.slots[key.index()];
        if slot.control {
            return usize::MAX;
        }
        let shared = self.limits.send_buffer.saturating_sub(self.buffered);
        let own = self.own_share().saturating_sub(slot.buffered);
        let unsent = self.limits.unsent.saturating_sub(slot.unsent);
        usize::try_from(shared.max(own).min(unsent)).unwrap_or(usize::MAX)
    }

    /// Bytes that a stream may buffer in any case.
    const fn own_share(&self) -> u64 {
        let share = self.limits.send_buffer / 16;
        if share < MOST_OWN_SHARE { share } else { MOST_OWN_SHARE }
    }

    /// Less may be kept of the stream in slot `number`: whether those that want room have it now. They
    /// hear of it once half of what one may have unsent was sent, and a quarter of the whole is free or
    /// half of their own share.
    #[cold]
    pub(super) fn tell_room(&mut self, number: u32) {
        let enough = self.limits.send_buffer - self.limits.send_buffer / 4;
        if self.buffered <= enough {
            while let Some(short) = self.short.pop_front() {
                self.slots[short as usize].short_queued = false;
                self.tell_unless_unsent(short);
            }
            self.tell_unless_unsent(number);
            return;
        }
        let slot = &self.slots[number as usize];
        if slot.buffered <= self.own_share() / 2 {
            self.tell_unless_unsent(number);
        } else if slot.wants_room {
            // It may have waited for its own bytes to be sent, and the whole is short meanwhile.
            self.queue_short(number);
        }
    }

    fn queue_short(&mut self, number: u32) {
        if !std::mem::replace(&mut self.slots[number as usize].short_queued, true) {
            self.short.push_back(number);
        }
    }

    fn tell_unless_unsent(&mut self, number: u32) {
        if self.slots[number as usize].unsent <= self.limits.unsent / 2 {
            self.tell_writable(number);
        }
    }

    fn tell_writable(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        if std::mem::take(&mut slot.wants_room) && matches!(slot.send, SendState::Active(_)) {
            self.events.push_back(StreamEvent::Writable(slot.key.id));
        }
    }

    /// Ends what is to be sent.
    ///
    /// # Errors
    /// [`StreamError`] if the stream cannot send or was finished before.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        if !self.send_half_mut(key).is_some_and(|half| half.finish()) {
            return Err(StreamError::Finished(id));
        }
        self.written(key);
        Ok(())
    }

    /// Bytes that were written and never sent, within credit or not; none if the stream cannot send.
    pub fn unsent(&self, id: StreamId) -> quipu_base::Bytes {
        let half = self.key(id).and_then(|key| self.send_half(key));
        quipu_base::Bytes(half.map_or(0, SendHalf::unsent))
    }

    fn written(&mut self, key: StreamKey) {
        let edge = Edge::Written(key);
        if self.is_visible(key) && self.edges.back() != Some(&edge) {
            self.edges.push_back(edge);
        }
        self.sync(key.slot);
        self.update_blocked();
    }

    /// Gives up sending: RESET_STREAM with `code`.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-3.1>
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the sending half is over or never was.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        self.reset_slot(key, code);
        Ok(())
    }

    /// Resets an active sending half.
    pub(super) fn reset_slot(&mut self, key: StreamKey, code: u64) {
        let slot = &mut self.slots[key.index()];
        let SendState::Active(half) = &slot.send else { return };
        slot.send = SendState::Resetting { code, final_size: half.high_sent() };
        // https://www.rfc-editor.org/rfc/rfc9000#section-3.3
        //# A sender MUST NOT send a STREAM or STREAM_DATA_BLOCKED frame for a stream in the
        //# "Reset Sent" state or any terminal state -- that is, after sending a RESET_STREAM
        //# frame.
        slot.dirty.remove(Dirty::STREAM_BLOCKED);
        slot.mark(Dirty::RESET, &mut self.frames);
        self.hide(key.slot);
        self.update_blocked();
    }

    /// Wants nothing more from the peer: STOP_SENDING with `code`. What is buffered is dropped.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-3.5>
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the receiving half is over or never was.
    pub fn stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let number = self.slot_of(id).ok_or(StreamError::NotOpen(id))?;
        let slot = &mut self.slots[number as usize];
        let RecvState::Active(half) = &mut slot.recv else { return Err(StreamError::NotOpen(id)) };
        // https://www.rfc-editor.org/rfc/rfc9000#section-3.5
        //# STOP_SENDING SHOULD only be sent for a stream that has not been reset by the peer.
        let told = half.is_stopped();
        let unread = half.stop(&mut self.buffers);
        if half.final_size().is_some() {
            slot.recv = RecvState::Done;
            slot.dirty.remove(Dirty::MAX_STREAM_DATA);
        } else if !told {
            slot.stop_code = code;
            slot.dirty.remove(Dirty::MAX_STREAM_DATA);
            slot.mark(Dirty::STOP, &mut self.frames);
        }
        self.consumed(unread);
        self.close_if_done(number);
        Ok(())
    }

    /// Reads up to `max` bytes in order; `sink` is given them in a few pieces.
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the receiving half is over (all read, reset or stopped) or
    /// never was.
    pub fn read(
        &mut self,
        id: StreamId,
        max: u64,
        sink: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        let number = self.slot_of(id).ok_or(StreamError::NotOpen(id))?;
        let slot = &mut self.slots[number as usize];
        let RecvState::Active(half) = &mut slot.recv else { return Err(StreamError::NotOpen(id)) };
        if half.is_stopped() {
            return Err(StreamError::NotOpen(id));
        }
        let bytes = half.read(max, &mut self.buffers, sink);
        let end = half.is_all_read();
        if half.readable() == 0 {
            slot.told_readable = false;
        }
        if end {
            slot.recv = RecvState::Done;
            slot.dirty.remove(Dirty::MAX_STREAM_DATA);
        } else if half.is_credit_due() {
            slot.mark(Dirty::MAX_STREAM_DATA, &mut self.frames);
        }
        self.consumed(bytes);
        self.close_if_done(number);
        Ok(Read { bytes, end })
    }

    /// Marks a stream as one whose bytes go before every policy's choice, and hides it from
    /// policies. Best called before the first bytes are written.
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the stream cannot send.
    pub fn set_control(&mut self, id: StreamId) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        if self.slots[key.index()].control {
            return Ok(());
        }
        self.slots[key.index()].control = true;
        self.hide(key.slot);
        let slots = &self.slots;
        let place = self.control.partition_point(|&other| slots[other as usize].key < key);
        self.control.insert(place, key.slot);
        Ok(())
    }

    /// Tells the total size of what will be written.
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the stream cannot send.
    pub fn set_size(&mut self, id: StreamId, size: quipu_base::Bytes) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        self.views[key.index()].size = Some(quipu_base::Bytes(size.0.min(MAX_OFFSET)));
        if self.is_visible(key) {
            self.edges.push_back(Edge::Sized(key));
        }
        Ok(())
    }

    /// Changes what is said of a stream's priority.
    ///
    /// # Errors
    /// [`StreamError::NotOpen`] if the stream cannot send.
    pub fn set_priority(&mut self, id: StreamId, priority: Priority) -> Result<(), StreamError> {
        let key = self.sending(id)?;
        if self.views[key.index()].priority != priority {
            self.views[key.index()].priority = priority;
            if self.is_visible(key) {
                self.edges.push_back(Edge::Reprioritised(key));
            }
        }
        Ok(())
    }

    /// What was said of a stream's priority; `None` if the stream cannot send.
    pub fn priority(&self, id: StreamId) -> Option<Priority> {
        let key = self.sending(id).ok()?;
        Some(self.views[key.index()].priority)
    }

    /// The key of a stream whose sending half is active.
    fn sending(&self, id: StreamId) -> Result<StreamKey, StreamError> {
        let key = self.key(id).filter(|&key| self.send_half(key).is_some());
        key.ok_or(StreamError::NotOpen(id))
    }

    pub(super) fn is_visible(&self, key: StreamKey) -> bool {
        self.views.get(key.index()).is_some_and(|view| view.key == key)
    }
}

impl Edge {
    /// Of which stream.
    pub const fn key(self) -> StreamKey {
        match self {
            Edge::Opened(key)
            | Edge::Sized(key)
            | Edge::Written(key)
            | Edge::Reprioritised(key)
            | Edge::Closed(key)
            | Edge::Ready(key)
            | Edge::Stopped(key) => key,
        }
    }
}
