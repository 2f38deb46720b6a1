//! The acknowledgement policies that need no history.

use super::{AckPolicy, AckRoute};
use crate::key::{PathKey, PathSet};
use crate::seam::event::Event;
use crate::seam::view::{PathState, View};

/// `own`: acknowledgements of a path's packets return on that path; while it cannot be used, on
/// the usable path of least round-trip time.
///
/// Source: mp-quic and xquic, read in code; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own;

/// `min-rtt`: acknowledgements return on the usable path of least smoothed round-trip time; if
/// none is usable, on the path itself.
///
/// Source: XLINK (Zheng et al., SIGCOMM 2021); picoquic prefers that path too; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRtt;

/// `any`: acknowledgements ride on whatever packet leaves next; one that falls due before returns
/// as with [`Own`].
///
/// Source: an option of xquic, read in code; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct Any;

/// `all`: a copy of each acknowledgement on every usable path. The sender of the data drops the
/// copies by itself: what is acknowledged twice counts once.
///
/// Robust against loss and outages on the way back, at the cost of that many acknowledgements; the
/// round-trip time is that over the fastest way back. Source: the sheet of the field's schedulers;
/// confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub struct All;

/// The path itself, or, while that cannot be used, the usable path of least round-trip time.
pub(super) fn own_path(data: PathKey, view: &View<'_>) -> PathKey {
    let carries = |state| matches!(state, PathState::Usable | PathState::Validating);
    if view.paths.get(data).is_some_and(|path| carries(path.state)) {
        data
    } else {
        view.paths.least_srtt_usable().unwrap_or(data)
    }
}

/// Every usable path, and the path itself if it can be used or has yet to be validated.
pub(super) fn all_paths(data: PathKey, view: &View<'_>) -> PathSet {
    let own = PathSet::only(own_path(data, view));
    view.paths.usable().fold(own, |set, path| set.with(path.key))
}

impl AckPolicy for Own {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        AckRoute { on: PathSet::only(own_path(data, view)), ride: false }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}

impl AckPolicy for LeastRtt {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        let on = view.paths.least_srtt_usable().unwrap_or(data);
        AckRoute { on: PathSet::only(on), ride: false }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}

impl AckPolicy for Any {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        AckRoute { on: PathSet::only(own_path(data, view)), ride: true }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}

impl AckPolicy for All {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        AckRoute { on: all_paths(data, view), ride: false }
    }

    fn on_event(&mut self, _event: &Event<'_>, _view: &View<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::World;
    use quipu_base::{Bytes, Duration, PathId};

    fn world() -> (World, PathKey, PathKey) {
        let mut world = World::new(Bytes(1_000));
        let slow = world.add_path(PathId(0)).unwrap();
        let fast = world.add_path(PathId(1)).unwrap();
        world.set_path(slow, |path| path.srtt = Some(Duration::from_millis(90)));
        world.set_path(fast, |path| path.srtt = Some(Duration::from_millis(9)));
        (world, slow, fast)
    }

    #[test]
    fn own_leaves_its_path_only_while_that_cannot_be_used() {
        let (mut world, slow, fast) = world();
        assert_eq!(Own.route(slow, &world.view()).on, PathSet::only(slow));
        world.set_path(slow, |path| path.state = PathState::Suspect);
        assert_eq!(Own.route(slow, &world.view()).on, PathSet::only(fast));
        world.paths.remove(fast);
        assert_eq!(Own.route(slow, &world.view()).on, PathSet::only(slow), "no other is left");
    }

    #[test]
    fn least_rtt_follows_the_fastest_usable_path() {
        let (mut world, slow, fast) = world();
        assert_eq!(LeastRtt.route(slow, &world.view()).on, PathSet::only(fast));
        world.set_path(fast, |path| path.state = PathState::Suspect);
        assert_eq!(LeastRtt.route(fast, &world.view()).on, PathSet::only(slow));
    }

    #[test]
    fn any_rides_and_else_goes_its_own_way() {
        let (mut world, slow, fast) = world();
        let route = Any.route(slow, &world.view());
        assert_eq!((route.on, route.ride), (PathSet::only(slow), true));
        world.set_path(slow, |path| path.state = PathState::Suspect);
        assert_eq!(Any.route(slow, &world.view()).on, PathSet::only(fast));
    }

    #[test]
    fn all_takes_every_usable_path_and_never_none() {
        let (mut world, slow, fast) = world();
        let both = PathSet::only(slow).with(fast);
        assert_eq!(All.route(slow, &world.view()).on, both);
        world.set_path(slow, |path| path.state = PathState::Validating);
        assert_eq!(All.route(slow, &world.view()).on, both, "its address may be proved by it");
        assert_eq!(All.route(fast, &world.view()).on, PathSet::only(fast));
        for key in [slow, fast] {
            world.set_path(key, |path| path.state = PathState::Suspect);
        }
        assert_eq!(All.route(slow, &world.view()).on, PathSet::only(slow));
    }
}
