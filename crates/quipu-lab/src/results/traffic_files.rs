//! The tables of flows, links and cross traffic.

use std::path::Path;

use quipu_base::{Bytes, Duration};

use super::files::{FileError, place, table};
use super::{FlowRecord, RunRecord};
use crate::plan::{Cell, Plan};
use crate::policy::registry::Layer;

/// The files, there if the scenario has flows or cross traffic.
pub(super) const NAMES: [&str; 4] = ["flows.csv", "flow_paths.csv", "links.csv", "cross.csv"];

const FLOWS: [&str; 19] = [
    "page",
    "network",
    "policy",
    "run",
    "flow",
    "name",
    "direction",
    "congestion",
    // Of the run, not of the window.
    "started_at_ns",
    // Empty if it went on to the end of the run.
    "ended_at_ns",
    // How much of the window it lived; all that follows is of this time.
    "lived_ns",
    // What its receiver read, in order on each stream.
    "bytes",
    "goodput_bit_per_s",
    // Empty if its sender measured none.
    "rtt_mean_ns",
    "rtt_p95_ns",
    "packets_sent",
    "packets_lost",
    "bytes_lost",
    // The window as far as the run went, for shares and utilisation.
    "window_ns",
];
const FLOW_PATHS: [&str; 8] = [
    "page",
    "network",
    "policy",
    "run",
    "flow",
    "path",
    "name",
    // UDP payload that its receiver got on the path.
    "bytes_received",
];
const LINKS: [&str; 10] = [
    "page",
    "network",
    "policy",
    "run",
    "path",
    "name",
    "direction",
    // Headers included, as the link counts them.
    "bytes_delivered",
    "bytes_capacity",
    "datagrams_dropped",
];
const CROSS: [&str; 8] = [
    "page",
    "network",
    "policy",
    "run",
    "name",
    "direction",
    // Headers included, as links count them.
    "bytes_sent",
    "bytes_received",
];

/// Writes the tables into `directory`.
pub(super) fn write_all(
    directory: &Path,
    plan: &Plan,
    finished: &[(Cell, RunRecord)],
) -> Result<(), FileError> {
    let [flows, flow_paths, links, cross] = NAMES;
    table(directory, flows, &FLOWS, finished, |rows, cell, record| {
        let flows = record.traffic.flows.iter().enumerate();
        let window = record.traffic.until - record.traffic.from;
        flows
            .map(|(index, flow)| flow_row(plan, cell, index, flow, window))
            .try_for_each(|row| rows.write_record(row))
    })?;
    table(directory, flow_paths, &FLOW_PATHS, finished, |rows, cell, record| {
        for (index, flow) in record.traffic.flows.iter().enumerate() {
            for path in &flow.paths {
                let name = path_name(plan, cell, path.path);
                let rest = [index as u64, u64::from(path.path)].map(|number| number.to_string());
                let rest = rest.into_iter().chain([name, path.bytes.0.to_string()]);
                rows.write_record(place(plan, cell).into_iter().chain(rest))?;
            }
        }
        Ok(())
    })?;
    table(directory, links, &LINKS, finished, |rows, cell, record| {
        for link in &record.traffic.links {
            let rest = [
                link.path.to_string(),
                path_name(plan, cell, link.path),
                link.direction.to_string(),
                link.delivered.0.to_string(),
                link.capacity.0.to_string(),
                link.dropped.to_string(),
            ];
            rows.write_record(place(plan, cell).into_iter().chain(rest))?;
        }
        Ok(())
    })?;
    table(directory, cross, &CROSS, finished, |rows, cell, record| {
        for (spec, cross) in plan.scenario.cross.iter().zip(&record.traffic.cross) {
            let amounts = [cross.sent, cross.received].map(|Bytes(bytes)| bytes.to_string());
            let rest = [spec.name.clone(), spec.direction.to_string()].into_iter().chain(amounts);
            rows.write_record(place(plan, cell).into_iter().chain(rest))?;
        }
        Ok(())
    })
}

fn flow_row(
    plan: &Plan,
    cell: &Cell,
    index: usize,
    flow: &FlowRecord,
    window: Duration,
) -> Vec<String> {
    let spec = &plan.scenario.flows[index];
    let policy = &plan.networks[cell.network].policies[cell.policy];
    let congestion = policy.flows[index].part(Layer::Congestion);
    let nanos =
        |time: Option<Duration>| time.map_or(String::new(), |time| time.as_nanos().to_string());
    let rest = [
        index.to_string(),
        spec.name.clone(),
        spec.direction.to_string(),
        congestion.map_or(String::new(), ToString::to_string),
        flow.started_at.as_nanos().to_string(),
        flow.ended_at.map_or(String::new(), |at| at.as_nanos().to_string()),
        flow.lived.as_nanos().to_string(),
        flow.bytes.0.to_string(),
        flow.goodput().bits_per_sec().to_string(),
        nanos(flow.rtt_mean),
        nanos(flow.rtt_p95),
        flow.packets_sent.to_string(),
        flow.packets_lost.to_string(),
        flow.bytes_lost.0.to_string(),
        window.as_nanos().to_string(),
    ];
    place(plan, cell).into_iter().chain(rest).collect()
}

fn path_name(plan: &Plan, cell: &Cell, path: u32) -> String {
    let paths = &plan.networks[cell.network].network.paths;
    let index = usize::try_from(path).ok();
    index.and_then(|index| paths.get(index)).map_or(String::new(), |spec| spec.name.clone())
}
