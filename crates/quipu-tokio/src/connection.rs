//! Connections, as their users see them.

use std::sync::Arc;

use bytes::Bytes;
use quipu_base::{Duration, Instant, PathId, StreamDirection, StreamId};
use quipu_policy::{PathState, PathStatus, PriorityEdit};
use quipu_quic::connection::{Calls as _, SchedulerCounters, SendDatagramError};
use quipu_quic::error::ErrorCode;
use quipu_quic::tls::{CertificateDer, Negotiated};
use quipu_quic::{ConnectionHandle, DatagramCounters, PathCounters, Route};

use crate::engine::Calls;
use crate::entry::{Entry, Signals, Stream, index};
use crate::error::{BindError, ConnectionError, EditPriorityError, PathError};
use crate::holder::Holder;
use crate::icmp::Hint;
use crate::path::{self, PathEvents, PathInfo};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::state::{Shared, State};
use crate::uplink::{Via, resolve};

/// A connection. Clones are the same one; it closes with code 0 when its last clone and its last
/// stream are dropped.
#[derive(Clone)]
pub struct Connection {
    holder: Arc<Holder>,
    signals: Arc<Signals>,
}

/// What a connection did so far.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// When TLS finished, counted from when the endpoint was made.
    pub connected_at: Option<Instant>,
    /// The counters of all paths added up, those of paths that are gone included.
    pub totals: PathCounters,
    /// The paths that live, in order of path identifier.
    pub paths: Vec<PathInfo>,
    /// How the policies did.
    pub scheduler: SchedulerCounters,
    /// What became of datagrams.
    pub datagrams: DatagramCounters,
    /// Packets dropped because they could not be opened or made no sense.
    pub dropped_packets: u64,
    /// Bytes that were written to streams and never sent.
    pub unsent: quipu_base::Bytes,
}

/// How far a client's handshake is.
pub(crate) enum Begun {
    /// TLS has finished.
    Connected,
    /// Nobody listens.
    Refused,
    /// It goes on, and the network says this.
    Hint(Hint),
}

impl Connection {
    pub(crate) fn new(
        shared: Arc<Shared>,
        handle: ConnectionHandle,
        signals: Arc<Signals>,
    ) -> Self {
        Connection { holder: Arc::new(Holder { shared, handle }), signals }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.holder.shared
    }

    pub(crate) fn handle(&self) -> ConnectionHandle {
        self.holder.handle
    }

    pub(crate) fn signals(&self) -> &Arc<Signals> {
        &self.signals
    }

    /// Waits until TLS has finished, or the network says something new of the handshake. `known` is what
    /// it said before.
    pub(crate) async fn begun(&self, known: Option<Hint>) -> Result<Begun, ConnectionError> {
        self.wait(|entry| match entry {
            Entry { connected: true, .. } => Some(Begun::Connected),
            Entry { refused: true, .. } => Some(Begun::Refused),
            Entry { hint, .. } => hint.filter(|_| *hint != known).map(Begun::Hint),
        })
        .await
    }

    /// Waits until TLS has finished.
    pub(crate) async fn connected(&self) -> Result<(), ConnectionError> {
        self.wait(|entry| entry.connected.then_some(())).await
    }

    /// Waits until a server can read and answer, be it early.
    pub(crate) async fn connected_or_early(&self) -> Result<(), ConnectionError> {
        self.wait(|entry| (entry.connected || entry.early).then_some(())).await
    }

