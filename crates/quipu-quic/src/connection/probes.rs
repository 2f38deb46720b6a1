//! The loss timer of a packet number space, and paths that keep silent.
//! <https://www.rfc-editor.org/rfc/rfc9002#section-6.2>

use quipu_base::{Duration, Instant};
use quipu_policy::congestion::PathChange;
use quipu_policy::{Event, PathKey, PathSet, PathState, PathView};

use super::spaces::recovery_of;
use super::{Connection, ConnectionEvent, Space};
use crate::path::{PathRef, Step};
use crate::recorder::{PathEvent, Timer};
use crate::recovery::PROBES;

/// Largest exponent of the probe timeout's backoff; our choice.
const MAX_BACKOFF: u32 = 16;

/// Longest time between probes of a suspect path, unless its probe timeout is longer: it is used again
/// that soon after it came back. Our choice.
const MAX_SUSPECT_INTERVAL: Duration = Duration::from_millis(500);

impl Connection {
    /// The loss timer of a space fired: what is overdue is lost, else the probe timeout has run
    /// out.
    pub(super) fn on_loss_timeout(&mut self, now: Instant, space: Space) {
        if self.loss_time(space).is_some_and(|at| at <= now) {
            self.record_expired(now, space.slot(), Timer::Loss);
            self.on_loss_timer(now, space);
            // A late call may find the probe timeout due as well. What was lost takes its place if it
            // is sent again, and at once.
            if self.loss_deadline(space).is_none_or(|at| at > now) {
                return;
            }
            let open = self.shared.paths.views.open(now).next().is_some();
            if open && self.waits_to_send() || self.handshake.crypto_waits(space) {
                self.rest.put_off_probes();
                return;
            }
        }
        self.record_expired(now, space.slot(), Timer::Probe);
        self.on_probe_timeout(now, space);
    }

    /// Nothing of what was lost was sent in place of the probe timeouts that were due too: they run out
    /// now.
    pub(super) fn serve_probes_put_off(&mut self, now: Instant) {
        let of_paths = (0..self.shared.paths.slots()).map(Space::Data);
        for space in [Space::Initial, Space::Handshake].into_iter().chain(of_paths) {
            let is_due = self.loss_deadline(space).is_some_and(|at| at <= now);
            if is_due && self.loss_time(space).is_none() {
                self.record_expired(now, space.slot(), Timer::Probe);
                self.on_probe_timeout(now, space);
            }
        }
    }

    fn loss_time(&self, space: Space) -> Option<Instant> {
        self.packets(space)?.sent.loss_time
    }

    /// When packets of a space are overdue, or its probe timeout fires.
    pub(super) fn loss_deadline(&self, space: Space) -> Option<Instant> {
        if let Space::Data(slot) = space {
            return self.data_loss_deadline(self.shared.paths.at(slot)?);
        }
        let view = self.shared.paths.views.by_slot(space.slot())?;
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO timer MUST NOT be set if a timer is set for time threshold loss detection; see
        //# Section 6.1.2.
        if let Some(at) = self.loss_time(space) {
            return Some(at);
        }
        let backed_off = self.backed_off(view, Duration::ZERO);
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
        //# If no additional data can be sent, the server's PTO timer MUST NOT be armed
        //# until datagrams have been received from the client because packets sent on PTO
        //# count against the anti-amplification limit.
        if !self.handshake.keys().has(space) || view.amplification_limited {
            return None;
        }
        let data = self.shared.paths.get(0)?;
        let sent = &self.handshake.space(space)?.sent;
        if let Some(last) = sent.last_eliciting_at() {
            return Some(data.recovery.probe_base(last) + backed_off);
        }
        // A client whose address the server may not have validated keeps the
        // handshake going: the server may be held by the amplification limit.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
        //# To prevent this deadlock, clients MUST send a packet on a Probe Timeout (PTO);
        //# see Section 6.2 of [QUIC-RECOVERY].
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2.1
        //# That is, the client MUST set the PTO timer if the client has not received an
        //# acknowledgment for any of its Handshake packets and the handshake is not
        //# confirmed (see Section 4.1.2 of [QUIC-TLS]), even if there are no packets in
        //# flight.
        let armed = self.anti_deadlock_space() == Some(space);
        let last = view.last_sent_at.unwrap_or(Instant::ZERO);
        armed.then(|| data.recovery.probe_base(last) + backed_off)
    }

    /// The same of the 1-RTT packets of a path: asked after every datagram.
    pub(super) fn data_loss_deadline(&self, path: PathRef<'_>) -> Option<Instant> {
        // What an abandoned path had in flight is pending elsewhere already.
        let PathRef { data, view: Some(view) } = path else { return None };
        let sent = &data.packets.sent;
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# The PTO timer MUST NOT be set if a timer is set for time threshold loss detection; see
        //# Section 6.1.2.
        if sent.loss_time.is_some() {
            return sent.loss_time;
        }
        let last = sent.last_eliciting_at()?;
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# An endpoint MUST NOT set its PTO timer for the Application Data
        //# packet number space until the handshake is confirmed.
        if !self.lifecycle.is_confirmed() || view.amplification_limited {
            return None;
        }
        let max_ack_delay = self.handshake.peer().max_ack_delay;
        let mut backed_off = self.backed_off(view, max_ack_delay);
        // A silent path beside one that answers is asked often enough to see it return.
        if view.state == PathState::Suspect {
            let timeout = self.config.recovery.probe_timeout(view, max_ack_delay);
            backed_off = backed_off.min(timeout.max(MAX_SUSPECT_INTERVAL));
        }
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# A sender SHOULD restart its PTO timer every time an ack-eliciting packet
        //# is sent or acknowledged, or when Initial or Handshake keys are discarded
        //# (Section 4.9 of [QUIC-TLS]).
        Some(data.recovery.probe_base(last) + backed_off)
    }

