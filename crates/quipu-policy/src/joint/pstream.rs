//! `pstream`: a stream is split over the paths when it begins, beside those already there.

use quipu_base::Bytes;
use smallvec::SmallVec;

use super::allotting::{Allotter, Cause, Effect, NO_LIMIT};
use super::lanes::Lanes;
use super::path_queues::{PathQueues, weight_of};
use super::waterfill::{Pipe, fill};
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;
use crate::stream::{Turn, remaining};

/// The algorithm of `pstream`: each stream, when it becomes ready, is split over the paths so that it
/// arrives as early as can be, given its share of each path.
///
/// The share of stream `s` on path `j` is `w_s/(w_s + Σ w)` over the streams with bytes left there; of
/// streams that begin together, the more urgent, then the heavier, then the earlier chooses first. Its
/// bytes are split by water-filling ([`fill`]) on half the round-trip time, with its share of the
/// path's bandwidth for rate. Within a path, streams share by weight over the dependency tree.
///
/// An allotment stands until it is used up, or paths come or leave. What was not known when it was
/// made is split when the rest is sent; without a size told, what is buffered counts. While a path
/// has no sample, streams are not limited.
///
/// Source: PStream (Shi et al., ICCCN 2020), in the code of `ytxing/mpquic-hbes`; confidence high for
/// the allotment. Ours: all is split anew when paths come or leave; an open path that was left idle
/// for as long as an acknowledgement may take on the path waited for gets the streams that have
/// nothing on open paths. The code leaves out the step that closes the gap between delays for all
/// later paths once two delays are equal, which is not copied.
#[derive(Clone, Default)]
pub struct PStream {
    queues: PathQueues,
}

impl PStream {
    /// The algorithm, which knows no stream.
    pub fn new() -> Self {
        PStream::default()
    }

    /// Bytes that a stream has left, by path.
    pub fn left(&self, stream: StreamKey) -> &[(PathKey, Bytes)] {
        self.queues.left(stream)
    }

    fn place(&mut self, stream: StreamKey, lanes: &Lanes, view: &View<'_>) {
        let Some(it) = view.streams.get(stream) else { return };
        let size = remaining(it);
        let paths = lanes.lanes.iter().map(|lane| lane.path);
        if !lanes.limited || size.is_zero() {
            self.queues.place(stream, paths.map(|path| (path, NO_LIMIT)), view);
            return;
        }
        let weight = u64::from(weight_of(it, view));
        let pipes: SmallVec<[Pipe; 8]> = lanes
            .lanes
            .iter()
            .map(|lane| lane.pipe.shared(weight, self.queues.weight_on(lane.path)))
            .collect();
        let (shares, _) = fill(size, &pipes);
        self.queues.place(stream, paths.zip(shares), view);
    }
}

impl Allotter for PStream {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        self.queues.on_event(event, view)
    }

    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>) {
        match cause {
            Cause::Batch | Cause::Streams => {}
            Cause::Paths => self.queues.take_back_all(view),
            Cause::Stuck => self.queues.take_back_off(lanes, view),
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
