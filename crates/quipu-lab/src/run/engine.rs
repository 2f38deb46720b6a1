//! The seam to `quipu-quic`: configuration and datagrams.

use std::sync::Arc;

use quipu_base::{Duration, Instant, Role};
use quipu_policy::PathKey;
use quipu_quic::endpoint::{ClientConfig, ConnectError, PolicyFactory, ServerConfig};
use quipu_quic::{Arrival, Burst, ConfigError, Endpoint, Outbox, Route, Transmit, TransportConfig};
use quipu_sim::{Envelope, Outgoing};
use thiserror::Error;

use super::tls::{self, TlsError};
use super::topology::addresses;
use crate::plan::{Cell, Plan};
use crate::policies::{SpecError, build};
use crate::scenario::Scenario;

/// An end could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The transport's configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A policy.
    #[error(transparent)]
    Policy(#[from] SpecError),
}

/// The name of the server.
const SERVER_NAME: &str = "page.test";

/// The longest datagram of a run.
pub(super) fn datagram_size(scenario: &Scenario) -> usize {
    let transport = &scenario.transport;
    let largest = transport.udp_payload.max(transport.initial_udp_payload);
    // At most 65,527, as the scenario was checked.
    usize::try_from(largest.0).unwrap_or(usize::MAX).min(65_527)
}

fn transport(plan: &Plan, cell: Cell) -> Result<TransportConfig, SetupError> {
    let transport = &plan.scenario.transport;
    let paths = plan.networks[cell.network].network.paths.len();
    let config = TransportConfig {
        // Ranges were checked with the scenario; a value beyond them is refused below.
        max_udp_payload: u16::try_from(transport.udp_payload.0).unwrap_or(u16::MAX),
        initial_udp_payload: u16::try_from(transport.initial_udp_payload.0).unwrap_or(u16::MAX),
        pacing_percent: transport.pacing.then_some((transport.pacing_factor * 100.0 + 0.5) as u32),
        burst: Burst {
            packets: transport.pacing_burst_packets,
            time: transport.pacing_burst_time,
            limit: transport.pacing_burst_limit,
        },
        ecn: transport.ecn,
        ack_every: transport.ack_every,
        max_ack_delay: transport.max_ack_delay,
        stream_window: transport.stream_credit,
        connection_window: transport.connection_credit,
        // A server may think for longer than any usual idle timeout; the run has its own limit.
        idle_timeout: Duration::ZERO,
        max_paths: u32::try_from(paths).unwrap_or(u32::MAX),
        ..TransportConfig::default()
    };
    config.validate()?;
    Ok(config)
}

/// Makes the policies of one end, each time that the engine asks.
fn policies(plan: &Plan, cell: Cell, role: Role) -> Result<PolicyFactory, SpecError> {
    let name = if role.is_client() { "client.policies" } else { "server.policies" };
    let seed = plan.scenario.run_seed(cell.run).child(name, 0);
    let spec = plan.networks[cell.network].policies[cell.policy].spec.clone();
    let window = plan.scenario.transport.initial_window;
    build(&spec, window, seed)?;
    Ok(Arc::new(move || build(&spec, window, seed).expect("the same was built a moment ago")))
}

/// An endpoint with a connection to the server over path 0.
pub(super) fn client(
    plan: &Plan,
    cell: Cell,
) -> Result<(Endpoint, quipu_quic::ConnectionHandle), SetupError> {
    let random = plan.scenario.run_seed(cell.run).stream("client.endpoint", 0);
    let mut endpoint = Endpoint::new(random);
    let config = ClientConfig {
        tls: tls::client(&plan.scenario)?,
        transport: Arc::new(transport(plan, cell)?),
        policies: policies(plan, cell, Role::Client)?,
    };
    let handle = endpoint.connect(Instant::ZERO, &config, SERVER_NAME, route(0))?;
    Ok((endpoint, handle))
}

/// An endpoint that takes one connection.
pub(super) fn server(plan: &Plan, cell: Cell) -> Result<Endpoint, SetupError> {
    let random = plan.scenario.run_seed(cell.run).stream("server.endpoint", 0);
    let mut endpoint = Endpoint::new(random);
    endpoint.listen(ServerConfig {
        tls: tls::server(&plan.scenario)?,
        transport: Arc::new(transport(plan, cell)?),
        policies: policies(plan, cell, Role::Server)?,
        max_connections: 1,
    })?;
    Ok(endpoint)
}

/// The client's route of path `index`.
pub(super) fn route(index: u8) -> Route {
    let [local, remote] = addresses(0, usize::from(index));
    Route { local, remote }
}

/// How the simulator's datagram came.
pub(super) fn arrival(envelope: &Envelope) -> Arrival {
    let route = Route { local: envelope.local, remote: envelope.remote };
    Arrival { route, ecn: envelope.ecn }
}

/// Hands the engine's datagrams to the simulator, as many as there are.
pub(super) struct SimOutbox<'a, 'b>(pub(super) &'a mut Outgoing<'b>);

impl Outbox for SimOutbox<'_, '_> {
    fn has_room(&self, _path: PathKey) -> bool {
        true
    }

    fn buffer(&mut self, _size: usize) -> &mut [u8] {
        self.0.buffer()
    }

    fn send(&mut self, transmit: Transmit) {
        let Route { local, remote } = transmit.route;
        self.0.send(&Envelope { local, remote, ecn: transmit.ecn }, transmit.len);
    }
}

/// What is said of a value that the engine cannot be told.
pub(crate) fn unsupported(scenario: &Scenario) -> Option<(&'static str, String, &'static str)> {
    use crate::scenario::HttpVersion;
    if scenario.http == HttpVersion::H3 {
        return Some(("http", scenario.http.to_string(), "h2"));
    }
    None
}
