//! Flows and cross traffic of a run: their hosts, and what is measured of them and of the links.

use std::ops::Range;

use quipu_base::{Bytes, Duration, Instant, PathId};
use quipu_quic::Connection;
use quipu_sim::{Envelope, NodeId, PathLinks, RunEnd, World};

use super::application::Application as _;
use super::cross::{CrossSender, CrossSink};
use super::error::RunError;
use super::flow::{FlowEnd, sender_of};
use super::host::Host;
use super::instruments::Setting;
use super::pairs::{pair_of_cross, pair_of_flow};
use super::series::{self, Sampler, Watched};
use super::topology::{Hosts, Topology, addresses};
use crate::plan::RunNetwork;
use quipu_record::stats::Histogram;
use quipu_record::{CrossRecord, End, FlowPathRecord, FlowRecord, LinkRecord, TrafficRecord};
use quipu_scenario::{Direction, Measure, Network, OwnLinks};

/// The hosts of all flows and of all cross traffic.
pub(super) struct Traffic<'a> {
    setting: Setting<'a>,
    /// Per flow that is there: who writes and who reads.
    flows: Vec<Pair>,
    /// The same of cross traffic.
    cross: Vec<Pair>,
    /// Of each path that has links of its own: its position, and its links.
    links: Vec<(usize, PathLinks)>,
    window: Range<Instant>,
}

struct Pair {
    /// Position of the flow or of the cross traffic in the scenario.
    index: usize,
    sender: NodeId,
    receiver: NodeId,
}

/// What has been counted up to an instant.
struct Snapshot {
    at: Instant,
    flows: Vec<FlowCount>,
    /// Sent and received.
    cross: Vec<[Bytes; 2]>,
    /// Per path that has links of its own: down and up.
    links: Vec<[LinkCount; 2]>,
}

#[derive(Clone, Default)]
struct FlowCount {
    received: Bytes,
    packets_sent: u64,
    packets_lost: u64,
    bytes_lost: Bytes,
    /// UDP payload that came, by path of the connection.
    paths: Vec<(PathId, Bytes)>,
}

#[derive(Clone, Copy, Default)]
struct LinkCount {
    delivered: Bytes,
    dropped: u64,
}

/// The window as instants; its end is that of the run if that is earlier.
fn window(measure: &Measure) -> Range<Instant> {
    let until = measure.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until);
    Instant::ZERO + measure.from..until
}

