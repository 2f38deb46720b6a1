//! The comparison of policies: one block per page and network, then the tables of flows.

use std::fmt::Write;

use super::grid::{Align, Cell, Grid};
use super::screen::{Screen, Tone};
use super::words::{NOTHING, percent, ratio_text};
use super::{bytes, flows, millis, page, streams};
use crate::plan::{Plan, PlannedNetwork, World};
use quipu_record::{
    ComputingRange, Dimension, Fairness, FasterAlone, Metric, MetricSummary, NetworkShare, OfLoad,
    RowSummary, Shown, Summary, Turned,
};
use quipu_scenario::{Clients, HttpVersion, Priorities, Push, Stack};

/// What marks a ratio that another reading of the recording turns.
const TURNS: &str = " †";

/// Which rows of a table stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By the median of this metric, least first, rows without it last; else as planned.
    pub sort: Option<Metric>,
    /// So many rows at most, beside the one that others are compared with.
    pub top: Option<usize>,
}

/// The whole comparison as text. Ratios are to the first row as planned.
pub fn compare(plan: &Plan, summary: &Summary, order: Order, screen: Screen) -> String {
    let mut text = String::new();
    let mut rows = summary.rows.iter();
    for page in &plan.pages {
        for network in &plan.networks {
            let mut block: Vec<&RowSummary> = rows.by_ref().take(network.policies.len()).collect();
            let base = block.first().map_or(NOTHING, |row| &row.policy);
            if let Some(metric) = order.sort {
                let median = |row: &RowSummary| row.metric(metric).map(|it| it.median);
                block.sort_by_key(|row| (median(row).is_none(), median(row)));
            }
            if let Some(top) = order.top {
                let mut kept = 0;
                block.retain(|row| {
                    kept += 1;
                    kept <= top || row.policy == base
                });
            }
            let note = &page.note;
            text.push_str(&screen.fold(&page::headline(note, plan.scenario.origins)));
            text.push_str(&screen.fold(&format!("{}\n", conditions(plan, network))));
            // Other readings are tried in virtual time alone.
            let one = summary.computing_range.is_none() && plan.world == World::Simulated;
            text.push_str(&screen.fold(&floor(&block, one)));
            text.push('\n');
            text.push_str(&values(network, &block).on(screen));
            let ratios = ratios(&block, base, summary.computing_range.as_ref());
            if !ratios.is_empty() {
                let title = format!("\nRatio to {base}, with its 95 % interval\n");
                text.push_str(&screen.fold(&title));
                text.push_str(&ratios.on(screen));
            }
            let of_block = |it: &&FasterAlone| {
                (it.page.as_str(), &it.network) == (page.note.name.as_str(), &network.network.name)
            };
            for (index, found) in summary.faster_alone.iter().filter(of_block).enumerate() {
                let gap = if index == 0 { "\n" } else { "" };
                text.push_str(&screen.fold(&format!("{gap}{found}\n")));
            }
            let fairness = fairness(&block);
            if !fairness.is_empty() {
                text.push_str("\nHow evenly clients are served: Jain's index\n");
                text.push_str(&fairness.on(screen));
            }
            let boxes = streams::boxes(&block, base);
            if !boxes.is_empty() {
                text.push_str("\nLoad time of each stream, ms\n");
                text.push_str(&boxes.on(screen));
            }
            text.push('\n');
        }
    }
    let range = summary.computing_range.as_ref().map(range).unwrap_or_default();
    text.push_str(&screen.fold(&range));
    text.push_str(&flows::flows(plan, summary, screen));
    for note in &summary.pages {
        text.push_str(&page::drawn(note, screen));
    }
    text.push_str(&screen.fold(&notes(summary)));
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
    let more =
        if one_reading { " (use --range to see what the recording leaves open)" } else { "" };
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
        // HTTP/3 has nothing but urgencies.
        let h3_by = match scenario.priorities {
            Priorities::Tree if http.has(HttpVersion::H3) => " by urgency",
            _ => "",
        };
        // What other stacks speak is in their rows.
        let over = match scenario.stack.iter().any(|stack| stack == Stack::Quipu) {
            true => format!(" over {http}{h3_by}"),
            false => String::new(),
        };
        format!("{}{by}{over} · {discovery} discovery{push}", scenario.browser)
    };
    let of = match &network.network.server {
        None => String::new(),
        Some(server) => format!(" from {server}"),
    };
    format!(
        "{}{of} ({}) · {how}{session}{clients} · {} start · {} TLS · {runs}, seed {} · {}",
        network.network.name,
        paths.join(", "),
        scenario.transport.start,
        scenario.transport.tls,
        scenario.seed,
        plan.world.name(),
    )
}

/// A column of medians and what goes with it: title, when it is left out on narrow screens, and what stands in a row.
type Cells = (String, Option<u8>, Box<dyn Fn(&RowSummary) -> String>);

