//! `fstream` and `pstream`: the paths of a stream are settled when it begins.

use quipu_base::Bytes;
use smallvec::SmallVec;

use super::allotting::{Allotter, Cause, Effect, NO_LIMIT};
use super::lanes::{Lane, Lanes};
use super::path_queues::{PathQueues, weight_of};
use super::waterfill::{Pipe, Shares, best_single, fill};
use crate::key::{PathKey, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::View;
use crate::stream::{Turn, remaining};

/// The algorithms that allot a stream's bytes to paths once, when it becomes ready:
/// [`fstream`](Self::fstream) and [`pstream`](Self::pstream).
///
/// Both count with the stream's share of each path, `w_s/(w_s + Σ w)` over the streams with something
/// left there; of streams that begin together, the more urgent, then the heavier, then the earlier
/// chooses first. Within a path, streams share by weight over the dependency tree. Without a size
/// told, what is buffered counts. While a path has no sample, streams that begin are not limited.
#[derive(Clone)]
pub struct AtStart {
    rule: Rule,
    queues: PathQueues,
}

/// How a stream is allotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// All of it to one path: `fstream`.
    One,
    /// Split over the paths: `pstream`.
    Split,
}

impl Rule {
    /// How many of `size` bytes go on each of the pipes; `None`: there is no limit.
    fn shares(self, size: Bytes, pipes: &[Pipe]) -> Option<Shares> {
        match self {
            Rule::One => {
                let best = best_single(size, pipes)?;
                let share = |index| if index == best { NO_LIMIT } else { Bytes::ZERO };
                Some((0..pipes.len()).map(share).collect())
            }
            Rule::Split if size.is_zero() => None,
            Rule::Split => Some(fill(size, pipes).0),
        }
    }
}

impl AtStart {
    /// The algorithm of `fstream`: each stream, when it becomes ready, is bound to one path.
    ///
    /// It takes the path of least `size/(share·bandwidth) + srtt/2`. A stream leaves its path only when
    /// that leaves, is suspected or does not answer. With fewer streams than paths, paths stay idle;
    /// that is the algorithm's known weakness. While a path has no sample, streams that begin are not
    /// bound.
    ///
    /// Source: FStream (Shi, Wang, Zhang, Liu, ICPADS 2019), known from the code of its successor
    /// PStream and the text of PW-PATS (Du et al., 2026); confidence medium. Ours: every usable path
    /// can be chosen, not only those with window left at that instant; without a size told, what is
    /// buffered counts; a path without an acknowledgement for as long as one may take, with nothing
    /// sent elsewhere while another is open, counts as one that does not answer.
    pub fn fstream() -> Self {
        AtStart { rule: Rule::One, queues: PathQueues::default() }
    }

    /// The algorithm of `pstream`: each stream, when it becomes ready, is split over the paths so that
    /// it arrives as early as can be, given its share of each path.
    ///
    /// Its bytes are split by water-filling ([`fill`]) on half the round-trip time, with its share of
    /// the path's bandwidth for rate. An allotment stands until it is used up, or paths come or leave.
    /// What was not known when it was made is split when the rest is sent.
    ///
    /// Source: PStream (Shi et al., ICCCN 2020), in the code of `ytxing/mpquic-hbes`; confidence high
    /// for the allotment. Ours: all is split anew when paths come or leave; an open path that was left
    /// idle for as long as an acknowledgement may take on the path waited for gets the streams that
    /// have nothing on open paths. The code leaves out the step that closes the gap between delays for
    /// all later paths once two delays are equal, which is not copied.
    pub fn pstream() -> Self {
        AtStart { rule: Rule::Split, queues: PathQueues::default() }
    }

    /// Bytes that a stream has left, by path; without a limit where it was given none.
    pub fn left(&self, stream: StreamKey) -> &[(PathKey, Bytes)] {
        self.queues.left(stream)
    }

    fn place(&mut self, stream: StreamKey, lanes: &Lanes, view: &View<'_>) {
        let Some(it) = view.streams.get(stream) else { return };
        let shares = if lanes.limited {
            let weight = u64::from(weight_of(it, view));
            let share_of = |lane: &Lane| lane.pipe.shared(weight, self.queues.weight_on(lane.path));
            let pipes: SmallVec<[Pipe; 8]> = lanes.lanes.iter().map(share_of).collect();
            self.rule.shares(remaining(it), &pipes)
        } else {
            None
        };
        let allotted = lanes.lanes.iter().enumerate().map(|(index, lane)| {
            (lane.path, shares.as_ref().map_or(NO_LIMIT, |shares| shares[index]))
        });
        self.queues.place(stream, allotted, view);
    }
}

impl Allotter for AtStart {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect {
        self.queues.on_event(event, view)
    }

    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>) {
        match (self.rule, cause) {
            (_, Cause::Batch | Cause::Streams) => {}
            (Rule::Split, Cause::Paths) => self.queues.take_back_all(view),
            (Rule::Split, Cause::Stuck) => self.queues.take_back_off(lanes, view),
            (Rule::One, Cause::Paths | Cause::Stuck) => {
                self.queues.take_back_off(lanes, view);
                self.queues.take_back_unlimited(view);
            }
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
mod tests {
    mod fstream;
    mod pstream;
}
