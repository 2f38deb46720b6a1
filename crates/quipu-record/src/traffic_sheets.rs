//! The tables of flows, links and cross traffic.

use std::io;

use quipu_base::Duration;

use crate::names::RunNames;
use crate::run::RunRecord;
use crate::sheets::Sheet;
use crate::tables::Value;

/// The tables, there if the scenario has flows or cross traffic.
pub(crate) static SHEETS: [Sheet; 4] = [
    Sheet { name: "flows", of_loads: false, columns: &FLOWS, always: has_any, rows: flow_rows },
    Sheet {
        name: "flow_paths",
        of_loads: false,
        columns: &FLOW_PATHS,
        always: has_any,
        rows: flow_path_rows,
    },
    Sheet { name: "links", of_loads: false, columns: &LINKS, always: has_any, rows: link_rows },
    Sheet { name: "cross", of_loads: false, columns: &CROSS, always: has_any, rows: cross_rows },
];

const FLOWS: [&str; 15] = [
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
const FLOW_PATHS: [&str; 4] = [
    "flow",
    "path",
    "name",
    // UDP payload that its receiver got on the path.
    "bytes_received",
];
const LINKS: [&str; 6] = [
    "path",
    "name",
    "direction",
    // Headers included, as the link counts them.
    "bytes_delivered",
    "bytes_capacity",
    "datagrams_dropped",
];
const CROSS: [&str; 4] = [
    "name",
    "direction",
    // Headers included, as links count them.
    "bytes_sent",
    "bytes_received",
];

type HandOn<'h> = dyn FnMut(&[Value<'_>]) -> io::Result<()> + 'h;

fn has_any(traffic: bool) -> bool {
    traffic
}

fn flow_rows(names: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    let window = record.traffic.until - record.traffic.from;
    let nanos = |time: Option<Duration>| Value::from(time.map(|time| time.as_nanos()));
    let flows = record.traffic.flows.iter().zip(names.flows());
    flows.enumerate().try_for_each(|(index, (flow, names))| {
        row(&[
            Value::Whole(index as u64),
            Value::Text(names.name),
            Value::Text(names.direction.name()),
            Value::Text(&names.congestion),
            Value::Whole(flow.started_at.as_nanos()),
            flow.ended_at.map(|at| at.as_nanos()).into(),
            Value::Whole(flow.lived.as_nanos()),
            Value::Whole(flow.bytes.0),
            Value::Whole(flow.goodput().bits_per_sec()),
            nanos(flow.rtt_mean),
            nanos(flow.rtt_p95),
            Value::Whole(flow.packets_sent),
            Value::Whole(flow.packets_lost),
            Value::Whole(flow.bytes_lost.0),
            Value::Whole(window.as_nanos()),
        ])
    })
}

fn flow_path_rows(
    names: &dyn RunNames,
    record: &RunRecord,
    row: &mut HandOn<'_>,
) -> io::Result<()> {
    for (index, flow) in record.traffic.flows.iter().enumerate() {
        for path in &flow.paths {
            row(&[
                Value::Whole(index as u64),
                Value::Whole(path.path.into()),
                Value::Text(names.path(path.path)),
                Value::Whole(path.bytes.0),
            ])?;
        }
    }
    Ok(())
}

fn link_rows(names: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    // A page without traffic beside it has links too, which nobody shares.
    if !names.has_traffic() {
        return Ok(());
    }
    record.traffic.links.iter().try_for_each(|link| {
        row(&[
            Value::Whole(link.path.into()),
            Value::Text(names.path(link.path)),
            Value::Text(link.direction.name()),
            Value::Whole(link.delivered.0),
            Value::Whole(link.capacity.0),
            Value::Whole(link.dropped),
        ])
    })
}

fn cross_rows(names: &dyn RunNames, record: &RunRecord, row: &mut HandOn<'_>) -> io::Result<()> {
    names.cross().iter().zip(&record.traffic.cross).try_for_each(|(names, cross)| {
        row(&[
            Value::Text(names.name),
            Value::Text(names.direction.name()),
            Value::Whole(cross.sent.0),
            Value::Whole(cross.received.0),
        ])
    })
}
