//! Control frames of streams: written with the latest values, repeated when lost.

use quipu_base::StreamDirection;
use quipu_policy::StreamKey;

use super::{RecvState, SendState, Streams};
use crate::stream::frames::{ControlFrame, Dirty};

impl Streams {
    /// True if a control frame may be waiting.
    pub fn has_frames(&self) -> bool {
        !self.frames.connection.is_empty() || !self.frames.slots.is_empty()
    }

    /// Takes the next control frame, if `fits` agrees that it fits the packet; else it stays.
    /// Frames of the connection come first, then those of streams, oldest change first.
    pub fn pop_frame(&mut self, fits: impl FnOnce(&ControlFrame) -> bool) -> Option<ControlFrame> {
        let (frame, flag, slot) = match self.next_of_connection() {
            Some((frame, flag)) => (frame, flag, None),
            None => {
                let (frame, flag, slot) = self.next_of_streams()?;
                (frame, flag, Some(slot))
            }
        };
        if !fits(&frame) {
            return None;
        }
        match slot {
            None => self.frames.connection.remove(flag),
            Some(number) => self.slots[number as usize].dirty.remove(flag),
        }
        match frame {
            ControlFrame::MaxData { .. } => {
                self.window.grant();
            }
            ControlFrame::MaxStreams { direction, limit } => {
                self.space_mut(self.role.peer(), direction).limit = limit;
            }
            ControlFrame::MaxStreamData { stream, .. } => {
                if let RecvState::Active(half) = &mut self.slots[stream.index()].recv {
                    half.grant();
                }
            }
            _ => {}
        }
        Some(frame)
    }

