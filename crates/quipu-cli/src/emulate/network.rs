//! The links of a simulated run for the emulator.

use quipu_emu::{Described, LinkId, Links, Topology};
use quipu_lab::base::Bytes;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::{Way, wiring};

use crate::failure::Failure;

/// Bytes of the headers of IP and UDP, which packets have with them.
const HEADERS: Bytes = Bytes(28);

/// Hosts and links of a run.
pub(crate) struct Emulated {
    pub(crate) topology: Topology,
    pub(crate) links: Links,
}

impl Emulated {
    /// Those of the run of `cell`: the clients and servers of the scenario, and links with the chance that they have in
    /// the simulated run.
    ///
    /// # Errors
    /// If the network is a real one, or there are more hosts than can be emulated.
    pub(crate) fn new(plan: &Plan, cell: Cell) -> Result<Emulated, Failure> {
        let overhead = Bytes(plan.scenario.link_overhead.0.saturating_sub(HEADERS.0));
        let make = move |plan: &Plan| wiring(plan, cell, overhead);
        let first = make(plan).map_err(Failure::usage)?;
        let names = names(plan, cell, &first.ways, first.links.len()).into_iter();
        let described = names.zip(&first.least_delays);
        let described = described.map(|(name, &least_delay)| Described { name, least_delay });
        let again = plan.clone();
        let links = Links::made_by(described.collect(), move || Ok(make(&again)?.links));
        let mut topology = Topology::new();
        let (mut clients, mut servers) = (Vec::new(), Vec::new());
        for Way { client, server, path, up, down } in &first.ways {
            while clients.len() <= *client as usize {
                clients.push(topology.add_client().map_err(Failure::usage)?);
            }
            while servers.len() <= *server as usize {
                servers.push(topology.add_server().map_err(Failure::usage)?);
            }
            let of = |places: &[usize]| -> Vec<LinkId> {
                // There are far fewer.
                places.iter().map(|place| LinkId::new(*place as u32)).collect()
            };
            let index = u8::try_from(*path).unwrap_or(u8::MAX);
            let (client, server) = (clients[*client as usize], servers[*server as usize]);
            topology.add_path(index, client, server, &of(up), &of(down)).map_err(Failure::usage)?;
        }
        Ok(Emulated { topology, links })
    }
}

/// What reports call the links: by the first path that leads over them, and their place on its way.
fn names(plan: &Plan, cell: Cell, ways: &[Way], count: usize) -> Vec<String> {
    let mut names = vec![String::new(); count];
    let paths = &plan.run_network(cell).network.paths;
    for way in ways {
        let path = paths.get(way.path).map_or("", |path| &path.name);
        for (direction, links) in [("up", &way.up), ("down", &way.down)] {
            for (place, link) in links.iter().enumerate() {
                let Some(name) = names.get_mut(*link).filter(|name| name.is_empty()) else {
                    continue;
                };
                *name = match links.len() {
                    1 => format!("{path}.{direction}"),
                    _ => format!("client{}.{path}.{direction}.{place}", way.client),
                };
            }
        }
    }
    names
}
