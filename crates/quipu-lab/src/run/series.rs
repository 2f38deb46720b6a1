//! Samples of a run: connections and queues at chosen instants. Nothing of the run is touched.

use std::io;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_quic::{Connection, PathSample};
use quipu_sim::{LinkId, Node, NodeId, Observer, PathLinks, RunEnd, World};

use super::error::RunError;
use super::topology::Topology;
use quipu_record::{End, SeriesRow};
use quipu_scenario::{Scenario, SeriesEnds};

/// Takes the rows of a time series: in order of time, then of connections as the run has them, then
/// of paths, and after its paths each connection as a whole. An error ends the run.
pub type SeriesSink<'a> = dyn FnMut(&SeriesRow) -> io::Result<()> + 'a;

/// One end of a connection that is sampled.
pub(super) struct Watched {
    /// What rows call the connection.
    pub(super) flow: Arc<str>,
    /// Which end this is.
    pub(super) end: End,
    /// Whether it is this end that sends the data.
    pub(super) sends: bool,
    /// The node that has it.
    pub(super) node: NodeId,
    /// Which of the connections of that node it is.
    pub(super) line: usize,
    /// The links under the connection's paths, by path identifier.
    pub(super) links: Vec<PathLinks>,
}

impl Watched {
    /// Both ends of the connection called `flow`, first the `sender` of the data. Its client and its
    /// server are connections of `nodes`; `paths` are the positions of its paths in the network, by path
    /// identifier.
    pub(super) fn pair(
        flow: &str,
        sender: End,
        nodes: [(NodeId, usize); 2],
        topology: &Topology,
        paths: impl Iterator<Item = usize>,
    ) -> [Watched; 2] {
        let flow: Arc<str> = flow.into();
        let links: Vec<_> = paths.map(|path| topology.shared(path)).collect();
        let [client, server] = nodes;
        let ends = match sender {
            End::Server => [(End::Server, server), (End::Client, client)],
            End::Client => [(End::Client, client), (End::Server, server)],
        };
        ends.map(|(end, (node, line))| Watched {
            flow: Arc::clone(&flow),
            end,
            sends: end == sender,
            node,
            line,
            links: links.clone(),
        })
    }
}

/// Samples ends of connections every so long.
pub(super) struct Sampler<'a, 'b> {
    every: Duration,
    next_at: Instant,
    watched: Vec<Watched>,
    sink: &'a mut SeriesSink<'b>,
    /// Links under the paths of the connection at hand.
    links: Vec<LinkId>,
}

/// Runs `world` as [`World::run_while`] does, and lets `sampler` look at it on the way; the run is
/// the same without. `connection` finds a connection of a
/// node, if it has it now.
pub(super) fn run_while<N: Node, O: Observer>(
    world: &mut World<N, O>,
    limit: Instant,
    mut condition: impl FnMut(&World<N, O>) -> bool,
    connection: impl Fn(&N, usize) -> Option<&Connection>,
    mut sampler: Option<&mut Sampler<'_, '_>>,
) -> Result<RunEnd, RunError> {
    loop {
        let sample_at = sampler.as_ref().map(|sampler| sampler.next_at);
        let sample_at = sample_at.filter(|at| *at <= limit);
        let end = world.run_while(sample_at.unwrap_or(limit), &mut condition)?;
        match (end, sample_at, &mut sampler) {
            // All events of the instant have happened, and none after it.
            (RunEnd::TimeLimit, Some(at), Some(sampler)) => {
                sampler.sample(world, at, &connection)?;
            }
            _ => return Ok(end),
        }
    }
}

impl<'a, 'b> Sampler<'a, 'b> {
    /// Samples those of `watched` that `scenario` wants to see, at the start and then every so long,
    /// if it wants any.
    pub(super) fn new(
        scenario: &Scenario,
        mut watched: Vec<Watched>,
        sink: &'a mut SeriesSink<'b>,
    ) -> Option<Sampler<'a, 'b>> {
        let every = scenario.series.every()?;
        watched.retain(|watched| watched.sends || scenario.series_ends == SeriesEnds::Both);
        Some(Sampler { every, next_at: Instant::ZERO, watched, sink, links: Vec::new() })
    }

