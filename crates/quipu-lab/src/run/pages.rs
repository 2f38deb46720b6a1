//! The pages of a run: what each of them measured when it was there, client by client, one after the
//! other.

use std::sync::Arc;

use quipu_base::{Duration, Instant, PathId};
use quipu_link::LinkConfig;
use quipu_quic::Connection;
use quipu_sim::{NodeId, World};
use quipu_web::page::ObjectId;

use super::PAGE_FLOW;
use super::asked::VisitObject;
use super::bell::Bell;
use super::error::{RunError, SetupError};
use super::host::Host;
use super::instruments::Setting;
use super::origins::Origins;
use super::pairs::pair_of_page;
use super::series::Watched;
use super::topology::{Hosts, Topology};
use crate::path_record;
use crate::plan::{Plan, RunNetwork};
use quipu_record::{ConnectionRecord, End, PathRecord, RunRecord};

/// Watches the pages of all clients as they come.
pub(super) struct Pages<'a> {
    setting: Setting<'a>,
    visitors: Vec<Visitor>,
    /// Rung by hosts that have something to take stock of.
    bell: Bell,
    /// When the first of the pages under way is given up.
    limit: Instant,
    /// Whether there is nothing to wait for: all pages are there, or one will never be.
    ended: bool,
}

/// A client and its servers.
struct Visitor {
    client: u32,
    /// The client's node.
    node: NodeId,
    /// The servers' nodes, by number of connection.
    servers: Vec<NodeId>,
    origins: Origins,
    /// When the page under way is given up.
    limit: Instant,
    /// What was counted until the end of the page before.
    before: RunRecord,
    records: Vec<RunRecord>,
}

