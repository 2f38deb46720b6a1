//! What a joint policy has to decide itself.

use quipu_base::Instant;

use crate::key::{PathKey, StreamKey};
use crate::path::PathPolicy;
use crate::seam::decision::Notes;
use crate::seam::view::{Kind, PathView, View};
use crate::stream::Turn;

/// The algorithm of a joint policy: whose bytes go next, and on which path.
///
/// [`Planned`](super::Planned) makes a [`Joint`](super::Joint) of it and does what all of them have
/// in common: plans, connection credit, lost bytes, ends of waits, filling of packets. It is a
/// [`PathPolicy`], and has the questions of a [`StreamPolicy`](crate::StreamPolicy) beside; a
/// [`Pair`](super::Pair) answers them with one of each. A planner that decides both at once works
/// out stream and path in [`next`](Self::next), and gives the path in
/// [`select`](PathPolicy::select), which is asked right after it for the same stream. It is also
/// asked for bytes that cost no credit and go out of turn, lost ones among them, of any stream.
///
/// In [`on_event`](PathPolicy::on_event), `Ready` and `Stopped` mean: has bytes that no path holds.
pub trait Planner: PathPolicy {
    /// Whose turn it is; takes nothing. `None`: no stream is ready. It must name a ready stream if
    /// there is one, also when it would rather wait: then it says so in
    /// [`select`](PathPolicy::select).
    ///
    /// `filling`: the path of an open packet with space left; `None`: what opens a packet.
    fn next(
        &mut self,
        filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn>;

    /// Bytes (in `turn.max`) of a stream were sent or planned for a path: charge here.
    fn on_taken(&mut self, _turn: Turn, _kind: Kind, _view: &View<'_>) {}

    /// A plan of `turn.max` bytes was taken back: refund.
    fn on_returned(&mut self, _turn: Turn, _view: &View<'_>) {}

    /// Grows when bytes already planned should have gone to another stream.
    fn order(&self) -> u64 {
        0
    }

    /// True if the planner gives `stream` turns without limit, and places them on `path`, until the
    /// stream stops, the path closes, time passes, or an event comes that is not
    /// [`Placed`](crate::Event::Placed) or [`Sent`](crate::Event::Sent) of these turns. Asked after
    /// such a turn; the packets that follow are then answered without the planner.
    fn repeats(&self, _stream: StreamKey, _path: &PathView) -> bool {
        false
    }

    /// When to be woken for periodic work; beside the end of a wait.
    fn wake_at(&self) -> Option<Instant> {
        None
    }
}
