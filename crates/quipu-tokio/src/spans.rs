//! Endpoints and connections as spans of `tracing`, and what happens to them as events in these.
//!
//! - span `endpoint`, at info: `role`, and `local`, the addresses of its sockets;
//! - in it, span `connection`, at info: `role`, `peer`, and `id`, the destination of the client's first
//!   datagram, which qlog files are named after;
//! - events in the latter, at info: `connected`, `closed` with its `reason`, and `dropped`;
//! - at debug: `confirmed`, and what happens to paths, with `path`, and `local`, `remote` and `interface`
//!   where they are known;
//! - at debug, `unreachable`, with `remote` and `reason`: what the network says of a handshake;
//! - `datagrams refused` by the host, at debug, in the endpoint's span.
//!
//! Each is told under the target [`TARGET`]. Nothing is told of single datagrams, and where nobody
//! listens each costs a look at a static.

use quipu_base::{PathId, Role};
use quipu_quic::recorder::Started;
use quipu_quic::{Connection, ConnectionEvent, Route};
use tracing::field::{self, Empty};
use tracing::{Level, Span};

use crate::batches::{Batches, SendFailure};
use crate::icmp::Report;
use crate::socket::Socket;

/// What spans and events are told under.
pub(crate) const TARGET: &str = "quipu_tokio";

/// The span of an endpoint with these sockets.
pub(crate) fn of_endpoint(role: Role, sockets: &[Socket]) -> Span {
    let span = tracing::info_span!(target: TARGET, "endpoint", role = name(role), local = Empty);
    if !span.is_disabled() {
        let local: Vec<_> = sockets.iter().map(|socket| socket.local().to_string()).collect();
        span.record("local", local.join(", "));
    }
    span
}

/// The span of a connection that begins.
pub(crate) fn of_connection(endpoint: &Span, started: Option<&Started>) -> Span {
    let Some(Started { role, route, original_dcid, .. }) = started else { return Span::none() };
    tracing::info_span!(
        target: TARGET, parent: endpoint, "connection",
        role = name(*role), peer = %route.remote, id = %original_dcid,
    )
}

fn name(role: Role) -> &'static str {
    if role.is_client() { "client" } else { "server" }
}

/// What an engine said of a connection, if it is of interest here.
pub(crate) fn tell<'e>(
    span: &Span,
    event: &ConnectionEvent,
    connection: impl FnOnce() -> Option<&'e Connection>,
    batches: &Batches,
) {
    match event {
        ConnectionEvent::Connected => {
            tracing::info!(target: TARGET, parent: span, "connected");
        }
        ConnectionEvent::Confirmed => {
            tracing::debug!(target: TARGET, parent: span, "confirmed");
        }
        ConnectionEvent::Closed(reason) => {
            tracing::info!(target: TARGET, parent: span, %reason, "closed");
        }
        event => {
            let Some(id) = path_of(event) else { return };
            if !tracing::enabled!(target: TARGET, Level::DEBUG) {
                return;
            }
            let path = Path {
                id,
                route: connection().and_then(|connection| connection.route(id)),
                batches,
            };
            path.tell(span, event);
        }
    }
}

/// Nobody holds a connection any more that had not ended.
pub(crate) fn tell_dropped(span: &Span) {
    tracing::info!(target: TARGET, parent: span, "dropped");
}

/// The host refused datagrams.
pub(crate) fn tell_refused(endpoint: &Span, failure: &SendFailure) {
    let (route, error) = (&failure.route, &failure.error);
    tracing::debug!(
        target: TARGET, parent: endpoint,
        local = %route.local, remote = %route.remote, %error, "datagrams refused",
    );
}

/// The network says that a handshake's datagrams did not arrive.
pub(crate) fn tell_report(span: &Span, report: &Report) {
    tracing::debug!(
        target: TARGET, parent: span, remote = %report.remote, reason = %report.hint, "unreachable",
    );
}

/// The path that an event is about.
fn path_of(event: &ConnectionEvent) -> Option<PathId> {
    match event {
        ConnectionEvent::PathUp(path)
        | ConnectionEvent::PathSuspect(path)
        | ConnectionEvent::PathRevived(path)
        | ConnectionEvent::PathGone(path)
        | ConnectionEvent::PathStatus(path, _)
        | ConnectionEvent::DatagramSize(path, _)
        | ConnectionEvent::MigrationFailed(path)
        | ConnectionEvent::PeerAddress { path, .. } => Some(*path),
        ConnectionEvent::PathMigrated(migration) => Some(migration.path),
        _ => None,
    }
}

/// A path as far as it is known: one that is gone may have no addresses any more.
struct Path<'a> {
    id: PathId,
    route: Option<Route>,
    batches: &'a Batches,
}

impl Path<'_> {
    fn tell(&self, span: &Span, event: &ConnectionEvent) {
        let path = self.id.0;
        let local = self.route.map(|route| field::display(route.local));
        let remote = self.route.map(|route| field::display(route.remote));
        let interface = self.interface();
        macro_rules! told {
            ($($field:ident,)* $what:literal) => {
                tracing::debug!(
                    target: TARGET, parent: span, path, local, remote, interface, $($field,)* $what
                )
            };
        }
        match event {
            ConnectionEvent::PathUp(_) => told!("path up"),
            ConnectionEvent::PathSuspect(_) => told!("path silent"),
            ConnectionEvent::PathRevived(_) => told!("path answers again"),
            ConnectionEvent::PathGone(_) => told!("path gone"),
            ConnectionEvent::PathStatus(_, status) => {
                let status = field::debug(status);
                told!(status, "path status of the peer");
            }
            ConnectionEvent::DatagramSize(_, size) => told!(size, "datagram size"),
            ConnectionEvent::MigrationFailed(_) => told!("path stays"),
            ConnectionEvent::PeerAddress { .. } => told!("address of the peer proved"),
            ConnectionEvent::PathMigrated(migration) => {
                let (old_local, old_remote) =
                    (field::display(migration.old.local), field::display(migration.old.remote));
                told!(old_local, old_remote, "path moved");
            }
            _ => {}
        }
    }

    fn interface(&self) -> Option<&str> {
        let route = self.route?;
        let socket = self.batches.sockets().iter().find(|socket| socket.serves(&route))?;
        socket.uplink()?.interface.as_deref()
    }
}