    /// True while credit holds back data, of the connection or of a stream.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.send_blocked || self.blocked_streams > 0
    }

    /// The peer is to hear once more what holds back data.
    pub fn repeat_blocked(&mut self) {
        if self.send_blocked {
            self.frames.connection.add(Dirty::DATA_BLOCKED);
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.blocked) {
            slot.mark(Dirty::STREAM_BLOCKED, &mut self.frames);
        }
    }

    fn next_of_connection(&self) -> Option<(ControlFrame, Dirty)> {
        let dirty = self.frames.connection;
        if dirty.has(Dirty::MAX_DATA) {
            let limit = self.window.next_limit();
            return Some((ControlFrame::MaxData { limit }, Dirty::MAX_DATA));
        }
        if dirty.has(Dirty::DATA_BLOCKED) {
            let limit = self.send_limit;
            return Some((ControlFrame::DataBlocked { limit }, Dirty::DATA_BLOCKED));
        }
        for direction in [StreamDirection::Bidirectional, StreamDirection::Unidirectional] {
            let flag = Dirty::max_streams(direction);
            if dirty.has(flag) {
                let closed = self.space(self.role.peer(), direction).closed;
                let limit = closed.saturating_add(self.at_once(direction)).min(super::MAX_STREAMS);
                return Some((ControlFrame::MaxStreams { direction, limit }, flag));
            }
            let flag = Dirty::streams_blocked(direction);
            if dirty.has(flag) {
                let limit = self.space(self.role, direction).limit;
                return Some((ControlFrame::StreamsBlocked { direction, limit }, flag));
            }
        }
        None
    }

    fn next_of_streams(&mut self) -> Option<(ControlFrame, Dirty, u32)> {
        while let Some(&number) = self.frames.slots.front() {
            let slot = &mut self.slots[number as usize];
            if let Some((frame, flag)) = slot.next_frame() {
                return Some((frame, flag, number));
            }
            slot.dirty = Dirty::default();
            slot.frame_queued = false;
            self.frames.slots.pop_front();
        }
        None
    }

    /// Notes that the packet with a control frame was acknowledged.
    pub fn on_frame_acked(&mut self, frame: &ControlFrame) {
        // Others need nothing: the peer's behaviour shows that it knows.
        let ControlFrame::ResetStream { stream, .. } = *frame else { return };
        if !self.is_resetting(stream) {
            return;
        }
        self.slots[stream.index()].send = SendState::Done;
        self.close_if_done(stream.slot);
    }

    /// Notes that the packet with a control frame was lost, or given up with its path: it waits
    /// again, with the values of then, unless a newer one left already or nobody needs it.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-13.3>
    pub fn requeue_frame(&mut self, frame: &ControlFrame) {
        match *frame {
            ControlFrame::MaxData { limit } => {
                if limit == self.window.limit() {
                    self.frames.connection.add(Dirty::MAX_DATA);
                }
            }
            ControlFrame::DataBlocked { limit } => {
                if self.send_blocked && limit == self.send_limit {
                    self.frames.connection.add(Dirty::DATA_BLOCKED);
                }
            }
            ControlFrame::MaxStreams { direction, limit } => {
                if limit == self.space(self.role.peer(), direction).limit {
                    self.frames.connection.add(Dirty::max_streams(direction));
                }
            }
            ControlFrame::StreamsBlocked { direction, limit } => {
                let space = self.space(self.role, direction);
                if space.refused && space.limit == limit {
                    self.frames.connection.add(Dirty::streams_blocked(direction));
                }
            }
            ControlFrame::MaxStreamData { stream, limit } => {
                let newest = matches!(self.recv_state(stream), Some(RecvState::Active(half))
                    if half.final_size().is_none() && !half.is_stopped()
                        && half.credit_end() == limit);
                self.mark_if(newest, stream, Dirty::MAX_STREAM_DATA);
            }
            ControlFrame::StreamDataBlocked { stream, limit } => {
                let blocked = self
                    .send_half(stream)
                    .is_some_and(|half| half.is_blocked() && half.credit_end() == limit);
                self.mark_if(blocked, stream, Dirty::STREAM_BLOCKED);
            }
            ControlFrame::ResetStream { stream, .. } => {
                self.mark_if(self.is_resetting(stream), stream, Dirty::RESET);
            }
            ControlFrame::StopSending { stream, .. } => {
                let waits = matches!(self.recv_state(stream), Some(RecvState::Active(half))
                    if half.is_stopped());
                self.mark_if(waits, stream, Dirty::STOP);
            }
        }
    }

    fn recv_state(&self, key: StreamKey) -> Option<&RecvState> {
        self.slot(key).map(|slot| &slot.recv)
    }

    fn mark_if(&mut self, condition: bool, key: StreamKey, flag: Dirty) {
        if condition && let Some(slot) = self.slots.get_mut(key.index()) {
            slot.mark(flag, &mut self.frames);
        }
    }
}

impl super::Slot {
    /// The next control frame of this stream, and the flag that asked for it.
    fn next_frame(&self) -> Option<(ControlFrame, Dirty)> {
        let (stream, dirty) = (self.key, self.dirty);
        if dirty.has(Dirty::RESET)
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# The content of a RESET_STREAM frame MUST NOT change when it is sent again.
            && let SendState::Resetting { code, final_size } = self.send
        {
            return Some((ControlFrame::ResetStream { stream, code, final_size }, Dirty::RESET));
        }
        if dirty.has(Dirty::STOP) {
            let code = self.stop_code;
            return Some((ControlFrame::StopSending { stream, code }, Dirty::STOP));
        }
        if dirty.has(Dirty::MAX_STREAM_DATA)
            && let RecvState::Active(half) = &self.recv
        {
            let limit = half.next_credit_end();
            return Some((ControlFrame::MaxStreamData { stream, limit }, Dirty::MAX_STREAM_DATA));
        }
        if dirty.has(Dirty::STREAM_BLOCKED)
            && let SendState::Active(half) = &self.send
        {
            let limit = half.credit_end();
            let frame = ControlFrame::StreamDataBlocked { stream, limit };
            return Some((frame, Dirty::STREAM_BLOCKED));
        }
        None
    }
}
