//! The comparison of policies: one block per page and network, then the tables of flows.

use std::fmt::Write;

use super::grid::{Align, Grid};
use super::{bytes, flows, millis, page, streams};
use crate::plan::{Plan, PlannedNetwork};
use crate::results::WORLD;
use quipu_record::{Metric, MetricSummary, RowSummary, Summary};
use quipu_scenario::{Clients, Priorities};

/// The metrics that are compared as ratios.
const COMPARED: [Metric; 5] = [
    Metric::ConnectTime,
    Metric::PageTime,
    Metric::ObjectIndex,
    Metric::ByteIndex,
    Metric::CriticalTime,
];

/// What there is where a number is missing.
pub(super) const NOTHING: &str = "–";

/// The whole comparison as text. Rows stand as planned, or with `sort` by the median of that metric,
/// least first; rows without it last. Ratios are to the first row as planned.
pub fn compare(plan: &Plan, summary: &Summary, sort: Option<Metric>) -> String {
    let mut text = String::new();
    let mut rows = summary.rows.iter();
    for page in &plan.pages {
        for network in &plan.networks {
            let mut block: Vec<&RowSummary> = rows.by_ref().take(network.policies.len()).collect();
            let base = block.first().map_or(NOTHING, |row| &row.policy);
            if let Some(metric) = sort {
                let median = |row: &RowSummary| row.metric(metric).map(|it| it.median);
                block.sort_by_key(|row| (median(row).is_none(), median(row)));
            }
            let note = &page.note;
            text.push_str(&page::headline(note, plan.scenario.origins));
            text.push_str(&format!("{}\n\n", conditions(plan, network)));
            text.push_str(&values(network, &block).to_string());
            let ratios = ratios(&block, base);
            if !ratios.is_empty() {
                text.push_str(&format!("\nRatio to {base}, with its 95 % interval\n"));
                text.push_str(&ratios.to_string());
            }
            let fairness = fairness(&block);
            if !fairness.is_empty() {
                text.push_str("\nHow evenly clients are served: Jain's index\n");
                text.push_str(&fairness.to_string());
            }
            let boxes = streams::boxes(&block, base);
            if !boxes.is_empty() {
                text.push_str("\nLoad time of each stream, ms\n");
                text.push_str(&boxes.to_string());
            }
            text.push('\n');
        }
    }
    text.push_str(&flows::flows(plan, summary));
    for note in &summary.pages {
        text.push_str(&page::drawn(note));
    }
    text.push_str(&notes(summary));
    text
}

fn conditions(plan: &Plan, network: &PlannedNetwork) -> String {
    let scenario = &plan.scenario;
    let paths: Vec<String> = network.network.paths.iter().map(|path| path.summary()).collect();
    let runs = match network.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let session = match scenario.session {
        1 => String::new(),
        pages => format!(" · sessions of {pages} pages"),
    };
    let clients = match scenario.clients {
        Clients { count: 1, .. } => String::new(),
        Clients { count, servers: None, .. } => format!(" · {count} clients"),
        Clients { count, servers: Some(servers), .. } => {
            format!(" · {count} clients of {servers} servers")
        }
    };
    let by = match scenario.priorities {
        Priorities::Tree => "",
        Priorities::Urgency => " by urgency",
    };
    let how = if scenario.http.is_raw() {
        format!("no HTTP · {}", scenario.raw)
    } else {
        let (http, discovery) = (&scenario.http, scenario.discovery);
        format!("{}{by} over {http} · {discovery} discovery", scenario.browser)
    };
    format!(
        "{} ({}) · {how}{session}{clients} · {} start · {} TLS · {runs}, seed {} · {WORLD}",
        network.network.name,
        paths.join(", "),
        scenario.transport.start,
        scenario.transport.tls,
        scenario.seed,
    )
}

/// Medians of all metrics, and what else belongs to a row.
fn values(network: &PlannedNetwork, rows: &[&RowSummary]) -> Grid {
    let names: Vec<&str> = network.network.paths.iter().map(|path| path.name.as_str()).collect();
    let mut grid = Grid::new([
        ("policy".to_owned(), Align::Left),
        ("connect".to_owned(), Align::Right),
        ("p95".to_owned(), Align::Right),
        ("page ms".to_owned(), Align::Right),
        ("p95".to_owned(), Align::Right),
        ("x bound".to_owned(), Align::Right),
        ("ObjectIndex".to_owned(), Align::Right),
        ("ByteIndex".to_owned(), Align::Right),
        ("critical".to_owned(), Align::Right),
        ("x bound".to_owned(), Align::Right),
        (format!("% {}", names.join("/")), Align::Right),
        ("resent".to_owned(), Align::Right),
    ]);
    for row in rows {
        let of = |metric, value: fn(&MetricSummary) -> u64| {
            row.metric(metric).map_or(NOTHING.to_owned(), |summary| millis(value(summary)))
        };
        let shares: Vec<String> = row.shares.iter().map(|share| percent(share.per_mille)).collect();
        let resent = row.metric(Metric::BytesResent);
        grid.row([
            row.policy.clone(),
            of(Metric::ConnectTime, |summary| summary.median),
            of(Metric::ConnectTime, |summary| summary.p95),
            of(Metric::PageTime, |summary| summary.median),
            of(Metric::PageTime, |summary| summary.p95),
            over_bound(row.metric(Metric::PageTime)),
            of(Metric::ObjectIndex, |summary| summary.median),
            of(Metric::ByteIndex, |summary| summary.median),
            of(Metric::CriticalTime, |summary| summary.median),
            over_bound(row.metric(Metric::CriticalTime)),
            if row.runs == 0 { NOTHING.to_owned() } else { shares.join("/") },
            resent.map_or(NOTHING.to_owned(), |summary| bytes(summary.median)),
        ]);
    }
    grid
}

