//! Raw streams instead of HTTP: one end writes the page's objects to its streams, the other reads.
//!
//! `writes` says what goes where and in which order, `sending` writes it, `receiving` reads and
//! checks it. [`RawEnd`] is either end. If the server is to write, the client asks it to by one byte
//! on a stream of its own.

mod receiving;
mod sending;
mod writes;

use std::sync::{Arc, OnceLock};

use bytes::Bytes as Buffer;
use quipu_base::{Instant, Role, StreamDirection};
use quipu_quic::{Connection, ConnectionEvent};
use quipu_sim::{Envelope, Outgoing};
use quipu_web::page::ObjectId;

use self::receiving::{Fault, Receiving};
use self::sending::Sending;
use super::RunError;
use super::engine::{ConnectionPlan, SetupError};
use super::loading::Loading;
use super::party::{Party, open_paths};
use crate::plan::{Cell, Plan};
use crate::results::{End, RunRecord};
use crate::scenario::{Sender, Start};

/// When the load began. The clock of a run is the same everywhere, so the end that reads may know
/// when the other end began.
type Began = Arc<OnceLock<Instant>>;

/// One end of a connection with raw streams.
pub(super) struct RawEnd {
    party: Party,
    role: Role,
    start: Start,
    /// A client's paths that are not usable yet.
    paths_missing: usize,
    connected: bool,
    /// Whether this end has written, or asked for, what it is to.
    acted: bool,
    began: Began,
    sending: Option<Sending>,
    receiving: Option<Receiving>,
    error: Option<RunError>,
}

/// Both ends: of the client, of the server.
pub(super) fn ends(plan: &Plan, cell: Cell) -> Result<[RawEnd; 2], SetupError> {
    let began = Began::default();
    let client = RawEnd::new(plan, cell, Role::Client, Arc::clone(&began))?;
    let server = RawEnd::new(plan, cell, Role::Server, began)?;
    Ok([client, server])
}

impl RawEnd {
    fn new(plan: &Plan, cell: Cell, role: Role, began: Began) -> Result<RawEnd, SetupError> {
        let scenario = &plan.scenario;
        let connection = ConnectionPlan::of_page(plan, cell);
        let party = match role {
            Role::Client => connection.client(Instant::ZERO)?,
            Role::Server => connection.server()?,
        };
        let page = plan.page(cell)?;
        let raw = &scenario.raw;
        let writes = writes::writes(raw, &page.page, scenario.run_seed(cell.run));
        let sends = role.is_client() == (raw.sender == Sender::Client);
        let (sending, receiving) = if sends {
            (Some(Sending::new(raw, writes)), None)
        } else {
            let loading = Loading::new(page, scenario);
            (None, Some(Receiving::new(loading, raw, &writes)))
        };
        let start = scenario.transport.start;
        if start == Start::Cold {
            // The connection is opened for the page: its time counts from here.
            began.get_or_init(|| Instant::ZERO);
        }
        Ok(RawEnd {
            paths_missing: party.paths_to_open(),
            party,
            role,
            start,
            connected: false,
            acted: false,
            began,
            sending,
            receiving,
            error: None,
        })
    }

    pub(super) fn handle_datagram(&mut self, now: Instant, from: &Envelope, payload: &mut [u8]) {
        self.party.handle_datagram(now, from, payload);
        self.drive(now);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.party.handle_timeout(now);
        self.drive(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, out: &mut Outgoing<'_>) {
        self.party.poll_transmit(now, out);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let write = self.sending.as_ref().and_then(Sending::poll_timeout);
        self.party.poll_timeout().into_iter().chain(write).min()
    }

    /// True once everything was read, or never will be.
    pub(super) fn is_done(&self) -> bool {
        self.error.is_some() || self.receiving.as_ref().is_some_and(Receiving::is_done)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    pub(super) fn take_error(&mut self) -> Option<RunError> {
        self.error.take()
    }

    /// The page as it arrived, at the end that reads.
    pub(super) fn loading(&self) -> Option<&Loading> {
        self.receiving.as_ref().map(Receiving::loading)
    }

    /// Adds the streams, as they arrived, to the record of the load: at the end that reads.
    pub(super) fn complete_record(&self, record: &mut RunRecord) {
        let (Some(receiving), Some(&began)) = (&self.receiving, self.began.get()) else { return };
        record.streams = receiving.records(began);
        for object in &mut record.objects {
            object.stream = receiving.stream_of(ObjectId(object.object));
        }
    }

    pub(super) fn connection(&self) -> Option<&Connection> {
        self.party.connection()
    }

    /// Does everything that can be done now.
    fn drive(&mut self, now: Instant) {
        if self.error.is_none() {
            self.error = self.try_drive(now).err();
        }
    }

    fn try_drive(&mut self, now: Instant) -> Result<(), RunError> {
        let end = if self.role.is_client() { End::Client } else { End::Server };
        let failed = |reason: String| RunError::Streams { end, at: now, reason };
        let Some((connection, routes)) = self.party.parts() else { return Ok(()) };
        let mut asked = false;
        while let Some(event) = connection.poll() {
            match event {
                ConnectionEvent::PathUp(_) => {
                    self.paths_missing = self.paths_missing.saturating_sub(1);
                }
                ConnectionEvent::Connected => self.connected = true,
                ConnectionEvent::Closed(reason) => {
                    return Err(RunError::Closed { end, at: now, reason: reason.to_string() });
                }
                ConnectionEvent::Readable(stream) => match &mut self.receiving {
                    Some(receiving) => {
                        if let Some(&at) = self.began.get() {
                            receiving.begin(at);
                        }
                        receiving.read(now, stream, connection).map_err(|fault| match fault {
                            Fault::Object(error) => error,
                            Fault::Stream(reason) => failed(reason),
                        })?;
                    }
                    None => {
                        let read = connection.read(now, stream, &mut |_| {});
                        asked |= read.map_err(|error| failed(error.to_string()))?.end;
                    }
                },
                _ => {}
            }
        }
        let ready = if self.role.is_client() {
            open_paths(connection, routes, now);
            self.connected && (self.start == Start::Cold || self.paths_missing == 0)
        } else {
            asked
        };
        if ready && !self.acted {
            self.acted = true;
            self.began.get_or_init(|| now);
            match &mut self.sending {
                Some(sending) => sending.begin(now, connection),
                None => ask(now, connection),
            }
            .map_err(failed)?;
        }
        match &mut self.sending {
            Some(sending) => sending.write_due(now, connection).map_err(failed),
            None => Ok(()),
        }
    }
}

/// Asks the server to write.
fn ask(now: Instant, connection: &mut Connection) -> Result<(), String> {
    let stream = connection.open_stream(now, StreamDirection::Bidirectional);
    let stream = stream.ok_or_else(|| "the server allows no stream".to_owned())?;
    let asked = connection.write(now, stream, Buffer::from_static(b"?"));
    asked.and_then(|()| connection.finish(now, stream)).map_err(|error| error.to_string())
}
