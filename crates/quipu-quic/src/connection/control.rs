//! Control frames that wait to be sent, those of streams excepted.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Bytes, PathId};
use smallvec::SmallVec;

use super::cids::ConnectionIds;
use super::packet::PacketBuilder;
use super::plan::PathPlan;
use crate::recovery::SentControl;
use crate::stream::ControlFrame;
use crate::wire::Frame;
use crate::wire::frame::{NewConnectionId, write_return_paths};

/// A connection ID by path and sequence number.
type CidRef = (PathId, u64);

/// Control frames that wait. Values are taken when a frame is written, so the latest goes.
#[derive(Debug, Default)]
pub(super) struct ControlQueue {
    handshake_done: bool,
    tokens: VecDeque<Arc<[u8]>>,
    new_cids: VecDeque<CidRef>,
    retire_cids: VecDeque<CidRef>,
    /// Paths to abandon with the error code to tell.
    abandon: SmallVec<[(PathId, u64); 1]>,
    status: SmallVec<[PathId; 1]>,
    max_path_id: bool,
    return_paths: ReturnPathAdvice,
    /// Connection IDs of the peer that wait to be retired, or whose retirement it has not
    /// acknowledged.
    retiring: usize,
    blocked: Blocked,
}

/// PATHS_BLOCKED and PATH_CIDS_BLOCKED, each told once for the same state.
#[derive(Debug, Default)]
struct Blocked {
    /// The maximum that was told last, and whether it still waits to be sent.
    paths: Option<(PathId, bool)>,
    /// The path and the next sequence number that were told last, and whether they still wait.
    cids: Option<(PathId, u64, bool)>,
}

/// Where the values of waiting frames are taken from.
pub(super) struct Values<'a> {
    /// Frames of connection IDs name their path.
    pub(super) multipath: bool,
    pub(super) plan: &'a mut PathPlan,
    pub(super) ids: &'a mut ConnectionIds,
}

/// What we ask of the peer: on which path to acknowledge which.
#[derive(Debug, Default)]
struct ReturnPathAdvice {
    /// Number of the last statement; zero before the first.
    sequence: u64,
    /// The last statement: (data path, return path).
    pairs: Vec<(PathId, PathId)>,
    waits: bool,
}

impl ControlQueue {
    pub(super) fn is_empty(&self) -> bool {
        !self.handshake_done
            && self.tokens.is_empty()
            && !self.max_path_id
            && !self.return_paths.waits
            && self.new_cids.is_empty()
            && self.retire_cids.is_empty()
            && self.abandon.is_empty()
            && self.status.is_empty()
            && !self.blocked.waits()
    }

    /// A packet with this frame was lost: it waits again. Frames of other layers are not for here.
    /// `is_over`: whether either end gave a path up.
    pub(super) fn requeue(&mut self, control: &SentControl, is_over: impl FnOnce(PathId) -> bool) {
        match *control {
            SentControl::NewToken(ref token) => self.tokens.push_front(Arc::clone(token)),
            // https://www.rfc-editor.org/rfc/rfc9000#section-13.3
            //# The HANDSHAKE_DONE frame MUST be retransmitted until it is acknowledged.
            SentControl::HandshakeDone => self.handshake_done = true,
            SentControl::NewConnectionId { path, sequence } => {
                self.new_cids.push_front((path, sequence));
            }
            SentControl::RetireConnectionId { path, sequence } => {
                if is_over(path) {
                    self.retiring = self.retiring.saturating_sub(1);
                } else {
                    self.retire_cids.push_front((path, sequence));
                }
            }
            // https://www.rfc-editor.org/rfc/rfc10069#section-4.2
            //# If a packet containing a PATH_ABANDON frame is considered lost, the peer SHOULD
            //# repeat it.
            SentControl::PathAbandon { path, code } => {
                if !self.abandon.iter().any(|(waiting, _)| *waiting == path) {
                    self.abandon.push((path, code));
                }
            }
            // https://www.rfc-editor.org/rfc/rfc10069#section-4.3
            //# If a packet containing a PATH_STATUS_BACKUP or PATH_STATUS_AVAILABLE frame is
            //# considered lost, the peer SHOULD resend the frame only if it contains the last
            //# status sent for that path -- as indicated by the sequence number.
            SentControl::PathStatus { path } => self.tell_status(path),
            // https://www.rfc-editor.org/rfc/rfc10069#section-4.6
            //# MAX_PATH_ID frames are ack-eliciting and SHOULD be retransmitted when lost and no
            //# more recent MAX_PATH_ID frame has been sent in the meantime.
            SentControl::MaxPathId => self.max_path_id = true,
            SentControl::ReturnPaths { sequence } => {
                self.return_paths.waits |= sequence == self.return_paths.sequence;
            }
            SentControl::Ack { .. }
            | SentControl::Ping
            | SentControl::AckFrequency { .. }
            | SentControl::Datagram(_)
            | SentControl::Crypto { .. }
            | SentControl::Stream(_)
            | SentControl::StreamFrame(_) => {}
        }
    }

