//! `fstream`: a stream as a whole goes to the path on which it would arrive first.

use quipu_base::Bytes;

use super::allotting::{Allotter, Cause, Effect, NO_LIMIT};
use super::lanes::Lanes;
use super::path_queues::{PathQueues, weight_of};
use super::waterfill::{Pipe, best_single};
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;
use crate::stream::{Turn, remaining};
use smallvec::SmallVec;

/// The algorithm of `fstream`: each stream, when it becomes ready, is bound to one path.
///
/// It takes the path of least `size/(share·bandwidth) + srtt/2`, where its share on a path is
/// `w_s/(w_s + Σ w)` over the unfinished streams bound to that path; of streams that begin together,
/// the more urgent, then the heavier, then the earlier chooses first. Within a path, streams share by
/// weight over the dependency tree. A stream leaves its path only when that leaves, is suspected or
/// does not answer. With fewer streams than paths, paths stay idle; that is the algorithm's known
/// weakness.
///
/// While a path has no sample, streams that begin are not bound.
///
/// Source: FStream (Shi, Wang, Zhang, Liu, ICPADS 2019), known from the code of its successor PStream
/// and the text of PW-PATS (Du et al., 2026); confidence medium. Ours: every usable path can be
/// chosen, not only those with window left at that instant; without a size told, what is buffered
/// counts; a path without an acknowledgement for as long as one may take, with nothing sent elsewhere
/// while another is open, counts as one that does not answer.
#[derive(Clone, Default)]
pub struct FStream {
    queues: PathQueues,
}

impl FStream {
    /// The algorithm, which knows no stream.
    pub fn new() -> Self {
        FStream::default()
    }

    /// The paths that a stream is bound to: one, or all while it is not bound.
    pub fn paths_of(&self, stream: StreamKey) -> impl Iterator<Item = PathKey> {
        self.queues.left(stream).iter().map(|&(path, _)| path)
    }

    fn place(&mut self, stream: StreamKey, lanes: &Lanes, view: &View<'_>) {
        let Some(it) = view.streams.get(stream) else { return };
        let paths = lanes.lanes.iter().map(|lane| lane.path);
        let weight = u64::from(weight_of(it, view));
        let shared: SmallVec<[Pipe; 8]> = lanes
            .lanes
            .iter()
            .map(|lane| lane.pipe.shared(weight, self.queues.weight_on(lane.path)))
            .collect();
        let best = if lanes.limited { best_single(remaining(it), &shared) } else { None };
        let shares = paths.enumerate().map(|(index, path)| {
            let bound = best.is_none_or(|best| best == index);
            (path, if bound { NO_LIMIT } else { Bytes::ZERO })
        });
        self.queues.place(stream, shares, view);
    }
}

impl Allotter for FStream {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        self.queues.on_event(event, view)
    }

    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>) {
        if cause >= Cause::Paths {
            self.queues.take_back_off(lanes, view);
            self.queues.take_back_unlimited(view);
        }
        let loose = self.queues.take_loose(view);
        for &stream in &loose {
            self.place(stream, lanes, view);
        }
        self.queues.recycle(loose);
    }

    fn next_on(&mut self, path: PathKey, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        self.queues.next_on(path, view, notes)
    }

    fn any_ready(&mut self, view: &View<'_>) -> Option<StreamKey> {
        self.queues.any_ready(view)
    }
}

#[cfg(test)]
mod tests;
