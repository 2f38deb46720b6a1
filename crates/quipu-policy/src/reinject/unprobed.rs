//! Copies while paths are unknown.

use std::collections::VecDeque;

use crate::key::{PathKey, PathSet, Span, StreamKey};
use crate::path::eligible;
use crate::reinject::Reinject;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{SentPacket, View};

/// Most frames that wait for their copy; our choice.
const MOST_FRAMES: usize = 1_024;

/// The copies of `lowrtt`: what leaves on a path without a sample of its round-trip time goes on
/// another path too.
///
/// When a packet of stream data left on a path that never had a sample, and another open path has
/// sent fewer packets, the packet's bytes are copied to that one, fewest packets first; before
/// anything fresh. A copy counts as such a packet, so with several unknown paths bytes go on each of
/// them. A path that forgets its samples later is not unknown again, our repair: in the source the
/// copies begin anew.
///
/// Source: mp-quic (De Coninck and Bonaventure, CoNEXT 2017), read in code; there the copy takes the
/// path that the scheduler picks next, here the one that was found to have sent less. Confidence high.
#[derive(Clone, Debug, Default)]
pub struct UnprobedCopies {
    /// Paths that had a sample.
    probed: PathSet,
    waiting: VecDeque<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    on: PathKey,
    stream: StreamKey,
    span: Span,
}

impl UnprobedCopies {
    /// The policy.
    pub fn new() -> Self {
        UnprobedCopies::default()
    }

    fn left(&mut self, packet: &SentPacket<'_>, view: &View<'_>) {
        let Some(path) = view.paths.get(packet.path) else { return };
        if path.srtt.is_some() || self.probed.contains(packet.path) {
            return;
        }
        let other = eligible(view.paths)
            .filter(|other| other.is_open(view.now) && other.packets_sent < path.packets_sent)
            .min_by_key(|other| (other.packets_sent, other.key));
        let Some(other) = other else { return };
        for piece in packet.pieces.iter().filter(|piece| !piece.span.is_empty()) {
            if self.waiting.len() < MOST_FRAMES {
                let (stream, span) = (piece.stream, piece.span);
                self.waiting.push_back(Waiting { on: other.key, stream, span });
            }
        }
    }

    /// Drops what needs no copy any more from the front, and gives the first that does.
    fn first(&mut self, view: &View<'_>) -> Option<Waiting> {
        while let Some(front) = self.waiting.front_mut() {
            let found = view
                .streams
                .unacked_from(front.stream, front.span.start)
                .and_then(|found| found.intersection(front.span));
            match found {
                Some(found) if view.paths.get(front.on).is_some() => {
                    front.span.start = found.start;
                    return Some(Waiting { span: found, ..*front });
                }
                _ => self.waiting.pop_front(),
            };
        }
        None
    }
}

impl Reinject for UnprobedCopies {
    fn next(
        &mut self,
        _instead_of: Option<StreamKey>,
        view: &View<'_>,
        _notes: &mut Notes,
    ) -> Option<(PathKey, StreamKey, Span)> {
        let first = self.first(view)?;
        let mut eligible = eligible(view.paths);
        let open = eligible.any(|path| path.key == first.on && path.is_open(view.now));
        open.then_some((first.on, first.stream, first.span))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match *event {
            Event::PathUp(path) => self.probed = self.probed.without(path),
            Event::PathMeasured(path)
                if view.paths.get(path).is_some_and(|path| path.srtt.is_some()) =>
            {
                self.probed = self.probed.with(path);
            }
            Event::Placed { path, piece } => {
                if let Some(front) = self.waiting.front_mut()
                    && (front.on, front.stream) == (path, piece.stream)
                    && front.span.contains(piece.span.start)
                {
                    front.span = Span::new(piece.span.end, front.span.end);
                    if front.span.is_empty() {
                        self.waiting.pop_front();
                    }
                }
            }
            Event::Sent(packet) => self.left(&packet, view),
            Event::Acked(_) | Event::Lost(_) | Event::Closed(_) | Event::PathGone(_) => {
                self.first(view);
            }
            _ => {}
        }
    }

    fn armed(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reinject::testing::Scene;
    use quipu_base::Duration;

    /// Paths of which only the last `probed` have samples.
    fn scene(paths: usize, probed: usize) -> Scene<UnprobedCopies> {
        let mut scene = Scene::new(UnprobedCopies::new(), &vec![20; paths]);
        for path in &scene.paths[..paths - probed] {
            scene.world.set_path(*path, |path| path.srtt = None);
        }
        scene
    }

    #[test]
    fn a_packet_on_an_unknown_path_is_copied_to_one_that_sent_less() {
        let mut scene = scene(2, 0);
        scene.send(0, 0, 1_200, false);
        assert_eq!(scene.next(true), Some((1, 0, 1_200)), "before anything fresh");
        scene.send(1, 0, 1_200, true);
        assert_eq!(scene.next(true), None, "both sent one");
        assert!(!scene.policy.armed());
        scene.send(1, 1_200, 2_400, false);
        assert_eq!(scene.next(true), Some((0, 1_200, 2_400)));
    }

    #[test]
    fn with_three_unknown_paths_bytes_go_on_each() {
        let mut scene = scene(3, 0);
        scene.send(0, 0, 1_200, false);
        assert_eq!(scene.next(true), Some((1, 0, 1_200)));
        scene.send(1, 0, 1_200, true);
        assert_eq!(scene.next(true), Some((2, 0, 1_200)));
        scene.send(2, 0, 1_200, true);
        assert_eq!(scene.next(true), None);
    }

    #[test]
    fn copies_end_with_the_first_sample_and_do_not_begin_again() {
        let mut scene = scene(2, 0);
        let path = scene.paths[0];
        scene.world.set_path(path, |path| path.srtt = Some(Duration::from_millis(20)));
        scene.tell(Event::PathMeasured(path));
        scene.send(0, 0, 1_200, false);
        assert_eq!(scene.next(true), None);
        scene.world.set_path(path, |path| path.srtt = None);
        scene.tell(Event::PathMeasured(path));
        scene.send(0, 1_200, 2_400, false);
        assert_eq!(scene.next(true), None, "samples forgotten");
        scene.tell(Event::PathUp(path));
        scene.send(0, 2_400, 3_600, false);
        assert_eq!(scene.next(true), Some((1, 2_400, 3_600)), "another path in that slot");
    }

    #[test]
    fn what_is_cut_or_acknowledged_is_copied_no_more_than_needed() {
        let mut scene = scene(2, 1);
        scene.send(0, 0, 1_200, false);
        scene.send(1, 0, 700, true);
        assert_eq!(scene.next(true), Some((1, 700, 1_200)));
        scene.acknowledge(0, 0, 1_200);
        assert_eq!(scene.next(true), None);
        assert!(!scene.policy.armed());
    }

    #[test]
    fn a_copy_waits_for_its_path() {
        let mut scene = scene(2, 0);
        scene.send(0, 0, 1_200, false);
        let other = scene.paths[1];
        scene.world.set_path(other, |path| path.in_flight = path.cwnd);
        assert_eq!(scene.next(true), None);
        assert!(scene.policy.armed());
        scene.world.paths.remove(other);
        scene.tell(Event::PathGone(other));
        assert!(!scene.policy.armed());
    }
}
