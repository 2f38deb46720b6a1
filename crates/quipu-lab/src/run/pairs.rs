//! The connections of a run by number: each joins a pair of hosts, and has chance of its own.
//!
//! Pair 0 is that of the page, or of its first connection. Those of flows follow, then those of cross
//! traffic, then those of all further connections that load pages.

use quipu_base::Seed;

use crate::plan::{Cell, Plan};

/// A connection that loads pages.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageLine {
    /// Number of the client.
    pub(super) client: u32,
    /// Number of the connection among those of the client.
    pub(super) line: usize,
    /// Which pair of hosts it joins.
    pub(super) pair: u16,
}

/// The seed of all chance in a connection that loads pages in the run of `cell`.
pub(super) fn page_seed(plan: &Plan, cell: Cell, of: PageLine) -> Seed {
    let PageLine { client, line, .. } = of;
    let seed = plan.scenario.client_seed(cell.run, client);
    if line == 0 { seed } else { seed.child("origin", line as u64) }
}

/// The pair of hosts of the flow at `index`; 0 is that of the page, or of its first connection.
pub(super) fn pair_of_flow(index: usize) -> u16 {
    // A scenario has at most 100 flows.
    u16::try_from(index + 1).unwrap_or(u16::MAX / 2)
}

/// The pair of hosts of the cross traffic at `index`.
pub(super) fn pair_of_cross(plan: &Plan, index: usize) -> u16 {
    pair_of_flow(plan.scenario.flows.len() + index)
}

/// The pair of hosts of connection `line` of a client that has `lines`: numbers after those of flows and
/// cross traffic but for the first.
pub(super) fn pair_of_page(plan: &Plan, client: u32, line: usize, lines: usize) -> u16 {
    let client = usize::try_from(client).unwrap_or(usize::MAX);
    match client.saturating_mul(lines).saturating_add(line) {
        0 => 0,
        // At most 10,000 connections and 200 others, as the scenario was checked.
        index => {
            let first = usize::from(pair_of_cross(plan, plan.scenario.cross.len()));
            u16::try_from(first + index - 1).unwrap_or(u16::MAX / 2)
        }
    }
}
