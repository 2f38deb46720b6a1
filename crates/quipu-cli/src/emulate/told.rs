//! What is said of an emulation, before and after.

use std::fmt::Write as _;
use std::path::Path;

use quipu_emu::{Emulation, LinkReport, Report};
use quipu_lab::plan::Plan;
use quipu_record::write_whole;
use serde_json::json;

use crate::args::EmulateOptions;
use crate::failure::Failure;

/// Hosts and their addresses.
pub(super) fn hosts(plan: &Plan, emulation: &Emulation) -> String {
    let network = plan.networks.first().map_or("", |planned| &planned.network.name);
    let mut text = format!("{network}, emulated over {} devices\n", emulation.device().name());
    for host in emulation.hosts() {
        let addresses = host.paths().filter_map(|path| {
            host.addresses(path).map(|(address, _)| format!("path{path} {address}"))
        });
        let addresses: Vec<String> = addresses.collect();
        let _ = writeln!(text, "{}: {}", host.name(), addresses.join(", "));
    }
    text
}

/// What happened on the links, how late it was, and whether it counts.
pub(super) fn report(report: &Report) -> String {
    let millis = |nanos: u64| format!("{:.3}", nanos as f64 / 1e6);
    let seconds = report.elapsed_ns as f64 / 1e9;
    let late = &report.lateness;
    let mut text = format!(
        "emulated for {seconds:.1} s: {} packets, late by {} ms at the median, {} ms at the 99th percentile, {} ms at \
         most; carrying took {:.0} % of a processor\n",
        late.packets,
        millis(late.p50_ns),
        millis(late.p99_ns),
        millis(late.max_ns),
        report.load() * 100.0,
    );
    for link in report.links.iter().filter(|link| link.offered.packets > 0) {
        let _ = writeln!(text, "{}", carried(link));
    }
    for reason in &report.void {
        let _ = writeln!(text, "void: {reason}");
    }
    text
}

/// What a link did, in a line.
fn carried(link: &LinkReport) -> String {
    let LinkReport { name, offered, delivered, .. } = link;
    let mut line = format!("{name}: {} of {} packets", delivered.packets, offered.packets);
    for (count, what) in [
        (link.dropped_by_queue, "dropped by the queue"),
        (link.dropped_by_management, "dropped by its management"),
        (link.dropped_by_loss, "lost by chance"),
        (link.dropped_by_outage, "lost to outages"),
        (link.dropped_by_size, "too large"),
        (link.marked, "marked"),
    ] {
        if count.packets > 0 {
            let _ = write!(line, ", {} {what}", count.packets);
        }
    }
    line
}

/// Writes all of it, with the scenario.
pub(super) fn write(
    file: &Path,
    plan: &Plan,
    options: &EmulateOptions,
    report: &Report,
) -> Result<(), Failure> {
    let command: Vec<_> = options.command.iter().map(|part| part.to_string_lossy()).collect();
    let all = json!({
        "world": "emulated",
        "program": plan.program.describe(),
        "run": options.run,
        "command": command,
        "servers": options.server,
        "scenario": plan.scenario.to_toml().map_err(Failure::run)?,
        "report": report,
    });
    let text = serde_json::to_string_pretty(&all).map_err(Failure::run)?;
    write_whole(file, text + "\n")
        .map_err(|error| Failure::Run(format!("{}: {error}", file.display())))
}
