//! One path after the other.

use quipu_base::Duration;

use super::choose::{eligible, rest_unless_stuck};
use super::{Choice, Parcel, PathPolicy};
use crate::key::PathKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{PathView, View};

/// Whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turns {
    /// The next open path after the one last used, in order of identifier (tquic).
    #[default]
    Cursor,
    /// The open path with the fewest packets sent (mp-quic): a path that was blocked catches up.
    Packets,
}

/// `path-rr`: packets go round the open paths.
///
/// The cursor moves when a packet with stream data leaves. Source: tquic for the cursor, mp-quic
/// for the variant by packets, both read in code; confidence high.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    turns: Turns,
    last: Option<PathKey>,
}

impl RoundRobin {
    /// The policy with that rule.
    pub const fn new(turns: Turns) -> Self {
        RoundRobin { turns, last: None }
    }
}

impl PathPolicy for RoundRobin {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, _notes: &mut Notes) -> Choice {
        let mut open = eligible(view.paths).filter(|path| path.is_open(view.now));
        let srtt = |path: &PathView| path.srtt.unwrap_or(Duration::MAX);
        let pick = match self.turns {
            Turns::Cursor => {
                let after = open.clone().find(|path| self.last.is_none_or(|last| path.key > last));
                after.or_else(|| open.next())
            }
            Turns::Packets => open.min_by_key(|path| (path.packets_sent, srtt(path), path.key)),
        };
        pick.map_or_else(|| rest_unless_stuck(parcel, view), |path| Choice::Now(path.key))
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        match event {
            Event::Sent(packet) if !packet.pieces.is_empty() => self.last = Some(packet.path),
            _ => {}
        }
    }
}
