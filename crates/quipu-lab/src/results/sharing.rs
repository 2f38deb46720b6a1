//! What the runs say of flows, links and cross traffic: who got how much, and how fairly.

use quipu_base::{Bytes, Duration, Rate};
use serde::Serialize;

use super::RunRecord;
use super::fairness::jain;
use super::summary::{PathShare, runs_of};
use super::traffic::{FlowRecord, TrafficRecord, per_mille};
use crate::plan::{Cell, Plan};
use crate::policy::registry::Layer;
use crate::stats::median;
use quipu_scenario::{Direction, FlowSpec};

/// A quantity over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The middle run.
    pub median: u64,
    /// The run in which it was least.
    pub least: u64,
    /// The run in which it was most.
    pub most: u64,
}

/// All traffic of one policy over one network, beside one page or without any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sharing {
    /// The page; empty if there is none.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// Runs that ended well.
    pub runs: usize,
    /// The flows of the scenario, in its order.
    pub flows: Vec<FlowSummary>,
    /// Jain's index of the flows down that lived, in millionths; `null` if there are not two.
    pub fairness_down: Option<Spread>,
    /// The same of the flows up.
    pub fairness_up: Option<Spread>,
    /// Down and up of each path that has links of its own.
    pub links: Vec<LinkSummary>,
    /// The cross traffic of the scenario, in its order.
    pub cross: Vec<CrossSummary>,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    pub direction: String,
    /// Its congestion controller.
    pub congestion: String,
    /// Bits per second that its receiver read, while it lived.
    pub goodput: Spread,
    /// Share of the bytes of all flows of its direction, in thousandths.
    pub share_per_mille: Spread,
    /// Mean round-trip time in nanoseconds; `null` if none was measured.
    pub rtt_mean_ns: Option<Spread>,
    /// What 95 % of the round-trip times do not exceed.
    pub rtt_p95_ns: Option<Spread>,
    /// Packets that counted as lost, in millionths of those sent.
    pub lost_per_million: Spread,
    /// How much of what came over all runs came on which of its paths.
    pub paths: Vec<PathShare>,
}

/// One direction of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSummary {
    /// What the network calls the path.
    pub name: String,
    /// Which way.
    pub direction: String,
    /// Share of its capacity that was used, in thousandths.
    pub utilisation_per_mille: Spread,
    /// Datagrams that did not arrive.
    pub dropped: Spread,
}

/// One sender of cross traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrossSummary {
    /// Its name.
    pub name: String,
    /// How its datagrams follow one another.
    pub kind: String,
    /// Which way it goes.
    pub direction: String,
    /// Bits per second that it sent, headers included, over the whole window.
    pub sent: Spread,
    /// Bits per second that arrived.
    pub received: Spread,
}

impl Spread {
    /// Of values, one for each run; `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Spread> {
        let values: Vec<u64> = values.into_iter().collect();
        Some(Spread {
            median: median(&values)?,
            least: values.iter().copied().min()?,
            most: values.iter().copied().max()?,
        })
    }

    fn over(runs: &[&TrafficRecord], value: impl Fn(&TrafficRecord) -> u64) -> Spread {
        Spread::of(runs.iter().map(|run| value(run))).unwrap_or_default()
    }

    /// Over the runs that have a value.
    fn where_known(
        runs: &[&TrafficRecord],
        value: impl Fn(&TrafficRecord) -> Option<u64>,
    ) -> Option<Spread> {
        Spread::of(runs.iter().filter_map(|run| value(run)))
    }
}

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
    let fairness = |direction| {
        let index = |run: &TrafficRecord| {
            let living = of_direction(run, specs, direction).filter(|flow| !flow.lived.is_zero());
            jain(&living.map(|flow| flow.bytes.0).collect::<Vec<_>>())
        };
        Spread::where_known(runs, index)
    };
    Sharing {
        page: plan.page_name(cell.page).to_owned(),
        network: network.network.name.clone(),
        policy: network.policies[cell.policy].label.clone(),
        runs: runs.len(),
        flows: (0..specs.len()).map(|index| flow(plan, cell, index, runs)).collect(),
        fairness_down: fairness(Direction::Down),
        fairness_up: fairness(Direction::Up),
        links: links(plan, cell, runs),
        cross: cross(plan, runs),
    }
}

