//! A client's handshake, raced over its uplinks so that a dead one does not hold it up.

use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use quipu_quic::endpoint::ClientConfig;
use quipu_quic::tls::EarlyData;
use quipu_quic::{ConnectionHandle, Route};
use tokio::sync::Notify;
use tokio::task::{JoinError, JoinSet};

use crate::connection::{Begun, Connection};
use crate::engine::Calls;
use crate::entry::{Entry, Signals};
use crate::error::{ConnectError, ConnectionError};
use crate::hearing::Hearing;
use crate::icmp::Hint;
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
        [only] => attempt(shared, config, *only, server_name)?.finish(&Notify::new()).await,
        several => race(shared, config, None, several, server_name).await,
    };
    let connection = connection.map_err(|error| failed(error, remote, &routes))?;
    open_others(&connection, config, routes);
    Ok(connection)
}

/// Opens a connection, by the first uplink to begin with, and returns at once if data can be sent; else as
/// [`connect`].
pub(crate) async fn connect_early(
    shared: &Arc<Shared>,
    uplinks: &[Uplink],
    config: &ClientConfig,
    remote: SocketAddr,
    server_name: &str,
) -> Result<Connection, ConnectError> {
    let routes = routes(shared, uplinks, remote)?;
    let (first, others) = routes.split_first().ok_or(ConnectError::NoUplink(remote))?;
    let begun = attempt(shared, config, *first, server_name)?;
    if begun.connection.early_data() == Some(EarlyData::Offered) {
        let several = config.transport.max_paths > 1;
        tokio::spawn(try_in_turn(InTurn::of(&begun.connection), routes, several));
        return Ok(begun.connection);
    }
    let raced = race(shared, config, Some(begun), others, server_name).await;
    let connection = raced.map_err(|error| failed(error, remote, &routes))?;
    open_others(&connection, config, routes);
    Ok(connection)
}

/// A connection that is not kept open for this.
struct InTurn {
    shared: Arc<Shared>,
    handle: ConnectionHandle,
    signals: Arc<Signals>,
}

impl InTurn {
    fn of(connection: &Connection) -> Self {
        let (shared, signals) = (connection.shared(), connection.signals());
        InTurn {
            shared: Arc::clone(shared),
            handle: connection.handle(),
            signals: Arc::clone(signals),
        }
    }

    /// Waits until the handshake is over: true, or the connection.
    async fn connected(&self) -> bool {
        loop {
            let notified = self.signals.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let look = |entry: &mut Entry| entry.ended.is_some() || entry.connected;
            match self.shared.with_entry(self.handle, look) {
                Ok(true) => return true,
                Ok(false) => notified.await,
                Err(_) => return false,
            }
        }
    }
}

/// Has a connection that sends early, and hears nothing, begin again by one uplink after the other. All that
/// was written early is one connection's, so attempts do not overlap; each has twice the time of the one
/// before, so that a slow uplink gets its chance. Opens paths by the others in the end.
async fn try_in_turn(connection: InTurn, routes: Vec<Route>, several: bool) {
    let InTurn { shared, handle, .. } = &connection;
    let (mut wait, mut present) = (STAGGER, routes.first().copied());
    let mut turns = routes.iter().cycle().skip(1);
    while routes.len() > 1
        && let Some(&route) = turns.next()
    {
        if tokio::time::timeout(wait, connection.connected()).await.is_ok() {
            break;
        }
        let begin =
            |connection: &mut Calls<'_>, _: &mut Entry, now| connection.begin_by(now, route);
        match shared.with_connection(*handle, begin) {
            Ok(true) => present = Some(route),
            // It hears the server.
            Ok(false) => break,
            Err(_) => return,
        }
        wait = wait.saturating_mul(2);
    }
    if several {
        for route in routes.into_iter().filter(|route| Some(*route) != present) {
            path::open_in_background(shared, *handle, route);
        }
    }
}

