//! The seam to `quipu-quic`: what the two ends of a connection are made of.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Duration, Instant, Role, Seed};
use quipu_policy::registry::PolicySpec;
use quipu_quic::endpoint::{
    Admission, ClientConfig, Closed, EndpointConfig, PolicyFactory, ServerConfig,
};
use quipu_quic::recorder::RecorderFactory;
use quipu_quic::{Endpoint, Route, TransportConfig};

use super::arrivals::LineArrivals;
use super::error::SetupError;
use super::instruments::Setting;
use super::meter::Meter;
use super::pairs::{PageLine, page_seed, pair_of_flow};
use super::party::Party;
use super::topology::addresses;
use super::transport_config::transport_config;
use super::{tls, wire};
use crate::policies::{SpecError, build};
use quipu_scenario::{HttpVersion, Scenario};

/// The longest datagram of a run.
pub(super) fn datagram_size(scenario: &Scenario) -> usize {
    let transport = &scenario.transport;
    let cross = scenario.cross.iter().map(|sender| sender.packet);
    let ours = transport.udp_payload.max(transport.initial_udp_payload);
    let largest = cross.fold(ours, Ord::max);
    // At most 65,527, as the scenario was checked.
    usize::try_from(largest.0).unwrap_or(usize::MAX).min(65_527)
}

/// One connection of a run: what its ends are made of.
pub(super) struct ConnectionPlan<'a> {
    scenario: &'a Scenario,
    spec: &'a PolicySpec,
    http: HttpVersion,
    /// All chance of the connection comes from it.
    seed: Seed,
    /// Which pair of hosts.
    pair: u16,
    /// Paths of the network, in the order in which the connection opens them.
    paths: Vec<usize>,
    initial_window: u32,
    recorders: Option<RecorderFactory>,
    /// Takes note of what comes to the end that reads.
    arrivals: Option<LineArrivals>,
    /// Takes the time of the server's policies.
    meter: Option<Meter>,
}

impl<'a> ConnectionPlan<'a> {
    /// The connection over which a client loads what is on server `line` of those that it needs.
    pub(super) fn of_page(setting: Setting<'a>, line: PageLine) -> ConnectionPlan<'a> {
        let scenario = setting.scenario();
        ConnectionPlan {
            scenario,
            spec: &setting.row().transport,
            http: setting.http(),
            seed: page_seed(setting.plan, setting.cell, line),
            pair: line.pair,
            paths: (0..setting.network().network.paths.len()).collect(),
            initial_window: scenario.transport.initial_window,
            recorders: setting.recorders(),
            arrivals: setting.arrivals(line),
            meter: setting.instruments.meter.clone(),
        }
    }

    /// The connection of the flow at `index` among those of the scenario.
    pub(super) fn of_flow(setting: Setting<'a>, index: usize) -> ConnectionPlan<'a> {
        let scenario = setting.scenario();
        let own_window = scenario.flows[index].initial_window;
        ConnectionPlan {
            scenario,
            spec: &setting.row().flows[index],
            // Flows have no HTTP, and QUIC's own credit.
            http: match setting.http() {
                HttpVersion::H2Tcp => HttpVersion::H2,
                http => http,
            },
            seed: scenario.run_seed(setting.cell.run).child("flow", index as u64),
            pair: pair_of_flow(index),
            paths: setting.network().flow_paths[index].clone(),
            initial_window: own_window.unwrap_or(scenario.transport.initial_window),
            recorders: setting.recorders(),
            arrivals: None,
            meter: None,
        }
    }

    fn transport(&self, role: Role) -> Result<TransportConfig, SetupError> {
        let paths = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        Ok(transport_config(&self.scenario.transport, self.http, paths, role)?)
    }

    /// Makes the policies of one end, each time that the engine asks.
    fn policies(&self, role: Role) -> Result<PolicyFactory, SpecError> {
        let name = if role.is_client() { "client.policies" } else { "server.policies" };
        let seed = self.seed.child(name, 0);
        let spec = self.spec.clone();
        let window = self.initial_window;
        build(&spec, window, (role, seed))?;
        let meter = self.meter.clone().filter(|_| !role.is_client());
        Ok(Arc::new(move || {
            let mut policies =
                build(&spec, window, (role, seed)).expect("the same was built a moment ago");
            if let Some(meter) = &meter {
                policies.joint = meter.timed(policies.joint);
            }
            policies
        }))
    }

    fn client_config(&self) -> Result<ClientConfig, SetupError> {
        let config = ClientConfig::new(
            tls::client(self.scenario, wire::alpn(self.http))?,
            Arc::new(self.transport(Role::Client)?),
            self.policies(Role::Client)?,
        );
        Ok(config.with_handshake_timeout(Duration::ZERO))
    }

    /// The end that opens the connection, at `start`.
    pub(super) fn client(&self, start: Instant) -> Result<Party, SetupError> {
        let endpoint = self.endpoint("client.endpoint", Role::Client)?;
        Party::client(endpoint, self.client_config()?, start, self.routes())
    }

    /// Lets `party`, a client, open this connection too.
    pub(super) fn add_to(&self, party: &mut Party) -> Result<(), SetupError> {
        party.add_line(self.client_config()?, self.routes());
        Ok(())
    }

    /// The end that takes it.
    pub(super) fn server(&self) -> Result<Party, SetupError> {
        let mut endpoint = self.endpoint("server.endpoint", Role::Server)?;
        let config = ServerConfig::new(
            tls::server(self.scenario, wire::alpn(self.http))?,
            Arc::new(self.transport(Role::Server)?),
            self.policies(Role::Server)?,
        );
        // The idle timeout alone ends a handshake, as it does at the client.
        let handshake_timeout = Duration::ZERO;
        let admission = Admission { max_connections: 1, handshake_timeout, ..Admission::default() };
        endpoint.listen(config.with_admission(admission))?;
        Ok(Party::server(endpoint))
    }

    fn endpoint(&self, stream: &str, role: Role) -> Result<Endpoint, SetupError> {
        // What ended connections counted is read when the run is over.
        let config = EndpointConfig { closed: Closed::Kept, ..EndpointConfig::default() };
        let mut endpoint = Endpoint::seeded_with(config, self.seed.stream(stream, 0))?;
        let arrivals = self.arrivals.as_ref().filter(|arrivals| arrivals.reader() == role);
        let recorders = match arrivals {
            Some(arrivals) => Some(arrivals.recorders(self.recorders.clone())),
            None => self.recorders.clone(),
        };
        if let Some(recorders) = recorders {
            endpoint.record(recorders);
        }
        Ok(endpoint)
    }

    /// The client's routes, in the order in which the connection opens them.
    fn routes(&self) -> VecDeque<Route> {
        let paths = self.paths.iter();
        paths
            .map(|&path| {
                let [local, remote] = addresses(self.pair, path);
                Route::new(local, remote)
            })
            .collect()
    }
}
