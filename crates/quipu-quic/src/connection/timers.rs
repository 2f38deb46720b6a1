//! Time: the next deadline of everything that waits, and what happens when it comes.

use quipu_base::{Duration, Instant};
use quipu_policy::congestion::PathChange;
use quipu_policy::{Event, PathKey, PathState};

use super::acks::recovery_of;
use super::{CloseReason, Connection, ConnectionEvent, Space};
use crate::path::PathData;
use crate::recorder::{PathEvent, Timer};
use crate::recovery::{PROBES, probe_timeout};

/// Largest exponent of the probe timeout's backoff; our choice.
const MAX_BACKOFF: u32 = 16;

/// Longest time between probes of a suspect path; our choice.
const MAX_SUSPECT_INTERVAL: Duration = Duration::from_secs(2);

/// Ends a connection on which nothing comes.
#[derive(Clone, Debug)]
pub(crate) struct IdleTimer {
    timeout: Duration,
    since: Instant,
    /// An ack-eliciting packet left since something came.
    sent_since: bool,
}

impl IdleTimer {
    pub(crate) fn new(now: Instant, timeout: Duration) -> Self {
        IdleTimer { timeout, since: now, sent_since: false }
    }

    /// The shorter of our and the peer's timeout counts; zero is none.
    pub(crate) fn agree(&mut self, peers: Duration) {
        self.timeout = match (self.timeout.is_zero(), peers.is_zero()) {
            (true, _) => peers,
            (_, true) => self.timeout,
            _ => self.timeout.min(peers),
        };
    }

    pub(crate) fn on_received(&mut self, now: Instant) {
        self.since = now;
        self.sent_since = false;
    }

    // https://www.rfc-editor.org/rfc/rfc9000#section-10.1
    //# an endpoint also restarts its idle timer when sending an ack-eliciting
    //# packet if no other ack-eliciting packets have been sent since last
    //# receiving and processing a packet.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.sent_since, true) {
            self.since = now;
        }
    }

    fn deadline(&self, longest_probe_timeout: Duration) -> Option<Instant> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.1
        //# endpoints MUST increase the idle timeout period to be at least three
        //# times the current Probe Timeout (PTO).
        let timeout = self.timeout.max(longest_probe_timeout.saturating_mul(3));
        (!self.timeout.is_zero()).then(|| self.since + timeout)
    }
}

