//! The task that moves datagrams between an endpoint's sockets and its engine.
//!
//! It sleeps until datagrams come, a socket takes datagrams again, a deadline is due, or somebody
//! called the engine. Then it does what there is to do once, and lets other tasks of the runtime have
//! their turn before it goes on: those that read find what came in the processor's cache.

use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn_udp::RecvMeta;
use quipu_base::{Duration, Instant};
use quipu_quic::error::ErrorCode;
use quipu_quic::{Arrival, Drain, Outbox};

use crate::batches::SendFailure;
use crate::changes::Changes;
use crate::icmp::Hint;
use crate::socket::Socket;
use crate::spans;
use crate::state::{Shared, State};
use crate::timer::Timer;

/// Buffers that one call of the kernel fills, at most.
const BUFFERS: usize = 8;

/// Bytes of each: what the kernel joins of datagrams that came one after the other.
const BUFFER: usize = 1 << 16;

/// A socket that fails so often in a row is not read any more: it would keep the task awake.
const MAX_FAILURES: u32 = 64;

/// The engine is not called again sooner for a deadline that is due but changes nothing.
const LEAST_DELAY: Duration = Duration::from_millis(1);

/// Drives an endpoint until nobody holds it and all its connections have ended.
///
/// `changes`: those of the host, of which users are told.
pub(crate) async fn drive(shared: Arc<Shared>, timer: Timer, changes: Option<Changes>) {
    let mut driver = Driver {
        buffer: vec![0; BUFFERS * BUFFER].into_boxed_slice(),
        metas: [RecvMeta::default(); BUFFERS],
        strays: Vec::new(),
        sockets: Vec::new(),
        failures: Vec::new(),
        timer,
        changes,
        armed: None,
        shared,
    };
    poll_fn(|cx| driver.poll(cx)).await;
}

struct Driver {
    shared: Arc<Shared>,
    sockets: Vec<Arc<Socket>>,
    /// Failures of each to receive, since it last did.
    failures: Vec<u32>,
    timer: Timer,
    changes: Option<Changes>,
    /// When the timer fires: at the deadline or before it.
    armed: Option<Instant>,
    /// Datagrams are received and opened here.
    buffer: Box<[u8]>,
    metas: [RecvMeta; BUFFERS],
    /// Of those, what may be for another shard. Empty between calls.
    strays: Vec<Stray>,
}

/// A datagram that may be for another shard.
struct Stray {
    other: Arc<Shared>,
    arrival: Arrival,
    /// Where it lies in the buffer.
    place: Range<usize>,
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Also if the runtime ends, with connections that live.
        self.shared.lock().end();
        self.shared.incoming.notify_waiters();
        self.shared.idle.notify_waiters();
    }
}

