//! What commands over real sockets have in common.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_lab::base::Duration;
use quipu_lab::policies::Registry;
use quipu_tokio::identity::{Pin, RustlsClient, pinned, trusting, trusting_host};
use quipu_tokio::tokio::runtime::{Builder, Runtime};
use quipu_tokio::tokio::time::sleep;
use quipu_tokio::{
    BindError, ClientBuilder, ClientConfig, ConnectError, Connection, DatagramConfig, Endpoint,
    TransportConfig, Via, perf, policies,
};

use crate::args::{LivePolicies, TrustOptions};
use crate::failure::Failure;

/// The name in certificates that servers of this command make for themselves.
pub(crate) const SERVER_NAME: &str = "quipu.invalid";

/// How long both ends have to hear that connections are over. Our choice.
pub(crate) const FAREWELL: Duration = Duration::from_secs(1);

/// How often it is looked whether the user wants to stop.
pub(crate) const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Threads for calls that block, such as those of files, at most; our choice. Each keeps memory that it
/// allocated and others freed.
const BLOCKING_THREADS: usize = 8;

/// A runtime with a thread per core, and a few for calls that block.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    runtime_of(None)
}

/// A runtime with so many threads, by default one per core, and a few for calls that block. If it is a single one, tasks
/// that could go on at the same time do so in the order in which they were told.
pub(crate) fn runtime_of(threads: Option<usize>) -> Result<Runtime, Failure> {
    let mut builder = match threads {
        Some(..=1) => Builder::new_current_thread(),
        Some(_) | None => Builder::new_multi_thread(),
    };
    if let Some(threads @ 2..) = threads {
        builder.worker_threads(threads);
    }
    let runtime = builder.enable_all().max_blocking_threads(BLOCKING_THREADS).build();
    runtime.map_err(|error| Failure::Run(format!("cannot start threads: {error}")))
}

/// Settings of both ends: the defaults, and datagrams.
pub(crate) fn transport() -> Arc<TransportConfig> {
    let datagrams = Some(DatagramConfig::default());
    Arc::new(TransportConfig { datagrams, ..TransportConfig::default() })
}

/// A server, as the options of a client name it.
pub(crate) struct Target {
    addresses: Vec<SocketAddr>,
    config: ClientConfig,
    /// That its certificate has to be for, unless it is known by a pin.
    name: String,
    by_pin: bool,
}

impl Target {
    /// # Errors
    /// If an option is wrong, a file of certificates cannot be used, or the host has no address.
    pub(crate) fn of(
        server: &str,
        trust: &TrustOptions,
        given: &LivePolicies,
        registry: &Registry,
    ) -> Result<Target, Failure> {
        let tls = tls_of(trust.pin.as_deref(), trust.ca.as_deref(), perf::ALPN)?;
        let tls = tls.ok_or_else(|| {
            Failure::Usage(
                "how is the server known? give --pin PIN, which it prints when it starts, or \
                 --ca FILE with the certificate of its authority"
                    .to_owned(),
            )
        })?;
        let name = match (&trust.pin, &trust.name) {
            (Some(_), _) => SERVER_NAME.to_owned(),
            (None, Some(name)) => name.clone(),
            (None, None) => host(server).to_owned(),
        };
        let config = ClientConfig::new(Arc::new(tls), transport(), given.factory(registry)?);
        let addresses = addresses(server)?;
        Ok(Target { addresses, config, name, by_pin: trust.pin.is_some() })
    }

    /// The same with that limit on the time of a handshake.
    pub(crate) fn within(self, limit: Duration) -> Target {
        Target { config: self.config.with_handshake_timeout(limit), ..self }
    }

    /// Where the server is.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Connects to the first address that answers.
    ///
    /// # Errors
    /// As of [`connect_first`].
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, ConnectError> {
        connect_first(endpoint, &self.config, self.addresses.iter().copied(), &self.name).await
    }

    /// Connects to one address.
    pub(crate) async fn connect_to(
        &self,
        endpoint: &Endpoint,
        address: SocketAddr,
    ) -> Result<Connection, ConnectError> {
        endpoint.connect(&self.config, address, &self.name).await
    }

    /// A failure to connect, for users of these options.
    pub(crate) fn failure(&self, error: &ConnectError) -> Failure {
        match error {
            ConnectError::Certificate { remote, .. } if self.by_pin => Failure::Run(format!(
                "the certificate of {remote} has another pin; give --pin as the server printed it"
            )),
            ConnectError::Certificate { remote, reason } => Failure::Run(format!(
                "the certificate of {remote} is not trusted: {reason}; give --ca with the certificate \
                 of its authority, --name with a name that it is for, or --pin as the server printed it"
            )),
            ConnectError::Config(error) => Failure::Usage(error.to_string()),
            error => Failure::run(error),
        }
    }
}