/// The flows of a run that go `direction`.
fn of_direction<'a>(
    run: &'a TrafficRecord,
    specs: &'a [FlowSpec],
    direction: Direction,
) -> impl Iterator<Item = &'a FlowRecord> {
    let flows = run.flows.iter().zip(specs);
    flows.filter(move |(_, spec)| spec.direction == direction).map(|(flow, _)| flow)
}

fn flow(plan: &Plan, cell: Cell, index: usize, runs: &[&TrafficRecord]) -> FlowSummary {
    let spec = &plan.scenario.flows[index];
    let network = &plan.networks[cell.network];
    let nanos = |value: Option<Duration>| value.map(Duration::as_nanos);
    let own = |run: &TrafficRecord| run.flows.get(index).cloned();
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
        goodput: Spread::over(runs, |run| own(run).map_or(0, |flow| flow.goodput().bits_per_sec())),
        share_per_mille: Spread::over(runs, share),
        rtt_mean_ns: Spread::where_known(runs, |run| nanos(own(run)?.rtt_mean)),
        rtt_p95_ns: Spread::where_known(runs, |run| nanos(own(run)?.rtt_p95)),
        lost_per_million: Spread::over(runs, lost),
        paths: path_shares(plan, cell, index, runs),
    }
}

fn path_shares(plan: &Plan, cell: Cell, index: usize, runs: &[&TrafficRecord]) -> Vec<PathShare> {
    let network = &plan.networks[cell.network];
    let came = |path: Option<usize>| -> Bytes {
        let flows = runs.iter().filter_map(|run| run.flows.get(index));
        let paths = flows.flat_map(|flow| &flow.paths);
        let wanted = paths.filter(|came| path.is_none_or(|path| came.path as usize == path));
        wanted.map(|came| came.bytes).sum()
    };
    let total = came(None);
    let share = |&path: &usize| PathShare {
        // At most 32 paths.
        path: path as u32,
        name: network.network.paths[path].name.clone(),
        per_mille: per_mille(came(Some(path)), total),
    };
    network.flow_paths[index].iter().map(share).collect()
}

fn links(plan: &Plan, cell: Cell, runs: &[&TrafficRecord]) -> Vec<LinkSummary> {
    let network = &plan.networks[cell.network].network;
    let own = network.paths.iter().filter(|path| path.own_links().is_some());
    let directions = [Direction::Down, Direction::Up];
    let names = own.flat_map(|path| directions.map(|direction| (&path.name, direction)));
    let summary = |(index, (name, direction)): (usize, (&String, Direction))| {
        let own = |run: &TrafficRecord| run.links.get(index).copied();
        LinkSummary {
            name: name.clone(),
            direction: direction.to_string(),
            utilisation_per_mille: Spread::over(runs, |run| {
                own(run).map_or(0, |link| link.utilisation())
            }),
            dropped: Spread::over(runs, |run| own(run).map_or(0, |link| link.dropped)),
        }
    };
    names.enumerate().map(summary).collect()
}

fn cross(plan: &Plan, runs: &[&TrafficRecord]) -> Vec<CrossSummary> {
    let rate = |run: &TrafficRecord, bytes: Option<Bytes>| {
        let rate = Rate::from_bytes_over(bytes.unwrap_or_default(), run.until - run.from);
        rate.map_or(0, Rate::bits_per_sec)
    };
    let senders = plan.scenario.cross.iter().enumerate();
    senders
        .map(|(index, spec)| CrossSummary {
            name: spec.name.clone(),
            kind: spec.kind.to_string(),
            direction: spec.direction.to_string(),
            sent: Spread::over(runs, |run| rate(run, run.cross.get(index).map(|it| it.sent))),
            received: Spread::over(runs, |run| {
                rate(run, run.cross.get(index).map(|it| it.received))
            }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_tells_the_middle_and_the_ends() {
        assert_eq!(Spread::of([3, 1, 2]), Some(Spread { median: 2, least: 1, most: 3 }));
        assert_eq!(Spread::of([]), None);
    }
}