    /// The probe timeout of a path with its backoff.
    fn backed_off(&self, view: &PathView, max_ack_delay: Duration) -> Duration {
        let timeout = self.config.recovery.probe_timeout(view, max_ack_delay);
        timeout.saturating_mul(1 << view.pto_count.min(MAX_BACKOFF))
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
            self.handshake.ask_for_probes(space, PROBES);
            self.probe_other_spaces(space);
            let tried = self.shared.paths.views.by_slot(0).map_or(0, |view| view.pto_count);
            if tried >= 2 {
                self.on_handshake_stalled(now);
            }
            return;
        };
        let Some(mut path) = self.shared.paths.at_mut(slot) else { return };
        let Some((key, pto_count)) = path.view.as_ref().map(|view| (view.key, view.pto_count))
        else {
            return;
        };
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2
        //# A PTO timer expiration event does not indicate packet loss and MUST NOT cause prior
        //# unacknowledged packets to be marked as lost.
        path.data.recovery.ask_for_probes(PROBES);
        path.data.responses.on_passed(1);
        path.change(now, PathChange::Pto);
        self.scheduler.tell(now, &self.shared, Event::Pto(key));
        if !self.suspect(now, key, pto_count) {
            self.ask_other_paths(key);
        }
    }

    /// The probe timeout of a space of the handshake ran out: the others that wait for the peer ask it
    /// too, if they can in the same datagram.
    fn probe_other_spaces(&mut self, space: Space) {
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
        //# In addition to sending data in the packet number space for which the timer expired,
        //# the sender SHOULD send ack-eliciting packets from other packet number spaces with
        //# in-flight data, coalescing packets if possible.
        for other in [Space::Initial, Space::Handshake] {
            let waits = self.handshake.space(other).is_some_and(|state| state.sent.has_eliciting());
            let asks = self.handshake.probes_due(other) > 0 || !self.handshake.keys().has(other);
            if other != space && waits && !asks {
                self.handshake.ask_for_probes(other, 1);
            }
        }
        // A client whose handshake is complete, but not confirmed, asks in 1-RTT packets whatever is in
        // flight: if its address was rebound meanwhile, nothing else shows the server where it is.
        let can_seal = self.handshake.keys().has(Space::Data(0));
        let is_unconfirmed = self.lifecycle.is_established() && !self.lifecycle.is_confirmed();
        if let Some(data) = self.shared.paths.get_mut(0)
            && (is_unconfirmed || can_seal && data.packets.sent.has_eliciting())
        {
            data.recovery.ask_for_probes(1);
        }
    }

    /// Nobody knows whether the other paths live: each that owes no answer is asked for one, and each
    /// that is suspect once more, since it may have been found so wrongly or be back.
    fn ask_other_paths(&mut self, silent: PathKey) {
        for slot in 0..self.shared.paths.slots() {
            let Some((data, view)) = self.shared.paths.pair_mut(slot) else { continue };
            let asks = match view.state {
                PathState::Usable => !data.packets.sent.has_eliciting(),
                PathState::Suspect => true,
                _ => false,
            };
            if data.key != silent && asks {
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
        let oldest = data.packets.sent.oldest_sent_at();
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
        if another_answered && self.step_path(key, Step::FallSilent).is_some() {
            self.events.tell(ConnectionEvent::PathSuspect(key.id));
            self.recording.path(now, key.id, PathEvent::Suspect);
            self.scheduler.tell(now, &self.shared, Event::PathSuspect(key));
            self.tell_of_broken_paths(now);
        }
        let suspect =
            self.shared.paths.views.get(key).is_some_and(|view| view.state == PathState::Suspect);
        if suspect && pto_count >= self.scheduler.resend.requeue_after_pto {
            self.requeue_in_flight(now, key.slot);
        }
        suspect
    }

    /// When a client that waits for the rest of a stream asks for it.
    pub(super) fn silence_deadline(&self) -> Option<Instant> {
        let slot = self.silence.expected_on()?;
        if !self.config.probe_silence || !self.role.is_client() || !self.lifecycle.is_confirmed() {
            return None;
        }
        // What it has in flight itself asks often enough.
        let path = self.shared.paths.at(slot)?;
        if path.data.packets.sent.has_eliciting() {
            return None;
        }
        let timeout =
            self.config.recovery.probe_timeout(path.view?, self.handshake.peer().max_ack_delay);
        self.silence.deadline(timeout)
    }

    /// Nothing comes: the server is asked on every path, in case it does not reach this end.
    pub(super) fn ask_silent_server(&mut self) {
        let views = self.shared.paths.views.iter();
        let up = views.filter(|view| view.state != PathState::Validating);
        let paths = up.fold(PathSet::EMPTY, |set, view| set.with(view.key));
        self.silence.ask(paths);
    }

    /// Which timer of loss detection is set for the 1-RTT packets of a path, and when it expires.
    pub(super) fn data_timer(&self, slot: u8) -> Option<(Timer, Instant)> {
        let space = Space::Data(slot);
        let timer = if self.loss_time(space).is_some() { Timer::Loss } else { Timer::Probe };
        self.loss_deadline(space).map(|at| (timer, at))
    }

    /// The longest probe timeout of all paths, without backoff.
    pub(super) fn longest_probe_timeout(&self) -> Duration {
        let rules = &self.config.recovery;
        let longest = self
            .shared
            .paths
            .views
            .iter()
            .map(|view| rules.probe_timeout(view, self.handshake.peer().max_ack_delay))
            .max();
        longest.unwrap_or(Duration::from_secs(1))
    }
}
