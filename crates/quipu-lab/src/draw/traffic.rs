//! What runs over a network beside pages.

use quipu_base::Duration;

use quipu_scenario::units::Unit;
use quipu_scenario::{Clients, CrossKind, CrossSpec, FlowSpec, PathName, Scenario};

/// A line for several clients, and for each kind of server, flow and sender of cross traffic; empty
/// if there are none.
pub(super) fn traffic(scenario: &Scenario) -> String {
    let servers = scenario.servers.iter().map(|server| {
        format!("servers of {}: {} beyond the network\n", server.hosts, server.delay.print())
    });
    let flows = scenario.flows.iter().map(of_flow);
    let cross = scenario.cross.iter().map(of_cross);
    of_clients(scenario.clients).into_iter().chain(servers).chain(flows).chain(cross).collect()
}

/// Clients, if there are several.
fn of_clients(clients: Clients) -> Option<String> {
    let Clients { count, servers, spread, every } = clients;
    let from = match servers {
        None => "a server each".to_owned(),
        Some(1) => "one server".to_owned(),
        Some(several) => format!("{several} servers"),
    };
    let mut text = format!("{count} clients load from {from}");
    if !every.is_zero() {
        text.push_str(&format!(", one every {}", every.print()));
    }
    if !spread.is_zero() {
        text.push_str(&format!(", spread over {}", spread.print()));
    }
    (count > 1).then(|| text + "\n")
}

fn of_flow(flow: &FlowSpec) -> String {
    let paths = match flow.paths.as_slice() {
        [] => "all paths".to_owned(),
        [path] => format!("path {path}"),
        paths => {
            let names: Vec<&str> = paths.iter().map(PathName::as_str).collect();
            format!("paths {}", names.join(", "))
        }
    };
    let mut text = format!("flow {}: {} over {paths}", flow.name, flow.direction);
    if flow.congestion != "default" {
        text.push_str(&format!(", {}", flow.congestion));
    }
    if flow.streams > 1 {
        text.push_str(&format!(", {} streams", flow.streams));
    }
    if flow.bytes.is_some() {
        text.push_str(&format!(", {}", flow.bytes.print()));
    }
    text + &life(flow.start, flow.stop)
}

fn of_cross(sender: &CrossSpec) -> String {
    let CrossSpec { name, direction, path, kind, .. } = sender;
    let rate = sender.rate.print();
    let mut text = format!("cross traffic {name}: {direction} over path {path}, {kind}, {rate}");
    if *kind == CrossKind::OnOff {
        let (on, off) = (sender.on.print(), sender.off.print());
        text.push_str(&format!(" for {on} on, {off} off"));
    }
    text + &life(sender.start, sender.stop)
}

fn life(start: Duration, stop: Option<Duration>) -> String {
    let mut text = String::new();
    if !start.is_zero() {
        text.push_str(&format!(", from {}", start.print()));
    }
    if stop.is_some() {
        text.push_str(&format!(", until {}", stop.print()));
    }
    text.push('\n');
    text
}
