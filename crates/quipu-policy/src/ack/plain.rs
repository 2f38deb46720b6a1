//! The acknowledgement policies that need no history.

use super::{AckPolicy, AckRoute};
use crate::registry::{Built, Confidence, Entry, Layer};
use crate::seam::event::Event;
use crate::seam::key::{PathKey, PathSet};
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

impl AckPolicy for Own {
    fn route(&mut self, data: PathKey, view: &View<'_>) -> AckRoute {
        let carries = |state| matches!(state, PathState::Usable | PathState::Validating);
        let on = if view.paths.get(data).is_some_and(|path| carries(path.state)) {
            data
        } else {
            view.paths.least_srtt_usable().unwrap_or(data)
        };
        AckRoute { on: PathSet::only(on), ride: false }
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

pub(crate) fn entries() -> Vec<Entry> {
    let own = Entry {
        name: "own",
        layer: Layer::Ack,
        about: "on the path whose packets are acknowledged",
        params: Vec::new(),
        source: "mp-quic and xquic, code",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(Own)),
    };
    let least = Entry {
        name: "min-rtt",
        layer: Layer::Ack,
        about: "on the usable path of least smoothed round-trip time",
        params: Vec::new(),
        source: "XLINK (Zheng et al., SIGCOMM 2021); picoquic, code",
        confidence: Confidence::High,
        build: |_, _| Ok(Built::ack(LeastRtt)),
    };
    vec![own, least]
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
}
