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
use quipu_base::{Instant, Role, StreamDirection, StreamId};
use quipu_quic::{Connection, ConnectionEvent};
use quipu_web::page::ObjectId;

use self::receiving::{Fault, Receiving};
use self::sending::Sending;
use super::application::Application;
use super::engine::ConnectionPlan;
use super::error::{RunError, SetupError};
use super::instruments::Setting;
use super::pairs::PageLine;
use super::party::{Party, open_paths};
use crate::loading::Loading;
use quipu_record::{End, RunRecord};
use quipu_scenario::{Sender, Start};

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
    /// Whether it has told that everything was read.
    told: bool,
}

/// Both ends: of the client, of the server.
pub(super) fn ends(setting: Setting<'_>, line: PageLine) -> Result<[RawEnd; 2], SetupError> {
    let began = Began::default();
    let client = RawEnd::new(setting, line, Role::Client, Arc::clone(&began))?;
    let server = RawEnd::new(setting, line, Role::Server, began)?;
    Ok([client, server])
}

impl RawEnd {
    fn new(
        setting: Setting<'_>,
        line: PageLine,
        role: Role,
        began: Began,
    ) -> Result<RawEnd, SetupError> {
        let Setting { plan, cell, .. } = setting;
        let scenario = &plan.scenario;
        let client = line.client;
        let start_at = plan.client_start(cell.run, client);
        let connection = ConnectionPlan::of_page(setting, line);
        let party = match role {
            Role::Client => connection.client(start_at)?,
            Role::Server => connection.server()?,
        };
        let page = plan.visit_of(cell, client, 0)?;
        let raw = &scenario.raw;
        let writes = writes::writes(raw, &page.page, scenario.client_seed(cell.run, client));
        let sends = role.is_client() == (raw.sender == Sender::Client);
        let (sending, receiving) = if sends {
            (Some(Sending::new(raw, writes)), None)
        } else {
            let loading = Loading::new(page, scenario);
            let receiving = Receiving::new(loading, raw, &writes);
            if let Some(arrivals) = setting.arrivals(line) {
                // The sender opens them all in this order.
                for (index, objects) in (0..).zip(receiving.objects()) {
                    let direction = StreamDirection::Unidirectional;
                    arrivals.holds(StreamId::new(role.peer(), direction, index), objects);
                }
            }
            (None, Some(receiving))
        };
        let start = scenario.transport.start;
        if start == Start::Cold {
            // The connection is opened for the page: its time counts from here.
            began.get_or_init(|| start_at);
        }
        Ok(RawEnd {
            paths_missing: party.paths_to_open(0),
            party,
            role,
            start,
            connected: false,
            acted: false,
            began,
            sending,
            receiving,
            told: false,
        })
    }

    /// True once everything was read, or never will be.
    pub(super) fn is_done(&self) -> bool {
        self.has_failed() || self.receiving.as_ref().is_some_and(Receiving::is_done)
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
}

impl Application for RawEnd {
    fn party(&self) -> &Party {
        &self.party
    }

    fn party_mut(&mut self) -> &mut Party {
        &mut self.party
    }

    fn act(&mut self, now: Instant) -> Result<(), RunError> {
        let end = if self.role.is_client() { End::Client } else { End::Server };
        let failed = |reason: String| RunError::Streams { end, at: now, reason };
        self.party.dial(now)?;
        let Some((connection, routes)) = self.party.parts(0) else { return Ok(()) };
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
                            Fault::Object(error) => error.into(),
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
        if let Some(sending) = &mut self.sending {
            sending.write_due(now, connection).map_err(failed)?;
        }
        if !self.told && self.receiving.as_ref().is_some_and(Receiving::is_done) {
            self.told = true;
            self.party.tell_news();
        }
        Ok(())
    }

    fn next_at(&self) -> Option<Instant> {
        self.sending.as_ref().and_then(Sending::poll_timeout)
    }
}

/// Asks the server to write.
fn ask(now: Instant, connection: &mut Connection) -> Result<(), String> {
    let stream = connection.open_stream(now, StreamDirection::Bidirectional);
    let stream = stream.ok_or_else(|| "the server allows no stream".to_owned())?;
    let asked = connection.write_all(now, stream, Buffer::from_static(b"?"));
    asked.and_then(|()| connection.finish(now, stream)).map_err(|error| error.to_string())
}
