//! Paths of connections: what they are, and how more are opened.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quipu_base::PathId;
use quipu_policy::{PathState, PathStatus};
use quipu_quic::connection::OpenPathError;
use quipu_quic::{Connection, ConnectionHandle, PathSample, Route};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, timeout};

use crate::entry::{PathEvent, Signals};
use crate::error::{BindError, PathError};
use crate::socket::Socket;
use crate::state::Shared;
use crate::uplink::Uplink;

/// A path that cannot be opened yet is tried again when the handshake is confirmed, and after so long, as the peer may
/// have to issue connection IDs. Our choice.
const RETRY_AFTER: Duration = Duration::from_millis(20);
/// For so long. Our choice.
const TRIED_FOR: Duration = Duration::from_secs(5);

/// A path of a connection, at an instant.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathInfo {
    /// Identifier of the path.
    pub id: PathId,
    /// Addresses of both ends.
    pub route: Route,
    /// Name of the interface that a client's path leaves by, if it was bound to one.
    pub interface: Option<String>,
    /// Whether it may carry data.
    pub state: PathState,
    /// Whether an end asks to spare it.
    pub status: PathStatus,
    /// Round-trip times, window, rates and counters.
    pub sample: PathSample,
}

/// Tells what happens to the paths of a connection, from when it was made.
#[derive(Debug)]
pub struct PathEvents {
    receiver: broadcast::Receiver<PathEvent>,
}

impl PathEvents {
    pub(crate) fn new(receiver: broadcast::Receiver<PathEvent>) -> Self {
        PathEvents { receiver }
    }

    /// The next event; `None` once the connection is dropped and all were told. Cancelling loses none.
    pub async fn next(&mut self) -> Option<PathEvent> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(PathEvent::Missed(missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The paths that live, in order of path identifier.
pub(crate) fn infos(connection: &Connection, sockets: &[Arc<Socket>]) -> Vec<PathInfo> {
    let samples = connection.path_samples();
    samples
        .filter_map(|sample| {
            let view = connection.path_views().find(|view| view.key.id == sample.path)?;
            let socket = sockets.iter().find(|socket| socket.serves(&sample.route));
            let uplink = socket.and_then(|socket| socket.uplink());
            Some(PathInfo {
                id: sample.path,
                route: sample.route,
                interface: uplink.and_then(|uplink| uplink.interface.clone()),
                state: view.state,
                status: view.status,
                sample,
            })
        })
        .collect()
}

/// The route by an uplink, with a socket for it.
pub(crate) fn route_by(
    shared: &Shared,
    uplink: Uplink,
    remote: SocketAddr,
) -> Result<Route, BindError> {
    let known = shared.lock().socket_of(&uplink).cloned();
    if let Some(socket) = known {
        return Ok(socket.route_to(remote));
    }
    route_anew(shared, uplink, remote)
}

/// The route by an uplink, with a socket of its own, so that its port is another one.
pub(crate) fn route_anew(
    shared: &Shared,
    uplink: Uplink,
    remote: SocketAddr,
) -> Result<Route, BindError> {
    let socket = Socket::leave_by(uplink, shared.kernel_buffer)?;
    Ok(shared.act(|state, now| state.add_socket(socket, now)).route_to(remote))
}

/// Opens a path and waits until it is usable.
pub(crate) async fn open(
    shared: &Shared,
    signals: &Signals,
    handle: ConnectionHandle,
    route: Route,
    status: PathStatus,
) -> Result<PathId, PathError> {
    let id = begin(shared, signals, handle, route, status).await?;
    loop {
        let notified = signals.changed.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        let state = shared.with_connection(handle, |connection, _, _| {
            connection.path_views().find(|view| view.key.id == id).map(|view| view.state)
        })?;
        match state {
            Some(PathState::Validating) => notified.await,
            Some(PathState::Usable | PathState::Suspect) => return Ok(id),
            Some(PathState::Closing) | None => {
                return Err(PathError::NoAnswer { path: id, local: route.local });
            }
        }
    }
}

/// Opens a path as soon as both ends allow one.
async fn begin(
    shared: &Shared,
    signals: &Signals,
    handle: ConnectionHandle,
    route: Route,
    status: PathStatus,
) -> Result<PathId, PathError> {
    let begun = Instant::now();
    loop {
        let notified = signals.changed.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        let opened = shared.with_connection(handle, |connection, _, now| {
            connection.open_path_as(now, route, status)
        })?;
        let for_now = |error: &OpenPathError| {
            matches!(
                error,
                OpenPathError::NotConfirmed
                    | OpenPathError::Limit(_)
                    | OpenPathError::NoConnectionId(_)
            )
        };
        match opened {
            Ok(id) => return Ok(id),
            Err(error) if for_now(&error) && begun.elapsed() < TRIED_FOR => {
                // Whichever comes first.
                let _ = timeout(RETRY_AFTER, notified).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Opens a path for as long as the connection lives, and leaves it at that: its events tell whether it
/// came to be.
pub(crate) fn open_in_background(shared: &Arc<Shared>, handle: ConnectionHandle, route: Route) {
    let shared = Arc::clone(shared);
    tokio::spawn(async move {
        let signals = shared.with_entry(handle, |entry| Arc::clone(&entry.signals));
        let Ok(signals) = signals else { return };
        // It is told by its events.
        let _ = begin(&shared, &signals, handle, route, PathStatus::Available).await;
    });
}