impl Driver {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.lock().counters.wakeups += 1;
        if self.changes.as_mut().is_some_and(|changes| changes.poll_changed(cx).is_ready()) {
            self.shared.changes.send_replace(());
            // There may be more, and the task is to be woken by what comes.
            cx.waker().wake_by_ref();
        }
        let received = self.receive(cx);
        let fired = self.has_fired(cx);
        let unblocked = self.look_at_blocked(cx);
        match self.turn(cx) {
            Turn::Over => return Poll::Ready(()),
            Turn::Rest if !(received || fired || unblocked) => {}
            Turn::Rest | Turn::More => cx.waker().wake_by_ref(),
        }
        Poll::Pending
    }

    /// Reads each socket once. True if anything came, or more may be there.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        self.look_for_sockets();
        let mut any = false;
        for at in 0..self.sockets.len() {
            let socket = Arc::clone(&self.sockets[at]);
            while self.failures[at] < MAX_FAILURES
                && let Poll::Ready(true) = socket.poll_readable(cx)
            {
                match self.receive_from(&socket) {
                    Ok(()) => self.failures[at] = 0,
                    // Readiness is cleared: the next question registers the task.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                    // Of a datagram that was sent before, and taken by this.
                    Err(error) if socket.may_be_report(&error) => {}
                    // Mostly that, too.
                    Err(_) => self.failures[at] += 1,
                }
                any = true;
                break;
            }
        }
        any
    }

    /// Takes sockets that were added, and closes those that are of no use any more: only here, so that
    /// their places stay what they are.
    fn look_for_sockets(&mut self) {
        let mut state = self.shared.lock();
        let renewed = state.batches.renew_sockets();
        if !renewed && state.batches.sockets().len() == self.sockets.len() {
            return;
        }
        state.close_unused_sockets(self.shared.clock.now());
        let before = std::mem::take(&mut self.sockets);
        let failed = |socket: &Arc<Socket>| {
            let at = before.iter().position(|known| Arc::ptr_eq(known, socket));
            at.map_or(0, |at| self.failures[at])
        };
        self.sockets = state.batches.sockets().to_vec();
        self.failures = self.sockets.iter().map(failed).collect();
    }

    /// Takes what came and gives it to the engine.
    fn receive_from(&mut self, socket: &Socket) -> io::Result<()> {
        let Driver { buffer, metas, shared, strays, .. } = self;
        let count = {
            let mut pieces = buffer.chunks_exact_mut(BUFFER);
            let mut pieces: [IoSliceMut<'_>; BUFFERS] =
                std::array::from_fn(|_| IoSliceMut::new(pieces.next().unwrap_or_default()));
            socket.receive(&mut pieces, metas)?
        };
        let mut state = shared.lock();
        let now = shared.clock.now();
        let shards = shared.shards.get();
        state.counters.receive_calls += 1;
        for (nth, (meta, piece)) in
            metas.iter().zip(buffer.chunks_exact_mut(BUFFER)).take(count).enumerate()
        {
            let arrival =
                Arrival { route: socket.route_of(meta), ecn: meta.ecn.map_or(0, |ecn| ecn as u8) };
            let filled = piece.get_mut(..meta.len).unwrap_or_default();
            let stride = meta.stride.max(1);
            for (at, datagram) in filled.chunks_mut(stride).enumerate() {
                state.counters.datagrams_received += 1;
                state.counters.bytes_received += datagram.len() as u64;
                if let Some(shards) = shards
                    && !state.engine.holds(datagram)
                    && let Some(other) = shards.owner(&state.engine, datagram)
                {
                    let begin = nth * BUFFER + at * stride;
                    strays.push(Stray { other, arrival, place: begin..begin + datagram.len() });
                    continue;
                }
                state.engine.handle_datagram(now, arrival, datagram);
            }
        }
        drop(state);
        // One lock at a time: two shards may want each other's.
        for Stray { other, arrival, place } in strays.drain(..) {
            let datagram = buffer.get_mut(place).unwrap_or_default();
            if !other.take_stray(arrival, datagram) {
                shared.lock().engine.handle_datagram(now, arrival, datagram);
            }
        }
        Ok(())
    }

    /// Looks whether sockets that took nothing do so now.
    fn look_at_blocked(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        for (at, socket) in self.sockets.iter().enumerate() {
            let mut state = self.shared.lock();
            if !state.batches.is_socket_blocked(at) {
                continue;
            }
            if let Poll::Ready(true) = socket.poll_writable(cx) {
                any |= state.batches.unblock(at);
            }
        }
        if any {
            let mut state = self.shared.lock();
            state.batches.flush_all();
            state.engine.handle_unblocked(self.shared.clock.now());
        }
        any
    }

    /// Lets the engine do what is due, sends what it has, and tells everybody what happened.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let mut state = self.shared.lock();
        let now = self.shared.clock.now();
        let State { engine, entries, batches, .. } = &mut *state;
        if engine.poll_timeout().is_some_and(|at| at <= now) {
            engine.handle_timeout(now);
        }
        let drain = engine.poll_transmit(now, batches);
        while let Some((handle, connection)) = engine.poll_closed() {
            if let Some(entry) = entries.get_mut(&handle) {
                entry.keep_unread(connection);
            }
        }
        batches.flush_all();
        // Others have their turn before the rest goes; without room, a socket has to take some first.
        batches.begin_turn();
        let goes_on = drain == Drain::Full && batches.has_room();
        let before = entries.len();
        while let Some((handle, event)) = engine.poll_event() {
            if let Some(entry) = entries.get_mut(&handle) {
                spans::tell(&entry.span, &event, || engine.connection(handle), batches);
                entry.on_event(event);
            }
        }
        let failures = batches.take_failures();
        let held = engine.held();
        let has_waiting = held.waiting > 0;
        let blocked = (0..self.sockets.len()).any(|at| batches.is_socket_blocked(at));
        for failure in &failures {
            spans::tell_refused(&state.span, failure);
            leave(&mut state, failure, now);
        }
        let is_over = state.abandoned && held.connections == 0 && !state.batches.holds_any();
        let deadline = state.engine.poll_timeout();
        state.set_driver(cx.waker());
        drop(state);
        if has_waiting {
            self.shared.incoming.notify_waiters();
        }
        if held.connections == 0 || held.connections < before {
            self.shared.idle.notify_waiters();
        }
        if is_over {
            return Turn::Over;
        }
        if !self.set_timer(cx, deadline, now) {
            return Turn::More;
        }
        // If a socket became blocked in this turn, the task is to be registered.
        match goes_on || !failures.is_empty() || blocked && !self.is_registered(cx) {
            true => Turn::More,
            false => Turn::Rest,
        }
    }

    /// Asks to be woken when sockets that are blocked take datagrams; false if one does already.
    fn is_registered(&self, cx: &mut Context<'_>) -> bool {
        let state = self.shared.lock();
        let blocked = |at: &usize| state.batches.is_socket_blocked(*at);
        (0..self.sockets.len())
            .filter(blocked)
            .all(|at| self.sockets[at].poll_writable(cx).is_pending())
    }

    fn has_fired(&mut self, cx: &mut Context<'_>) -> bool {
        let fired = self.timer.poll_fired(cx).is_ready();
        if fired {
            self.armed = None;
        }
        fired
    }

    /// The task is to be woken at the deadline. False if that has come meanwhile.
    ///
    /// Deadlines mostly move away while data flows: a timer that is set already fires too soon then,
    /// which costs less than to set it each time.
    fn set_timer(&mut self, cx: &mut Context<'_>, deadline: Option<Instant>, now: Instant) -> bool {
        let Some(deadline) = deadline else { return true };
        // What is due was served just now.
        let deadline = if deadline <= now { now + LEAST_DELAY } else { deadline };
        if self.armed.is_none_or(|armed| armed > deadline) {
            let delay = deadline.saturating_since(self.shared.clock.now());
            // It came during the turn. A timer that fires at once costs as much as ten datagrams.
            if delay.is_zero() {
                return false;
            }
            // A timer that cannot be set leaves datagrams and calls to wake the driver.
            if self.timer.set(Some(delay)).is_ok() {
                self.armed = Some(deadline);
            }
        }
        !self.has_fired(cx)
    }
}

