//! A connection's HTTP: the end, and what each exchange waits for.
//!
//! A task passes the connection's events to the end. The end's mutex is taken before the endpoint's.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Version;
use quipu_base::StreamId;
use quipu_http::field::FieldList;
use quipu_http::h3::{ErrorCode, Failure};
use tokio::sync::Notify;

use super::end::{End, News, Streams};
use super::error::Http3Error;
use crate::connection::Connection;
use crate::entry::Entry;

/// What an exchange has of its peer's message.
#[derive(Default)]
pub(super) struct Slot {
    /// Heads that were not taken: those of status 1xx, and the one of the message.
    pub(super) heads: VecDeque<(u16, FieldList)>,
    pub(super) trailers: Option<FieldList>,
    pub(super) finished: bool,
    pub(super) failure: Option<Failure>,
    /// The peer wants no more of this end's body.
    pub(super) stopped: Option<ErrorCode>,
    /// Something of that changed, or octets came, or there is room for some.
    pub(super) changed: Arc<Notify>,
}

/// What the mutex guards.
pub(super) struct State<E: ?Sized> {
    pub(super) end: Box<E>,
    pub(super) slots: BTreeMap<StreamId, Slot>,
    /// Requests that nobody has taken yet.
    pub(super) waiting: VecDeque<StreamId>,
    /// Why the connection cannot go on.
    pub(super) failed: Option<Http3Error>,
    /// Exchanges begin with their head, as at a server.
    opens: bool,
    /// Requests that the peer's limit left room for when it was last looked.
    free: u64,
}

/// A connection that carries HTTP.
pub(super) struct Session<E: ?Sized> {
    pub(super) connection: Connection,
    pub(super) version: Version,
    state: Mutex<State<E>>,
    /// Requests wait, or the connection ended.
    pub(super) arrived: Notify,
    /// Streams may be opened.
    pub(super) available: Notify,
}

