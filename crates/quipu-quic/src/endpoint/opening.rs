//! Making connections: ours, and those that clients open.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Role};
use smallvec::SmallVec;

use super::admission::Source;
use super::incoming::FirstPacket;
use super::table::{Client, Table};
use super::tokens::Tokens;
use super::{ClientConfig, ConnectError, ConnectionHandle, Endpoint, ServerConfig};
use crate::config::{PreferredAddresses, TransportConfig};
use crate::connection::{
    AddressTokens, ClientOrigin, Connection, FirstIds, IdSource, KeyRing, PreferredId,
    ServerOrigin, Setup, Start, parameters, reserved_parameter,
};
use crate::random::NoRandomness;
use crate::recorder::Started;
use crate::route::Route;
use crate::wire::{ConnectionId, ResetToken};

/// Connection IDs drawn until one is unused. Our choice: as many in vain mean that the generator
/// gives too few different ones.
const MAX_DRAWS: usize = 64;

/// What a listening endpoint has.
pub(super) struct Server {
    pub(super) config: Arc<ServerConfig>,
    pub(super) tokens: Tokens,
}

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
        let first_ids = FirstIds {
            local: local_cid,
            reset_token: None,
            original: remote_cid,
            retry_source: None,
            preferred: None,
        };
        let mut own = parameters(Role::Client, &config.transport, &first_ids);
        own.reserved = reserved_parameter(&config.transport, &mut *self.random)?;
        let (tls, transport) = (Arc::clone(&config.tls), Arc::clone(&config.transport));
        let from = ClientOrigin::new(tls, server_name, transport, own);
        let version = config.transport.first_version();
        let session = from.start(version)?;
        let token = config.tokens.as_ref().and_then(|store| store.take(server_name, version));
        let started =
            Started { role: Role::Client, route, local_cid, remote_cid, original_dcid: remote_cid };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role: Role::Client,
            config: Arc::clone(&config.transport),
            policies: (config.policies)(),
            version,
            keys: KeyRing::new(version, remote_cid, from.initial_keys(version, &remote_cid)),
            start: Start::Client { from, session },
            route,
            validated: true,
            first_ids,
            remote_cid,
            random: self.random.child()?,
            id_source: self.id_source(),
            tokens: AddressTokens {
                issuer: None,
                store: config.tokens.clone().map(|store| (store, server_name.to_owned())),
            },
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
            //# When connecting to a server for which the client retains an applicable and unused
            //# token, it SHOULD include that token in the Token field of its Initial packet.
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
            //# A client MUST NOT include a token that is not applicable to the server that it is
            //# connecting to, unless the client has the knowledge that the server that issued the
            //# token and the server the client is connecting to are jointly managing the tokens.
            // https://www.rfc-editor.org/rfc/rfc9369#section-5
            //# Clients MUST NOT use a session ticket or token from a QUIC version 1 connection to
            //# initiate a QUIC version 2 connection, and vice versa.
            token: token.unwrap_or_default(),
            handshake_until: deadline(now, config.handshake_timeout),
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
        let FirstPacket { route, version, dcid, scid, token, at, keys, .. } = first;
        let local_cid = self.unused_cid().ok()?;
        let reset_key = self.config.reset_key.as_ref();
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.3
        // After a Retry, the client's first destination is known from the token alone.
        let original_dcid = token.original_dcid.unwrap_or(dcid);
        let first_ids = FirstIds {
            local: local_cid,
            reset_token: reset_key.map(|key| key.reset_token(&local_cid)),
            original: original_dcid,
            retry_source: token.original_dcid.map(|_| dcid),
            preferred: self.preferred_id(&server.transport, &local_cid).ok()?,
        };
        let validated = token.state.is_valid();
        let mut own = parameters(Role::Server, &server.transport, &first_ids);
        own.reserved = reserved_parameter(&server.transport, &mut *self.random).ok()?;
        let (tls, transport) = (Arc::clone(&server.tls), Arc::clone(&server.transport));
        let (role, remote_cid) = (Role::Server, scid);
        let started = Started { role, route, local_cid, remote_cid, original_dcid };
        let setup = Setup {
            recorder: self.recorders.as_ref().and_then(|make| make(&started)),
            role,
            config: Arc::clone(&server.transport),
            policies: (server.policies)(),
            start: Start::Server(ServerOrigin::new(tls, transport, own)),
            version,
            keys: KeyRing::new(version, dcid, keys),
            route,
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
            //# If the validation succeeds, the server SHOULD then allow the handshake to proceed.
            validated,
            // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
            //# A server MUST set the Destination Connection ID it uses for sending packets
            //# based on the first received Initial packet.
            remote_cid,
            first_ids,
            random: self.random.child().ok()?,
            id_source: self.id_source(),
            tokens: AddressTokens {
                issuer: self.server.as_ref().and_then(|server| server.tokens.issuer()),
                store: None,
            },
            token: Vec::new(),
            handshake_until: deadline(at, server.admission.handshake_timeout),
        };
        let client = Client { source: Source::of(route.remote), validated };
        let connection = Connection::new(now, setup);
        if let Some(server) = &mut self.server {
            server.tokens.on_used(now, &token);
        }
        let preferred = first_ids.preferred.map(|preferred| preferred.id);
        let cids: SmallVec<[ConnectionId; 3]> =
            [local_cid, dcid].into_iter().chain(preferred).collect();
        self.table.insert(connection, &cids, Some(client))
    }

    /// A connection ID for the address at which a server would rather be reached, if there is one.
    fn preferred_id(
        &mut self,
        transport: &TransportConfig,
        local: &ConnectionId,
    ) -> Result<Option<PreferredId>, NoRandomness> {
        if transport.preferred_address == PreferredAddresses::default() {
            return Ok(None);
        }
        let id = self.unused_cid()?;
        if id == *local {
            return Err(NoRandomness);
        }
        let token = match &self.config.reset_key {
            Some(key) => key.reset_token(&id),
            None => ResetToken::new(self.random.draw()?),
        };
        Ok(Some(PreferredId { id, token }))
    }

    fn id_source(&self) -> IdSource {
        IdSource {
            generator: Arc::clone(&self.config.connection_ids),
            reset_key: self.config.reset_key.clone(),
        }
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

/// When a handshake that began at `since` has taken too long; `timeout` zero: never.
fn deadline(since: Instant, timeout: Duration) -> Option<Instant> {
    (!timeout.is_zero()).then(|| since + timeout)
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