impl<'a> Traffic<'a> {
    /// Adds the hosts of all flows, then of all cross traffic, and joins them to the network.
    pub(super) fn add(
        setting: Setting<'a>,
        world: &mut World<Host>,
        topology: &mut Topology,
    ) -> Result<Traffic<'a>, RunError> {
        let (scenario, network) = (setting.scenario(), setting.network());
        let window = window(&scenario.measure);
        let own = network.network.paths.iter().enumerate();
        let own = own.filter(|(_, path)| path.own_links().is_some());
        let links = own.map(|(index, _)| (index, topology.shared(index))).collect();
        let mut traffic = Traffic { setting, flows: Vec::new(), cross: Vec::new(), links, window };
        let flows = scenario.flows.iter().enumerate();
        for (index, flow) in flows.filter(|(index, _)| network.has_flow(*index)) {
            let mut add = |end| {
                let host = FlowEnd::new(setting, index, end, traffic.window.clone())?;
                let costs = scenario.host_costs(end);
                Ok::<_, RunError>(world.add_host(Host::Flow(Box::new(host)), &costs)?)
            };
            let (client, server) = (add(End::Client)?, add(End::Server)?);
            let paths = network.flow_paths[index].iter().copied();
            topology.join(world, [client, server], Hosts::of_pair(pair_of_flow(index)), paths)?;
            traffic.flows.push(match sender_of(flow) {
                End::Client => Pair { index, sender: client, receiver: server },
                End::Server => Pair { index, sender: server, receiver: client },
            });
        }
        let (seed, overhead) = (scenario.run_seed(setting.cell.run), scenario.link_overhead);
        let cross = scenario.cross.iter().zip(&network.cross_paths).enumerate();
        for (index, (spec, path)) in cross {
            let Some(path) = *path else { continue };
            let pair = pair_of_cross(setting.plan, index);
            let [client, server] = addresses(pair, path);
            let (local, remote) = match spec.direction {
                Direction::Down => (server, client),
                Direction::Up => (client, server),
            };
            let route = Envelope { local, remote, ecn: 0 };
            let sender = CrossSender::new(spec, overhead, route, seed, index);
            let sender = world.add_node(Host::Sender(Box::new(sender)));
            let receiver = world.add_node(Host::Sink(CrossSink::new(overhead)));
            let (client, server) = match spec.direction {
                Direction::Down => (receiver, sender),
                Direction::Up => (sender, receiver),
            };
            topology.join(world, [client, server], Hosts::of_pair(pair), [path])?;
            traffic.cross.push(Pair { index, sender, receiver });
        }
        Ok(traffic)
    }

    /// Both ends of all flows, for time series.
    pub(super) fn watched(&self, topology: &Topology) -> Vec<Watched> {
        let (scenario, network) = (self.setting.scenario(), self.setting.network());
        let flows = self.flows.iter();
        flows
            .flat_map(|pair| {
                let spec = &scenario.flows[pair.index];
                let paths = network.flow_paths[pair.index].iter().copied();
                let sender = sender_of(spec);
                let nodes = match sender {
                    End::Client => [pair.sender, pair.receiver],
                    End::Server => [pair.receiver, pair.sender],
                };
                Watched::pair(&spec.name, sender, nodes.map(|node| (node, 0)), topology, paths)
            })
            .collect()
    }

    /// Runs the world as long as `goes_on`, at most to `limit`, and takes stock where the window
    /// begins and ends.
    pub(super) fn run(
        &self,
        world: &mut World<Host>,
        limit: Instant,
        mut goes_on: impl FnMut(&World<Host>) -> bool,
        mut sampler: Option<&mut Sampler<'_, '_>>,
    ) -> Result<(RunEnd, TrafficRecord), RunError> {
        let mut run_to = |world: &mut World<Host>, stop: Instant| {
            let sampler = sampler.as_deref_mut();
            let end = series::run_while(world, stop, &mut goes_on, Host::connection, sampler)?;
            if end != RunEnd::Condition {
                // Without an event there; the world's present may lie before.
                world.run_until(stop)?;
            }
            Ok::<_, RunError>(end)
        };
        let mut end = run_to(world, self.window.start.min(limit))?;
        let from = self.snapshot(world)?;
        if end != RunEnd::Condition {
            end = run_to(world, self.window.end.min(limit))?;
        }
        let until = self.snapshot(world)?;
        if end != RunEnd::Condition && world.now() < limit {
            end = run_to(world, limit)?;
        }
        Ok((end, self.record(world, &from, &until)))
    }

    /// True if all flows have ended. `first` is a flow before which all have; it moves on.
    pub(super) fn have_flows_ended(&self, world: &World<Host>, first: &mut usize) -> bool {
        while let Some(pair) = self.flows.get(*first) {
            if !flow(world, pair.receiver).is_none_or(FlowEnd::is_done) {
                return false;
            }
            *first += 1;
        }
        true
    }

    fn snapshot(&self, world: &World<Host>) -> Result<Snapshot, RunError> {
        let cross = |pair: &Pair| match (world.node(pair.sender), world.node(pair.receiver)) {
            (Host::Sender(sender), Host::Sink(sink)) => [sender.sent(), sink.received()],
            _ => [Bytes::ZERO; 2],
        };
        let link = |id| {
            let stats = world.link_stats(id)?;
            // What is still in the queue has been promised, not delivered; but of what waits in a
            // managed queue nothing has been promised.
            let promised = stats.delivered.bytes + stats.waiting.bytes;
            let delivered = promised - world.queued(id)?;
            Ok::<_, RunError>(LinkCount { delivered, dropped: stats.dropped().datagrams })
        };
        Ok(Snapshot {
            at: world.now(),
            flows: self.flows.iter().map(|pair| flow_count(world, pair)).collect(),
            cross: self.cross.iter().map(cross).collect(),
            links: self
                .links
                .iter()
                .map(|(_, links)| Ok([link(links.down)?, link(links.up)?]))
                .collect::<Result<_, RunError>>()?,
        })
    }

    fn record(&self, world: &World<Host>, from: &Snapshot, until: &Snapshot) -> TrafficRecord {
        let (scenario, network) = (self.setting.scenario(), self.setting.network());
        let counts = from.flows.iter().zip(&until.flows);
        let flows = self.flows.iter().zip(counts).map(|(pair, (before, after))| {
            let (spec, paths) = (&scenario.flows[pair.index], &network.flow_paths[pair.index]);
            let started_at = Instant::ZERO + spec.start;
            let ended_at = flow(world, pair.receiver).and_then(FlowEnd::ended_at);
            let round_trips = flow(world, pair.sender).map(FlowEnd::round_trips);
            let rtt = |nanos: Option<u64>| nanos.map(Duration::from_nanos);
            FlowRecord {
                flow: number(pair.index),
                started_at,
                ended_at,
                lived: ended_at.map_or(until.at, |at| at.min(until.at)) - started_at.max(from.at),
                bytes: after.received - before.received,
                rtt_mean: rtt(round_trips.and_then(Histogram::mean)),
                rtt_p95: rtt(round_trips.and_then(|samples| samples.percentile(95))),
                packets_sent: after.packets_sent.saturating_sub(before.packets_sent),
                packets_lost: after.packets_lost.saturating_sub(before.packets_lost),
                bytes_lost: after.bytes_lost - before.bytes_lost,
                paths: path_records(network, paths, before, after),
            }
        });
        let counts = from.cross.iter().zip(&until.cross);
        let cross = self.cross.iter().zip(counts).map(|(pair, (before, after))| CrossRecord {
            sender: number(pair.index),
            sent: after[0] - before[0],
            received: after[1] - before[1],
        });
        TrafficRecord {
            from: from.at,
            until: until.at,
            flows: flows.collect(),
            links: self.link_records(
                &network.network.for_run(scenario.run_seed(self.setting.cell.run)),
                from,
                until,
            ),
            cross: cross.collect(),
        }
    }

    fn link_records(
        &self,
        network: &Network,
        from: &Snapshot,
        until: &Snapshot,
    ) -> Vec<LinkRecord> {
        let owners = &self.setting.network().owners;
        let mut records = Vec::new();
        for ((path, _), (before, after)) in
            self.links.iter().zip(from.links.iter().zip(&until.links))
        {
            let Some(OwnLinks { down, up }) = network.paths[*path].own_links() else { continue };
            let links = [(Direction::Down, down), (Direction::Up, up)];
            for ((direction, link), (before, after)) in
                links.into_iter().zip(before.iter().zip(after))
            {
                records.push(LinkRecord {
                    path: number(owners[*path]),
                    direction: direction.into(),
                    delivered: after.delivered - before.delivered,
                    capacity: link.capacity(from.at, until.at),
                    dropped: after.dropped.saturating_sub(before.dropped),
                });
            }
        }
        records
    }
}

