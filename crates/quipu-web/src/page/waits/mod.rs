//! What every request of a recording waited for, with the recording's network taken out.
//!
//! A recorded time is the sum of what the network took and of what it did not: thinking of servers, computing of
//! the browser, timers of scripts. Only the second is the same over another network. Here the two are told apart:
//!
//! - [`think`]: of a recorded wait, what is left when the round trip and other responses of the same connection are
//!   taken out.
//! - [`hypotheses`]: what an object may have waited for, by the rules of browsers.
//! - [`choose`]: which of these explains its start with the least delay that nothing explains.
//! - [`timers`]: which of these delays a script set itself.
//!
//! What a busy network hid is not known. So each of them has a range, from [`Compute::Low`] to [`Compute::High`].
//!
//! Several recordings of one page, at different speeds, tell more than one: what a request waited for is what leaves the
//! same delay in all of them, and what was hidden in one may be plain in another.

mod choose;
mod hypotheses;
mod phases;
mod think;
mod timers;
mod view;

use quipu_base::Duration;

use super::compute::Compute;
use super::select::Draft;
use super::{Discovery, Gap};
use crate::trace::Activity;
use view::View;

pub(super) use hypotheses::Known;

/// A recorded load, whose drafts have their parents.
pub(super) struct Linked<'a, 'b> {
    pub(super) drafts: &'a [Draft<'b>],
    pub(super) known: &'a [Known],
    /// Position of the main document.
    pub(super) main: usize,
    /// What the browser did meanwhile, if a trace tells. Its times count as the drafts' do.
    pub(super) activity: Option<&'a Activity>,
}

/// What one object waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) discovery: Discovery,
    /// Positions of others that must be complete.
    pub(super) waits_for: Vec<usize>,
    pub(super) gap: Gap,
    pub(super) think: Duration,
}

/// What each draft of the first load waits for, as all of them tell. There is at least one.
pub(super) fn waits(loads: &[Linked<'_, '_>], compute: Compute) -> Vec<Wait> {
    let Some(first) = loads.first() else { return Vec::new() };
    let views: Vec<View<'_, '_>> = loads.iter().map(|load| View::new(first, load)).collect();
    let thoughts = think::thoughts(&views);
    let chosen = choose::choose(&views, compute);
    let think = |at: usize| match compute {
        Compute::Low => thoughts[at].low,
        Compute::AsRecorded | Compute::High => thoughts[at].high,
        Compute::Likely => thoughts[at].likely,
    };
    let wait = |(at, chosen): (usize, choose::Chosen)| Wait {
        discovery: chosen.discovery,
        waits_for: chosen.waits_for,
        gap: chosen.gap,
        think: think(at),
    };
    chosen.into_iter().enumerate().map(wait).collect()
}

#[cfg(test)]
mod tests;
