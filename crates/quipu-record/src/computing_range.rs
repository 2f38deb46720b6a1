//! The same comparison with other readings of recordings, side by side.

use crate::metric::Metric;
use crate::summary::{MetricSummary, RowSummary, Summary};
use crate::turned::{ComputingRange, RatioTo, Turned};

/// What is not the same in `others`, the same comparison with other values of `compute`, by these; rows that are in one alone
/// are passed over. Metrics are those whose ratios tables show.
pub fn computing_range(base: &Summary, others: &[(String, Summary)]) -> ComputingRange {
    let mut range = ComputingRange {
        with: others.iter().map(|(compute, _)| compute.clone()).collect(),
        ..ComputingRange::default()
    };
    for note in &base.pages {
        let has =
            |(_, other): &(String, Summary)| other.pages.iter().any(|it| it.name == note.name);
        if others.iter().any(has) {
            range.pages.push(note.name.clone());
        }
    }
    let mut first: Option<&RowSummary> = None;
    for row in &base.rows {
        // Ratios are to the first row of each block.
        if first.is_none_or(|it| (&it.page, &it.network) != (&row.page, &row.network)) {
            first = Some(row);
        }
        let Some(first) = first else { continue };
        for (compute, other) in others {
            let same = |it: &&RowSummary| {
                (&it.page, &it.network, &it.policy) == (&row.page, &row.network, &row.policy)
            };
            let Some(there) = other.rows.iter().find(same) else { continue };
            for (metric, of_load) in Metric::of_loads() {
                let is_shown = of_load.shown.is_some_and(|shown| shown.ratio.is_some());
                let ratio = |row: &RowSummary| of(row.metric(metric)?);
                let Some((here, there)) = ratio(row).zip(ratio(there)).filter(|_| is_shown) else {
                    continue;
                };
                if !here.agrees(there) {
                    range.turned.push(Turned {
                        page: row.page.clone(),
                        network: row.network.clone(),
                        policy: row.policy.clone(),
                        base: first.policy.clone(),
                        metric,
                        here,
                        compute: compute.clone(),
                        there,
                    });
                }
            }
        }
    }
    range
}

fn of(summary: &MetricSummary) -> Option<RatioTo> {
    let MetricSummary { ratio, ratio_low, ratio_high, .. } = *summary;
    Some(RatioTo { ratio: ratio?, ratio_low, ratio_high })
}
