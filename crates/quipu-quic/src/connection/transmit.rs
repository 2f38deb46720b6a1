//! Datagrams out: the engine's duties first, then what the policies choose, then what is left.

use quipu_base::{Bytes, Instant};
use quipu_policy::{Event, PathState, PathView};

use super::Connection;
use crate::outbox::Outbox;
use crate::path::PathMut;

mod ack_frames;
mod close;
mod control_frames;
mod duties;
mod handshake_packets;
mod mtu_probe;
mod validation;

/// How a call of [`Connection::poll_transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// Nothing more can go now.
    Rest,
    /// Nothing more can go now, but routes are blocked: call again when they are not.
    Blocked,
    /// The outbox has no room for the next datagram: call again when it has.
    Full,
}

/// How far sending has come to rest.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The policies have said all they have to say since the last input; what is left over goes.
    begun: bool,
    /// When the pacer lets go of the next path while something waits.
    release_at: Option<Instant>,
    /// When all that could go had gone; `None` since the last input.
    drained_at: Option<Instant>,
    /// A deadline was served since the last poll. In debug builds alone.
    served_at: Option<Instant>,
    /// At the last rest nothing waited, nothing was in flight, and no path was held back.
    quiet: bool,
    /// Datagrams sent so far.
    sent: u64,
    /// Datagrams sent when probe timeouts that were due were put off, for what was lost to go in their
    /// place.
    put_off_at: Option<u64>,
}

impl Rest {
    fn begin(&mut self) {
        self.begun = true;
    }

    fn has_begun(&self) -> bool {
        self.begun
    }

    /// Something came or was asked for: the policies are asked again.
    pub(super) fn end(&mut self) {
        self.begun = false;
        self.drained_at = None;
    }

    /// All that could go has gone.
    fn drain(&mut self, now: Instant) {
        self.begun = false;
        self.drained_at = Some(now);
    }

    /// True if what was due at `at` had its turn since the last input. If it is still due, then
    /// something holds it back that only an input can change: the anti-amplification limit, or a
    /// socket. No deadline is reported for it, or the driver would spin.
    pub(super) fn had_its_turn(&self, at: Instant) -> bool {
        self.drained_at.is_some_and(|drained| at <= drained)
    }

    fn wait_for_pacer(&mut self, release_at: Option<Instant>) {
        self.release_at = release_at;
    }

    pub(super) fn release_at(&self) -> Option<Instant> {
        self.release_at
    }

    /// Time has come.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.release_at = self.release_at.filter(|at| *at > now);
    }

    /// A datagram left.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
        self.quiet = false;
    }

    /// Probe timeouts are due, but what was lost seems to go in their place.
    pub(super) fn put_off_probes(&mut self) {
        self.put_off_at = Some(self.sent);
    }

    /// True if probe timeouts were put off, and nothing has gone since.
    fn has_probes_put_off(&mut self) -> bool {
        self.put_off_at.take() == Some(self.sent)
    }

    /// A deadline is served at `now`.
    pub(super) fn serve(&mut self, now: Instant) {
        if cfg!(debug_assertions) {
            self.served_at = Some(now);
        }
    }
}

/// The outbox has no room for a datagram.
pub(super) struct Full;

impl Connection {
    /// Writes all datagrams that can go now into `outbox`.
    pub fn poll_transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Drain {
        let sent = self.rest.sent;
        self.look_at_routes(now, outbox);
        // A packet that cannot be begun is taken for one without room, also where it ends the connection.
        if let Err(Full) = self.transmit(now, outbox)
            && !self.is_closed()
        {
            self.host_is_full(now);
            return Drain::Full;
        }
        // Policies may rest, or keep what they have for another path.
        if self.rest.has_probes_put_off() && self.lifecycle.is_open() {
            self.rest.end();
            self.serve_probes_put_off(now);
            if let Err(Full) = self.transmit(now, outbox) {
                return Drain::Full;
            }
        }
        self.rest.drain(now);
        let served_at = self.rest.served_at.take();
        debug_assert!(
            served_at != Some(now)
                || self.rest.sent > sent
                || self.poll_timeout().is_none_or(|next| next > now),
            "the deadline that was served at {now} is followed by {:?}, and nothing was sent",
            self.poll_timeout(),
        );
        if self.is_blocked(outbox) { Drain::Blocked } else { Drain::Rest }
    }

    /// Windows that have room now are not what holds back.
    fn host_is_full(&mut self, now: Instant) {
        let paths = &mut self.shared.paths;
        for slot in 0..paths.slots() {
            if let Some(mut path) = paths.at_mut(slot) {
                path.host_is_full(now);
            }
        }
    }