impl Connection {
    /// When [`Connection::handle_timeout`] is to be called; changes after every input.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.lifecycle.is_closed() {
            return None;
        }
        if let Some(deadline) = self.lifecycle.deadline() {
            return Some(deadline);
        }
        let mut earliest = Instant::FAR_FUTURE;
        let mut consider = |at: Option<Instant>| {
            if let Some(at) = at {
                earliest = earliest.min(at);
            }
        };
        consider(self.idle.deadline(self.longest_probe_timeout()));
        consider(self.scheduler.wake_at());
        if self.handshake.keys().has_handshake_keys() {
            for space in [Space::Initial, Space::Handshake] {
                consider(self.loss_deadline(space));
                consider(self.handshake.space(space).and_then(|state| state.received.deadline()));
            }
        }
        consider(self.rest.release_at());
        consider(self.plan.pathless_until());
        for data in self.shared.paths.iter() {
            consider(self.loss_deadline(Space::Data(data.key.slot)));
            consider(data.received.deadline());
            consider(data.validation.resend_at());
            consider(data.drained_at());
        }
        (earliest != Instant::FAR_FUTURE).then_some(earliest)
    }

    /// Time has come. Harmless if nothing is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.rest.end();
        self.lifecycle.handle_timeout(now);
        if !self.lifecycle.is_open() {
            return;
        }
        if self.idle.deadline(self.longest_probe_timeout()).is_some_and(|at| at <= now) {
            self.lifecycle.abort(CloseReason::IdleTimeout);
            return;
        }
        if self.plan.pathless_until().is_some_and(|until| until <= now) {
            self.close_pathless(now);
            return;
        }
        if self.handshake.keys().has_handshake_keys() {
            for space in [Space::Initial, Space::Handshake] {
                self.handle_loss_timeout(now, space);
            }
        }
        for slot in 0..self.shared.paths.slots() {
            self.handle_loss_timeout(now, Space::Data(slot));
            self.handle_path_timeout(now, slot);
        }
        self.rest.handle_timeout(now);
        self.scheduler.handle_timeout(now, &self.shared);
    }

    fn handle_loss_timeout(&mut self, now: Instant, space: Space) {
        match self.loss_deadline(space) {
            Some(deadline) if deadline <= now => {}
            _ => return,
        }
        if self.loss_time(space).is_some_and(|at| at <= now) {
            self.record_expired(now, space.slot(), Timer::Loss);
            self.on_loss_timer(now, space);
        } else {
            self.record_expired(now, space.slot(), Timer::Probe);
            self.on_probe_timeout(now, space);
        }
    }

    fn loss_time(&self, space: Space) -> Option<Instant> {
        match space {
            Space::Initial | Space::Handshake => self.handshake.space(space)?.sent.loss_time,
            Space::Data(slot) => self.shared.paths.get(slot)?.sent.loss_time,
        }
    }

    /// When packets of a space are overdue, or its probe timeout fires.
    fn loss_deadline(&self, space: Space) -> Option<Instant> {
        // What an abandoned path had in flight is pending elsewhere already.
        let view = self.shared.paths.views.by_slot(space.slot())?;
        if let Some(at) = self.loss_time(space) {
            return Some(at);
        }
        let backoff = 1u64 << view.pto_count.min(MAX_BACKOFF);
        match space {
            Space::Initial | Space::Handshake => {
                let timeout = probe_timeout(view, Duration::ZERO).saturating_mul(backoff);
                if !self.handshake.keys().has(space) || view.amplification_limited {
                    return None;
                }
                let data = self.shared.paths.get(0)?;
                let sent = &self.handshake.space(space)?.sent;
                if let Some(last) = sent.last_eliciting_at() {
                    return Some(data.recovery.probe_base(last) + timeout);
                }
                // A client whose address the server may not have validated keeps the
                // handshake going: the server may be held by the amplification limit.
                // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
                let armed = self.anti_deadlock_space() == Some(space);
                let last = view.last_sent_at.unwrap_or(Instant::ZERO);
                armed.then(|| data.recovery.probe_base(last) + timeout)
            }
            Space::Data(slot) => {
                // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
                //# An endpoint MUST NOT set its PTO timer for the Application Data
                //# packet number space until the handshake is confirmed.
                if !self.lifecycle.is_confirmed() {
                    return None;
                }
                if view.amplification_limited {
                    return None;
                }
                let data = self.shared.paths.get(slot)?;
                let timeout = probe_timeout(view, self.handshake.peer().max_ack_delay);
                let backed_off = timeout.saturating_mul(backoff);
                // A silent path beside one that answers is asked often enough to see it return.
                let backed_off = if view.state == PathState::Suspect {
                    backed_off.min(timeout.max(MAX_SUSPECT_INTERVAL))
                } else {
                    backed_off
                };
                data.sent
                    .last_eliciting_at()
                    .map(|last| data.recovery.probe_base(last) + backed_off)
            }
        }
    }

    /// The space in which a client probes although nothing is in flight.
    fn anti_deadlock_space(&self) -> Option<Space> {
        if !self.role.is_client() || self.peer_validated_us() {
            return None;
        }
        self.handshake.anti_deadlock_space()
    }

    /// True once the server is known to have validated our address.
    pub(super) fn peer_validated_us(&self) -> bool {
        !self.role.is_client() || self.lifecycle.is_confirmed() || self.handshake.is_acknowledged()
    }

    fn on_probe_timeout(&mut self, now: Instant, space: Space) {
        let recovery = recovery_of(&mut self.shared.paths, &mut self.handshake, space);
        if let Some(mut recovery) = recovery {
            recovery.on_probe_timeout(now);
        }
        let Space::Data(slot) = space else {
            if let Some(state) = self.handshake.space_mut(space) {
                state.probes_due = PROBES;
            }
            return;
        };
        let Some(mut path) = self.shared.paths.at_mut(slot) else { return };
        let Some((key, pto_count)) = path.view.as_ref().map(|view| (view.key, view.pto_count))
        else {
            return;
        };
        path.data.recovery.ask_for_probes(PROBES);
        path.change(now, PathChange::Pto);
        self.scheduler.tell(now, &self.shared, Event::Pto(key));
        if !self.suspect(now, key, pto_count) {
            self.ask_other_paths(key);
        }
    }

    /// Nobody knows whether the other paths live: each that owes no answer is asked for one.
    fn ask_other_paths(&mut self, silent: PathKey) {
        for slot in 0..self.shared.paths.slots() {
            let Some((data, view)) = self.shared.paths.pair_mut(slot) else { continue };
            let idle = view.state == PathState::Usable && !data.sent.has_eliciting();
            if data.key != silent && idle {
                data.recovery.ask_for_probes(1);
            }
        }
    }

    /// The path in `slot` answered: paths whose probe timeout fired meanwhile are suspect.
    pub(super) fn suspect_silent_paths(&mut self, now: Instant, slot: u8) {
        for other in 0..self.shared.paths.slots() {
            let Some(view) = self.shared.paths.views.by_slot(other) else { continue };
            let (key, pto_count) = (view.key, view.pto_count);
            if other != slot && pto_count > 0 && view.state == PathState::Usable {
                self.suspect(now, key, pto_count);
            }
        }
    }

    /// A path that is silent while another answers is spared, and its bytes go elsewhere. True if
    /// it is suspect.
    fn suspect(&mut self, now: Instant, key: PathKey, pto_count: u32) -> bool {
        let Some(data) = self.shared.paths.get(key.slot) else { return false };
        let oldest = data.sent.oldest_sent_at();
        let another_answered = self.shared.paths.iter().any(|other| {
            let usable = self
                .shared
                .paths
                .views
                .get(other.key)
                .is_some_and(|view| view.state == PathState::Usable);
            // An end that only receives on the other path gets no acknowledgement there.
            let answered = other.recovery.acked_at().max(other.heard_at) > oldest;
            usable && other.key != key && answered
        });
        let Some((_, view)) = self.shared.paths.pair_mut(key.slot) else { return false };
        if another_answered && view.state == PathState::Usable {
            view.state = PathState::Suspect;
            self.events.tell(ConnectionEvent::PathSuspect(key.id));
            self.recording.path(now, key.id, PathEvent::Suspect);
            self.scheduler.tell(now, &self.shared, Event::PathSuspect(key));
        }
        let suspect =
            self.shared.paths.views.get(key).is_some_and(|view| view.state == PathState::Suspect);
        if suspect && pto_count >= self.scheduler.resend.requeue_after_pto {
            self.requeue_in_flight(now, key.slot);
        }
        suspect
    }

    fn handle_path_timeout(&mut self, now: Instant, slot: u8) {
        let Some(data) = self.shared.paths.get_mut(slot) else { return };
        let key = data.key;
        if data.drained_at().is_some_and(|at| at <= now) {
            self.drop_path(now, key);
            return;
        }
        let expired = data.validation.resend_at().is_some_and(|at| at <= now);
        let goes_on = data.validation.handle_timeout(now);
        if expired {
            self.record_expired(now, slot, Timer::PathValidation);
        }
        if !goes_on {
            self.give_up_validation(now, key);
        }
    }

    /// Which timer of loss detection is set for the 1-RTT packets of a path, and when it expires.
    pub(super) fn data_timer(&self, slot: u8) -> Option<(Timer, Instant)> {
        let space = Space::Data(slot);
        let timer = if self.loss_time(space).is_some() { Timer::Loss } else { Timer::Probe };
        self.loss_deadline(space).map(|at| (timer, at))
    }

    /// The longest probe timeout of all paths, without backoff.
    pub(super) fn longest_probe_timeout(&self) -> Duration {
        let longest = self
            .shared
            .paths
            .views
            .iter()
            .map(|view| probe_timeout(view, self.handshake.peer().max_ack_delay))
            .max();
        longest.unwrap_or(Duration::from_secs(1))
    }
}

impl PathData {
    /// When the state of an abandoned path is dropped.
    fn drained_at(&self) -> Option<Instant> {
        match self.abandon {
            crate::path::Abandon::No => None,
            crate::path::Abandon::Draining { until } => Some(until),
        }
    }
}
