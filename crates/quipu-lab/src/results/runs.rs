//! The runs of one place of a plan, among those of all.

use quipu_record::{RunRecord, Runs};

use crate::plan::Cell;

/// The runs of one page over one network with one policy, out of those of all in the order of the plan's
/// cells.
pub(super) fn runs_of(
    finished: &[(Cell, RunRecord)],
    page: usize,
    network: usize,
    policy: usize,
) -> Runs<'_> {
    let place = (page, network, policy);
    let of = |cell: &Cell| (cell.page, cell.network, cell.policy);
    let start = finished.partition_point(|(cell, _)| of(cell) < place);
    let end = finished.partition_point(|(cell, _)| of(cell) <= place);
    finished[start..end]
        .iter()
        .map(|(cell, record)| ((cell.run, record.client, record.visit), record))
        .collect()
}
