//! The comparison of policies: one block per page and network, then the tables of flows.

use std::fmt::Write;

use super::grid::{Align, Grid};
use super::words::{NOTHING, percent, ratio_text};
use super::{bytes, flows, millis, page, streams};
use crate::plan::{Plan, PlannedNetwork};
use crate::results::WORLD;
use quipu_record::{
    ComputingRange, Dimension, Fairness, FasterAlone, Metric, MetricSummary, NetworkShare, OfLoad,
    RowSummary, Shown, Summary, Turned,
};
use quipu_scenario::{Clients, Priorities, Push};

/// What marks a ratio that another reading of the recording turns.
const TURNS: &str = " †";

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
            text.push_str(&format!("{}\n", conditions(plan, network)));
            text.push_str(&floor(&block, summary.computing_range.is_none()));
            text.push('\n');
            text.push_str(&values(network, &block).to_string());
            let ratios = ratios(&block, base, summary.computing_range.as_ref());
            if !ratios.is_empty() {
                text.push_str(&format!("\nRatio to {base}, with its 95 % interval\n"));
                text.push_str(&ratios.to_string());
            }
            let of_block = |it: &&FasterAlone| {
                (it.page.as_str(), &it.network) == (page.note.name.as_str(), &network.network.name)
            };
            for (index, found) in summary.faster_alone.iter().filter(of_block).enumerate() {
                let gap = if index == 0 { "\n" } else { "" };
                text.push_str(&format!("{gap}{found}\n"));
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
    text.push_str(&summary.computing_range.as_ref().map(range).unwrap_or_default());
    text.push_str(&flows::flows(plan, summary));
    for note in &summary.pages {
        text.push_str(&page::drawn(note));
    }
    text.push_str(&notes(summary));
    text
}

