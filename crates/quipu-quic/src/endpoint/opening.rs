//! Making connections: ours, and those that clients open.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Role};

use super::admission::Source;
use super::incoming::FirstPacket;
use super::table::{Client, Table};
use super::{ClientConfig, ConnectError, ConnectionHandle, Endpoint, ServerConfig};
use crate::connection::{Connection, KeyRing, Setup, parameters};
use crate::random::NoRandomness;
use crate::recorder::Started;
use crate::route::Route;
use crate::tls::{InitialSecrets, Session};
use crate::wire::ConnectionId;

/// Connection IDs drawn until one is unused. Our choice: as many in vain mean that the generator
/// gives too few different ones.
const MAX_DRAWS: usize = 64;

/// Connections that clients opened and the application has not taken yet.
#[derive(Default)]
pub(super) struct Accepted {
    handles: VecDeque<ConnectionHandle>,
}

impl Endpoint {
    /// Opens a connection to the server of that name.
    ///
    /// # Errors
    /// If the configuration or the name is wrong; nothing is sent then.
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        server_name: &str,
        route: Route,
    ) -> Result<ConnectionHandle, ConnectError> {
        config.transport.validate()?;
        let route = route.canonical();
        let local_cid = self.unused_cid()?;
        let remote_cid = self.first_dcid()?;
        let own = parameters(Role::Client, &config.transport, local_cid, None);
        let session = config.tls.start(server_name, &own.encode())?;
        let secrets: Arc<dyn InitialSecrets> = config.tls.clone();
        let started =
            Started { role: Role::Client, route, local_cid, remote_cid, original_dcid: remote_cid };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role: Role::Client,
            config: Arc::clone(&config.transport),
            policies: (config.policies)(),
            session,
            keys: KeyRing::new(secrets.initial_keys(&remote_cid, Role::Client)),
            route,
            validated: true,
            local_cid,
            remote_cid,
            original_dcid: remote_cid,
            random: self.random.child()?,
            connection_ids: Arc::clone(&self.config.connection_ids),
            initial_secrets: Some(secrets),
            handshake_until: None,
        };
        let connection = Connection::new(now, setup);
        self.table.insert(connection, &[local_cid], None).ok_or(ConnectError::Full)
    }

    /// The next connection that a client opened.
    pub fn accept(&mut self) -> Option<ConnectionHandle> {
        // One that ended meanwhile is gone.
        loop {
            let handle = self.accepted.handles.pop_front()?;
            if self.table.hand_out(handle) {
                return Some(handle);
            }
        }
    }

    /// Begins a client's connection; its first packet is still to be read.
    pub(super) fn accept_client(
        &mut self,
        now: Instant,
        server: &ServerConfig,
        first: FirstPacket,
    ) -> Option<ConnectionHandle> {
        let FirstPacket { route, dcid, scid, token, at, keys, .. } = first;
        let local_cid = self.unused_cid().ok()?;
        let own = parameters(Role::Server, &server.transport, local_cid, Some(dcid));
        let session: Box<dyn Session> = server.tls.start(&own.encode()).ok()?;
        let started =
            Started { role: Role::Server, route, local_cid, remote_cid: scid, original_dcid: dcid };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role: Role::Server,
            config: Arc::clone(&server.transport),
            policies: (server.policies)(),
            session,
            keys: KeyRing::new(keys),
            route,
            validated: token.is_valid(),
            // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
            //# A server MUST set the Destination Connection ID it uses for sending packets
            //# based on the first received Initial packet.
            remote_cid: scid,
            local_cid,
            original_dcid: dcid,
            random: self.random.child().ok()?,
            connection_ids: Arc::clone(&self.config.connection_ids),
            initial_secrets: None,
            handshake_until: match server.admission.handshake_timeout {
                Duration::ZERO => None,
                timeout => Some(at + timeout),
            },
        };
        let client = Client { source: Source::of(route.remote), validated: token.is_valid() };
        let connection = Connection::new(now, setup);
        self.table.insert(connection, &[local_cid, dcid], Some(client))
    }

    /// A connection ID that no connection has.
    pub(super) fn unused_cid(&mut self) -> Result<ConnectionId, NoRandomness> {
        for _ in 0..MAX_DRAWS {
            let cid = self.config.connection_ids.generate(&mut *self.random)?;
            if !self.table.is_taken(&cid) {
                return Ok(cid);
            }
        }
        Err(NoRandomness)
    }

    /// The destination of a client's first packet, until the server has chosen one.
    fn first_dcid(&mut self) -> Result<ConnectionId, NoRandomness> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        // At least eight bytes, which nobody can predict; how long ours are makes no difference.
        let bytes = self.random.draw::<8>()?;
        Ok(ConnectionId::new(&bytes).unwrap_or_default())
    }
}

impl Accepted {
    /// The application is to take that connection.
    pub(super) fn push(&mut self, handle: ConnectionHandle, table: &Table) {
        // Those that ended meanwhile are left out now and then: rarely enough to cost nothing, and
        // often enough for an application that takes none.
        if self.handles.len() > 2 * table.len() + 16 {
            self.handles.retain(|handle| table.get(*handle).is_some());
        }
        self.handles.push_back(handle);
    }

    pub(super) fn len(&self) -> usize {
        self.handles.len()
    }
}
