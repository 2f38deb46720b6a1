//! What an endpoint's driver and its users share: the engine, and what each connection's users wait
//! for. A mutex guards it, and nothing waits while it is held.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

use quipu_base::{Bytes, Duration, Instant, StreamId};
use quipu_quic::{Arrival, ConnectionHandle};
use tokio::sync::{Notify, watch};
use tracing::Span;

use crate::batches::Batches;
use crate::chunks::Chunks;
use crate::clock::Clock;
use crate::engine::{Calls, Engine};
use crate::entry::{Entry, Signals};
use crate::error::ConnectionError;
use crate::shards::Shards;
use crate::socket::Socket;
use crate::spans;
use crate::uplink::Uplink;

/// A socket that no path uses is kept for so long at least. Our choice: a path is opened within seconds, or
/// not at all.
const UNUSED: Duration = Duration::from_secs(30);

/// What the driver did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DriverCounters {
    /// Times that it was woken.
    pub(crate) wakeups: u64,
    /// Calls of the kernel that brought datagrams.
    pub(crate) receive_calls: u64,
    /// Datagrams that came.
    pub(crate) datagrams_received: u64,
    /// Bytes of those.
    pub(crate) bytes_received: u64,
    /// Datagrams that came to other shards, and from those.
    pub(crate) datagrams_given: u64,
}

/// An endpoint.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) clock: Clock,
    /// Bytes that the kernel is asked to keep for each socket and direction.
    pub(crate) kernel_buffer: Bytes,
    /// Where copies of what users write go.
    pub(crate) chunks: Arc<Chunks>,
    /// A client may wait for a decision.
    pub(crate) incoming: Notify,
    /// A connection is gone.
    pub(crate) idle: Notify,
    /// The host's interfaces, addresses or routes changed.
    pub(crate) changes: watch::Sender<()>,
    /// The others that share its address, if there are any.
    pub(crate) shards: OnceLock<Shards<Shared>>,
}

/// What the mutex guards.
pub(crate) struct State {
    pub(crate) engine: Engine,
    pub(crate) entries: BTreeMap<ConnectionHandle, Entry>,
    pub(crate) batches: Batches,
    pub(crate) counters: DriverCounters,
    /// Those of connections are in it.
    pub(crate) span: Span,
    /// Wakes the driver.
    driver: Option<Waker>,
    /// No connection is opened or let in any more.
    pub(crate) closed: bool,
    /// Nobody holds the endpoint any more: the driver ends once all connections have.
    pub(crate) abandoned: bool,
    /// There is no driver any more.
    gone: bool,
}

impl Shared {
    pub(crate) fn new(engine: Engine, clock: Clock, kernel_buffer: Bytes, span: Span) -> Self {
        let state = State {
            engine,
            entries: BTreeMap::new(),
            batches: Batches::new(),
            counters: DriverCounters::default(),
            span,
            driver: None,
            closed: false,
            abandoned: false,
            gone: false,
        };
        Shared {
            state: Mutex::new(state),
            clock,
            kernel_buffer,
            chunks: Arc::default(),
            incoming: Notify::new(),
            idle: Notify::new(),
            changes: watch::Sender::new(()),
            shards: OnceLock::new(),
        }
    }

    /// The state, for as long as it takes to look.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // The engine's state holds whatever panicked meanwhile.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the engine, and has the driver send what comes of it.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State, Instant) -> R) -> R {
        let (result, waker) = {
            let mut state = self.lock();
            let now = self.clock.now();
            (act(&mut state, now), state.driver.take())
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        result
    }