impl<'a> Pages<'a> {
    /// Adds all clients and their servers to `world`, joined over the network of `topology`.
    pub(super) fn add(
        setting: Setting<'a>,
        world: &mut World<Host>,
        topology: &mut Topology,
    ) -> Result<Pages<'a>, RunError> {
        let Setting { plan, cell, .. } = setting;
        let mut pages = Pages {
            setting,
            visitors: Vec::new(),
            bell: Bell::default(),
            limit: Instant::ZERO,
            ended: false,
        };
        let paths = setting.network().network.paths.len();
        for client in 0..plan.scenario.clients.count {
            let origins = Origins::new(plan, cell, client).map_err(SetupError::from)?;
            let count = origins.count();
            let pair = |client, line| pair_of_page(plan, client, line, count);
            let pairs: Vec<u16> = (0..count).map(|line| pair(client, line)).collect();
            let hosts = Host::of_client(setting, client, &origins, &pairs, &pages.bell)?;
            let mut nodes = Vec::with_capacity(hosts.len());
            for host in hosts {
                let end = if nodes.is_empty() { End::Client } else { End::Server };
                nodes.push(world.add_host(host, &setting.scenario().host_costs(end))?);
            }
            let Some((&node, servers)) = nodes.split_first() else { continue };
            let servers = servers.to_vec();
            for ((line, &server), &number) in servers.iter().enumerate().zip(&pairs) {
                let hosts = Hosts {
                    number,
                    client: pair_of_page(plan, client, 0, 1),
                    server: pair(plan.scenario.clients.server_of(client), line),
                    far: far(plan, &origins, line),
                };
                topology.join(world, [node, server], hosts, 0..paths)?;
            }
            let limit = plan.client_start(cell.run, client) + plan.scenario.time_limit;
            pages.visitors.push(Visitor {
                client,
                node,
                servers,
                origins,
                limit,
                before: RunRecord::default(),
                records: Vec::new(),
            });
        }
        pages.find_limit();
        Ok(pages)
    }

    /// Both ends of all connections, for time series.
    pub(super) fn watched(&self, topology: &Topology) -> Vec<Watched> {
        let mut watched = Vec::new();
        let sender = self.setting.scenario().sender();
        let paths = self.setting.network().network.paths.len();
        for visitor in &self.visitors {
            for (line, &server) in visitor.servers.iter().enumerate() {
                let flow = flow_name(visitor.client, line, &visitor.origins);
                let ends = [(visitor.node, line), (server, 0)];
                watched.extend(Watched::pair(&flow, sender, ends, topology, 0..paths));
            }
        }
        watched
    }

    /// Until when the run lasts at most.
    pub(super) fn longest(&self) -> Instant {
        let session = self.setting.scenario().session;
        let longest = |visitor: &Visitor| {
            let readings = (1..session).map(|next| self.reading_after(visitor.client, next - 1));
            let reading = readings.fold(Duration::ZERO, |sum, time| sum + time);
            let later = self.setting.scenario().time_limit.saturating_mul(u64::from(session - 1));
            visitor.limit + reading + later
        };
        self.visitors.iter().map(longest).max().unwrap_or(Instant::ZERO)
    }

    fn reading_after(&self, client: u32, visit: u32) -> Duration {
        let page = &self.setting.plan.pages[self.setting.cell.page];
        page.reading_time_of(self.setting.cell.run, client, visit)
    }

    /// True while there is a page to wait for. Takes stock of those that are there: to be called after
    /// each event.
    pub(super) fn go_on(&mut self, world: &World<Host>) -> bool {
        if self.bell.hear() {
            for index in 0..self.visitors.len() {
                self.ended |= !self.take_stock(index, world);
            }
            self.find_limit();
        }
        !self.ended && world.now() <= self.limit
    }

    /// Takes stock of the pages of a client that are there; false if one will never be.
    fn take_stock(&mut self, index: usize, world: &World<Host>) -> bool {
        loop {
            let visitor = &self.visitors[index];
            let visit = visitor.visit();
            if visitor.ends(world).any(Host::has_failed) {
                return false;
            }
            let is_there = visitor.ends(world).any(|end| end.is_done(visit));
            if visit >= self.setting.scenario().session || !is_there {
                return true;
            }
            let Some(total) = visitor.measured(world, visit, self.setting) else {
                return false;
            };
            let reading = self.reading_after(visitor.client, visit);
            let visitor = &mut self.visitors[index];
            visitor.records.push(total.since(&visitor.before));
            visitor.before = total;
            visitor.limit = world.now() + reading + self.setting.scenario().time_limit;
        }
    }

    /// Clients that still wait for a page decide how long the run may last.
    fn find_limit(&mut self) {
        let session = self.setting.scenario().session;
        let waiting = self.visitors.iter().filter(|visitor| visitor.visit() < session);
        match waiting.map(|visitor| visitor.limit).min() {
            Some(limit) => self.limit = limit,
            None => self.ended = true,
        }
    }

    /// The records of all pages of a run that ended at `at`.
    ///
    /// # Errors
    /// If not all are there.
    pub(super) fn finish(self, nodes: &[Host], at: Instant) -> Result<Vec<RunRecord>, RunError> {
        let session = self.setting.scenario().session;
        let mut records = Vec::new();
        let mut missing = (0, 0);
        for visitor in self.visitors {
            let visit = visitor.visit();
            if visit < session {
                let own = visitor.nodes().filter_map(|node| nodes.get(node.index()));
                let loading = own.filter_map(|node| node.loading(visit)).next();
                let (open, objects) = loading.map_or((0, 0), |it| (it.open(), it.objects().len()));
                missing = (missing.0 + open, missing.1 + objects);
            }
            records.extend(visitor.records);
        }
        let pages = u64::from(session) * u64::from(self.setting.scenario().clients.count);
        if records.len() as u64 == pages {
            return Ok(records);
        }
        let (open, objects) = missing;
        Err(RunError::Unfinished { at, open, objects })
    }
}

impl Visitor {
    /// The nodes of the client, then of its servers.
    fn nodes(&self) -> impl Iterator<Item = NodeId> {
        std::iter::once(self.node).chain(self.servers.iter().copied())
    }

