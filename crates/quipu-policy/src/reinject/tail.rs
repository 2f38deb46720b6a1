//! Copies of the tail of a finished stream.

use quipu_base::Bytes;

use super::sent_log::SentLog;
use crate::key::{PathKey, Span, StreamKey};
use crate::path::eligible;
use crate::reinject::Reinject;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, PathView, View};

/// The copies of `dems`: a path with nothing else to send carries what another one sent last.
///
/// Of a stream that was written and sent to its end, the bytes nearest to where its two ends met are
/// those sent last. A path that is open while nothing else would go copies them from the other paths,
/// the last ones first, up to a share of the stream's bytes.
///
/// Source: Guo et al. (DEMS), MobiCom 2017, known by summaries; its adaptive limit is not known, the
/// fixed share is our choice. Confidence medium.
#[derive(Clone, Debug)]
pub struct TailCopies {
    /// Most bytes copied of a stream, as a share of its length.
    most: f64,
    log: SentLog,
    /// Bytes copied, by stream slot.
    copied: Vec<Option<(StreamKey, Bytes)>>,
}

impl TailCopies {
    /// At most a tenth of a stream.
    pub const MOST: f64 = 0.1;

    /// Copies at most that share of each stream, 0 to 1.
    pub fn new(most: f64) -> Self {
        TailCopies { most, log: SentLog::default(), copied: Vec::new() }
    }

    fn copied_of(&self, stream: StreamKey) -> Bytes {
        let entry = self.copied.get(stream.index()).copied().flatten();
        entry.filter(|(key, _)| *key == stream).map_or(Bytes::ZERO, |(_, bytes)| bytes)
    }

    /// What may be copied of what was sent last on `path`. Passes over what may never be.
    fn tail(&mut self, path: PathKey, view: &View<'_>) -> Option<(StreamKey, Span)> {
        while let Some(newest) = self.log.newest(path, view.streams) {
            let stream = view.streams.get(newest.stream)?;
            if !stream.fin || !stream.sendable.is_zero() || stream.high_sent < stream.written {
                return None;
            }
            let most = Bytes((stream.written.0 as f64 * self.most) as u64);
            let left = most.saturating_sub(self.copied_of(newest.stream));
            if !left.is_zero() {
                let len = newest.span.len().min(left);
                return Some((newest.stream, Span::from_len(newest.span.start, len)));
            }
            self.log.drop_newest(path);
        }
        None
    }

    fn charge(&mut self, stream: StreamKey, bytes: Bytes) {
        let bytes = self.copied_of(stream) + bytes;
        if self.copied.len() <= stream.index() {
            self.copied.resize(stream.index() + 1, None);
        }
        if let Some(entry) = self.copied.get_mut(stream.index()) {
            *entry = Some((stream, bytes));
        }
    }
}

impl Default for TailCopies {
    fn default() -> Self {
        TailCopies::new(Self::MOST)
    }
}

impl Reinject for TailCopies {
    fn next(
        &mut self,
        instead_of: Option<StreamKey>,
        view: &View<'_>,
        _notes: &mut Notes,
    ) -> Option<(PathKey, StreamKey, Span)> {
        if instead_of.is_some() {
            return None;
        }
        let rank = |path: &PathView| (path.srtt.is_none(), path.srtt, path.key);
        let open = |avoid: PathKey| {
            eligible(view.paths)
                .filter(move |path| path.key != avoid && path.is_open(view.now))
                .min_by_key(|path| rank(path))
        };
        view.paths.iter().find_map(|from| {
            let to = open(from.key)?;
            self.tail(from.key, view).map(|(stream, span)| (to.key, stream, span))
        })
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::Sent(packet) => {
                packet.pieces.iter().for_each(|piece| self.log.push(&packet, piece));
            }
            Event::Placed { piece, .. } if piece.kind == Kind::Copy => {
                self.log.copied(piece.stream, piece.span);
                self.charge(piece.stream, piece.span.len());
            }
            Event::Acked(_) | Event::Lost(_) | Event::Requeued { .. } | Event::Closed(_) => {
                self.log.trim(view.streams);
            }
            Event::PathGone(path) => self.log.forget(path),
            _ => {}
        }
    }

    fn armed(&self) -> bool {
        !self.log.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reinject::testing::Scene;

    /// 26,400 of 50,000 bytes from the front on the first path, the rest from the back on the
    /// second.
    fn scene(finished: bool) -> Scene<TailCopies> {
        let mut scene = Scene::new(TailCopies::default(), &[20, 100]);
        for path in scene.paths.clone() {
            scene.world.set_path(path, |path| path.cwnd = Bytes(100_000));
        }
        if finished {
            scene.world.streams.finish(scene.stream);
        }
        for index in 0..22 {
            scene.send(0, index * 1_200, (index + 1) * 1_200, false);
        }
        for index in (22..41).rev() {
            scene.send(1, index * 1_200, (index + 1) * 1_200, false);
        }
        scene.send(1, 49_200, 50_000, false);
        scene
    }

    #[test]
    fn an_idle_path_copies_what_the_other_sent_last_up_to_a_tenth() {
        let mut scene = scene(true);
        scene.acknowledge(0, 0, 26_400);
        assert_eq!(scene.next(true), None, "something fresh would go");
        let mut copied = 0;
        let mut copies = Vec::new();
        while let Some((path, start, end)) = scene.next(false) {
            assert_eq!(path, 0);
            copies.push(start);
            copied += end - start;
            scene.send(0, start, end, true);
        }
        assert_eq!(copied, 5_000, "a tenth");
        assert_eq!(copies, [49_200, 26_400, 27_600, 28_800, 30_000], "the last sent first");
    }

    #[test]
    fn a_stream_that_is_not_finished_has_no_tail() {
        let mut scene = scene(false);
        assert_eq!(scene.next(false), None);
        assert!(scene.policy.armed());
    }

    #[test]
    fn what_is_acknowledged_or_pending_again_needs_no_copy() {
        let mut scene = scene(true);
        scene.acknowledge(0, 0, 26_400);
        scene.acknowledge(1, 26_400, 28_800);
        scene.acknowledge(1, 49_200, 50_000);
        assert_eq!(scene.next(false), Some((0, 28_800, 30_000)));
        scene.lose(1, 28_800, 30_000);
        assert_eq!(scene.next(false), None, "something is pending");
        scene.acknowledge(1, 28_800, 49_200);
        assert!(!scene.policy.armed());
    }

    #[test]
    fn a_path_that_is_gone_takes_its_tail_along() {
        let mut scene = scene(true);
        scene.acknowledge(0, 0, 26_400);
        let gone = scene.paths[1];
        scene.world.paths.remove(gone);
        scene.tell(Event::PathGone(gone));
        assert_eq!(scene.next(false), None);
        assert!(!scene.policy.armed());
    }
}