/// When columns are left out, the first of these first: percentiles, distances from the bound, what is sent again, then
/// metrics.
const P95: u8 = 0;
const OVER_BOUND: u8 = 1;
const BEHIND_SHARES: u8 = 2;

/// When the column of a metric is left out: a page's time and what blocks it stay. Our choice.
fn rank(metric: Metric) -> Option<u8> {
    match metric {
        Metric::PageTime | Metric::CriticalTime => None,
        Metric::ConnectTime => Some(3),
        Metric::ByteIndex => Some(4),
        Metric::PageAboveFloor => Some(5),
        _ => Some(6),
    }
}

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
    let median = if shown.behind_shares { Some(BEHIND_SHARES) } else { rank(metric) };
    let mut columns: Vec<Cells> =
        vec![(shown.median.to_owned(), median, Box::new(cell(|summary| summary.median)))];
    if shown.p95 {
        columns.push(("p95".to_owned(), Some(P95), Box::new(cell(|summary| summary.p95))));
    }
    if of.bound.is_some() {
        columns.push((
            format!("{}/bound", shown.median.trim_end_matches(" ms")),
            Some(OVER_BOUND),
            Box::new(over_bound),
        ));
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
    let shares: Cells = (format!("% {}", names.join("/")), Some(7), Box::new(shares));
    let shown = || {
        let all = Metric::of_loads().filter(|(metric, _)| is_known(*metric, rows));
        all.filter_map(|(metric, of)| Some((metric, of, of.shown?)))
    };
    let of_metrics = |behind: bool| {
        let shown = shown().filter(move |(.., shown)| shown.behind_shares == behind);
        shown.flat_map(|(metric, of, shown)| columns(metric, of, &shown))
    };
    let cells: Vec<Cells> = of_metrics(false).chain([shares]).chain(of_metrics(true)).collect();
    let titles = cells.iter().map(|(title, ..)| (title.clone(), Align::Right));
    let ranks = (1..).zip(&cells).filter_map(|(index, (_, rank, _))| Some((index, (*rank)?)));
    let grid = Grid::new([("policy".to_owned(), Align::Left)].into_iter().chain(titles));
    let mut grid = grid.optional(ranks);
    for row in rows {
        let values = cells.iter().map(|(.., value)| value(row));
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
    // Ratios are no texts: they are not broken.
    let titles = compared().map(|(_, title)| (title, Align::Right));
    let ranks =
        (1..).zip(compared()).filter_map(|(index, (metric, _))| Some((index, rank(metric)?)));
    let grid = Grid::new(std::iter::once(("policy", Align::Left)).chain(titles));
    let mut grid = grid.optional(ranks);
    for row in rows.iter().filter(|row| row.policy != base) {
        let ratios = compared().map(|(metric, _)| {
            let names = [row.page.as_str(), &row.network, &row.policy];
            let turns = range.is_some_and(|range| range.turns(names, metric));
            ratio(row.metric(metric), if turns { TURNS } else { "" })
        });
        grid.row(std::iter::once(Cell::from(row.policy.clone())).chain(ratios));
    }
    grid
}

/// A ratio with its interval, in the tone of what it says, and a mark behind it.
fn ratio(summary: Option<&MetricSummary>, mark: &str) -> Cell {
    let Some(it) = summary else { return Cell::from(NOTHING) };
    let (least, most) = match (it.ratio, it.ratio_low, it.ratio_high) {
        (_, Some(low), Some(high)) => (low, high),
        (Some(ratio), ..) => (ratio, ratio),
        _ => (1.0, 1.0),
    };
    let tone = match (most < 1.0, least > 1.0) {
        (true, _) => Tone::Good,
        (_, true) => Tone::Bad,
        _ => Tone::Plain,
    };
    Cell::toned(ratio_text(it.ratio, it.ratio_low, it.ratio_high) + mark, tone)
}

/// What else the recordings allow, and what that makes of the ratios.
fn range(range: &ComputingRange) -> String {
    /// More are counted, not told.
    const MOST: usize = 12;

    if range.pages.is_empty() {
        return "No page leaves open how long computing takes: there is no other reading.\n"
            .to_owned();
    }
    let (with, pages) = (range.with.join(" and "), range.pages.join(", "));
    if range.turned.is_empty() {
        return format!("The conclusions are the same with {with} computing of {pages}.\n");
    }
    let mut text = format!("{} differs with {with} computing of {pages}:\n", TURNS.trim());
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
        note(format!("Incomplete: {finished} of {planned} runs succeeded."));
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
        note(format!("Identical in every run on {page} over {network}: {policies}"));
    }
    for row in summary.rows.iter().filter(|row| row.refused + row.overridden > 0) {
        note(format!(
            "{} on {} over {}: {} answers refused, {} decisions taken by the engine",
            row.policy, row.page, row.network, row.refused, row.overridden
        ));
    }
    text
}
