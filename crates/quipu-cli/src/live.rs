//! What commands over real sockets have in common.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use quipu_lab::policies::Registry;
use quipu_tokio::identity::{Pin, pinned};
use quipu_tokio::tokio::runtime::{Builder, Runtime};
use quipu_tokio::{
    BindError, ClientConfig, ConnectError, Connection, Endpoint, TransportConfig, perf, policies,
};

use crate::args::LivePolicies;
use crate::failure::Failure;

/// The name that servers of this command have in their certificates, which the pin stands for.
pub(crate) const SERVER_NAME: &str = "quipu.invalid";

/// A runtime with a thread per core.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|error| Failure::Run(format!("cannot start threads: {error}")))
}

/// A client's side of connections to a server with that pin.
pub(crate) fn client_config(
    pin: &str,
    given: &LivePolicies,
    registry: &Registry,
) -> Result<ClientConfig, Failure> {
    let pin: Pin = pin.parse().map_err(|error| Failure::Usage(format!("--pin: {error}")))?;
    let tls = pinned(pin, &[perf::ALPN]).map_err(Failure::run)?;
    let transport = Arc::new(TransportConfig::default());
    Ok(ClientConfig::new(Arc::new(tls), transport, given.factory(registry)?))
}

impl LivePolicies {
    /// The defaults.
    pub(crate) const NONE: LivePolicies =
        LivePolicies { stream: None, path: None, joint: None, congestion: None, ack: None };

    /// The policies of each connection.
    pub(crate) fn factory(
        &self,
        registry: &Registry,
    ) -> Result<Arc<dyn Fn() -> quipu_lab::policy::Policies + Send + Sync>, Failure> {
        policies(registry, &self.chosen()).map_err(Failure::usage)
    }

    /// Those that were given, as `LAYER=NAME` with blanks between.
    pub(crate) fn chosen(&self) -> String {
        let layers = [
            ("stream", &self.stream),
            ("path", &self.path),
            ("joint", &self.joint),
            ("congestion", &self.congestion),
            ("ack", &self.ack),
        ];
        let chosen = layers.iter().filter_map(|(layer, name)| {
            let name = name.as_ref()?;
            Some(format!("{layer}={name}"))
        });
        chosen.collect::<Vec<_>>().join(" ")
    }
}

/// The addresses of a server.
pub(crate) fn addresses(server: &str) -> Result<Vec<SocketAddr>, Failure> {
    let looked_up = server.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("{server}: {error}; expected HOST:PORT, such as 192.0.2.1:4433"))
    })?;
    let found: Vec<SocketAddr> = looked_up.collect();
    if found.is_empty() {
        return Err(Failure::Usage(format!("{server} has no address")));
    }
    Ok(found)
}

/// Connects to the first of the addresses that can be reached by the endpoint's uplinks.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    config: &ClientConfig,
    addresses: &[SocketAddr],
) -> Result<Connection, ConnectError> {
    let mut failed = None;
    for &address in addresses {
        match endpoint.connect(config, address, SERVER_NAME).await {
            Ok(connection) => return Ok(connection),
            // Another address may be of a family that the uplinks have.
            Err(error @ (ConnectError::NoUplink(_) | ConnectError::NoRoute { .. })) => {
                failed.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(failed.unwrap_or(ConnectError::EndpointClosed))
}

/// A failure to connect, for users of pins.
pub(crate) fn connect_failure(error: &ConnectError) -> Failure {
    match error {
        ConnectError::Certificate { remote, .. } => Failure::Run(format!(
            "the certificate of {remote} has another pin; give --pin as the server printed it"
        )),
        error => Failure::run(error),
    }
}

/// A failure to bind: the fault of an option, or of the host.
pub(crate) fn bind_failure(option: &str, error: &BindError) -> Failure {
    match error {
        BindError::Uplink(_) | BindError::NotOurs(_) => {
            Failure::Usage(format!("{option}: {error}"))
        }
        error => Failure::run(error),
    }
}