    fn sample<N: Node, O: Observer>(
        &mut self,
        world: &World<N, O>,
        at: Instant,
        connection: &impl Fn(&N, usize) -> Option<&Connection>,
    ) -> Result<(), RunError> {
        self.next_at = at + self.every;
        let found = |watched: &Watched| connection(world.node(watched.node), watched.line);
        // Of senders and of receivers of data.
        let sent_by = |senders: bool| -> u64 {
            let same = self.watched.iter().filter(|watched| watched.sends == senders);
            same.filter_map(found).map(|connection| connection.totals().bytes_sent).sum()
        };
        let sent_in_all = [sent_by(false), sent_by(true)];
        for watched in &self.watched {
            let Some(connection) = found(watched) else { continue };
            let totals = connection.totals();
            let mut whole = SeriesRow {
                bytes_sent: Bytes(totals.bytes_sent),
                bytes_acked: Bytes(totals.bytes_acked),
                bytes_lost: Bytes(totals.bytes_lost),
                share_ppm: share(totals.bytes_sent, sent_in_all[usize::from(watched.sends)]),
                ..SeriesRow::new(at, Arc::clone(&watched.flow), watched.end)
            };
            self.links.clear();
            for path in connection.path_samples() {
                let links = usize::try_from(path.path.0).ok();
                let links = links.and_then(|index| watched.links.get(index)).copied();
                let mut row = of_path(&path, totals.bytes_sent, &whole);
                if let Some(PathLinks { up, down }) = links {
                    row.queue_up = Some(world.queued_at(up, at)?);
                    row.queue_down = Some(world.queued_at(down, at)?);
                    for (link, queued, sum) in [
                        (up, row.queue_up, &mut whole.queue_up),
                        (down, row.queue_down, &mut whole.queue_down),
                    ] {
                        // A link that paths share counts once.
                        if !self.links.contains(&link) {
                            self.links.push(link);
                            *sum = add(*sum, queued);
                        }
                    }
                }
                whole.cwnd += row.cwnd;
                whole.in_flight += row.in_flight;
                whole.pacing_rate = add_rates(whole.pacing_rate, row.pacing_rate);
                whole.delivery_rate = add_rates(whole.delivery_rate, row.delivery_rate);
                whole.bandwidth = add_rates(whole.bandwidth, row.bandwidth);
                (self.sink)(&row).map_err(RunError::Series)?;
            }
            (self.sink)(&whole).map_err(RunError::Series)?;
        }
        Ok(())
    }
}

/// The row of a path of the connection of `whole`, whose end sent `sent` bytes.
fn of_path(path: &PathSample, sent: u64, whole: &SeriesRow) -> SeriesRow {
    SeriesRow {
        path: Some(path.path.0),
        state: Some(path.state),
        cwnd: path.cwnd,
        ssthresh: path.ssthresh,
        in_flight: path.in_flight,
        pacing_rate: path.pacing_rate,
        delivery_rate: path.delivery_rate,
        bandwidth: path.bandwidth,
        srtt: path.srtt,
        latest_rtt: path.latest_rtt,
        min_rtt: path.min_rtt,
        bytes_sent: Bytes(path.counters.bytes_sent),
        bytes_acked: Bytes(path.counters.bytes_acked),
        bytes_lost: Bytes(path.counters.bytes_lost),
        share_ppm: share(path.counters.bytes_sent, sent),
        ..SeriesRow::new(whole.at, Arc::clone(&whole.flow), whole.end)
    }
}

/// `part` of `all` in millionths, rounded down; `None` of nothing.
fn share(part: u64, all: u64) -> Option<u32> {
    let millionths = u128::from(part) * 1_000_000 / u128::from((all > 0).then_some(all)?);
    u32::try_from(millionths).ok()
}

/// The sum of what is known.
fn add(sum: Option<Bytes>, part: Option<Bytes>) -> Option<Bytes> {
    match (sum, part) {
        (Some(sum), Some(part)) => Some(sum + part),
        (sum, part) => sum.or(part),
    }
}

fn add_rates(sum: Option<Rate>, part: Option<Rate>) -> Option<Rate> {
    let bits = |rate: Rate| Bytes(rate.bits_per_sec());
    add(sum.map(bits), part.map(bits)).map(|bits| Rate::from_bits_per_sec(bits.0))
}

#[cfg(test)]
mod tests;