    /// The peer gets a token for a later connection.
    pub(super) fn tell_token(&mut self, token: Arc<[u8]>) {
        self.tokens.push_back(token);
    }

    /// The status of a path is to be told.
    pub(super) fn tell_status(&mut self, path: PathId) {
        if !self.status.contains(&path) {
            self.status.push(path);
        }
    }

    /// The peer is to acknowledge packets of the first path of each pair on the second.
    pub(super) fn advise_return_paths(&mut self, pairs: impl Iterator<Item = (PathId, PathId)>) {
        let advice = &mut self.return_paths;
        advice.sequence += 1;
        advice.pairs.clear();
        advice.pairs.extend(pairs);
        advice.waits = true;
    }

    /// The handshake is confirmed.
    pub(super) fn tell_handshake_done(&mut self) {
        self.handshake_done = true;
    }

    /// A path is abandoned with that error code.
    pub(super) fn tell_abandoned(&mut self, path: PathId, code: u64) {
        self.abandon.push((path, code));
    }

    /// The peer may use more path identifiers.
    pub(super) fn tell_max_path_id(&mut self) {
        self.max_path_id = true;
    }

    /// A connection ID of ours was made.
    pub(super) fn tell_new_cid(&mut self, path: PathId, sequence: u64) {
        self.new_cids.push_back((path, sequence));
    }

    /// We would open a path, but the peer allows identifiers up to `maximum` only.
    pub(super) fn tell_paths_blocked(&mut self, maximum: PathId) {
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.7: telling it again is of no use.
        if self.blocked.paths.is_none_or(|(told, _)| told != maximum) {
            self.blocked.paths = Some((maximum, true));
        }
    }

    /// We would use another connection ID on `path`, but the peer has issued none; `next`: the
    /// sequence number of the next.
    pub(super) fn tell_cids_blocked(&mut self, path: PathId, next: u64) {
        if self.blocked.cids.is_none_or(|(told, at, _)| (told, at) != (path, next)) {
            self.blocked.cids = Some((path, next, true));
        }
    }

    /// Connection IDs of the peer are used no more: of how many it is not known to have been told.
    pub(super) fn retire_cids(&mut self, path: PathId, sequences: &[u64]) -> usize {
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# An endpoint MUST NOT forget a connection ID without retiring it, though it MAY choose
        //# to treat having connection IDs in need of retirement that exceed this limit as a
        //# connection error of type CONNECTION_ID_LIMIT_ERROR.
        self.retire_cids.extend(sequences.iter().map(|&sequence| (path, sequence)));
        self.retiring += sequences.len();
        self.retiring
    }