    /// Waits until both ends know that TLS has finished: paths may be opened from then on.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn confirmed(&self) -> Result<(), ConnectionError> {
        self.wait(|entry| entry.confirmed.then_some(())).await
    }

    async fn wait<R>(
        &self,
        mut look: impl FnMut(&mut Entry) -> Option<R>,
    ) -> Result<R, ConnectionError> {
        loop {
            let notified = self.signals.changed.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let found = self.shared().with_entry(self.handle(), |entry| {
                let found = look(entry);
                found.map(Ok).or_else(|| entry.ended.clone().map(Err))
            })?;
            match found {
                Some(found) => return found,
                None => notified.await,
            }
        }
    }

    /// Waits until the connection has ended: why.
    pub async fn closed(&self) -> ConnectionError {
        let ended = self.wait(|entry| entry.ended.clone()).await;
        ended.unwrap_or_else(|error| error)
    }

    /// Why the connection ended, if it did.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        let look = |entry: &mut Entry| entry.ended.clone();
        self.shared().with_entry(self.handle(), look).unwrap_or_else(Some)
    }

    /// Closes the connection; the peer's application is told `code` and `reason`. What was written and
    /// not delivered is lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        // One that ended is closed already.
        let _ = self.shared().with_connection(self.handle(), |connection, entry, now| {
            connection.close(now, code, reason);
            entry.end_by_application(code);
        });
    }

    /// Closes the connection as soon as the peer has all that was written to streams, with all ends of
    /// streams and datagrams; at the latest after `limit`. [`Connection::closed`] waits for that. No
    /// stream can be opened any more.
    pub fn close_when_delivered(&self, limit: Duration, code: u64, reason: &[u8]) {
        // One that ended is closed already.
        let _ = self.shared().with_connection(self.handle(), |connection, _, now| {
            connection.close_when_delivered(now, limit, code, reason);
        });
    }

    /// Opens a stream on which both ends send; waits while the peer allows no more. Cancelling opens
    /// none.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn open_bidirectional(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let stream = self.open(StreamDirection::Bidirectional).await?;
        let send = SendStream::new(Arc::clone(&self.holder), stream);
        Ok((send, RecvStream::new(Arc::clone(&self.holder), stream)))
    }

    /// Opens a stream on which this end sends; waits while the peer allows no more. Cancelling opens
    /// none.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn open_unidirectional(&self) -> Result<SendStream, ConnectionError> {
        let stream = self.open(StreamDirection::Unidirectional).await?;
        Ok(SendStream::new(Arc::clone(&self.holder), stream))
    }

    async fn open(&self, direction: StreamDirection) -> Result<StreamId, ConnectionError> {
        loop {
            let notified = self.signals.available.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let opened =
                self.shared().with_connection(self.handle(), |connection, entry, now| {
                    let stream = connection.open_stream(now, direction)?;
                    let both = direction == StreamDirection::Bidirectional;
                    entry.streams.insert(stream, Stream::new(true, both));
                    Some(stream)
                })?;
            match opened {
                Some(stream) => return Ok(stream),
                None => notified.await,
            }
        }
    }

    /// The next stream that the peer opened and on which both ends send. Cancelling loses none.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn accept_bidirectional(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let stream = self.accept(StreamDirection::Bidirectional).await?;
        let send = SendStream::new(Arc::clone(&self.holder), stream);
        Ok((send, RecvStream::new(Arc::clone(&self.holder), stream)))
    }

    /// The next stream that the peer opened and on which it alone sends. Cancelling loses none.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn accept_unidirectional(&self) -> Result<RecvStream, ConnectionError> {
        let stream = self.accept(StreamDirection::Unidirectional).await?;
        Ok(RecvStream::new(Arc::clone(&self.holder), stream))
    }

    async fn accept(&self, direction: StreamDirection) -> Result<StreamId, ConnectionError> {
        loop {
            let notified = self.signals.opened.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let opened = self.shared().with_entry(self.handle(), |entry| {
                if let Some(error) = entry.end_of_reading() {
                    return Err(error.clone());
                }
                match (entry.opened[index(direction)].pop_front(), &entry.ended) {
                    (Some(stream), _) => Ok(Some(stream)),
                    (None, Some(error)) => Err(error.clone()),
                    (None, None) => Ok(None),
                }
            })??;
            match opened {
                Some(stream) => return Ok(stream),
                None => notified.await,
            }
        }
    }

    /// Sends a datagram as soon as congestion control allows; the oldest make room if too many wait. It
    /// is not sent again if it is lost.
    ///
    /// # Errors
    /// See [`SendDatagramError`]; once the connection has ended it is [`SendDatagramError::NotOpen`].
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        let sent = self.shared().with_connection(self.handle(), |connection, _, now| {
            connection.send_datagram(now, data).map(|_| ())
        });
        sent.unwrap_or(Err(SendDatagramError::NotOpen))
    }

    /// The same, but waits while too many wait, so that none is displaced. Cancelling sends none.
    ///
    /// # Errors
    /// As of [`Connection::send_datagram`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        loop {
            let notified = self.signals.datagram_room.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let offered = self.shared().with_connection(self.handle(), |connection, _, now| {
                connection.offer_datagram(now, data.clone())
            });
            match offered.unwrap_or(Err(SendDatagramError::NotOpen))? {
                Some(_) => return Ok(()),
                None => notified.await,
            }
        }
    }

    /// The next datagram of the peer. Cancelling loses none.
    ///
    /// # Errors
    /// Why the connection ended.
    pub async fn receive_datagram(&self) -> Result<Bytes, ConnectionError> {
        loop {
            let notified = self.signals.datagrams.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let has_any =
                self.shared().with_entry(self.handle(), |entry| match &entry.ended {
                    Some(error) if !entry.has_datagrams => Err(error.clone()),
                    _ => Ok(entry.has_datagrams),
                })??;
            if has_any {
                let read = |connection: &mut Calls<'_>, entry: &mut Entry, now| {
                    let datagram = connection.read_datagram(now);
                    entry.has_datagrams = datagram.is_some();
                    datagram
                };
                if let Some(datagram) = self.shared().with_readable(self.handle(), read)? {
                    return Ok(datagram);
                }
                // It may have ended meanwhile.
                continue;
            }
            notified.await;
        }
    }

    /// Bytes of the largest datagram that some path carries at present; `None` if the peer takes none,
    /// or the connection has ended.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.look(|connection, _| {
            let paths = connection.path_views().map(|view| view.key.id);
            paths.filter_map(|path| connection.datagrams_max_size(path)).max()
        })?
    }

    /// Bytes of the largest datagram that every usable path carries at present; `None` if the peer takes
    /// none, or no path is usable.
    pub fn common_datagram_size(&self) -> Option<usize> {
        self.look(|connection, _| {
            let usable = connection.path_views().filter(|view| view.state == PathState::Usable);
            usable.filter_map(|view| connection.datagrams_max_size(view.key.id)).min()
        })?
    }

    /// The addresses of the first path, while it lives.
    pub fn route(&self) -> Option<Route> {
        self.look(|connection, _| connection.route(PathId::ZERO))?
    }

    /// The paths that live, in order of path identifier; none once the connection is gone.
    pub fn paths(&self) -> Vec<PathInfo> {
        let paths = self.look(|connection, state| path::infos(connection, state.batches.sockets()));
        paths.unwrap_or_default()
    }

    /// Tells what happens to paths from now on.
    pub fn path_events(&self) -> PathEvents {
        let subscribe = |entry: &mut Entry| entry.path_events.subscribe();
        let receiver = self.shared().with_entry(self.handle(), subscribe);
        // Of a connection that is gone there is nothing to tell.
        PathEvents::new(
            receiver.unwrap_or_else(|_| tokio::sync::broadcast::Sender::new(1).subscribe()),
        )
    }

    /// Opens a path that leaves by `via`, and waits until it is usable. Only a client can.
    ///
    /// # Errors
    /// See [`PathError`].
    pub async fn add_path(&self, via: Via) -> Result<PathId, PathError> {
        self.add_path_as(via, PathStatus::Available).await
    }

    /// The same with a status that the peer is told: [`PathStatus::Backup`] asks both ends to spare the
    /// path from the start.
    ///
    /// # Errors
    /// See [`PathError`].
    pub async fn add_path_as(&self, via: Via, status: PathStatus) -> Result<PathId, PathError> {
        self.confirmed().await?;
        let first = self.look(|connection, _| connection.path_samples().next());
        let Some(remote) = first.flatten().map(|sample| sample.route.remote) else {
            return Err(self.closed().await.into());
        };
        let uplinks = resolve(&[via]).map_err(BindError::from)?;
        let uplink = uplinks.into_iter().find(|up| up.address.is_ipv4() == remote.is_ipv4());
        let uplink = uplink.ok_or(PathError::NoUplink(remote))?;
        self.shared().with_entry(self.handle(), |entry| {
            entry.unwanted.retain(|address| *address != uplink.address);
        })?;
        let route = path::route_by(self.shared(), uplink, remote)?;
        path::open(self.shared(), &self.signals, self.handle(), route, status).await
    }

    /// Abandons a path: what is on its way there goes by others. Its uplink does not become a path again
    /// unless [`Connection::add_path`] says so.
    ///
    /// # Errors
    /// [`PathError::NoPath`] if there is no such path, or no other.
    pub fn remove_path(&self, path: PathId) -> Result<(), PathError> {
        let removed = self.shared().with_connection(self.handle(), |connection, entry, now| {
            let route = connection.route(path);
            let removed = connection.abandon_path(now, path, ErrorCode::APPLICATION_ABANDON_PATH);
            if let Some(route) = route.filter(|_| removed) {
                entry.unwanted.push(route.local.ip());
            }
            removed
        })?;
        if removed { Ok(()) } else { Err(PathError::NoPath(path)) }
    }

    /// Asks the peer to spare a path, or to use it again; this end does as long as either asks for it.
    ///
    /// # Errors
    /// [`PathError::NoPath`] if there is no such path.
    pub fn set_path_status(&self, path: PathId, status: PathStatus) -> Result<(), PathError> {
        let set = self.shared().with_connection(self.handle(), |connection, _, now| {
            connection.set_path_status(now, path, status)
        })?;
        if set { Ok(()) } else { Err(PathError::NoPath(path)) }
    }

    /// Asks the peer for a sign of life on a path: [`PathEvent::Pong`](crate::PathEvent::Pong) tells when it
    /// came.
    ///
    /// # Errors
    /// [`PathError::NoPath`] if there is no such path, validated and not abandoned.
    pub fn ping(&self, path: PathId) -> Result<(), PathError> {
        let asked = self
            .shared()
            .with_connection(self.handle(), |connection, _, now| connection.ping(now, path))?;
        if asked { Ok(()) } else { Err(PathError::NoPath(path)) }
    }

    /// The application protocol agreed on; `None` if there is none, or the connection is gone.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.look(|connection, _| connection.alpn().map(<[u8]>::to_vec))?
    }

    /// The name of the server that the client asked for; `None` at a client, or if the connection is
    /// gone.
    pub fn server_name(&self) -> Option<String> {
        self.look(|connection, _| connection.server_name().map(str::to_owned))?
    }

    /// The peer's certificates in DER, end entity first; `None` if it showed none, or the connection is
    /// gone.
    pub fn peer_certificates(&self) -> Option<Vec<CertificateDer<'static>>> {
        self.look(|connection, _| connection.peer_certificates().map(<[_]>::to_vec))?
    }

    /// Cipher suite and group of the key exchange; `None` once the connection is gone.
    pub fn negotiated(&self) -> Option<Negotiated> {
        self.look(|connection, _| connection.negotiated())?
    }

    /// Edits the dependency tree, or the urgency, deadline or size of a stream.
    ///
    /// # Errors
    /// If the tree refuses, or the stream or the connection is not open; nothing is changed then.
    pub fn edit_priority(&self, edit: PriorityEdit) -> Result<(), EditPriorityError> {
        self.shared().with_connection(self.handle(), |connection, _, now| {
            connection.edit_priority(now, edit).map_err(EditPriorityError::from)
        })?
    }

    /// What it did so far; `None` once it is gone, some round trips after its end.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.look(|connection, state| ConnectionStats {
            connected_at: connection.connected_at(),
            totals: connection.totals(),
            paths: path::infos(connection, state.batches.sockets()),
            scheduler: connection.scheduler_counters(),
            datagrams: *connection.datagram_counters(),
            dropped_packets: connection.dropped_packets(),
            unsent: connection.unsent(),
        })
    }

    pub(crate) fn look<R>(
        &self,
        look: impl FnOnce(&quipu_quic::Connection, &State) -> R,
    ) -> Option<R> {
        let state = self.shared().lock();
        let connection = state.engine.connection(self.handle())?;
        Some(look(connection, &state))
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("handle", &self.handle()).finish_non_exhaustive()
    }
}