/// A position in a scenario or network, of which there are at most 100.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Per path of the connection, what came on it between two counts. `paths` are their positions in
/// `network`.
fn path_records(
    network: &RunNetwork,
    paths: &[usize],
    before: &FlowCount,
    after: &FlowCount,
) -> Vec<FlowPathRecord> {
    let record = |&(PathId(id), bytes): &(PathId, Bytes)| {
        let position = paths.get(usize::try_from(id).ok()?)?;
        let earlier = before.paths.iter().find(|(path, _)| *path == PathId(id));
        Some(FlowPathRecord {
            path: network.position(number(*position)),
            bytes: bytes - earlier.map_or(Bytes::ZERO, |(_, bytes)| *bytes),
        })
    };
    after.paths.iter().filter_map(record).collect()
}

/// The end of a flow that `node` is.
fn flow(world: &World<Host>, node: NodeId) -> Option<&FlowEnd> {
    match world.node(node) {
        Host::Flow(flow) => Some(flow),
        _ => None,
    }
}

fn flow_count(world: &World<Host>, pair: &Pair) -> FlowCount {
    let counters = |node| {
        let connection = flow(world, node).and_then(|flow| flow.connection(0));
        connection.map(Connection::path_counters).unwrap_or_default()
    };
    let mut count = FlowCount {
        received: flow(world, pair.receiver).map_or(Bytes::ZERO, FlowEnd::received),
        ..FlowCount::default()
    };
    for (_, sent) in counters(pair.sender) {
        count.packets_sent += sent.packets_sent;
        count.packets_lost += sent.packets_lost;
        count.bytes_lost += Bytes(sent.bytes_lost);
    }
    let came = counters(pair.receiver).into_iter();
    count.paths = came.map(|(path, came)| (path, Bytes(came.bytes_received))).collect();
    count
}
