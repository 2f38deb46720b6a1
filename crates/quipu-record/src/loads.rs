//! Loads of one place, and pairs of them with those of another.

use crate::run::RunRecord;

/// Loads by the numbers of the run, of the client and of the page in its session.
pub type Runs<'a> = Vec<(LoadKey, &'a RunRecord)>;

/// Numbers of the run, of the client and of the page in its session.
pub type LoadKey = (u32, u32, u32);

/// What `value` says of runs and of those of `base` with the same number.
pub fn pairs(
    runs: &[(LoadKey, &RunRecord)],
    base: &Runs<'_>,
    value: impl Fn(&RunRecord) -> Option<u64>,
) -> Vec<(u64, u64)> {
    let pair = |(load, record): &(LoadKey, &RunRecord)| {
        let position = base.binary_search_by_key(load, |(load, _)| *load).ok()?;
        Some((value(record)?, value(base[position].1)?))
    };
    runs.iter().filter_map(pair).collect()
}

/// The same in groups that chance decides together: the clients of a run share its links; of a run with
/// one client each page of its session is a group.
pub fn groups(
    runs: &Runs<'_>,
    base: &Runs<'_>,
    value: impl Fn(&RunRecord) -> Option<u64>,
) -> Vec<Vec<(u64, u64)>> {
    let several = runs.iter().any(|(_, record)| record.client > 0);
    let together =
        |one: &(LoadKey, &RunRecord), next: &(LoadKey, &RunRecord)| several && one.0.0 == next.0.0;
    runs.chunk_by(together).map(|group| pairs(group, base, &value)).collect()
}
