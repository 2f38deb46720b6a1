//! Path policies: which path the next bytes take.

use quipu_base::{Bytes, Instant};

use crate::key::{PathKey, StreamKey};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};

mod backup;
mod blest;
pub(crate) mod choose;
mod dems;
mod drift;
mod ecf;
mod forecast;
mod minrtt;
mod pats;
mod peekaboo;
mod probe;
mod quality;
mod round_robin;
mod single;
mod stms;
#[cfg(test)]
mod testing;
mod weighted;

pub use backup::{Classes, Standby};
pub use blest::{Blest, Estimate, Lambda};
pub use choose::{can_wait, eligible, is_promising, opens_by, rest_unless_stuck, wait_for};
pub use dems::Dems;
pub use ecf::{Backlog, Ecf};
pub(crate) use ecf::{Race, Verdict};
pub use minrtt::MinRtt;
pub use pats::{Bind, Pats};
pub use peekaboo::{Learning, Peekaboo};
pub use probe::IdleProbe;
pub use quality::PathQuality;
pub use round_robin::{RoundRobin, Turns};
pub use single::Single;
pub use stms::Stms;
pub use weighted::{Weight, WeightedPaths};

/// What looks for a path.
#[derive(Clone, Copy, Debug)]
pub struct Parcel<'a> {
    /// Whose bytes.
    pub stream: StreamKey,
    /// How many: at most one packet's worth, and none for a bare FIN.
    pub len: Bytes,
    /// Why they are pending.
    pub class: Class,
    /// True if the end of the stream's pending bytes may be sent instead of their start.
    pub back_fits: bool,
    /// Bytes already planned, by path slot.
    pub committed: &'a [Bytes],
}

/// A path policy's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// On this path, now.
    Now(PathKey),
    /// On this path, now, from the back of the stream's pending bytes.
    NowFromBack(PathKey),
    /// On this path when its window opens: later bytes may go elsewhere now.
    Later(PathKey),
    /// Not yet.
    Wait {
        /// When to ask again at the latest.
        until: Instant,
        /// The path waited for, if it is one.
        on: Option<PathKey>,
    },
    /// No path can take it.
    None,
}

/// What to take back of the plans made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakeBack {
    /// Nothing.
    Nothing,
    /// What is planned for one path.
    Path(PathKey),
    /// Everything.
    All,
}

/// Picks paths. What orders streams too is a [`Planner`](crate::Planner).
pub trait PathPolicy: Send {
    /// The path for these bytes. Must not answer `Wait` or `Later` for lost bytes.
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice;

    /// Takes note of what happened.
    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}

    /// Whether this parcel may fill the room left in a packet on `path`.
    fn fill(&mut self, _path: PathKey, _parcel: &Parcel<'_>, _view: &View<'_>) -> bool {
        true
    }

    /// Most bytes to plan ahead, over all paths. Zero: it never answers `Later`.
    fn commit_limit(&self, _view: &View<'_>) -> Bytes {
        Bytes::ZERO
    }

    /// Which plans no longer hold. Asked when something changed.
    fn take_back(&mut self, _view: &View<'_>) -> TakeBack {
        TakeBack::Nothing
    }

    /// An open path to refresh with a PING before anything else goes. Asked before every packet
    /// while there is something to send, so an idle connection is never probed; must give the same
    /// answer until the PING's [`Event::Sent`].
    fn probe(&mut self, _view: &View<'_>) -> Option<PathKey> {
        None
    }

    /// Whether plans are made anew when the order of streams grows.
    fn rebinds(&self) -> bool {
        true
    }

    /// True if [`select`](Self::select), which has just answered [`Choice::Now`] with `path`, answers
    /// the same for whatever bytes follow, until the path closes, time passes, or an event comes that
    /// is not [`Event::Placed`] or [`Event::Sent`] of what it placed itself: it need not be asked.
    fn stays_on(&self, _path: &PathView) -> bool {
        false
    }
}