/// How many times its bound a metric is.
fn over_bound(summary: Option<&MetricSummary>) -> String {
    let over = summary.and_then(|summary| summary.over_bound);
    over.map_or(NOTHING.to_owned(), |over| format!("{over:.2}"))
}

/// Jain's index between the clients of a run: the middle run and the least even; empty without others.
fn fairness(rows: &[&RowSummary]) -> Grid {
    let titles = ["page time", "least even run", "rate", "least even run"];
    let columns = std::iter::once(("policy", Align::Left))
        .chain(titles.into_iter().map(|title| (title, Align::Right)));
    let mut grid = Grid::new(columns);
    for row in rows {
        let Some(fairness) = row.fairness else { continue };
        let (time, rate) = (fairness.page_time, fairness.goodput);
        // Millionths, with three digits behind the point.
        let index = |millionths: u64| format!("{:.3}", millionths as f64 / 1e6);
        let indices = [time.median, time.least, rate.median, rate.least].map(index);
        grid.row(std::iter::once(row.policy.clone()).chain(indices));
    }
    grid
}

/// Thousandths as a percentage: `41.5`.
pub(super) fn percent(per_mille: u64) -> String {
    format!("{}.{}", per_mille / 10, per_mille % 10)
}

/// Each row but the one that is called `base` as a ratio to it.
fn ratios(rows: &[&RowSummary], base: &str) -> Grid {
    let titles = ["connect", "page", "ObjectIndex", "ByteIndex", "critical"];
    let columns = std::iter::once(("policy", Align::Left))
        .chain(titles.into_iter().map(|title| (title, Align::Left)));
    let mut grid = Grid::new(columns);
    for row in rows.iter().filter(|row| row.policy != base) {
        let ratios = COMPARED.into_iter().map(|metric| ratio(row.metric(metric)));
        grid.row(std::iter::once(row.policy.clone()).chain(ratios));
    }
    grid
}

fn ratio(summary: Option<&MetricSummary>) -> String {
    let of = |it: &MetricSummary| ratio_text(it.ratio, it.ratio_low, it.ratio_high);
    summary.map_or(NOTHING.to_owned(), of)
}

/// A ratio with its interval, as far as there are both.
pub(super) fn ratio_text(ratio: Option<f64>, low: Option<f64>, high: Option<f64>) -> String {
    match (ratio, low, high) {
        (Some(ratio), Some(low), Some(high)) => format!("{ratio:.3} {low:.3}–{high:.3}"),
        (Some(ratio), ..) => format!("{ratio:.3} {NOTHING}"),
        (None, ..) => NOTHING.to_owned(),
    }
}

/// What is told of a page by name; of none, flows.
fn subject(page: &str) -> &str {
    if page.is_empty() { "flows" } else { page }
}

/// What a reader must know beyond the numbers.
fn notes(summary: &Summary) -> String {
    /// More failures than this are counted, not told.
    const MOST_FAILURES: usize = 5;

    let mut text = String::new();
    let mut note = |line: String| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    };
    if !summary.complete {
        let (finished, planned) = (summary.runs_finished, summary.runs_planned);
        note(format!("Incomplete: {finished} of {planned} runs ended well."));
    }
    for failure in summary.failures.iter().take(MOST_FAILURES) {
        let (page, network, policy) = (subject(&failure.page), &failure.network, &failure.policy);
        let (run, reason) = (failure.run, &failure.reason);
        note(format!("Failed: {page} over {network} with {policy}, run {run}: {reason}"));
    }
    if summary.failures.len() > MOST_FAILURES {
        note(format!("Failed: {} more", summary.failures.len() - MOST_FAILURES));
    }
    for same in &summary.identical {
        let page = subject(&same.page);
        let (policies, network) = (same.policies.join(", "), &same.network);
        note(format!("The same in every run on {page} over {network}: {policies}"));
    }
    for row in summary.rows.iter().filter(|row| row.refused + row.overridden > 0) {
        note(format!(
            "{} on {} over {}: {} answers refused, {} decisions taken by the engine",
            row.policy, row.page, row.network, row.refused, row.overridden
        ));
    }
    text
}