    /// Calls a connection, and has the driver send what comes of it.
    ///
    /// # Errors
    /// Why the connection ended, if it did.
    pub(crate) fn with_connection<R>(
        &self,
        handle: ConnectionHandle,
        call: impl FnOnce(&mut Calls<'_>, &mut Entry, Instant) -> R,
    ) -> Result<R, ConnectionError> {
        self.act(|state, now| {
            let State { engine, entries, gone, .. } = state;
            let entry = entries.get_mut(&handle).filter(|_| !*gone);
            let entry = entry.ok_or(ConnectionError::EndpointGone)?;
            if let Some(error) = &entry.ended {
                return Err(error.clone());
            }
            let calls = engine.call(now, handle);
            Ok(call(&mut calls.ok_or(ConnectionError::EndpointGone)?, entry, now))
        })
    }

    /// The same to read, also what had come before the peer ended the connection.
    ///
    /// # Errors
    /// Why there is nothing to read any more.
    pub(crate) fn with_readable<R>(
        &self,
        handle: ConnectionHandle,
        read: impl FnOnce(&mut Calls<'_>, &mut Entry, Instant) -> R,
    ) -> Result<R, ConnectionError> {
        self.act(|state, now| {
            let State { engine, entries, .. } = state;
            let entry = entries.get_mut(&handle).ok_or(ConnectionError::EndpointGone)?;
            if let Some(error) = entry.end_of_reading() {
                return Err(error.clone());
            }
            if let Some(mut connection) = entry.unread.take() {
                let result = read(&mut Calls::of_closed(&mut connection, handle), entry, now);
                entry.unread = Some(connection);
                return Ok(result);
            }
            let Some(mut calls) = engine.call(now, handle) else {
                return Err(entry.ended.clone().unwrap_or(ConnectionError::EndpointGone));
            };
            Ok(read(&mut calls, entry, now))
        })
    }

    /// Looks at what a connection's users wait for; the engine has nothing to do for it.
    ///
    /// # Errors
    /// [`ConnectionError::EndpointGone`].
    pub(crate) fn with_entry<R>(
        &self,
        handle: ConnectionHandle,
        look: impl FnOnce(&mut Entry) -> R,
    ) -> Result<R, ConnectionError> {
        // Without a driver all have ended.
        self.lock().entries.get_mut(&handle).map(look).ok_or(ConnectionError::EndpointGone)
    }

    /// Takes a datagram that came to another shard, if it is addressed by a connection ID to a connection, or
    /// to one that there may have been. False if neither: the client chose it, and any shard may take it.
    pub(crate) fn take_stray(&self, arrival: Arrival, datagram: &mut [u8]) -> bool {
        let is_short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        // Whoever floods one shard with first packets does not wake the others.
        let takes = {
            let state = self.lock();
            !state.is_gone() && (is_short || state.engine.holds(datagram))
        };
        if takes {
            self.act(|state, now| {
                state.counters.datagrams_given += 1;
                state.engine.handle_datagram(now, arrival, datagram);
            });
        }
        takes
    }

    /// Nobody uses half of a stream any more.
    pub(crate) fn forget_stream(
        &self,
        handle: ConnectionHandle,
        stream: StreamId,
        drop_half: impl FnOnce(&mut Calls<'_>, &mut crate::entry::Stream, Instant),
    ) {
        self.act(|state, now| {
            let Some(entry) = state.entries.get_mut(&handle) else { return };
            let Slot::Occupied(mut slot) = entry.streams.entry(stream) else { return };
            if let Some(mut connection) = state.engine.call(now, handle) {
                drop_half(&mut connection, slot.get_mut(), now);
            }
            if !slot.get().is_held() {
                slot.remove();
            }
        });
    }

    /// Closes a connection that nobody holds any more.
    pub(crate) fn forget_connection(&self, handle: ConnectionHandle) {
        self.act(|state, now| {
            let entry = state.entries.remove(&handle).filter(|entry| entry.ended.is_none());
            let Some(entry) = entry else { return };
            spans::tell_dropped(&entry.span);
            if let Some(mut connection) = state.engine.call(now, handle) {
                connection.close(now, 0, b"");
            }
        });
    }
}

impl State {
    /// A connection just began: its users may wait for it.
    pub(crate) fn add_connection(&mut self, handle: ConnectionHandle) -> Arc<Signals> {
        let started = self.engine.take_started();
        let span = spans::of_connection(&self.span, started.as_ref());
        let entry = Entry::new(started, span);
        let signals = Arc::clone(&entry.signals);
        self.entries.insert(handle, entry);
        signals
    }

    /// The driver is to be woken by the next call.
    pub(crate) fn set_driver(&mut self, waker: &Waker) {
        match &mut self.driver {
            Some(known) => known.clone_from(waker),
            None => self.driver = Some(waker.clone()),
        }
    }

    /// The driver is gone: everybody hears of it.
    pub(crate) fn end(&mut self) {
        self.gone = true;
        self.closed = true;
        for entry in self.entries.values_mut() {
            entry.end(ConnectionError::EndpointGone);
        }
    }

    /// True if there is no driver any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone
    }

    /// Datagrams come and go by that socket from now on.
    pub(crate) fn add_socket(&mut self, socket: Socket, now: Instant) -> Arc<Socket> {
        let socket = Arc::new(socket);
        self.batches.add(Arc::clone(&socket), now);
        socket
    }

    /// Closes a client's sockets that no path uses: where uplinks come and go, there would be ever more.
    /// Young ones are to be used soon. Only the driver does, which counts sockets by their places.
    pub(crate) fn close_unused_sockets(&mut self, now: Instant) {
        let State { engine, batches, .. } = self;
        let handles: Vec<_> = engine.handles().collect();
        batches.retain(|socket, since| {
            let uses = |connection: &quipu_quic::Connection| {
                connection.path_samples().any(|sample| socket.serves(&sample.route))
            };
            socket.uplink().is_none()
                || now.saturating_since(since) < UNUSED
                || handles.iter().filter_map(|&handle| engine.connection(handle)).any(uses)
        });
    }

    /// The socket that leaves by that uplink. Of an interface that was removed and came back it is not:
    /// such a socket is bound to nothing.
    pub(crate) fn socket_of(&self, uplink: &Uplink) -> Option<&Arc<Socket>> {
        let same = |other: &Uplink| other.address == uplink.address && other.index == uplink.index;
        self.batches.sockets().iter().find(|socket| socket.uplink().is_some_and(same))
    }
}

#[cfg(test)]
mod tests {
    use quipu_policy::Registry;
    use quipu_quic::endpoint::{ClientConfig, EndpointConfig};
    use quipu_quic::tls::rustls::{provider, secure_source};

    use super::*;
    use crate::engine::Parts;
    use crate::identity::{Pin, pinned};
    use crate::socket::KERNEL_BUFFER;

    #[tokio::test]
    async fn sockets_that_no_path_uses_are_closed_after_a_while() {
        let (config, source) = (EndpointConfig::default(), secure_source(&provider()));
        let parts = Parts { config, source, server: None, recorders: None };
        let engine = Engine::new(parts, Instant::ZERO, None).unwrap();
        let shared = Shared::new(engine, Clock::start(), KERNEL_BUFFER, Span::none());
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let remote = "127.0.0.1:9".parse().unwrap();
        let mut state = shared.lock();
        let mut add = |seconds| {
            let uplink = Uplink::by_route(remote).unwrap();
            let socket = Socket::leave_by(uplink, KERNEL_BUFFER).unwrap();
            state.add_socket(socket, at(seconds)).local()
        };
        let (unused, used, young) = (add(0), add(0), add(20));
        let tls = pinned(Pin([0; 32]), &[b"test"]).unwrap();
        let policies = crate::policies(&Registry::builtin(), "").unwrap();
        let config = ClientConfig::new(Arc::new(tls), Arc::default(), policies);
        let route = quipu_quic::Route::new(used, remote);
        let handle = state.engine.connect(at(0), &config, "quipu.test", route).unwrap();
        let left = |state: &State| -> Vec<_> {
            state.batches.sockets().iter().map(|socket| socket.local()).collect()
        };
        state.close_unused_sockets(at(29));
        assert_eq!(left(&state), [unused, used, young]);
        state.close_unused_sockets(at(31));
        assert_eq!(left(&state), [used, young]);
        state.engine.remove(handle);
        state.close_unused_sockets(at(60));
        assert_eq!(left(&state), []);
    }
}