    /// The peer knows that one of its connection IDs is used no more.
    pub(super) fn on_retirement_acked(&mut self) {
        self.retiring = self.retiring.saturating_sub(1);
    }

    /// Forgets what concerns a path that either end gave up.
    pub(super) fn forget_path(&mut self, path: PathId) {
        self.new_cids.retain(|(other, _)| *other != path);
        let waiting = self.retire_cids.len();
        self.retire_cids.retain(|(other, _)| *other != path);
        self.retiring = self.retiring.saturating_sub(waiting - self.retire_cids.len());
        self.status.retain(|other| *other != path);
    }

    /// Writes what waits, as much as fits: what is bound to nothing first, connection IDs last.
    pub(super) fn write(&mut self, packet: &mut PacketBuilder<'_>, values: Values<'_>) {
        if self.handshake_done
            && packet.write_control(SentControl::HandshakeDone, |writer| {
                Frame::HandshakeDone.write(writer)
            })
        {
            self.handshake_done = false;
        }
        while let Some(token) = self.tokens.front() {
            let control = SentControl::NewToken(Arc::clone(token));
            if !packet.write_control(control, |writer| Frame::NewToken { token }.write(writer)) {
                break;
            }
            self.tokens.pop_front();
        }
        while let Some(&(path, error_code)) = self.abandon.first() {
            let frame = Frame::PathAbandon { path, error_code };
            let control = SentControl::PathAbandon { path, code: error_code };
            if !packet.write_control(control, |writer| frame.write(writer)) {
                return;
            }
            self.abandon.remove(0);
        }
        if self.max_path_id {
            let frame = Frame::MaxPathId { maximum: values.plan.granted() };
            if !packet.write_control(SentControl::MaxPathId, |writer| frame.write(writer)) {
                return;
            }
            self.max_path_id = false;
            values.plan.on_granted_told();
        }
        if self.blocked.waits() && !self.blocked.write(packet) {
            return;
        }
        if self.return_paths.waits {
            let advice = &self.return_paths;
            let control = SentControl::ReturnPaths { sequence: advice.sequence };
            if !packet.write_control(control, |writer| {
                write_return_paths(writer, advice.sequence, &advice.pairs)
            }) {
                return;
            }
            self.return_paths.waits = false;
        }
        while let Some(&path) = self.status.first() {
            if let Some(frame) = status_frame(values.plan, path) {
                let control = SentControl::PathStatus { path };
                if !packet.write_control(control, |writer| frame.write(writer)) {
                    return;
                }
            }
            self.status.remove(0);
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2
        //# Endpoints SHOULD also use PATH_NEW_CONNECTION_ID and PATH_RETIRE_CONNECTION_ID for the
        //# initial path with path ID 0.
        let named = |path: PathId| (values.multipath || path != PathId::ZERO).then_some(path);
        while let Some(&(path, sequence)) = self.new_cids.front() {
            if let Some((id, reset_token)) = values.ids.issued(path, sequence) {
                let frame = Frame::NewConnectionId(NewConnectionId {
                    path: named(path),
                    sequence,
                    // https://www.rfc-editor.org/rfc/rfc9000#section-19.15
                    //# The value in the Retire Prior To field MUST be less than or equal to the
                    //# value in the Sequence Number field.
                    retire_prior_to: 0,
                    id,
                    reset_token,
                });
                let control = SentControl::NewConnectionId { path, sequence };
                if !packet.write_control(control, |writer| frame.write(writer)) {
                    return;
                }
                values.ids.on_told(path, sequence);
            }
            self.new_cids.pop_front();
        }
        // Those of all paths are issued at once; after that, hardly any is.
        if self.new_cids.capacity() > self.new_cids.len() {
            self.new_cids.shrink_to_fit();
        }
        while let Some(&(path, sequence)) = self.retire_cids.front() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.16
            //# The sequence number specified in a RETIRE_CONNECTION_ID frame MUST NOT refer to
            //# the Destination Connection ID field of the packet in which the frame is contained.
            let frame = Frame::RetireConnectionId { path: named(path), sequence };
            let control = SentControl::RetireConnectionId { path, sequence };
            if !packet.write_control(control, |writer| frame.write(writer)) {
                return;
            }
            self.retire_cids.pop_front();
        }
    }
}

