//! What the peer does with streams.

use quipu_base::{Instant, Offset, Role, StreamDirection, StreamId};
use quipu_policy::StreamKey;

use super::{MAX_STREAMS, MOST_OPENED, PeerLimits, RecvState, SendState, StreamEvent, Streams};
use crate::stream::buffers::Spares;
use crate::stream::fault::StreamFault;
use crate::stream::frames::Dirty;

impl Streams {
    /// Takes the peer's transport parameters. May be called again (after remembered values of a
    /// resumed session): limits only grow.
    pub fn set_peer_limits(&mut self, limits: PeerLimits) {
        self.peer_limits = Some(limits);
        self.on_max_streams(StreamDirection::Bidirectional, limits.max_streams_bidi);
        self.on_max_streams(StreamDirection::Unidirectional, limits.max_streams_uni);
        for number in 0..self.slots.len() {
            let key = self.slots[number].key;
            self.raise_stream_credit(key, Offset(limits.stream_data(key.id, self.role)));
        }
        self.on_max_data(limits.max_data);
    }

    /// Takes limits in the place of those that were remembered of an earlier connection, which need
    /// not be lower: the peer has rejected what was sent within them. False, and nothing changes, if
    /// less is allowed than was used.
    pub fn replace_peer_limits(&mut self, limits: PeerLimits) -> bool {
        let opened = |direction| self.space(self.role, direction).index.opened();
        let fits = self.sent <= limits.max_data
            && opened(StreamDirection::Bidirectional) <= limits.max_streams_bidi
            && opened(StreamDirection::Unidirectional) <= limits.max_streams_uni
            && self.slots.iter().filter(|slot| slot.live).all(|slot| match &slot.send {
                SendState::Active(half) => {
                    half.high_sent().0 <= limits.stream_data(slot.key.id, self.role)
                }
                SendState::Resetting { final_size, .. } => {
                    final_size.0 <= limits.stream_data(slot.key.id, self.role)
                }
                SendState::Done => true,
            });
        if !fits {
            return false;
        }
        for (direction, limit) in [
            (StreamDirection::Bidirectional, limits.max_streams_bidi),
            (StreamDirection::Unidirectional, limits.max_streams_uni),
        ] {
            let space = self.space_mut(self.role, direction);
            space.limit = space.limit.min(limit);
            space.blocked_at = None;
        }
        self.send_limit = self.send_limit.min(limits.max_data);
        for number in 0..self.slots.len() {
            let key = self.slots[number].key;
            let credit_end = Offset(limits.stream_data(key.id, self.role));
            if let Some(half) = self.send_half_mut(key) {
                half.lower_credit(credit_end);
                self.sync(key.slot);
            }
        }
        self.update_blocked();
        self.set_peer_limits(limits);
        true
    }

