//! What the runs of a plan say of flows, links and cross traffic.

use quipu_base::{Bytes, Duration, Rate};
use quipu_policy::registry::Layer;
use quipu_record::{
    CrossSummary, FlowRecord, FlowSummary, LinkSummary, PathShare, RunRecord, Sharing, Spread,
    TrafficRecord, jain, per_mille,
};
use quipu_scenario::{Direction, FlowSpec};

use super::runs::runs_of;
use crate::plan::{Cell, Plan};

/// All traffic of a sweep, by page, network and policy; nothing if the scenario has none.
pub(super) fn all(plan: &Plan, finished: &[(Cell, RunRecord)]) -> Vec<Sharing> {
    let mut all = Vec::new();
    if !plan.scenario.has_traffic() {
        return all;
    }
    for page in 0..plan.page_count() {
        for network in 0..plan.networks.len() {
            for policy in 0..plan.networks[network].policies.len() {
                let runs = runs_of(finished, page, network, policy);
                // The first load of a run has the traffic of all of it.
                let firsts = runs.into_iter().filter(|(_, record)| record.is_first());
                let runs: Vec<&TrafficRecord> = firsts.map(|(_, record)| &record.traffic).collect();
                all.push(sharing(plan, Cell { page, network, policy, run: 0 }, &runs));
            }
        }
    }
    all
}

fn sharing(plan: &Plan, cell: Cell, runs: &[&TrafficRecord]) -> Sharing {
    let network = &plan.networks[cell.network];
    let specs = &plan.scenario.flows;
    let over = plan.run_network(cell);
    let fairness = |direction| {
        let index = |run: &TrafficRecord| {
            let living = of_direction(run, specs, direction).filter(|flow| !flow.lived.is_zero());
            jain(&living.map(|flow| flow.bytes.0).collect::<Vec<_>>())
        };
        where_known(runs, index)
    };
    Sharing {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        runs: runs.len(),
        flows: (0..specs.len())
            .filter(|index| over.has_flow(*index))
            .map(|index| flow(plan, cell, index, runs))
            .collect(),
        fairness_down: fairness(Direction::Down),
        fairness_up: fairness(Direction::Up),
        links: links(plan, cell, runs),
        cross: cross(plan, cell, runs),
    }
}

/// The flows of a run that go `direction`.
fn of_direction<'a>(
    run: &'a TrafficRecord,
    specs: &'a [FlowSpec],
    direction: Direction,
) -> impl Iterator<Item = &'a FlowRecord> {
    let is_of = move |flow: &&FlowRecord| {
        specs.get(flow.flow as usize).is_some_and(|spec| spec.direction == direction)
    };
    run.flows.iter().filter(is_of)
}

fn flow(plan: &Plan, cell: Cell, index: usize, runs: &[&TrafficRecord]) -> FlowSummary {
    let spec = &plan.scenario.flows[index];
    let network = &plan.networks[cell.network];
    let nanos = |value: Option<Duration>| value.map(Duration::as_nanos);
    let own = |run: &TrafficRecord| run.flow(index).cloned();
    let share = |run: &TrafficRecord| {
        let all = of_direction(run, &plan.scenario.flows, spec.direction).map(|flow| flow.bytes);
        per_mille(own(run).map_or(Bytes::ZERO, |flow| flow.bytes), all.sum())
    };
    let lost = |run: &TrafficRecord| {
        let (lost, sent) = own(run).map_or((0, 0), |flow| (flow.packets_lost, flow.packets_sent));
        lost.saturating_mul(1_000_000).checked_div(sent).unwrap_or(0)
    };
    let congestion = network.policies[cell.policy].flows[index].part(Layer::Congestion);
    FlowSummary {
        name: spec.name.clone(),
        direction: spec.direction.to_string(),
        congestion: congestion.map_or(String::new(), ToString::to_string),
        goodput: over_runs(runs, |run| own(run).map_or(0, |flow| flow.goodput().bits_per_sec())),
        share_per_mille: over_runs(runs, share),
        rtt_mean_ns: where_known(runs, |run| nanos(own(run)?.rtt_mean)),
        rtt_p95_ns: where_known(runs, |run| nanos(own(run)?.rtt_p95)),
        lost_per_million: over_runs(runs, lost),
        paths: path_shares(plan, cell, index, runs),
    }
}

fn path_shares(plan: &Plan, cell: Cell, index: usize, runs: &[&TrafficRecord]) -> Vec<PathShare> {
    let network = &plan.networks[cell.network];
    let over = plan.run_network(cell);
    let came = |path: Option<usize>| -> Bytes {
        let flows = runs.iter().filter_map(|run| run.flow(index));
        let paths = flows.flat_map(|flow| &flow.paths);
        let wanted = paths.filter(|came| path.is_none_or(|path| came.path as usize == path));
        wanted.map(|came| came.bytes).sum()
    };
    let total = came(None);
    let share = |&at: &usize| {
        let path = over.paths[at];
        PathShare {
            // At most 32 paths.
            path: path as u32,
            name: network.network.paths[path].name.clone(),
            per_mille: per_mille(came(Some(path)), total),
        }
    };
    over.flow_paths[index].iter().map(share).collect()
}

fn links(plan: &Plan, cell: Cell, runs: &[&TrafficRecord]) -> Vec<LinkSummary> {
    let (network, over) = (&plan.networks[cell.network].network, plan.run_network(cell));
    let own = over.network.paths.iter().zip(&over.owners);
    let own = own.filter(|(path, _)| path.own_links().is_some()).map(|(_, owner)| *owner);
    let directions = [Direction::Down, Direction::Up];
    let links = own.flat_map(|owner| directions.map(|direction| (owner, direction)));
    let summary = |(owner, direction): (usize, Direction)| {
        let own = |run: &TrafficRecord| run.link(owner, direction.into()).copied();
        LinkSummary {
            name: network.paths[owner].name.clone(),
            direction: direction.to_string(),
            utilisation_per_mille: over_runs(runs, |run| {
                own(run).map_or(0, |link| link.utilisation())
            }),
            dropped: over_runs(runs, |run| own(run).map_or(0, |link| link.dropped)),
        }
    };
    links.map(summary).collect()
}

fn cross(plan: &Plan, cell: Cell, runs: &[&TrafficRecord]) -> Vec<CrossSummary> {
    let rate = |run: &TrafficRecord, bytes: Option<Bytes>| {
        let rate = Rate::from_bytes_over(bytes.unwrap_or_default(), run.until - run.from);
        rate.map_or(0, Rate::bits_per_sec)
    };
    let over = plan.run_network(cell);
    let senders = plan.scenario.cross.iter().enumerate();
    senders
        .filter(|(index, _)| over.has_cross(*index))
        .map(|(index, spec)| CrossSummary {
            name: spec.name.clone(),
            kind: spec.kind.to_string(),
            direction: spec.direction.to_string(),
            sent: over_runs(runs, |run| rate(run, run.cross(index).map(|it| it.sent))),
            received: over_runs(runs, |run| rate(run, run.cross(index).map(|it| it.received))),
        })
        .collect()
}

/// Over all runs.
fn over_runs(runs: &[&TrafficRecord], value: impl Fn(&TrafficRecord) -> u64) -> Spread {
    Spread::of(runs.iter().map(|run| value(run))).unwrap_or_default()
}

/// Over the runs that have a value.
fn where_known(
    runs: &[&TrafficRecord],
    value: impl Fn(&TrafficRecord) -> Option<u64>,
) -> Option<Spread> {
    Spread::of(runs.iter().filter_map(|run| value(run)))
}
