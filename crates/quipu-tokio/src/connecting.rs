//! A client's handshake, raced over its uplinks so that a dead one does not hold it up.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quipu_quic::Route;
use quipu_quic::endpoint::ClientConfig;
use quipu_quic::tls::EarlyData;
use tokio::task::JoinSet;

use crate::connection::Connection;
use crate::error::{ConnectError, ConnectionError};
use crate::path;
use crate::state::Shared;
use crate::uplink::Uplink;

/// The next uplink is tried so long after the one before.
/// <https://www.rfc-editor.org/rfc/rfc8305#section-5>, Connection Attempt Delay.
const STAGGER: Duration = Duration::from_millis(250);

/// Opens a connection by the first uplink that gets an answer; the others become paths.
pub(crate) async fn connect(
    shared: &Arc<Shared>,
    uplinks: &[Uplink],
    config: &ClientConfig,
    remote: SocketAddr,
    server_name: &str,
) -> Result<Connection, ConnectError> {
    let routes = routes(shared, uplinks, remote)?;
    let connection = match routes.as_slice() {
        [only] => attempt(shared, config, *only, server_name)?.finish().await,
        several => race(shared, config, several, server_name).await,
    };
    let connection = connection.map_err(|error| failed(error, remote, &routes))?;
    open_others(&connection, config, routes);
    Ok(connection)
}

/// Opens a connection by the first uplink alone; returns as soon as data can be sent.
pub(crate) async fn connect_early(
    shared: &Arc<Shared>,
    uplinks: &[Uplink],
    config: &ClientConfig,
    remote: SocketAddr,
    server_name: &str,
) -> Result<Connection, ConnectError> {
    let routes = routes(shared, uplinks, remote)?;
    let first = *routes.first().ok_or(ConnectError::NoUplink(remote))?;
    let begun = attempt(shared, config, first, server_name)?;
    let connection = match begun.0.early_data() {
        Some(EarlyData::Offered) => begun.0,
        _ => begun.finish().await.map_err(|error| failed(error, remote, &[first]))?,
    };
    open_others(&connection, config, routes);
    Ok(connection)
}

fn failed(error: Failed, remote: SocketAddr, routes: &[Route]) -> ConnectError {
    let tried: Vec<String> = routes.iter().map(|route| route.local.ip().to_string()).collect();
    match error {
        Failed::Start(error) => error,
        Failed::Handshake(error) => ConnectError::of(error, remote, &tried.join(", ")),
    }
}

/// Opens paths by the routes that the handshake does not use.
fn open_others(connection: &Connection, config: &ClientConfig, routes: Vec<Route>) {
    if config.transport.max_paths > 1 {
        let first = connection.route();
        for route in routes.into_iter().filter(|route| Some(*route) != first) {
            path::open_in_background(connection.shared(), connection.handle(), route);
        }
    }
}

/// The routes to `remote` by all uplinks of its family, with sockets for them.
fn routes(
    shared: &Arc<Shared>,
    uplinks: &[Uplink],
    remote: SocketAddr,
) -> Result<Vec<Route>, ConnectError> {
    if uplinks.is_empty() {
        return Ok(vec![path::route_by(shared, chosen_by_host(remote)?, remote)?]);
    }
    let family = |uplink: &&Uplink| uplink.address.is_ipv4() == remote.is_ipv4();
    let (mut routes, mut failed) = (Vec::new(), None);
    for uplink in uplinks.iter().filter(family) {
        match path::route_by(shared, uplink.clone(), remote) {
            Ok(route) => routes.push(route),
            // Its interface may be gone; the others are not.
            Err(error) => failed = Some(ConnectError::Bind(error)),
        }
    }
    match routes.is_empty() {
        true => Err(failed.unwrap_or(ConnectError::NoUplink(remote))),
        false => Ok(routes),
    }
}

fn chosen_by_host(remote: SocketAddr) -> Result<Uplink, ConnectError> {
    Uplink::by_route(remote).map_err(|source| ConnectError::NoRoute { remote, source })
}

/// Why an attempt came to nothing.
enum Failed {
    /// Nothing was sent.
    Start(ConnectError),
    Handshake(ConnectionError),
}

impl From<ConnectError> for Failed {
    fn from(error: ConnectError) -> Self {
        Failed::Start(error)
    }
}

/// A handshake under way. Dropped, it is given up.
struct Attempt(Connection);

impl Attempt {
    async fn finish(self) -> Result<Connection, Failed> {
        match self.0.connected().await {
            Ok(()) => Ok(self.0),
            Err(error) => Err(Failed::Handshake(error)),
        }
    }
}

fn attempt(
    shared: &Arc<Shared>,
    config: &ClientConfig,
    route: Route,
    server_name: &str,
) -> Result<Attempt, ConnectError> {
    let (handle, signals) = shared.act(|state, now| {
        if state.closed {
            return Err(ConnectError::EndpointClosed);
        }
        let handle = state.engine.connect(now, config, server_name, route)?;
        Ok((handle, state.add_connection(handle)))
    })?;
    Ok(Attempt(Connection::new(Arc::clone(shared), handle, signals)))
}

/// The first of several attempts that succeeds. Each begins [`STAGGER`] after the one before, or when
/// all before have failed.
async fn race(
    shared: &Arc<Shared>,
    config: &ClientConfig,
    routes: &[Route],
    server_name: &str,
) -> Result<Connection, Failed> {
    let mut running = JoinSet::new();
    let mut waiting = routes.iter();
    let mut failed = None;
    loop {
        if let Some(route) = waiting.next() {
            match attempt(shared, config, *route, server_name) {
                Ok(attempt) => _ = running.spawn(attempt.finish()),
                Err(error) => failed = Some(Failed::Start(error)),
            }
        }
        let more = waiting.len() > 0;
        let next = match more {
            true => tokio::time::timeout(STAGGER, running.join_next()).await,
            false => Ok(running.join_next().await),
        };
        match next {
            Ok(Some(Ok(Ok(connection)))) => return Ok(connection),
            Ok(Some(Ok(Err(error)))) => failed = Some(error),
            // The runtime is shutting down.
            Ok(Some(Err(_))) => failed = Some(Failed::Handshake(ConnectionError::EndpointGone)),
            Ok(None) if !more => {
                return Err(failed.unwrap_or(Failed::Handshake(ConnectionError::EndpointGone)));
            }
            Ok(None) | Err(_) => {}
        }
    }
}
