//! Joint policies: stream and path in one answer.
//!
//! - a stream and a path policy, composed: [`Pair`]
//! - `sa-ecf`: [`SaEcf`]; `srpt-ecf`: [`SrptEcf`]
//! - `pw-pats`: [`WeightedOrder`] over [`Pats`](crate::path::Pats)
//! - `hbes`: [`PriorityRounds`] or [`QuantumWrr`](crate::stream::QuantumWrr) over [`HbesPaths`]
//! - `sec`: [`Sec`]; `pstream`, `fstream`: [`AtStart`]; `ms-hs`: [`MsHs`]: they allot
//!   the bytes of streams to paths beforehand ([`Allotting`])
//!
//! Each is a [`Planner`], of which [`Planned`] makes a [`Joint`]. Any of them with copies is a
//! [`Reinjecting`].

use quipu_base::{Bytes, Instant};

use crate::key::PathKey;
use crate::seam::decision::{Ask, Decision, Notes};
use crate::seam::event::Event;
use crate::seam::view::View;

mod allotting;
mod answer;
mod at_start;
mod by_stream;
mod free_set;
mod hbes;
mod lanes;
mod ledger;
mod ms_hs;
mod pair;
mod path_queues;
mod planned;
mod planner;
mod pw_pats;
mod reinjecting;
mod sa_ecf;
mod sec;
mod srpt_ecf;
#[cfg(test)]
mod testing;
pub mod waterfill;

pub use allotting::{Allotter, Allotting, Cause, Effect};
pub use at_start::AtStart;
pub use free_set::{FreeSet, Spare};
pub use hbes::{HbesPaths, PriorityRounds, hbes};
pub use lanes::{Bandwidth, DelayTerm, Estimator, Lane, Lanes};
pub use ledger::{Commit, Ledger};
pub use ms_hs::MsHs;
pub use pair::{Pair, StreamAndPath};
pub use planned::{Planned, Replan};
pub use planner::Planner;
pub use pw_pats::{WeightedOrder, priority_factor, pw_pats};
pub use reinjecting::Reinjecting;
pub use sa_ecf::{SaEcf, SaEcfMode};
pub use sec::{Clamp, Queue, Quotas, Sec, Unknown};
pub use srpt_ecf::SrptEcf;

/// The one trait the engine knows: what goes next, on which path.
pub trait Joint: Send {
    /// The one question of the engine. Asked again with no event between, the answer is the same:
    /// it may plan, but must not charge, draw or advance a cursor.
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision;

    /// Takes note of what happened. The view shows the state after it.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);

    /// True while copies may exist, so that the engine asks although no stream is ready.
    fn has_copies(&self) -> bool {
        false
    }

    /// The path for control frames that no data packet carries, and for datagrams of the application as
    /// long as it carries them whole.
    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        view.paths.least_srtt_open(view.now)
    }

    /// When to be woken for periodic work; beside the `until` of a wait.
    fn wake_at(&self) -> Option<Instant> {
        None
    }

    /// Bytes planned for a path; for logs and time series only.
    fn committed(&self, _path: PathKey) -> Bytes {
        Bytes::ZERO
    }
}
