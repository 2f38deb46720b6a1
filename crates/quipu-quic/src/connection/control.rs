//! Control frames that wait to be sent, those of streams excepted.

use std::collections::VecDeque;

use quipu_base::{Bytes, PathId};
use smallvec::SmallVec;

use crate::recovery::SentControl;
use crate::stream::ControlFrame;
use crate::wire::Frame;

/// A connection ID by path and sequence number.
pub(crate) type CidRef = (PathId, u64);

/// Control frames that wait. Values are taken when a frame is written, so the latest goes.
#[derive(Debug, Default)]
pub(crate) struct ControlQueue {
    pub(crate) handshake_done: bool,
    pub(crate) new_cids: VecDeque<CidRef>,
    pub(crate) retire_cids: VecDeque<CidRef>,
    /// Paths to abandon with the error code to tell.
    pub(crate) abandon: SmallVec<[(PathId, u64); 1]>,
    pub(crate) status: SmallVec<[PathId; 1]>,
    pub(crate) max_path_id: bool,
    pub(crate) return_paths: ReturnPathAdvice,
}

/// What we ask of the peer: on which path to acknowledge which.
#[derive(Debug, Default)]
pub(crate) struct ReturnPathAdvice {
    /// Number of the last statement; zero before the first.
    pub(crate) sequence: u64,
    /// The last statement: (data path, return path).
    pub(crate) pairs: Vec<(PathId, PathId)>,
    pub(crate) waits: bool,
}

impl ControlQueue {
    pub(crate) fn is_empty(&self) -> bool {
        !self.handshake_done
            && !self.max_path_id
            && !self.return_paths.waits
            && self.new_cids.is_empty()
            && self.retire_cids.is_empty()
            && self.abandon.is_empty()
            && self.status.is_empty()
    }

    /// A packet with this frame was lost: it waits again. Frames of other layers are not for here.
    pub(crate) fn requeue(
        &mut self,
        control: &SentControl,
        abandon_code: impl FnOnce(PathId) -> u64,
    ) {
        match *control {
            SentControl::HandshakeDone => self.handshake_done = true,
            SentControl::NewConnectionId { path, sequence } => {
                self.new_cids.push_front((path, sequence));
            }
            SentControl::RetireConnectionId { path, sequence } => {
                self.retire_cids.push_front((path, sequence));
            }
            SentControl::PathAbandon { path } => {
                if !self.abandon.iter().any(|(waiting, _)| *waiting == path) {
                    self.abandon.push((path, abandon_code(path)));
                }
            }
            SentControl::PathStatus { path } => self.tell_status(path),
            SentControl::MaxPathId => self.max_path_id = true,
            SentControl::ReturnPaths { sequence } => {
                self.return_paths.waits |= sequence == self.return_paths.sequence;
            }
            SentControl::Ack { .. }
            | SentControl::Crypto { .. }
            | SentControl::Stream(_)
            | SentControl::StreamFrame(_) => {}
        }
    }

    /// The status of a path is to be told.
    pub(crate) fn tell_status(&mut self, path: PathId) {
        if !self.status.contains(&path) {
            self.status.push(path);
        }
    }

    /// The peer is to acknowledge packets of the first path of each pair on the second.
    pub(crate) fn advise_return_paths(&mut self, pairs: impl Iterator<Item = (PathId, PathId)>) {
        let advice = &mut self.return_paths;
        advice.sequence += 1;
        advice.pairs.clear();
        advice.pairs.extend(pairs);
        advice.waits = true;
    }

    /// Forgets what concerns a path that is gone.
    pub(crate) fn forget_path(&mut self, path: PathId) {
        self.new_cids.retain(|(other, _)| *other != path);
        self.retire_cids.retain(|(other, _)| *other != path);
        self.status.retain(|other| *other != path);
    }
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
        queue.requeue(&first, |_| 0);
        assert!(queue.return_paths.waits);
        sent(&mut queue);
        queue.advise_return_paths([(PathId(0), PathId(0))].into_iter());
        let second = sent(&mut queue);
        queue.requeue(&first, |_| 0);
        assert!(queue.is_empty(), "it was overtaken");
        queue.requeue(&second, |_| 0);
        assert_eq!(queue.return_paths.pairs, [(PathId(0), PathId(0))]);
        assert!(queue.return_paths.waits);
    }
}