    fn transmit(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        self.flush_edges(now);
        self.record_lifecycle(now);
        if self.lifecycle.is_open() && self.handshake.keys().wants_update() {
            self.renew_keys(now);
        }
        self.close_if_delivered(now);
        if !self.lifecycle.is_open() {
            return self.send_close(now, outbox);
        }
        if self.rest.quiet {
            self.take_advice(now);
            if self.is_quiet(now) {
                return Ok(());
            }
        }
        // An outbox that filled up among the leftovers changes no decision.
        if !self.rest.has_begun() {
            self.send_by_choice(now, outbox)?;
        }
        if !self.may_send_data() {
            return Ok(());
        }
        self.rest.begin();
        self.send_left_over_controls(now, outbox)?;
        self.send_left_over_acks(now, outbox)?;
        self.come_to_rest(now);
        Ok(())
    }

    /// After a quiet rest: true if it is quiet still, since the policies heard nothing and nothing waits.
    /// So it is after most packets of an end that receives.
    fn is_quiet(&self, now: Instant) -> bool {
        !self.rest.has_begun()
            && !self.scheduler.has_news()
            && !self.waits_to_send()
            && self.silence.asks().is_empty()
            && !self.shared.paths.iter().any(|data| {
                data.packets.received.wants_ack_by(now) || data.lives() && data.has_duties(now)
            })
    }

    /// Whether it is quiet at this rest, so that all that follows can be told by [`Self::is_quiet`].
    fn comes_to_quiet(&self, now: Instant) -> bool {
        let is_held = |view: &PathView| view.state == PathState::Usable && !view.is_open(now);
        self.lifecycle.is_confirmed()
            && !self.handshake.keys().has_handshake_keys()
            // What is asked of the peer changes with time.
            && !self.asks_for_acks()
            && !self.recording.is_on()
            && self.shared.streams.conn_view().in_flight.is_zero()
            && !self.waits_to_send()
            && !self.shared.paths.views.iter().any(is_held)
    }

    /// The engine's duties, and then what the policies choose.
    fn send_by_choice(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        self.scheduler.start_drain(now);
        if self.handshake.keys().has_handshake_keys() {
            self.send_handshake(now, outbox)?;
        }
        if self.lifecycle.is_established() {
            self.take_advice(now);
            self.look_at_ack_terms(now);
            for slot in 0..self.shared.paths.slots() {
                self.send_path_duties(now, slot, outbox)?;
            }
        } else if !self.may_send_data() {
            return Ok(());
        }
        self.send_data(now, outbox)
    }

    /// Nothing more goes now: starved paths are marked, the policies are told.
    fn come_to_rest(&mut self, now: Instant) {
        let paths = &mut self.shared.paths;
        let mut release_at = None;
        for slot in 0..paths.slots() {
            let held = paths.at_mut(slot).and_then(|mut path| path.rest(now));
            release_at = held.into_iter().chain(release_at).min();
        }
        self.rest.wait_for_pacer(release_at.filter(|_| self.waits_to_send()));
        if self.shared.streams.conn_view().in_flight == Bytes::ZERO {
            self.release_memory();
        }
        self.scheduler.rest(now, &self.shared);
        self.record_rest(now);
        self.rest.quiet = self.comes_to_quiet(now);
    }

    /// True if something waits to be sent that congestion control may hold back.
    pub(super) fn waits_to_send(&self) -> bool {
        self.shared.streams.conn_view().ready > 0
            || self.scheduler.has_copies()
            || !self.datagrams.is_idle()
            || self.shared.streams.has_control_data()
            || self.has_control_frames()
    }

    /// Which routes take datagrams, at the beginning of a poll.
    fn look_at_routes(&mut self, now: Instant, outbox: &dyn Outbox) {
        for slot in 0..self.shared.paths.slots() {
            self.look_at_route(now, slot, outbox);
        }
    }

    /// Whether the route of a path takes datagrams; the policies hear of a change.
    pub(super) fn look_at_route(&mut self, now: Instant, slot: u8, outbox: &dyn Outbox) {
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let blocked = outbox.is_blocked(&data.addresses.active().route);
        if std::mem::replace(&mut view.blocked, blocked) == blocked {
            return;
        }
        let key = view.key;
        self.rest.end();
        let event = if blocked { Event::PathBlocked(key) } else { Event::PathUnblocked(key) };
        self.scheduler.tell(now, &self.shared, event);
    }

    /// True if a route takes no datagrams at present.
    fn is_blocked(&self, outbox: &dyn Outbox) -> bool {
        match self.lifecycle.is_open() {
            true => self.shared.paths.views.iter().any(|view| view.blocked),
            false => self.close_is_blocked(outbox),
        }
    }

    /// The path in `slot`, if there is one and the outbox has room for a datagram.
    pub(super) fn path_with_room(
        &mut self,
        outbox: &dyn Outbox,
        slot: u8,
    ) -> Result<PathMut<'_>, Full> {
        let path = self.shared.paths.at_mut(slot);
        path.filter(|_| outbox.has_room()).ok_or(Full)
    }
}
