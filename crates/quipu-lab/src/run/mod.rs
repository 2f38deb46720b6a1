//! One run in virtual time: clients that load a page and servers that have it, or flows, or both.
//!
//! `engine` says what the ends of a connection are made of, `transport_config` their settings; a `party` is one of
//! the two, an `application` what it does with it, `tls` makes both ends' handshakes, `pairs` numbers connections and
//! their hosts;
//! `client` is the browser with its `requests` and its `visits` to pages (each a [`crate::loading`]), `server`
//! answers after each object's think time; `raw` has both ends of a page without HTTP. A body that is
//! missing or wrong is an `error` of the run, never a good result. `pages` has the hosts of all clients and
//! takes stock of each page that is there, when it hears the `bell`; `origins` says which connection an
//! object comes over.
//!
//! A `flow` is a connection that carries `bulk`; `cross` is traffic that takes no notice of anything;
//! `traffic` has the hosts of both and measures them. `topology` lays the links that join all hosts, and
//! `wiring` gives them to other drivers.
//! `series` looks at all of it every so long; `arrivals` takes note of what comes on which path, [`logs`]
//! of all that connections do, `meter` of the time that policies take: all three are `instruments`.

mod application;
mod arrivals;
mod asked;
mod bell;
mod bulk;
mod client;
mod cross;
mod engine;
mod error;
mod flow;
mod host;
mod http;
mod instruments;
pub mod logs;
mod meter;
mod origins;
mod pages;
mod pairs;
mod party;
mod radios;
mod raw;
mod requests;
mod series;
mod server;
mod tls;
mod topology;
mod traffic;
mod transport_config;
mod visits;
mod wire;
mod wiring;

use std::sync::Arc;

use quipu_base::Instant;
use quipu_sim::{World, WorldConfig};

use crate::plan::{Cell, Plan};
pub(crate) use arrivals::{Arrival, Arrivals};
pub use error::{RunError, SetupError};
use host::Host;
pub use instruments::Instruments;
use instruments::Setting;
pub use meter::{Clock, Meter, Taken};
use pages::Pages;
use quipu_record::RunRecord;
use quipu_scenario::Stack;
use series::Sampler;
pub use series::SeriesSink;
use topology::Topology;
use traffic::Traffic;
pub use transport_config::transport_config;
pub use wiring::{Way, Wiring, wiring};

/// The request field that names the object.
const OBJECT_FIELD: &str = "object";
/// What time series call the connection of the page, the first if there are several.
pub(crate) const PAGE_FLOW: &str = "page";

/// Runs `cell` of `plan`, looked at by `instruments`: a record for each client and each page of its session,
/// in their order, of which the first has the traffic; one without a page if there are flows only. Bounds are
/// left out: a [`Runner`](crate::batch::Runner) has them.
///
/// The time series goes to `rows`, if there are any and the scenario asks for one. The records are the same
/// with any instruments and rows, and without.
///
/// # Errors
/// If an end cannot be set up, a page does not arrive whole within the scenario's time limit, a flow
/// fails, `rows` refuses a row, or [`Plan::stop`] is set.
pub fn measure(
    plan: &Plan,
    cell: Cell,
    instruments: &Instruments,
    rows: Option<&mut SeriesSink<'_>>,
) -> Result<Vec<RunRecord>, RunError> {
    let setting = Setting { plan, cell, instruments };
    let stack = setting.row().stack;
    if stack != Stack::Quipu {
        return Err(RunError::OtherStack { stack });
    }
    let scenario = &plan.scenario;
    let mut world = World::new(WorldConfig {
        host_jitter: scenario.host_jitter,
        max_payload: engine::datagram_size(scenario),
        ..WorldConfig::new(scenario.run_seed(cell.run))
    });
    world.stop_on(Arc::clone(&plan.stop));
    let network = setting.network().network.for_run(scenario.run_seed(cell.run));
    let mut topology = Topology::new(&mut world, &network, scenario.link_overhead)?;
    let mut watched = Vec::new();
    let mut pages = if plan.pages.is_empty() {
        None
    } else {
        let pages = Pages::add(setting, &mut world, &mut topology)?;
        watched.extend(pages.watched(&topology));
        Some(pages)
    };
    let traffic = Traffic::add(setting, &mut world, &mut topology)?;
    watched.extend(traffic.watched(&topology));
    let mut sampler = rows.and_then(|rows| Sampler::new(scenario, watched, rows));

    let limit = pages.as_ref().map_or(Instant::ZERO + scenario.duration, Pages::longest);
    let mut ended_flows = 0;
    let goes_on = |world: &World<Host>| match &mut pages {
        Some(pages) => pages.go_on(world),
        None => !traffic.have_flows_ended(world, &mut ended_flows),
    };
    let (_, measured) = traffic.run(&mut world, limit, goes_on, sampler.as_mut())?;
    let at = world.now();
    let (mut nodes, ()) = world.into_parts();
    if let Some(error) = nodes.iter_mut().find_map(Host::take_error) {
        return Err(error);
    }
    let mut records = match pages {
        Some(pages) => pages.finish(&nodes, at)?,
        None => vec![RunRecord { ended_at: at, ..RunRecord::default() }],
    };
    if let Some(first) = records.first_mut() {
        first.traffic = measured;
    }
    Ok(records)
}

#[cfg(test)]
mod tests;
