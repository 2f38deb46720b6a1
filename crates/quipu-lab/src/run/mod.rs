//! One run in virtual time: a client that loads a page and a server that has it, or flows, or both.
//!
//! `engine` is the seam to the transport, a `party` is one of the two to a connection, `tls` makes both
//! ends' handshakes; `client` is the browser with its `requests` and its `loading`, `server` answers
//! after each object's think time, `body` makes and checks what is carried. A body that is missing or
//! wrong is an error of the run, never a good result.
//!
//! A `flow` is a connection that carries `bulk`; `cross` is traffic that takes no notice of anything;
//! `traffic` has the hosts of both and measures them. `topology` lays the links
//! that join all hosts.

mod body;
mod bulk;
mod client;
mod cross;
mod engine;
mod flow;
mod host;
mod loading;
mod party;
mod requests;
mod server;
mod tls;
mod topology;
mod traffic;

use quipu_base::{Bytes, Instant, PathId};
use quipu_quic::Connection;
use quipu_sim::{RunEnd, TopologyError, World, WorldConfig};
use thiserror::Error;

pub use crate::plan::{Cell, Plan};
use crate::results::{End, ObjectRecord, PathRecord, RunRecord};
use crate::scenario::LinkError;
pub use body::Bodies;
pub(crate) use body::file_hash;
use client::Browser;
pub use engine::SetupError;
pub(crate) use engine::unsupported;
use host::Host;
use server::Site;
use topology::Topology;
use traffic::Traffic;

/// The request field that names the object: several objects of a recording may have one URL.
const OBJECT_FIELD: &str = "object";
/// What the field says of an object that only warms the connection up.
const WARM_UP: &str = "warm";