    fn ends<'a>(&'a self, world: &'a World<Host>) -> impl Iterator<Item = &'a Host> {
        self.nodes().map(|node| world.node(node))
    }

    /// Number of the page under way; that of all once they are there.
    fn visit(&self) -> u32 {
        // A session has as many as a `u32` counts.
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// What was measured of page `visit`, and counted since the start of the run.
    fn measured(&self, world: &World<Host>, visit: u32, setting: Setting<'_>) -> Option<RunRecord> {
        let (scenario, network) = (setting.scenario(), setting.network());
        let mut ends = self.ends(world);
        let (reader, loading) = ends.find_map(|end| Some((end, end.loading(visit)?)))?;
        let client = world.node(self.node);
        let mut record = loading.record(world.now(), scenario.sender())?;
        record.visit = visit;
        record.client = self.client;
        record.radios = client.radio_records();
        let connected_at = client.connection(0)?.connected_at()?;
        record.connect_time = connected_at - client.opened_at(0)?;
        for (line, &server) in self.servers.iter().enumerate() {
            let server = world.node(server);
            add_ends(&mut record, line, network, [client.connection(line), server.connection(0)]);
            record.overridden += server.overridden();
        }
        for object in &mut record.objects {
            let asked = VisitObject { visit, object: ObjectId(object.object) };
            object.connection = number(self.origins.number_of(asked));
        }
        record.connections = (0..self.servers.len())
            .filter_map(|line| {
                let of_line = record.objects.iter().filter(|it| it.connection == number(line));
                Some(ConnectionRecord {
                    connection: number(line),
                    origin: Arc::clone(self.origins.name(line)?),
                    opened_at: client.opened_at(line)?,
                    connected_at: client.connection(line).and_then(Connection::connected_at),
                    objects: of_line.clone().count() as u64,
                    body: of_line.map(|object| object.body).sum(),
                })
            })
            .collect();
        reader.complete_record(&mut record);
        Some(record)
    }
}

/// The link that the scenario's `servers` put between the server of connection `line` and its paths.
fn far(plan: &Plan, origins: &Origins, line: usize) -> Option<LinkConfig> {
    let host = origins.host(line)?;
    let server = plan.scenario.servers.iter().find(|server| server.holds(host))?;
    Some(server.config(plan.scenario.link_overhead))
}

/// What time series call a connection: `page`, `page:3` of the fourth client, `page@cdn.example` of a
/// further origin.
fn flow_name(client: u32, line: usize, origins: &Origins) -> String {
    let of_client = if client == 0 { String::new() } else { format!(":{client}") };
    let host = origins.host(line).filter(|_| line > 0);
    let of_host = host.map_or(String::new(), |host| format!("@{host}"));
    format!("{PAGE_FLOW}{of_client}{of_host}")
}

fn number(line: usize) -> u32 {
    // At most 512.
    u32::try_from(line).unwrap_or(u32::MAX)
}

/// Adds to `record` what both ends of connection `line` counted, which goes over `network`, if there are
/// these ends: the client and the server.
fn add_ends(
    record: &mut RunRecord,
    line: usize,
    network: &RunNetwork,
    [client, server]: [Option<&Connection>; 2],
) {
    let sending = match record.sender {
        End::Server => server,
        End::Client => client,
    };
    if let Some(sending) = sending {
        let counters = sending.scheduler_counters();
        record.path_switches += counters.path_switches;
        record.refused += counters.refused;
        record.overridden += counters.overridden;
    }
    for (end, connection) in [(End::Server, server), (End::Client, client)] {
        let of = |it| path_records(end, number(line), network, it);
        let paths = connection.into_iter().flat_map(of);
        record.paths.extend(paths);
    }
}

fn path_records(
    end: End,
    number: u32,
    network: &RunNetwork,
    connection: &Connection,
) -> impl Iterator<Item = PathRecord> {
    connection.path_counters().into_iter().map(move |(PathId(path), counters)| {
        path_record(end, number, network.position(path), &counters)
    })
}
