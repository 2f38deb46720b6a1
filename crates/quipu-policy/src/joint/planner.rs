//! What a joint policy has to decide itself.

use quipu_base::{Bytes, Instant};

use crate::key::PathKey;
use crate::path::{Choice, Parcel, TakeBack};
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};
use crate::stream::Turn;

/// The algorithm of a joint policy: whose bytes go next, and on which path.
///
/// [`Planned`](super::Planned) makes a [`Joint`](super::Joint) of it and does what all of them have
/// in common: plans, connection credit, lost bytes, ends of waits, filling of packets. The
/// questions are those of a [`StreamPolicy`](crate::StreamPolicy) and a
/// [`PathPolicy`](crate::PathPolicy), and [`Pair`](super::Pair) answers them with one of each. A
/// planner that decides both at once works out stream and path in [`next`](Self::next), and gives
/// the path in [`select`](Self::select), which is asked right after it for the same stream.
pub trait Planner: Send {
    /// Whose turn it is; takes nothing. `None`: no stream is ready. It must name a ready stream if
    /// there is one, also when it would rather wait: then it says so in [`select`](Self::select).
    ///
    /// `filling`: the path of an open packet with space left; `None`: what opens a packet.
    fn next(
        &mut self,
        filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn>;

    /// The path for these bytes: of the turn just named; or bytes that cost no credit and go out of
    /// turn, lost ones among them, of any stream. Must not answer `Wait` or `Later` for lost bytes.
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice;

    /// Takes note of what happened. `Ready` and `Stopped` mean here: has bytes that no path holds.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);

    /// Bytes (in `turn.max`) of a stream were sent or planned for a path: charge here.
    fn on_taken(&mut self, _turn: Turn, _kind: Kind, _view: &View<'_>) {}

    /// A plan of `turn.max` bytes was taken back: refund.
    fn on_returned(&mut self, _turn: Turn, _view: &View<'_>) {}

    /// Grows when bytes already planned should have gone to another stream.
    fn order(&self) -> u64 {
        0
    }

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

    /// An open path to refresh with a PING before anything else goes; see
    /// [`PathPolicy::probe`](crate::PathPolicy::probe).
    fn probe(&mut self, _view: &View<'_>) -> Option<PathKey> {
        None
    }

    /// Whether plans are made anew when [`order`](Self::order) grows.
    fn rebinds(&self) -> bool {
        true
    }

    /// When to be woken for periodic work; beside the end of a wait.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}