/// A run that gave no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// An end could not be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The links make no topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] LinkError),
    /// The world does not come to an end.
    #[error(transparent)]
    World(#[from] quipu_sim::RunError),
    /// The connection ended.
    #[error("the connection of the {end} ended after {at}: {reason}")]
    Closed {
        /// Whose.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// HTTP failed.
    #[error("HTTP at the {end} failed after {at}: {reason}")]
    Http {
        /// At which end.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// The connection of a flow ended before its time, or a stream of it failed.
    #[error("the {end} of flow {name} failed after {at}: {reason}")]
    Flow {
        /// The flow.
        name: String,
        /// At which end.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// A body is not the one that the server sent.
    #[error("object {object} arrived with {received} and a wrong content; expected {expected}")]
    WrongBody {
        /// The object.
        object: u32,
        /// Bytes that arrived.
        received: Bytes,
        /// Bytes that it has.
        expected: Bytes,
    },
    /// The load did not end.
    #[error("the load had not ended after {at}: {open} of {objects} objects were missing")]
    Unfinished {
        /// When it was given up.
        at: Instant,
        /// Objects that were not complete.
        open: usize,
        /// All objects.
        objects: usize,
    },
}

/// Runs `cell` of `plan`.
///
/// # Errors
/// If an end cannot be set up, the page does not arrive whole within the scenario's time limit, or a
/// flow fails.
pub fn run(plan: &Plan, cell: Cell) -> Result<RunRecord, RunError> {
    let scenario = &plan.scenario;
    let mut world = World::new(WorldConfig {
        host_jitter: scenario.host_jitter,
        max_payload: engine::datagram_size(scenario),
        ..WorldConfig::new(scenario.run_seed(cell.run))
    });
    let network = &plan.networks[cell.network].network;
    let topology = Topology::new(&mut world, network, scenario.link_overhead)?;
    let page = if plan.pages.is_empty() {
        None
    } else {
        let client = world.add_node(Host::Client(Box::new(Browser::new(plan, cell)?)));
        let server = world.add_node(Host::Server(Box::new(Site::new(plan, cell)?)));
        topology.join(&mut world, client, server, 0, 0..network.paths.len())?;
        Some((client, server))
    };
    let traffic = Traffic::add(plan, cell, &mut world, &topology)?;

    let length = if page.is_some() { scenario.time_limit } else { scenario.duration };
    let limit = Instant::ZERO + length;
    let mut ended_flows = 0;
    let goes_on = |world: &World<Host>| match page {
        Some((client, server)) => !world.node(client).is_done() && !world.node(server).has_failed(),
        None => !traffic.have_flows_ended(world, &mut ended_flows),
    };
    let (end, measured) = traffic.run(plan, cell, &mut world, limit, goes_on)?;
    let at = world.now();
    let (nodes, ()) = world.into_parts();
    let record = of_nodes(plan, cell, nodes, at, end)?;
    Ok(RunRecord { traffic: measured, ..record })
}

/// What the nodes of a run that has ended measured, but for its traffic.
fn of_nodes(
    plan: &Plan,
    cell: Cell,
    nodes: Vec<Host>,
    at: Instant,
    end: RunEnd,
) -> Result<RunRecord, RunError> {
    let mut browser = None;
    let mut site = None;
    for node in nodes {
        match node {
            Host::Client(node) => browser = Some(node),
            Host::Server(node) => site = Some(node),
            Host::Flow(mut flow) => flow.take_error().map_or(Ok(()), Err)?,
            Host::Sender(_) | Host::Sink(_) => {}
        }
    }
    let (Some(mut browser), Some(mut site)) = (browser, site) else {
        return Ok(RunRecord { ended_at: at, ..RunRecord::default() });
    };
    if let Some(error) = browser.take_error().or_else(|| site.take_error()) {
        return Err(error);
    }
    if end != RunEnd::Condition {
        return Err(unfinished(plan, cell, at, browser.open()));
    }
    record(plan, cell, at, &browser, &site)
}

fn unfinished(plan: &Plan, cell: Cell, at: Instant, open: usize) -> RunError {
    RunError::Unfinished { at, open, objects: plan.pages[cell.page].page.objects().len() }
}

fn record(
    plan: &Plan,
    cell: Cell,
    at: Instant,
    browser: &Browser,
    site: &Site,
) -> Result<RunRecord, RunError> {
    let missing = || unfinished(plan, cell, at, browser.open());
    let timeline = browser.timeline().ok_or_else(missing)?;
    let metrics = timeline.page_metrics().ok_or_else(missing)?;
    let start = timeline.started_at().ok_or_else(missing)?;
    let client = browser.connection().ok_or_else(missing)?;
    let server = site.connection().ok_or_else(missing)?;
    let connected_at = client.connected_at().ok_or_else(missing)?;
    let object = |spec: &quipu_web::page::Object| {
        let times = timeline.object_times(spec.id)?;
        Some(ObjectRecord {
            object: spec.id.0,
            body: spec.response_bytes,
            held: spec.holds_load(),
            requested_at: start + times.requested,
            first_byte_at: browser.first_byte_at(spec.id)?,
            completed_at: start + times.since_page_start,
            since_page_start: times.since_page_start,
            since_request: times.since_request,
        })
    };
    let counters = server.scheduler_counters();
    Ok(RunRecord {
        connect_time: connected_at - Instant::ZERO,
        page_time: metrics.page_time,
        object_index: metrics.object_index,
        byte_index: metrics.byte_index,
        critical_time: metrics.critical_time,
        path_switches: counters.path_switches,
        refused: counters.refused,
        overridden: counters.overridden,
        ended_at: at,
        objects: plan.pages[cell.page].page.objects().iter().filter_map(object).collect(),
        paths: [(End::Server, server), (End::Client, client)]
            .into_iter()
            .flat_map(|(end, connection)| path_records(end, connection))
            .collect(),
        ..RunRecord::default()
    })
}

fn path_records(end: End, connection: &Connection) -> impl Iterator<Item = PathRecord> {
    connection.path_counters().into_iter().map(move |(PathId(path), counters)| PathRecord {
        end,
        path,
        packets_sent: counters.packets_sent,
        datagrams_received: counters.packets_received,
        bytes_sent: Bytes(counters.bytes_sent),
        bytes_resent: Bytes(counters.again_bytes),
        bytes_copies: Bytes(counters.copy_bytes),
        bytes_lost: Bytes(counters.bytes_lost),
        bytes_spurious: Bytes(counters.bytes_spurious),
    })
}

#[cfg(test)]
mod tests;