impl<E: End + ?Sized> Session<E> {
    /// Takes the connection over, and starts the end and the task. `opens`: exchanges begin with their head.
    pub(super) fn begin(
        connection: Connection,
        end: Box<E>,
        opens: bool,
    ) -> Result<Arc<Session<E>>, Http3Error> {
        let shared = connection.shared();
        shared.with_entry(connection.handle(), Entry::begin_layer)?;
        let (version, free) = (end.version(), end.free());
        let (slots, waiting) = (BTreeMap::new(), VecDeque::new());
        let state = State { end, slots, waiting, failed: None, opens, free };
        let session = Arc::new(Session {
            connection,
            version,
            state: Mutex::new(state),
            arrived: Notify::new(),
            available: Notify::new(),
        });
        let task = Arc::downgrade(&session);
        let signals = Arc::clone(session.connection.signals());
        tokio::spawn(async move {
            loop {
                signals.layer.notified().await;
                // Nobody uses it any more.
                let Some(session) = task.upgrade() else { return };
                if !session.take_events() {
                    return;
                }
            }
        });
        session.call(|state, streams| state.end.start(streams))??;
        Ok(session)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<E>> {
        // The end's state holds whatever panicked meanwhile.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls the end, and tells what came of it.
    ///
    /// # Errors
    /// Why the connection ended, if it did.
    pub(super) fn call<R>(
        &self,
        call: impl FnOnce(&mut State<E>, &mut Streams<'_, '_>) -> R,
    ) -> Result<R, Http3Error> {
        let mut state = self.lock();
        let state = &mut *state;
        if let Some(error) = &state.failed {
            return Err(error.clone());
        }
        let shared = self.connection.shared();
        let result = shared.with_connection(self.connection.handle(), |connection, _, now| {
            call(state, &mut Streams { connection, now })
        })?;
        self.dispatch(state);
        Ok(result)
    }

    /// Looks at what the peer sent, also at what had come before the peer ended the connection; `None` if
    /// there is nothing and more may come.
    ///
    /// # Errors
    /// Why the connection ended, if there is nothing and it did.
    pub(super) fn look<R>(
        &self,
        mut look: impl FnMut(&mut State<E>, &mut Streams<'_, '_>) -> Result<Option<R>, Http3Error>,
    ) -> Result<Option<R>, Http3Error> {
        let mut state = self.lock();
        let state = &mut *state;
        // Again once all that came has been passed on.
        for ended_before in [false, true] {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            let shared = self.connection.shared();
            let handle = self.connection.handle();
            let (found, ended) = shared.with_readable(handle, |connection, entry, now| {
                (look(state, &mut Streams { connection, now }), entry.ended.clone())
            })?;
            self.dispatch(state);
            match (found?, ended) {
                (Some(found), _) => return Ok(Some(found)),
                (None, None) => return Ok(None),
                (None, Some(error)) if ended_before => return Err(error.into()),
                (None, Some(_)) => _ = self.pass_events(state),
            }
        }
        Ok(None)
    }

    /// Passes on what happened to the connection; false if it is over.
    fn pass_events(&self, state: &mut State<E>) -> bool {
        let shared = self.connection.shared();
        let passed = shared.with_readable(self.connection.handle(), |connection, entry, now| {
            let events = entry.layer.as_mut().map(std::mem::take).unwrap_or_default();
            let mut streams = Streams { connection, now };
            for event in events {
                self.pass(state, &mut streams, &event);
            }
            entry.ended.is_none()
        });
        self.dispatch(state);
        passed.unwrap_or(false) && state.failed.is_none()
    }

    /// The same, and wakes all if it is over.
    fn take_events(&self) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        let goes_on = self.pass_events(state);
        if !goes_on {
            state.slots.values().for_each(|slot| slot.changed.notify_waiters());
            self.arrived.notify_waiters();
            self.available.notify_waiters();
        }
        goes_on
    }

    fn pass(
        &self,
        state: &mut State<E>,
        streams: &mut Streams<'_, '_>,
        event: &quipu_quic::ConnectionEvent,
    ) {
        use quipu_quic::ConnectionEvent as Event;
        state.end.pass(streams, event);
        match *event {
            Event::Readable(stream) | Event::Writable(stream) => {
                if let Some(slot) = state.slots.get(&stream) {
                    slot.changed.notify_waiters();
                }
            }
            Event::StreamsAvailable(_) | Event::Connected => self.available.notify_waiters(),
            _ => {}
        }
    }

    /// Tells exchanges what happened to them.
    fn dispatch(&self, state: &mut State<E>) {
        while let Some(news) = state.end.poll() {
            match news {
                News::Head { stream, status, fields } => {
                    if state.opens {
                        state.slots.insert(stream, Slot::default());
                        state.waiting.push_back(stream);
                        self.arrived.notify_waiters();
                    }
                    state.tell(stream, |slot| slot.heads.push_back((status, fields)));
                }
                News::Informational { stream, status, fields } => {
                    state.tell(stream, |slot| {
                        // Of those that nobody takes the last will do.
                        slot.heads.clear();
                        slot.heads.push_back((status, fields));
                    });
                }
                News::Trailers { stream, fields } => {
                    state.tell(stream, |slot| slot.trailers = Some(fields));
                }
                News::Finished { stream } => state.tell(stream, |slot| slot.finished = true),
                News::Failed { stream, failure } => {
                    state.tell(stream, |slot| slot.failure = Some(failure));
                }
                News::Stopped { stream, code } => {
                    state.tell(stream, |slot| slot.stopped = Some(code));
                }
                News::ConnectionFailed { code, error } => {
                    self.connection.close(code, error.to_string().as_bytes());
                    state.failed = Some(error);
                    self.connection.signals().layer.notify_one();
                }
            }
        }
        let free = state.end.free();
        if free > std::mem::replace(&mut state.free, free) {
            self.available.notify_waiters();
        }
    }

    /// Abandons an exchange with that code.
    pub(super) fn abandon(&self, stream: StreamId, code: ErrorCode) {
        // If the connection is over, there is nothing to abandon.
        let _ = self.call(|state, streams| {
            state.slots.remove(&stream);
            state.end.abandon(streams, stream, code);
        });
    }

    /// Nobody has the exchange any more; whether this end's message is complete.
    pub(super) fn drop_exchange(&self, stream: StreamId, is_sent: bool) {
        // As above.
        let _ = self.call(|state, streams| state.end.drop_exchange(streams, stream, is_sent));
    }
}

impl<E: ?Sized> Drop for Session<E> {
    fn drop(&mut self) {
        // The task finds nobody any more, and ends.
        self.connection.signals().layer.notify_one();
    }
}

impl<E: ?Sized> State<E> {
    fn tell(&mut self, stream: StreamId, tell: impl FnOnce(&mut Slot)) {
        if let Some(slot) = self.slots.get_mut(&stream) {
            tell(slot);
            slot.changed.notify_waiters();
        }
    }
}