fn failed(error: Failed, remote: SocketAddr, routes: &[Route]) -> ConnectError {
    let tried: Vec<String> = routes.iter().map(|route| route.local.ip().to_string()).collect();
    match error {
        Failed::Start(error) => error,
        Failed::Refused => ConnectError::NobodyListens(remote),
        Failed::Handshake(error, hint) => {
            ConnectError::of(error, hint.as_ref(), remote, &tried.join(", "))
        }
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
    /// Nobody has the server's port.
    Refused,
    /// It ended, and that the network said of it.
    Handshake(ConnectionError, Option<Hint>),
}

impl From<ConnectError> for Failed {
    fn from(error: ConnectError) -> Self {
        Failed::Start(error)
    }
}

impl Failed {
    /// Of several, the one that says most is told, and of such the last.
    fn or(self, before: Option<Failed>) -> Self {
        match before {
            Some(before) if before.says() > self.says() => before,
            _ => self,
        }
    }

    fn says(&self) -> u8 {
        match self {
            Failed::Handshake(error, None) if error.is_timeout() => 0,
            Failed::Handshake(error, Some(_)) if error.is_timeout() => 1,
            Failed::Start(_) => 1,
            Failed::Refused => 2,
            // Of a server that is there.
            Failed::Handshake(..) => 3,
        }
    }
}

/// A handshake under way. Dropped, it is given up.
struct Attempt {
    connection: Connection,
    route: Route,
}

impl Attempt {
    /// Waits until it is over. `hurry` is told what the network says, which may be that this takes long.
    async fn finish(self, hurry: &Notify) -> Result<Connection, Failed> {
        let hearing = Hearing::begin(self.connection.shared(), &self.route);
        {
            let mut told = pin!(async {
                match &hearing {
                    Some(hearing) => hearing.tell_all().await,
                    None => pending().await,
                }
            });
            let mut over = pin!(self.over(hurry));
            poll_fn(|cx| {
                // It never ends.
                let _: Poll<Infallible> = told.as_mut().poll(cx);
                over.as_mut().poll(cx)
            })
            .await?;
        }
        Ok(self.connection)
    }

    async fn over(&self, hurry: &Notify) -> Result<(), Failed> {
        let mut hint = None;
        loop {
            match self.connection.begun(hint).await {
                Ok(Begun::Connected) => return Ok(()),
                Ok(Begun::Refused) => return Err(Failed::Refused),
                Ok(Begun::Hint(new)) => {
                    hint = Some(new);
                    hurry.notify_one();
                }
                Err(error) => return Err(Failed::Handshake(error, hint)),
            }
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
    let connection = Connection::new(Arc::clone(shared), handle, signals);
    Ok(Attempt { connection, route })
}

type Running = JoinSet<Result<Connection, Failed>>;

/// The first of several attempts that succeeds. Each begins [`STAGGER`] after the one before, or when the
/// network says that one of those fails, or all before have failed. One may have begun already.
async fn race(
    shared: &Arc<Shared>,
    config: &ClientConfig,
    mut begun: Option<Attempt>,
    routes: &[Route],
    server_name: &str,
) -> Result<Connection, Failed> {
    let mut running = JoinSet::new();
    let mut waiting = routes.iter();
    let mut failed: Option<Failed> = None;
    let hurry = Arc::new(Notify::new());
    loop {
        let next = begun.take().map(Ok).or_else(|| {
            let route = waiting.next()?;
            Some(attempt(shared, config, *route, server_name))
        });
        if let Some(next) = next {
            match next {
                Ok(attempt) => {
                    let hurry = Arc::clone(&hurry);
                    running.spawn(async move { attempt.finish(&hurry).await });
                }
                Err(error) => failed = Some(Failed::Start(error).or(failed)),
            }
        }
        let more = waiting.len() > 0;
        let next = match more {
            true => before_the_next(&mut running, &hurry).await,
            false => Some(running.join_next().await),
        };
        match next {
            Some(Some(Ok(Ok(connection)))) => return Ok(connection),
            Some(Some(Ok(Err(error)))) => failed = Some(error.or(failed)),
            // The runtime is shutting down.
            Some(Some(Err(_))) => failed = Some(gone().or(failed)),
            Some(None) if !more => return Err(failed.unwrap_or_else(gone)),
            Some(None) | None => {}
        }
    }
}

fn gone() -> Failed {
    Failed::Handshake(ConnectionError::EndpointGone, None)
}

/// The attempt that ends before another is to begin, if any.
async fn before_the_next(
    running: &mut Running,
    hurry: &Notify,
) -> Option<Option<Result<Result<Connection, Failed>, JoinError>>> {
    let (mut ended, mut hurried) = (pin!(running.join_next()), pin!(hurry.notified()));
    let first = poll_fn(|cx| match ended.as_mut().poll(cx) {
        Poll::Ready(ended) => Poll::Ready(Some(ended)),
        Poll::Pending => hurried.as_mut().poll(cx).map(|()| None),
    });
    tokio::time::timeout(STAGGER, first).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use quipu_quic::connection::CloseReason;

    use super::*;
    use crate::icmp::Reason;

    #[tokio::test]
    async fn the_next_uplink_is_tried_as_soon_as_the_network_says_something() {
        let (mut running, hurry) = (Running::new(), Notify::new());
        running.spawn(pending());
        let mut polled = async |hurry: &Notify| {
            let mut next = pin!(before_the_next(&mut running, hurry));
            poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx).is_ready())).await
        };
        assert!(!polled(&hurry).await);
        hurry.notify_one();
        assert!(polled(&hurry).await);
        assert!(!polled(&hurry).await, "it is told once");
    }

    #[test]
    fn of_several_failures_the_one_that_says_most_is_told() {
        let timeout = || ConnectionError::Closed(CloseReason::HandshakeTimeout);
        // From the one that says least.
        let of = |rank: u8| match rank {
            0 => Failed::Handshake(timeout(), None),
            1 => Failed::Handshake(timeout(), Some(Hint { reason: Reason::Host, from: None })),
            2 => Failed::Refused,
            _ => Failed::Handshake(ConnectionError::Closed(CloseReason::Version), None),
        };
        for (first, second) in (0..4).flat_map(|first| (0..4).map(move |second| (first, second))) {
            assert_eq!(of(second).or(Some(of(first))).says(), first.max(second));
        }
    }
}