/// A client that knows a server by its pin, or by an authority; `None` if neither is given.
///
/// # Errors
/// If the pin is none, or the file cannot be used.
pub(crate) fn tls_of(
    pin: Option<&str>,
    ca: Option<&Path>,
    alpn: &[u8],
) -> Result<Option<RustlsClient>, Failure> {
    let tls = match (pin, ca) {
        (Some(pin), _) => {
            let pin: Pin =
                pin.parse().map_err(|error| Failure::Usage(format!("--pin: {error}")))?;
            pinned(pin, &[alpn]).map_err(Failure::run)?
        }
        (None, Some(file)) => {
            trusting(file, &[alpn]).map_err(|error| Failure::Usage(format!("--ca: {error}")))?
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(tls))
}

/// A client that knows a server by its pin, by an authority, or by those of this host.
///
/// # Errors
/// If the pin is none, or certificates cannot be used.
pub(crate) fn tls_or_host(
    pin: Option<&str>,
    ca: Option<&Path>,
    alpn: &[u8],
) -> Result<RustlsClient, Failure> {
    match tls_of(pin, ca, alpn)? {
        Some(tls) => Ok(tls),
        None => trusting_host(&[alpn]).map_err(Failure::run),
    }
}

/// A client's endpoint with the uplinks that `--via` names.
///
/// # Errors
/// If there is no such uplink, or no socket can be had.
pub(crate) fn bind(mut builder: ClientBuilder, vias: &[String]) -> Result<Endpoint, Failure> {
    for via in vias {
        // Every text names something.
        let Ok(via) = via.parse::<Via>();
        builder = builder.via(via);
    }
    builder.bind().map_err(|error| bind_failure("--via", &error))
}

/// Waits until Ctrl-C set `stopped`.
pub(crate) async fn asked_to_stop(stopped: &AtomicBool) {
    while !stopped.load(Ordering::Relaxed) {
        sleep(LOOK).await;
    }
}

/// Connects to the first address that answers.
///
/// # Errors
/// The first failure, if no address answers; another one at once if it is no matter of the address.
pub(crate) async fn connect_first(
    endpoint: &Endpoint,
    config: &ClientConfig,
    addresses: impl Iterator<Item = SocketAddr>,
    name: &str,
) -> Result<Connection, ConnectError> {
    let mut failed = None;
    for address in addresses {
        match endpoint.connect(config, address, name).await {
            // Another address may be of a family that the uplinks have, or that the server listens on.
            Err(
                error @ (ConnectError::NoUplink(_)
                | ConnectError::NoRoute { .. }
                | ConnectError::NobodyListens(_)
                | ConnectError::Unreachable { .. }
                | ConnectError::NoAnswer { .. }),
            ) => {
                failed.get_or_insert(error);
            }
            other => return other,
        }
    }
    Err(failed.unwrap_or(ConnectError::EndpointClosed))
}

/// `HOST` of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Makes the policies of each connection.
pub(crate) type Factory = Arc<dyn Fn() -> quipu_lab::policy::Policies + Send + Sync>;

impl LivePolicies {
    /// The defaults.
    pub(crate) const NONE: LivePolicies =
        LivePolicies { stream: None, path: None, joint: None, congestion: None, ack: None };

    /// The policies of each connection.
    pub(crate) fn factory(&self, registry: &Registry) -> Result<Factory, Failure> {
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
fn addresses(server: &str) -> Result<Vec<SocketAddr>, Failure> {
    let looked_up = server.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("{server}: {error}; expected HOST:PORT, such as 192.0.2.1:4433"))
    })?;
    let found: Vec<SocketAddr> = looked_up.collect();
    if found.is_empty() {
        return Err(Failure::Usage(format!("{server} has no address")));
    }
    Ok(found)
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

#[cfg(test)]
mod tests {
    use quipu_tokio::tokio;

    use super::*;

    #[test]
    fn a_single_thread_begins_tasks_in_their_order() {
        let begun = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = Arc::clone(&begun);
        runtime_of(Some(1)).unwrap().block_on(async move {
            let task = |number| {
                let begun = Arc::clone(&note);
                async move { begun.lock().unwrap().push(number) }
            };
            let all: Vec<_> = (0..100).map(|number| tokio::spawn(task(number))).collect();
            for one in all {
                one.await.unwrap();
            }
        });
        assert!(begun.lock().unwrap().iter().copied().eq(0..100));
    }

    #[test]
    fn a_host_has_no_port_and_no_brackets() {
        for (server, expected) in [
            ("server.example:4433", "server.example"),
            ("192.0.2.1:1", "192.0.2.1"),
            ("[2001:db8::1]:4433", "2001:db8::1"),
        ] {
            assert_eq!(host(server), expected);
        }
    }
}
