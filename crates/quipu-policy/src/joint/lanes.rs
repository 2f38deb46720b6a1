//! The paths as an allotment sees them: how late and how fast.

use quipu_base::{Bytes, Duration, Rate};

use smallvec::SmallVec;

use super::waterfill::Pipe;
use crate::key::PathKey;
use crate::path::{can_wait, eligible};
use crate::seam::view::{PathView, StreamView, View};

/// How late the first byte of a path counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DelayTerm {
    /// After a smoothed round-trip time: when it is acknowledged.
    #[default]
    Rtt,
    /// After half of it: when it arrives.
    Arrival,
}

/// How fast a path is taken to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bandwidth {
    /// Congestion window over smoothed round-trip time. Too little in slow start and while the
    /// application limits the path.
    #[default]
    Window,
    /// The measured delivery rate ([`PathView::rate`]); while there is none, as for the window.
    Rate,
}

/// How paths are estimated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimator {
    /// How late the first byte counts.
    pub delay: DelayTerm,
    /// How fast the others follow.
    pub bandwidth: Bandwidth,
}

/// A path that may be allotted bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Which path.
    pub path: PathKey,
    /// Its estimate; meaningless while the lanes are not [`limited`](Lanes::limited).
    pub pipe: Pipe,
}

/// The paths that may be allotted bytes, in order of path identifier.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    /// The paths.
    pub lanes: Vec<Lane>,
    /// False while one of them has no sample of its round-trip time: then nothing is limited.
    pub limited: bool,
    /// Stream bytes that fit one packet, on the path where most fit.
    pub packet: Bytes,
}

impl Estimator {
    /// The estimate of a path; `None` before its first sample.
    pub fn pipe(&self, path: &PathView) -> Option<Pipe> {
        let srtt = path.srtt?;
        let delay = match self.delay {
            DelayTerm::Rtt => srtt,
            DelayTerm::Arrival => srtt.divided_by(2),
        };
        let measured = match self.bandwidth {
            Bandwidth::Window => None,
            Bandwidth::Rate => path.rate,
        };
        // Without any delay a window is no limit.
        let unlimited = Rate::from_bits_per_sec(u64::MAX);
        let rate = measured.or(Rate::from_bytes_over(path.cwnd, srtt)).unwrap_or(unlimited);
        Some(Pipe::new(delay, rate))
    }
}

impl Lanes {
    /// Looks at the paths anew: those that are open now and, unless `only_open`, those that can be
    /// waited for: data may take them, their window holds a packet, and no probe timeout passed
    /// without an answer. If none is left, all that data may take. Tells if they are others than
    /// before, or limited and were not, or the other way round.
    pub fn look(&mut self, estimator: Estimator, only_open: bool, view: &View<'_>) -> bool {
        let counts = |path: &&PathView| path.is_open(view.now) || (!only_open && can_wait(path));
        let before: SmallVec<[PathKey; 8]> = self.lanes.iter().map(|lane| lane.path).collect();
        let was_limited = self.limited;
        self.lanes.clear();
        self.limited = true;
        self.packet = Bytes::ZERO;
        let none_counts = !eligible(view.paths).any(|path| counts(&path));
        for path in eligible(view.paths).filter(|path| none_counts || counts(path)) {
            let pipe = estimator.pipe(path);
            self.limited &= pipe.is_some();
            let pipe = pipe.unwrap_or(Pipe::new(Duration::ZERO, Rate::ZERO));
            self.lanes.push(Lane { path: path.key, pipe });
            self.packet = self.packet.max(path.payload);
        }
        self.limited != was_limited || !self.lanes.iter().map(|lane| lane.path).eq(before)
    }

    /// Index of a path.
    pub fn index_of(&self, path: PathKey) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.path == path)
    }

    /// True if the path is among them.
    pub fn has(&self, path: PathKey) -> bool {
        self.index_of(path).is_some()
    }

    /// Sum of the rates.
    pub fn rate(&self) -> Rate {
        let sum = self.lanes.iter().map(|lane| lane.pipe.rate().bits_per_sec());
        Rate::from_bits_per_sec(sum.fold(0, u64::saturating_add))
    }
}

/// True if it is known how many bytes a stream will have in all: the application told, or finished.
pub(super) fn is_sized(stream: &StreamView) -> bool {
    stream.size.is_some() || stream.fin
}
