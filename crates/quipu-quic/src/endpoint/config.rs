//! What endpoints, servers and clients are made of.

use std::sync::Arc;

use quipu_base::Duration;
use quipu_policy::Policies;
use thiserror::Error;

use super::{Admission, TokenConfig};
use crate::config::{ConfigError, TransportConfig};
use crate::connection_ids::{ConnectionIdGenerator, RandomIds, check_length};
use crate::random::NoRandomness;
use crate::tls::{ClientTls, ResetKey, ServerTls, StartError};
use crate::token_store::TokenStore;

/// Makes the policies of a new connection.
pub type PolicyFactory = Arc<dyn Fn() -> Policies + Send + Sync>;

/// What all connections of an endpoint share.
#[derive(Clone)]
pub struct EndpointConfig {
    /// Makes connection IDs. Default [`RandomIds::default`]: eight random bytes.
    pub connection_ids: Arc<dyn ConnectionIdGenerator>,
    /// Makes the stateless reset tokens of our connection IDs, and lets the endpoint send stateless
    /// resets: for connections that it does not know, for it may have known them before it started
    /// anew. Endpoints behind one address share a key only if each gets the datagrams of its own
    /// connections, or if their connection IDs tell them apart
    /// ([`ConnectionIdGenerator::is_own`]): otherwise one would reset the connections of another.
    /// Default none: tokens are random, and no reset is sent.
    pub reset_key: Option<Arc<dyn ResetKey>>,
    /// Stateless resets per second, a tenth of them at once. Default 1,000; our choice.
    pub resets_per_second: u32,
    /// What becomes of a connection that is over. Default [`Closed::Dropped`].
    pub closed: Closed,
}

/// What becomes of a connection that is over: [closed](crate::Connection::is_closed), and the application was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Closed {
    /// It goes by itself.
    #[default]
    Dropped,
    /// It stays until [`Endpoint::remove`](crate::Endpoint::remove), so that its counters can still be read.
    Kept,
    /// It leaves the endpoint, and [`Endpoint::poll_closed`](crate::Endpoint::poll_closed) hands it over, so that
    /// what had come can still be read.
    HandedOver,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig {
            connection_ids: Arc::new(RandomIds::default()),
            reset_key: None,
            resets_per_second: 1_000,
            closed: Closed::default(),
        }
    }
}

impl EndpointConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// The first field whose value cannot be.
    pub fn validate(&self) -> Result<(), ConfigError> {
        check_length(self.connection_ids.length())
    }
}

/// What a server needs to accept connections.
#[derive(Clone)]
pub struct ServerConfig {
    /// TLS with certificate and application protocols.
    pub tls: Arc<dyn ServerTls>,
    /// Settings of the transport.
    pub transport: Arc<TransportConfig>,
    /// Policies of each connection.
    pub policies: PolicyFactory,
    /// Which clients are let in.
    pub admission: Admission,
    /// Tokens by which clients prove their addresses.
    pub tokens: TokenConfig,
}

impl ServerConfig {
    /// A server with the default limits.
    pub fn new(
        tls: Arc<dyn ServerTls>,
        transport: Arc<TransportConfig>,
        policies: PolicyFactory,
    ) -> Self {
        ServerConfig {
            tls,
            transport,
            policies,
            admission: Admission::default(),
            tokens: TokenConfig::default(),
        }
    }

    /// The same server, which lets clients in as `admission` says.
    #[must_use]
    pub fn with_admission(self, admission: Admission) -> Self {
        ServerConfig { admission, ..self }
    }

    /// The same server with tokens as `tokens` says.
    #[must_use]
    pub fn with_tokens(self, tokens: TokenConfig) -> Self {
        ServerConfig { tokens, ..self }
    }

    /// The same server with at most so many connections at a time.
    #[must_use]
    pub fn with_max_connections(self, max_connections: usize) -> Self {
        let admission = Admission { max_connections, ..self.admission };
        ServerConfig { admission, ..self }
    }
}

/// What a client needs to open a connection.
#[derive(Clone)]
pub struct ClientConfig {
    /// TLS with trust anchors and application protocols.
    pub tls: Arc<dyn ClientTls>,
    /// Settings of the transport.
    pub transport: Arc<TransportConfig>,
    /// Policies of the connection.
    pub policies: PolicyFactory,
    /// Keeps tokens of servers for later connections. Default none: they are thrown away.
    pub tokens: Option<Arc<dyn TokenStore>>,
    /// The handshake takes at most so long; a connection that is not complete by then ends. Zero: no
    /// limit but the idle timeout. Default 10 s, as at a server; our choice.
    pub handshake_timeout: Duration,
}

impl ClientConfig {
    /// A client without more than it needs.
    pub fn new(
        tls: Arc<dyn ClientTls>,
        transport: Arc<TransportConfig>,
        policies: PolicyFactory,
    ) -> Self {
        let handshake_timeout = Duration::from_secs(10);
        ClientConfig { tls, transport, policies, tokens: None, handshake_timeout }
    }

    /// The same client with that limit on the time of a handshake; zero: none.
    #[must_use]
    pub fn with_handshake_timeout(self, handshake_timeout: Duration) -> Self {
        ClientConfig { handshake_timeout, ..self }
    }

    /// The same client, which keeps tokens of servers in `store` and shows them.
    #[must_use]
    pub fn with_tokens(self, store: Arc<dyn TokenStore>) -> Self {
        ClientConfig { tokens: Some(store), ..self }
    }
}

/// Why a connection was not opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// A setting of the transport is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// TLS refuses.
    #[error(transparent)]
    Tls(#[from] StartError),
    /// There are no random bytes for connection IDs.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// The endpoint has had as many connections as it can name.
    #[error("the endpoint has no handle left")]
    Full,
}