/// How much of the page time a network can change; nothing of a page that needs nothing but the network.
fn floor(block: &[&RowSummary], one_reading: bool) -> String {
    let of = |row: &RowSummary| {
        let page = row.metric(Metric::PageTime)?.median;
        Some((page, row.metric(Metric::PageAboveFloor)?.median))
    };
    let Some((page, above)) = block.iter().filter_map(|row| of(row)).min() else {
        return String::new();
    };
    let floor = page.saturating_sub(above);
    let sentence = NetworkShare::of(above, page).sentence(&format!("{} ms", millis(floor)));
    let more = if one_reading { " (--range tells what the recording leaves open)" } else { "" };
    format!("{sentence}{more}\n")
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
        let push = match scenario.push {
            Push::None => String::new(),
            push => format!(" · {push} pushed"),
        };
        format!("{}{by} over {http} · {discovery} discovery{push}", scenario.browser)
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

/// A column of medians and what goes with it: title, and what stands in a row.
type Cells = (String, Box<dyn Fn(&RowSummary) -> String>);

/// The columns of a metric: its medians, and its 95th percentiles and distances from the bound where the
/// registry says so.
fn columns(metric: Metric, of: &OfLoad, shown: &Shown) -> Vec<Cells> {
    let amount = move |value: u64| match metric.dimension() {
        Dimension::Time => millis(value),
        Dimension::Size => bytes(value),
        Dimension::Rate | Dimension::Energy | Dimension::Plain => value.to_string(),
    };
    let cell = move |value: fn(&MetricSummary) -> u64| {
        move |row: &RowSummary| {
            let summary = row.metric(metric);
            summary.map_or(NOTHING.to_owned(), |summary| amount(value(summary)))
        }
    };
    let over_bound = move |row: &RowSummary| {
        let over = row.metric(metric).and_then(|summary| summary.over_bound);
        over.map_or(NOTHING.to_owned(), |over| format!("{over:.2}"))
    };
    let mut columns: Vec<Cells> =
        vec![(shown.median.to_owned(), Box::new(cell(|summary| summary.median)))];
    if shown.p95 {
        columns.push(("p95".to_owned(), Box::new(cell(|summary| summary.p95))));
    }
    if of.bound.is_some() {
        columns.push(("x bound".to_owned(), Box::new(over_bound)));
    }
    columns
}

/// Whether `metric` stands in the tables of `rows`: the part above the floor only if the page has one.
fn is_known(metric: Metric, rows: &[&RowSummary]) -> bool {
    metric != Metric::PageAboveFloor || rows.iter().any(|row| row.metric(metric).is_some())
}

/// Medians of the metrics that are shown, and what else belongs to a row.
fn values(network: &PlannedNetwork, rows: &[&RowSummary]) -> Grid {
    let names: Vec<&str> = network.network.paths.iter().map(|path| path.name.as_str()).collect();
    let shares = |row: &RowSummary| {
        let shares: Vec<String> = row.shares.iter().map(|share| percent(share.per_mille)).collect();
        if row.runs == 0 { NOTHING.to_owned() } else { shares.join("/") }
    };
    let shares: Cells = (format!("% {}", names.join("/")), Box::new(shares));
    let shown = || {
        let all = Metric::of_loads().filter(|(metric, _)| is_known(*metric, rows));
        all.filter_map(|(metric, of)| Some((metric, of, of.shown?)))
    };
    let of_metrics = |behind: bool| {
        let shown = shown().filter(move |(.., shown)| shown.behind_shares == behind);
        shown.flat_map(|(metric, of, shown)| columns(metric, of, &shown))
    };
    let cells: Vec<Cells> = of_metrics(false).chain([shares]).chain(of_metrics(true)).collect();
    let titles = cells.iter().map(|(title, _)| (title.clone(), Align::Right));
    let mut grid = Grid::new([("policy".to_owned(), Align::Left)].into_iter().chain(titles));
    for row in rows {
        let values = cells.iter().map(|(_, value)| value(row));
        grid.row([row.policy.clone()].into_iter().chain(values));
    }
    grid
}

/// Jain's index between the clients of a run: the middle run and the least even; empty without others.
fn fairness(rows: &[&RowSummary]) -> Grid {
    type Index = fn(&Fairness) -> u64;
    const COLUMNS: [(&str, Index); 4] = [
        ("page time", |it| it.page_time.median),
        ("least even run", |it| it.page_time.least),
        ("rate", |it| it.goodput.median),
        ("least even run", |it| it.goodput.least),
    ];
    let titles = COLUMNS.iter().map(|(title, _)| (*title, Align::Right));
    let mut grid = Grid::new(std::iter::once(("policy", Align::Left)).chain(titles));
    for row in rows {
        let Some(fairness) = row.fairness else { continue };
        // Millionths, with three digits behind the point.
        let cell = |(_, index): &(&str, Index)| format!("{:.3}", index(&fairness) as f64 / 1e6);
        grid.row(std::iter::once(row.policy.clone()).chain(COLUMNS.iter().map(cell)));
    }
    grid
}

/// Each row but the one that is called `base` as a ratio to it, marked where another reading of the recording turns it.
fn ratios(rows: &[&RowSummary], base: &str, range: Option<&ComputingRange>) -> Grid {
    let compared = || {
        let all = Metric::of_loads().filter(|(metric, _)| is_known(*metric, rows));
        all.filter_map(|(metric, of)| Some((metric, of.shown?.ratio?)))
    };
    let titles = std::iter::once("policy").chain(compared().map(|(_, title)| title));
    let mut grid = Grid::new(titles.map(|title| (title, Align::Left)));
    for row in rows.iter().filter(|row| row.policy != base) {
        let ratios = compared().map(|(metric, _)| {
            let turns = range
                .is_some_and(|range| range.turns([&row.page, &row.network, &row.policy], metric));
            ratio(row.metric(metric)) + if turns { TURNS } else { "" }
        });
        grid.row(std::iter::once(row.policy.clone()).chain(ratios));
    }
    grid
}

fn ratio(summary: Option<&MetricSummary>) -> String {
    let of = |it: &MetricSummary| ratio_text(it.ratio, it.ratio_low, it.ratio_high);
    summary.map_or(NOTHING.to_owned(), of)
}

/// What else the recordings allow, and what that makes of the ratios.
fn range(range: &ComputingRange) -> String {
    /// More are counted, not told.
    const MOST: usize = 12;

    if range.pages.is_empty() {
        return "No page hides how long computing takes: there is no other reading.\n".to_owned();
    }
    let (with, pages) = (range.with.join(" and "), range.pages.join(", "));
    if range.turned.is_empty() {
        return format!("The same holds with {with} computing of {pages}.\n");
    }
    let mut text = format!("{} is not the same with {with} computing of {pages}:\n", TURNS.trim());
    // What says the opposite first.
    let mut turned: Vec<&Turned> = range.turned.iter().collect();
    turned.sort_by_key(|turned| !turned.is_opposite());
    for turned in turned.iter().take(MOST) {
        let (page, network) = (&turned.page, &turned.network);
        text.push_str(&format!("  {page} over {network}, {turned}\n"));
    }
    if turned.len() > MOST {
        text.push_str(&format!("  and {} more; summary.json has all\n", turned.len() - MOST));
    }
    text
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