impl Blocked {
    fn waits(&self) -> bool {
        self.paths.is_some_and(|(_, waits)| waits) || self.cids.is_some_and(|(.., waits)| waits)
    }

    /// Writes what waits; `false` if it does not fit. They are not told again if they are lost:
    /// <https://www.rfc-editor.org/rfc/rfc10069#section-4.7> leaves that open.
    fn write(&mut self, packet: &mut PacketBuilder<'_>) -> bool {
        if let Some((maximum, waits @ true)) = &mut self.paths {
            let frame = Frame::PathsBlocked { maximum: *maximum };
            *waits = !packet.write_eliciting(|writer| frame.write(writer));
        }
        if let Some((path, next_sequence, waits @ true)) = &mut self.cids {
            let frame = Frame::PathCidsBlocked { path: *path, next_sequence: *next_sequence };
            *waits = !packet.write_eliciting(|writer| frame.write(writer));
        }
        !self.waits()
    }
}

fn status_frame(plan: &PathPlan, path: PathId) -> Option<Frame<'static>> {
    let status = (!plan.is_over(path)).then(|| plan.status(path))?;
    let sequence = status.own_sequence;
    Some(match status.told() {
        quipu_policy::PathStatus::Available => Frame::PathStatusAvailable { path, sequence },
        quipu_policy::PathStatus::Backup => Frame::PathStatusBackup { path, sequence },
    })
}

/// A control frame of the stream layer as it goes on the wire.
pub(super) fn to_frame(control: &ControlFrame) -> Frame<'static> {
    match *control {
        ControlFrame::MaxData { limit } => Frame::MaxData { maximum: Bytes(limit) },
        ControlFrame::MaxStreamData { stream, limit } => {
            Frame::MaxStreamData { stream: stream.id, maximum: limit }
        }
        ControlFrame::MaxStreams { direction, limit } => {
            Frame::MaxStreams { direction, maximum: limit }
        }
        ControlFrame::DataBlocked { limit } => Frame::DataBlocked { limit: Bytes(limit) },
        ControlFrame::StreamDataBlocked { stream, limit } => {
            Frame::StreamDataBlocked { stream: stream.id, limit }
        }
        ControlFrame::StreamsBlocked { direction, limit } => {
            Frame::StreamsBlocked { direction, limit }
        }
        ControlFrame::ResetStream { stream, code, final_size } => {
            Frame::ResetStream { stream: stream.id, error_code: code, final_size }
        }
        ControlFrame::StopSending { stream, code } => {
            Frame::StopSending { stream: stream.id, error_code: code }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_advice_waits_again_unless_newer_advice_was_given() {
        let mut queue = ControlQueue::default();
        assert!(queue.is_empty());
        let sent = |queue: &mut ControlQueue| {
            queue.return_paths.waits = false;
            SentControl::ReturnPaths { sequence: queue.return_paths.sequence }
        };
        queue.advise_return_paths([(PathId(0), PathId(1))].into_iter());
        assert!(!queue.is_empty());
        let first = sent(&mut queue);
        queue.requeue(&first, |_| false);
        assert!(queue.return_paths.waits);
        sent(&mut queue);
        queue.advise_return_paths([(PathId(0), PathId(0))].into_iter());
        let second = sent(&mut queue);
        queue.requeue(&first, |_| false);
        assert!(queue.is_empty(), "it was overtaken");
        queue.requeue(&second, |_| false);
        assert_eq!(queue.return_paths.pairs, [(PathId(0), PathId(0))]);
        assert!(queue.return_paths.waits);
    }
}
