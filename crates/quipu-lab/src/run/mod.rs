//! One run in virtual time: a client that loads a page and a server that has it, or flows, or both.
//!
//! `engine` is the seam to the transport, a `party` is one of the two to a connection, `tls` makes both
//! ends' handshakes; `client` is the browser with its `requests` and its `loading`, `server` answers
//! after each object's think time, `body` makes and checks what is carried; `raw` has
//! both ends of a page without HTTP. A body that is missing or
//! wrong is an error of the run, never a good result.
//!
//! A `flow` is a connection that carries `bulk`; `cross` is traffic that takes no notice of anything;
//! `traffic` has the hosts of both and measures them. `topology` lays the links
//! that join all hosts. `series` looks at all of it every so long.

mod body;
mod bulk;
mod client;
mod cross;
mod engine;
mod flow;
mod host;
mod loading;
mod party;
mod raw;
mod requests;
mod series;
mod server;
mod tls;
mod topology;
mod traffic;
mod wire;

use quipu_base::{Bytes, Instant, PathId};
use quipu_quic::Connection;
use quipu_sim::{RunEnd, TopologyError, World, WorldConfig};
use thiserror::Error;

pub use crate::plan::{Cell, Plan};
use crate::results::{End, ObjectRecord, PathRecord, RunRecord};
use crate::scenario::{LinkError, Scenario, Sender};
pub use body::Bodies;
pub(crate) use body::file_hash;
pub use engine::SetupError;
pub(crate) use engine::unsupported;
use host::Host;
use loading::Loading;
pub use series::SeriesSink;
use series::{Sampler, Watched};
use topology::Topology;
use traffic::Traffic;

/// The request field that names the object: several objects of a recording may have one URL.
const OBJECT_FIELD: &str = "object";
/// What the field says of an object that only warms the connection up.
const WARM_UP: &str = "warm";
/// What time series call the connection of the page.
const PAGE_FLOW: &str = "page";

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
    /// Raw streams are not as they were to be.
    #[error("raw streams at the {end} failed after {at}: {reason}")]
    Streams {
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
    /// The time series could not be written.
    #[error("cannot write the time series: {0}")]
    Series(std::io::Error),
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
    run_in_world(plan, cell, None)
}

/// The same, with its time series handed to `rows` if the scenario asks for one. The record is the
/// same with any series and without.
///
/// # Errors
/// As [`run`], and if `rows` refuses one.
pub fn run_sampled(
    plan: &Plan,
    cell: Cell,
    rows: &mut SeriesSink<'_>,
) -> Result<RunRecord, RunError> {
    run_in_world(plan, cell, Some(rows))
}

fn run_in_world(
    plan: &Plan,
    cell: Cell,
    rows: Option<&mut SeriesSink<'_>>,
) -> Result<RunRecord, RunError> {
    let scenario = &plan.scenario;
    let mut world = World::new(WorldConfig {
        host_jitter: scenario.host_jitter,
        max_payload: engine::datagram_size(scenario),
        ..WorldConfig::new(scenario.run_seed(cell.run))
    });
    let network = &plan.networks[cell.network].network;
    let topology = Topology::new(&mut world, network, scenario.link_overhead)?;
    let mut watched = Vec::new();
    let page = if plan.pages.is_empty() {
        None
    } else {
        let ends = Host::pair(plan, cell)?.map(|host| world.add_node(host));
        let paths = 0..network.paths.len();
        topology.join(&mut world, ends[0], ends[1], 0, paths.clone())?;
        watched.extend(Watched::pair(PAGE_FLOW, sender(scenario), ends, &topology, paths));
        Some(ends)
    };
    let traffic = Traffic::add(plan, cell, &mut world, &topology)?;
    watched.extend(traffic.watched(plan, cell, &topology));
    let mut sampler = rows.and_then(|rows| Sampler::new(scenario, watched, rows));

    let length = if page.is_some() { scenario.time_limit } else { scenario.duration };
    let limit = Instant::ZERO + length;
    let mut ended_flows = 0;
    let goes_on = |world: &World<Host>| match page {
        Some(ends) => ends.iter().all(|end| !world.node(*end).is_done()),
        None => !traffic.have_flows_ended(world, &mut ended_flows),
    };
    let (end, measured) = traffic.run(plan, cell, &mut world, limit, goes_on, sampler.as_mut())?;
    let at = world.now();
    let (mut nodes, ()) = world.into_parts();
    if let Some(error) = nodes.iter_mut().find_map(Host::take_error) {
        return Err(error);
    }
    let record = match page {
        Some(_) => of_page(&nodes, at, end, sender(scenario))?,
        None => RunRecord { ended_at: at, ..RunRecord::default() },
    };
    Ok(RunRecord { traffic: measured, ..record })
}

/// The end that sends what is loaded.
fn sender(scenario: &Scenario) -> End {
    match scenario.raw.sender {
        Sender::Client if scenario.http.is_raw() => End::Client,
        Sender::Client | Sender::Server => End::Server,
    }
}

/// What the nodes of a run that ended at `at` measured of its page.
fn of_page(nodes: &[Host], at: Instant, end: RunEnd, sender: End) -> Result<RunRecord, RunError> {
    let reader = nodes.iter().find_map(|node| Some((node, node.loading()?)));
    // The client is added before the server.
    let mut connections = nodes.iter().filter_map(Host::page_connection);
    let (Some((reader, loading)), client, server) =
        (reader, connections.next(), connections.next())
    else {
        return Err(RunError::Unfinished { at, open: 0, objects: 0 });
    };
    let record = match end {
        RunEnd::Condition => record(at, loading, client.zip(server), sender),
        _ => None,
    };
    let Some(mut record) = record else {
        let (open, objects) = (loading.open(), loading.objects().len());
        return Err(RunError::Unfinished { at, open, objects });
    };
    reader.complete_record(&mut record);
    record.overridden += nodes.iter().map(Host::overridden).sum::<u64>();
    Ok(record)
}

/// What was measured of a load that ended at `at` over the connections of client and server; `None` if
/// it did not end.
fn record(
    at: Instant,
    loading: &Loading,
    connections: Option<(&Connection, &Connection)>,
    sender: End,
) -> Option<RunRecord> {
    let (client, server) = connections?;
    let timeline = loading.timeline()?;
    let metrics = timeline.page_metrics()?;
    let start = timeline.started_at()?;
    let connected_at = client.connected_at()?;
    let object = |spec: &quipu_web::page::Object| {
        let times = timeline.object_times(spec.id)?;
        Some(ObjectRecord {
            object: spec.id.0,
            body: spec.response_bytes,
            held: spec.holds_load(),
            stream: None,
            requested_at: start + times.requested,
            first_byte_at: loading.first_byte_at(spec.id)?,
            completed_at: start + times.since_page_start,
            since_page_start: times.since_page_start,
            since_request: times.since_request,
        })
    };
    let counters = match sender {
        End::Server => server.scheduler_counters(),
        End::Client => client.scheduler_counters(),
    };
    Some(RunRecord {
        sender,
        connect_time: connected_at - Instant::ZERO,
        page_time: metrics.page_time,
        object_index: metrics.object_index,
        byte_index: metrics.byte_index,
        critical_time: metrics.critical_time,
        path_switches: counters.path_switches,
        refused: counters.refused,
        overridden: counters.overridden,
        ended_at: at,
        objects: loading.objects().iter().filter_map(object).collect(),
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