    /// A STREAM frame. <https://www.rfc-editor.org/rfc/rfc9000#section-19.8>
    ///
    /// # Errors
    /// The fault of the peer; the connection must close.
    pub fn on_stream_frame(
        &mut self,
        id: StreamId,
        offset: Offset,
        fin: bool,
        data: &[u8],
        now: Instant,
    ) -> Result<(), StreamFault> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.8
        //# An endpoint MUST terminate the connection with error STREAM_STATE_ERROR if it receives
        //# a STREAM frame for a locally initiated stream that has not yet been created, or for a
        //# send-only stream.
        let Some(number) = self.receiving(id, now)? else { return Ok(()) };
        let slot = &mut self.slots[number as usize];
        let RecvState::Active(half) = &mut slot.recv else { return Ok(()) };
        let growth = half.growth(offset, data.len() as u64, fin)?;
        check_connection_credit(self.received, growth, self.window.limit())?;
        let received = half.on_data(offset, data, fin, &mut self.buffers)?;
        self.received += received.growth;
        if received.waits {
            self.waits = Some(number);
        }
        if half.final_size().is_some() {
            slot.dirty.remove(Dirty::MAX_STREAM_DATA);
            slot.dirty.remove(Dirty::STOP);
            if half.is_stopped() {
                slot.recv = RecvState::Done;
            }
        }
        if received.readable && !std::mem::replace(&mut slot.told_readable, true) {
            self.events.push_back(StreamEvent::Readable(id));
        }
        if received.discarded > 0 {
            self.consumed(received.discarded);
        }
        self.close_if_done(number);
        Ok(())
    }

    /// The datagram whose frames come next lies in `buffer`, which a stream may keep.
    pub fn lend(&mut self, buffer: &[u8]) {
        self.buffers.lend(buffer);
    }

    /// All frames of that datagram were handed over: if a stream waits for its buffer, the buffer is
    /// exchanged for another one of the same length, with any content.
    pub fn keep(&mut self, buffer: &mut Box<[u8]>, spares: &mut Spares) {
        let wanted = self.buffers.end_lending();
        let slot = self.waits.take().filter(|_| wanted);
        let Some(slot) = slot.and_then(|number| self.slots.get_mut(number as usize)) else {
            return;
        };
        if let RecvState::Active(half) = &mut slot.recv {
            half.keep(buffer, &mut self.buffers, spares);
        }
    }

    /// What comes next may be copied into a buffer that was left by another connection.
    pub fn take_spare(&mut self, spares: &mut Spares) {
        self.buffers.take_large(spares);
    }

    /// Hands on buffers that were read, for other connections to use.
    pub fn give_spent(&mut self, spares: &mut Spares) {
        self.buffers.drain_into(spares);
    }

    /// A RESET_STREAM frame. <https://www.rfc-editor.org/rfc/rfc9000#section-19.4>
    ///
    /// # Errors
    /// The fault of the peer; the connection must close.
    pub fn on_reset_stream(
        &mut self,
        id: StreamId,
        code: u64,
        final_size: Offset,
        now: Instant,
    ) -> Result<(), StreamFault> {
        let Some(number) = self.receiving(id, now)? else { return Ok(()) };
        let slot = &mut self.slots[number as usize];
        let RecvState::Active(half) = &mut slot.recv else { return Ok(()) };
        let growth = half.growth(final_size, 0, true)?;
        check_connection_credit(self.received, growth, self.window.limit())?;
        if half.is_all_received() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-3.2
            // "receiving RESET_STREAM [...] MAY be ignored" once all data arrived.
            return Ok(());
        }
        let stopped = half.is_stopped();
        if !stopped {
            self.note_cancelled(number, now)?;
        }
        let slot = &mut self.slots[number as usize];
        let RecvState::Active(half) = &mut slot.recv else { return Ok(()) };
        let received = half.on_reset(final_size, &mut self.buffers)?;
        self.received += received.growth;
        slot.recv = RecvState::Done;
        slot.dirty.remove(Dirty::MAX_STREAM_DATA);
        slot.dirty.remove(Dirty::STOP);
        if !stopped {
            self.events.push_back(StreamEvent::Reset { stream: id, code });
        }
        self.consumed(received.discarded);
        self.close_if_done(number);
        Ok(())
    }

    /// A STOP_SENDING frame: the stream is reset with the same code.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-3.5>
    ///
    /// # Errors
    /// The fault of the peer; the connection must close.
    pub fn on_stop_sending(
        &mut self,
        id: StreamId,
        code: u64,
        now: Instant,
    ) -> Result<(), StreamFault> {
        let Some(key) = self.sending_to(id, now)? else { return Ok(()) };
        if self.send_half(key).is_some() {
            self.note_cancelled(key.slot, now)?;
            // https://www.rfc-editor.org/rfc/rfc9000#section-3.5
            //# An endpoint that receives a STOP_SENDING frame MUST send a RESET_STREAM frame if
            //# the stream is in the "Ready" or "Send" state. If any outstanding data is declared
            //# lost, the endpoint SHOULD send a RESET_STREAM frame instead of retransmitting the
            //# data. An endpoint SHOULD copy the error code from the STOP_SENDING frame to the
            //# RESET_STREAM frame it sends, but it can use any application error code.
            self.reset_slot(key, code);
            self.events.push_back(StreamEvent::Stopped { stream: id, code });
        }
        Ok(())
    }

    /// A MAX_DATA frame. <https://www.rfc-editor.org/rfc/rfc9000#section-19.9>
    pub fn on_max_data(&mut self, limit: u64) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
        //# A sender MUST ignore any MAX_STREAM_DATA or MAX_DATA frames that do not increase flow
        //# control limits.
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
        //# A receiver MUST accept packets containing an outdated frame, such as a MAX_DATA frame
        //# carrying a smaller maximum data value than one found in an older packet.
        if limit > self.send_limit {
            self.send_limit = limit;
            self.frames.connection.remove(Dirty::DATA_BLOCKED);
        }
        self.update_blocked();
    }

    /// A MAX_STREAM_DATA frame. <https://www.rfc-editor.org/rfc/rfc9000#section-19.10>
    ///
    /// # Errors
    /// The fault of the peer; the connection must close.
    pub fn on_max_stream_data(
        &mut self,
        id: StreamId,
        limit: Offset,
        now: Instant,
    ) -> Result<(), StreamFault> {
        if let Some(key) = self.sending_to(id, now)? {
            self.raise_stream_credit(key, limit);
        }
        Ok(())
    }

    /// A MAX_STREAMS frame; a limit above 2^60 is taken as 2^60, since the decoder refuses it.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.11>
    pub fn on_max_streams(&mut self, direction: StreamDirection, limit: u64) {
        let space = self.space_mut(self.role, direction);
        let limit = limit.min(MAX_STREAMS);
        // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
        //# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.11
        //# MAX_STREAMS frames that do not increase the stream limit MUST be ignored.
        if limit <= space.limit {
            return;
        }
        space.limit = limit;
        if std::mem::take(&mut space.refused) {
            self.frames.connection.remove(Dirty::streams_blocked(direction));
            self.events.push_back(StreamEvent::Available(direction));
        }
    }

    /// A STREAM_DATA_BLOCKED frame, which asks for nothing that reading does not bring.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-19.13>
    ///
    /// # Errors
    /// The fault of the peer; the connection must close.
    pub fn on_stream_data_blocked(
        &mut self,
        id: StreamId,
        now: Instant,
    ) -> Result<(), StreamFault> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.13
        //# An endpoint that receives a STREAM_DATA_BLOCKED frame for a send-only stream MUST
        //# terminate the connection with error STREAM_STATE_ERROR.
        self.receiving(id, now).map(|_| ())
    }

    /// The peer cancels a stream, in one direction or the other; it counts once, and only if the
    /// peer opened it.
    fn note_cancelled(&mut self, number: u32, now: Instant) -> Result<(), StreamFault> {
        let slot = &mut self.slots[number as usize];
        if slot.key.id.initiator() == self.role || std::mem::replace(&mut slot.cancelled, true) {
            return Ok(());
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.9
        //# While there are legitimate uses for all messages, implementations SHOULD track cost of
        //# processing relative to progress and treat excessive quantities of any non-productive
        //# packets as indicative of an attack.
        if self.cancels.take(now) { Ok(()) } else { Err(StreamFault::Cancelled) }
    }

    fn raise_stream_credit(&mut self, key: StreamKey, limit: Offset) {
        let Some(half) = self.send_half_mut(key) else { return };
        if half.set_credit(limit) {
            self.slots[key.index()].dirty.remove(Dirty::STREAM_BLOCKED);
            self.sync(key.slot);
            self.update_blocked();
        }
    }

    /// The slot of a stream on which the peer may send; `None` if it is over.
    fn receiving(&mut self, id: StreamId, now: Instant) -> Result<Option<u32>, StreamFault> {
        let one_way = id.direction() == StreamDirection::Unidirectional;
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.4
        //# An endpoint that receives a RESET_STREAM frame for a send-only stream MUST terminate
        //# the connection with error STREAM_STATE_ERROR.
        if one_way && id.initiator() == self.role {
            return Err(StreamFault::StreamState);
        }
        self.find_or_open(id, now)
    }

    /// The key of a stream on which we may send; `None` if it is over.
    fn sending_to(&mut self, id: StreamId, now: Instant) -> Result<Option<StreamKey>, StreamFault> {
        let one_way = id.direction() == StreamDirection::Unidirectional;
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.5
        //# An endpoint that receives a STOP_SENDING frame for a receive-only stream MUST
        //# terminate the connection with error STREAM_STATE_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9000#section-19.10
        //# An endpoint that receives a MAX_STREAM_DATA frame for a receive-only stream MUST
        //# terminate the connection with error STREAM_STATE_ERROR.
        if one_way && id.initiator() != self.role {
            return Err(StreamFault::StreamState);
        }
        let slot = self.find_or_open(id, now)?;
        Ok(slot.map(|slot| StreamKey { slot, id }))
    }

    /// The key of a stream that can send; a stream that the peer may open but of which nothing
    /// came yet is opened. `None` if it cannot be, or is over.
    pub fn ensure_open(&mut self, id: StreamId, now: Instant) -> Option<StreamKey> {
        let key = self.sending_to(id, now).ok().flatten()?;
        self.send_half(key).map(|_| key)
    }

    /// Opens a stream of the peer on which it may send, if it is not open; false if it cannot be.
    pub fn ensure_receiving(&mut self, id: StreamId, now: Instant) -> bool {
        matches!(self.receiving(id, now), Ok(Some(_)))
    }

    /// The slot of a stream that was named. A new one of the peer's is opened, with all of its kind
    /// below it (<https://www.rfc-editor.org/rfc/rfc9000#section-3.2>).
    fn find_or_open(&mut self, id: StreamId, now: Instant) -> Result<Option<u32>, StreamFault> {
        let initiator: Role = id.initiator();
        let direction = id.direction();
        let space = self.space(initiator, direction);
        if id.index() >= space.index.opened() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.5
            //# Receiving a STOP_SENDING frame for a locally initiated stream that has not yet
            //# been created MUST be treated as a connection error of type STREAM_STATE_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.10
            //# Receiving a MAX_STREAM_DATA frame for a locally initiated stream that has not yet
            //# been created MUST be treated as a connection error of type STREAM_STATE_ERROR.
            if initiator == self.role {
                return Err(StreamFault::StreamState);
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-4.6
            //# An endpoint that receives a frame with a stream ID exceeding the limit it has sent
            //# MUST treat this as a connection error of type STREAM_LIMIT_ERROR; see Section 11
            //# for details on error handling.
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.11
            //# An endpoint MUST terminate a connection with an error of type STREAM_LIMIT_ERROR
            //# if a peer opens more streams than was permitted.
            if id.index() >= space.limit {
                return Err(StreamFault::StreamLimit);
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-3.2
            //# Before a stream is created, all streams of the same type with lower-numbered
            //# stream IDs MUST be created.
            let before = id.index() - space.index.opened();
            if before > MOST_OPENED {
                self.space_mut(initiator, direction).index.imply(before);
            }
            let opened = self.space(initiator, direction).index.opened();
            for _ in opened..=id.index() {
                let key = self.open_next(initiator, direction, now);
                self.events.push_back(StreamEvent::Opened(key.id));
            }
        }
        Ok(self.slot_of(id).or_else(|| self.open_implied(id, now)))
    }

    /// True if the sending half was reset and the peer may not know yet.
    pub fn is_resetting(&self, key: StreamKey) -> bool {
        self.slot(key).is_some_and(|slot| matches!(slot.send, SendState::Resetting { .. }))
    }
}

fn check_connection_credit(received: u64, growth: u64, limit: u64) -> Result<(), StreamFault> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
    //# A receiver MUST close the connection with an error of type FLOW_CONTROL_ERROR if the
    //# sender violates the advertised connection or stream data limits; see Section 11 for
    //# details on error handling.
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.9
    //# An endpoint MUST terminate a connection with an error of type FLOW_CONTROL_ERROR if it
    //# receives more data than the maximum data value that it has sent.
    if received.saturating_add(growth) > limit {
        return Err(StreamFault::FlowControl);
    }
    Ok(())
}
