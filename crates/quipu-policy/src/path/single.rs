//! One path only.

use quipu_base::PathId;

use super::choose::{is_promising, rest_unless_stuck};
use super::{Choice, MinRtt, Parcel, PathPolicy};
use crate::seam::decision::Notes;
use crate::seam::view::{PathView, View};

/// `single:id=N`: everything on path `N`.
///
/// While that path lives and can carry data, nothing else is used, even if its window is closed.
/// While it does not exist yet, is gone, suspect or cannot carry a packet at all, and for lost
/// bytes that must avoid it, the open path of least round-trip time serves, so that no transfer is
/// stuck. Source: our choice.
#[derive(Clone, Copy, Debug)]
pub struct Single {
    id: PathId,
}

impl Single {
    /// The policy for the path with that identifier.
    pub const fn new(id: PathId) -> Self {
        Single { id }
    }
}

impl PathPolicy for Single {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        match view.paths.by_id(self.id).filter(|path| is_promising(path)) {
            Some(path) if path.is_open(view.now) => Choice::Now(path.key),
            Some(path) if path.in_flight.is_zero() && view.conn.in_flight.is_zero() => {
                if path.release_at > view.now {
                    Choice::Wait { until: path.release_at, on: Some(path.key) }
                } else {
                    rest_unless_stuck(parcel, view)
                }
            }
            Some(_) => Choice::None,
            None => match MinRtt::pick(view, notes) {
                Some(path) => Choice::Now(path.key),
                None => rest_unless_stuck(parcel, view),
            },
        }
    }

    fn stays_on(&self, path: &PathView) -> bool {
        path.key.id == self.id
    }
}
