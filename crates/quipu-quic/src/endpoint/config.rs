//! What endpoints, servers and clients are made of.

use std::sync::Arc;

use quipu_policy::Policies;
use thiserror::Error;

use super::Admission;
use crate::config::{ConfigError, TransportConfig};
use crate::connection_ids::{ConnectionIdGenerator, RandomIds, check_length};
use crate::random::NoRandomness;
use crate::tls::{ClientTls, ServerTls, StartError};

/// Makes the policies of a new connection.
pub type PolicyFactory = Arc<dyn Fn() -> Policies + Send + Sync>;

/// What all connections of an endpoint share.
#[derive(Clone)]
pub struct EndpointConfig {
    /// Makes connection IDs. Default [`RandomIds::default`]: eight random bytes.
    pub connection_ids: Arc<dyn ConnectionIdGenerator>,
    /// A connection that is over stays until [`Endpoint::remove`](crate::Endpoint::remove), so that
    /// its counters can still be read. Default false: it goes by itself.
    pub keep_closed: bool,
}

impl Default for EndpointConfig {
    fn default() -> Self {
        EndpointConfig { connection_ids: Arc::new(RandomIds::default()), keep_closed: false }
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
}

impl ServerConfig {
    /// A server with the default limits.
    pub fn new(
        tls: Arc<dyn ServerTls>,
        transport: Arc<TransportConfig>,
        policies: PolicyFactory,
    ) -> Self {
        ServerConfig { tls, transport, policies, admission: Admission::default() }
    }

    /// The same server, which lets clients in as `admission` says.
    #[must_use]
    pub fn with_admission(self, admission: Admission) -> Self {
        ServerConfig { admission, ..self }
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
}

impl ClientConfig {
    /// A client without more than it needs.
    pub fn new(
        tls: Arc<dyn ClientTls>,
        transport: Arc<TransportConfig>,
        policies: PolicyFactory,
    ) -> Self {
        ClientConfig { tls, transport, policies }
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
