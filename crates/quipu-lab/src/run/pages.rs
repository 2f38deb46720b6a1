//! The pages of a run: what each of them measured when it was there, one after the other.

use quipu_base::{Bytes, Duration, Instant, PathId};
use quipu_quic::Connection;
use quipu_sim::{NodeId, World};

use super::RunError;
use super::host::Host;
use super::loading::Loading;
use crate::plan::{Cell, Plan};
use crate::results::{End, ObjectRecord, PathRecord, RunRecord};
use crate::scenario::{Scenario, Sender};

/// Watches the pages of a session as they come.
pub(super) struct Pages<'a> {
    plan: &'a Plan,
    cell: Cell,
    /// The client and the server.
    ends: [NodeId; 2],
    /// When the page under way is given up.
    limit: Instant,
    /// What was counted until the end of the page before.
    before: RunRecord,
    records: Vec<RunRecord>,
}

impl<'a> Pages<'a> {
    pub(super) fn new(plan: &'a Plan, cell: Cell, ends: [NodeId; 2]) -> Pages<'a> {
        let limit = Instant::ZERO + plan.scenario.time_limit;
        Pages { plan, cell, ends, limit, before: RunRecord::default(), records: Vec::new() }
    }

    /// Until when the session lasts at most.
    pub(super) fn longest(&self) -> Instant {
        let session = self.plan.scenario.session;
        let readings = (1..session).map(|next| self.reading_after(next - 1));
        let reading = readings.fold(Duration::ZERO, |sum, time| sum + time);
        let loading = self.plan.scenario.time_limit.saturating_mul(u64::from(session));
        Instant::ZERO + reading + loading
    }

    fn reading_after(&self, visit: u32) -> Duration {
        self.plan.pages[self.cell.page].reading_time(self.cell.run, visit)
    }

    /// Number of the page under way; that of all once they are there.
    fn visit(&self) -> u32 {
        // A session has as many as a `u32` counts.
        u32::try_from(self.records.len()).unwrap_or(u32::MAX)
    }

    /// True while there is a page to wait for. Takes stock of those that are there: to be called after
    /// each event.
    pub(super) fn go_on(&mut self, world: &World<Host>) -> bool {
        let ends = self.ends.map(|end| world.node(end));
        loop {
            let visit = self.visit();
            if visit >= self.plan.scenario.session || ends.iter().any(|end| end.has_failed()) {
                return false;
            }
            if !ends.iter().any(|end| end.is_done(visit)) {
                return world.now() <= self.limit;
            }
            let Some(total) = self.measured(world, visit) else { return false };
            self.records.push(total.since(&self.before));
            self.before = total;
            let reading = self.reading_after(visit);
            self.limit = world.now() + reading + self.plan.scenario.time_limit;
        }
    }

    /// What was measured of page `visit`, and counted since the start of the run.
    fn measured(&self, world: &World<Host>, visit: u32) -> Option<RunRecord> {
        let [client, server] = self.ends.map(|end| world.node(end));
        let mut readers = [client, server].into_iter();
        let (reader, loading) = readers.find_map(|end| Some((end, end.loading(visit)?)))?;
        let connections = (client.page_connection()?, server.page_connection()?);
        let mut record = record(world.now(), loading, connections, sender(&self.plan.scenario))?;
        record.visit = visit;
        reader.complete_record(&mut record);
        record.overridden += client.overridden() + server.overridden();
        Some(record)
    }

    /// The records of all pages of a run that ended at `at`.
    ///
    /// # Errors
    /// If not all are there.
    pub(super) fn finish(self, nodes: &[Host], at: Instant) -> Result<Vec<RunRecord>, RunError> {
        let visit = self.visit();
        if visit == self.plan.scenario.session {
            return Ok(self.records);
        }
        let loading = nodes.iter().find_map(|node| node.loading(visit));
        let (open, objects) = loading.map_or((0, 0), |it| (it.open(), it.objects().len()));
        Err(RunError::Unfinished { at, open, objects })
    }
}

/// The end that sends what is loaded.
pub(super) fn sender(scenario: &Scenario) -> End {
    match scenario.raw.sender {
        Sender::Client if scenario.http.is_raw() => End::Client,
        Sender::Client | Sender::Server => End::Server,
    }
}

/// What was measured of a load that ended at `at` over the connections of client and server; `None` if
/// it did not end.
fn record(
    at: Instant,
    loading: &Loading,
    (client, server): (&Connection, &Connection),
    sender: End,
) -> Option<RunRecord> {
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
