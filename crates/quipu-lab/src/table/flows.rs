//! What flows, cross traffic and links came to: one block per page and network.

use super::grid::{Align, Grid};
use super::millis;
use super::screen::Screen;
use super::words::{NOTHING, hundredths, mbit, percent, range, thousandths};
use crate::plan::{Plan, PlannedNetwork, World};
use quipu_record::{CrossSummary, FlowSummary, LinkSummary, Sharing, Spread, Summary};
use quipu_scenario::units::Unit;

/// The tables of all traffic as text; nothing if the scenario has none.
pub(super) fn flows(plan: &Plan, summary: &Summary, screen: Screen) -> String {
    let mut text = String::new();
    let mut rows = summary.sharing.iter();
    for page in 0..plan.page_count() {
        for network in &plan.networks {
            let block: Vec<&Sharing> = rows.by_ref().take(network.policies.len()).collect();
            if block.is_empty() {
                return text;
            }
            text.push_str(&screen.fold(&title(plan, network, plan.page_name(page))));
            text.push_str(&goodputs(network, &block).on(screen));
            text.push_str("\nLinks: % of capacity");
            text.push_str(if has_fairness(&block) {
                "; Jain's index of the flows\n"
            } else {
                "\n"
            });
            text.push_str(&links(&block).on(screen));
            text.push('\n');
        }
    }
    text
}

fn title(plan: &Plan, network: &PlannedNetwork, page: &str) -> String {
    let scenario = &plan.scenario;
    let paths: Vec<String> = network.network.paths.iter().map(|path| path.summary()).collect();
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    };
    let mut parts = vec![count(scenario.flows.len(), "flow")];
    if !scenario.cross.is_empty() {
        parts.push(format!("{} of cross traffic", count(scenario.cross.len(), "sender")));
    }
    if page.is_empty() {
        parts.push(format!("at most {}", scenario.duration.print()));
    } else {
        parts.push(format!("beside {page}"));
    }
    let measure = &scenario.measure;
    parts.push(match (measure.from.is_zero(), measure.until) {
        (true, None) => "measured throughout".to_owned(),
        (false, None) => format!("measured from {}", measure.from.print()),
        (_, Some(until)) => format!("measured {} to {}", measure.from.print(), until.print()),
    });
    parts.push(count(network.runs as usize, "run"));
    let name = &network.network.name;
    let (paths, parts, seed) = (paths.join(", "), parts.join(" · "), scenario.seed);
    format!("{name} ({paths}) · {parts}, seed {seed} · {}\n\n", World::Simulated.name())
}

/// A row for each policy and flow, and for each sender of cross traffic.
fn goodputs(network: &PlannedNetwork, block: &[&Sharing]) -> Grid {
    let names: Vec<&str> = network.network.paths.iter().map(|path| path.name.as_str()).collect();
    let mut grid = Grid::new([
        ("policy".to_owned(), Align::Left),
        ("flow".to_owned(), Align::Left),
        ("congestion".to_owned(), Align::Left),
        ("direction".to_owned(), Align::Left),
        ("Mbit/s".to_owned(), Align::Right),
        ("min–max".to_owned(), Align::Right),
        ("share %".to_owned(), Align::Right),
        ("rtt ms".to_owned(), Align::Right),
        ("p95".to_owned(), Align::Right),
        ("lost %".to_owned(), Align::Right),
        (format!("% {}", names.join("/")), Align::Right),
    ])
    .optional([(5, 0), (8, 1), (3, 2), (2, 3)]);
    for sharing in block {
        for flow in &sharing.flows {
            grid.row(flow_row(network, &sharing.policy, flow));
        }
        for cross in &sharing.cross {
            grid.row(cross_row(&sharing.policy, cross));
        }
    }
    grid
}

fn flow_row(network: &PlannedNetwork, policy: &str, flow: &FlowSummary) -> Vec<String> {
    let rtt = |spread: Option<Spread>| spread.map_or(NOTHING.to_owned(), |it| millis(it.median));
    let share = |path: u32| {
        let share = flow.paths.iter().find(|share| share.path == path);
        share.map_or(NOTHING.to_owned(), |share| percent(share.per_mille))
    };
    let shares: Vec<String> =
        (0..).zip(&network.network.paths).map(|(path, _)| share(path)).collect();
    vec![
        policy.to_owned(),
        flow.name.clone(),
        flow.congestion.clone(),
        flow.direction.clone(),
        mbit(flow.goodput.median),
        range(flow.goodput, mbit),
        percent(flow.share_per_mille.median),
        rtt(flow.rtt_mean_ns),
        rtt(flow.rtt_p95_ns),
        hundredths(flow.lost_per_million.median),
        shares.join("/"),
    ]
}

fn cross_row(policy: &str, cross: &CrossSummary) -> Vec<String> {
    let (sent, received) = (cross.sent.median, cross.received.median);
    let lost = u128::from(sent.saturating_sub(received)) * 1_000_000;
    let lost = lost.checked_div(u128::from(sent)).unwrap_or(0);
    vec![
        policy.to_owned(),
        cross.name.clone(),
        format!("({})", cross.kind),
        cross.direction.clone(),
        mbit(received),
        range(cross.received, mbit),
        NOTHING.to_owned(),
        NOTHING.to_owned(),
        NOTHING.to_owned(),
        // At most 10^6.
        hundredths(u64::try_from(lost).unwrap_or(u64::MAX)),
        NOTHING.to_owned(),
    ]
}

fn has_fairness(block: &[&Sharing]) -> bool {
    block.iter().any(|sharing| sharing.fairness_down.or(sharing.fairness_up).is_some())
}

/// A row for each policy: how full the links were, how fair the flows.
fn links(block: &[&Sharing]) -> Grid {
    let fair = has_fairness(block);
    let all = block.first().map_or(&[][..], |sharing| &sharing.links);
    let titles = all.iter().map(|link| (format!("{} {}", link.name, link.direction), Align::Right));
    let jain = ["Jain down", "Jain up"].into_iter().filter(|_| fair);
    let jain = jain.map(|title| (title.to_owned(), Align::Right));
    let mut grid =
        Grid::new([("policy".to_owned(), Align::Left)].into_iter().chain(titles).chain(jain));
    for sharing in block {
        let fairness = [sharing.fairness_down, sharing.fairness_up].into_iter().filter(|_| fair);
        let fairness = fairness
            .map(|index| index.map_or(NOTHING.to_owned(), |index| thousandths(index.median)));
        // A path alone has its own links only.
        let used = all.iter().map(|link| {
            let place = |link: &LinkSummary| (link.name.clone(), link.direction.clone());
            let own = sharing.links.iter().find(|own| place(own) == place(link));
            own.map_or(NOTHING.to_owned(), |own| percent(own.utilisation_per_mille.median))
        });
        grid.row(std::iter::once(sharing.policy.clone()).chain(used).chain(fairness));
    }
    grid
}