/// What is left to do after a turn.
enum Turn {
    /// More, as soon as others had theirs.
    More,
    /// Nothing until something happens.
    Rest,
    /// Nothing ever.
    Over,
}

/// The host says that datagrams cannot leave by a route: paths there are abandoned, if others are
/// left, and handshakes hear of it.
fn leave(state: &mut State, failure: &SendFailure, now: Instant) {
    if let Some(hint) = Hint::of_host(&failure.error, failure.route.local.ip()) {
        for entry in state.entries.values_mut() {
            if entry.started.is_some_and(|started| started.route == failure.route) {
                entry.on_hint(hint);
            }
        }
    }
    if failure.doubtful || !is_dead(&failure.error) {
        return;
    }
    let State { engine, entries, .. } = state;
    for &handle in entries.keys() {
        let uses = |connection: &quipu_quic::Connection| {
            let on_route = |sample: &quipu_quic::PathSample| {
                sample.route.local == failure.route.local
                    && sample.route.remote == failure.route.remote
            };
            connection.path_samples().find(on_route).map(|sample| sample.path)
        };
        let path = engine.connection(handle).and_then(uses);
        if let Some(path) = path
            && let Some(mut connection) = engine.call(now, handle)
        {
            connection.abandon_path(now, path, ErrorCode::PATH_UNSTABLE_OR_POOR);
        }
    }
}

/// True if no datagram leaves by that address until something changes.
fn is_dead(error: &io::Error) -> bool {
    let kinds = [
        io::ErrorKind::NetworkUnreachable,
        io::ErrorKind::NetworkDown,
        io::ErrorKind::AddrNotAvailable,
    ];
    // ENODEV has no kind of its own.
    kinds.contains(&error.kind()) || cfg!(unix) && error.raw_os_error() == Some(19)
}
