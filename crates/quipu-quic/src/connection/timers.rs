//! Time: everything that waits for an instant, in one table, and what happens when that comes.

use quipu_base::Instant;
use smallvec::SmallVec;

use super::{CloseReason, Connection, Space};

/// What waits for its time, named for what happens then. Each has one deadline at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// Nothing came for too long: the connection ends.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-10.1>
    EndIdle,
    /// The handshake took too long: the connection ends.
    EndHandshake,
    /// The peer abandoned the last path and no other came: the connection closes.
    ClosePathless,
    /// Keys go that are kept for packets which were overtaken.
    DiscardOldKeys,
    /// Packets of a space are overdue, or probes go.
    /// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2>
    DetectLoss(Space),
    /// Packets of a space are acknowledged at the latest: with what is sent next.
    Acknowledge(Space),
    /// Paths that were abandoned long enough ago are dropped.
    ExpirePaths,
    /// The challenge on the path in that slot is repeated, or its validation given up.
    RepeatChallenge(u8),
    /// The probe of the path MTU in that slot is given up.
    GiveUpMtuProbe(u8),
    /// The connection needs a sign of life.
    KeepAlive,
    /// The path in that slot needs a sign of life.
    KeepPathAlive(u8),
    /// The connection closes, whether the peer has everything or not.
    EndFarewell,
    /// Nothing came of a stream that has not ended: the server is asked.
    AskSilent,
    /// The pacer lets the next packet go.
    ReleasePacket,
    /// The policies are asked again, as they wished.
    WakePolicies,
}

impl Timer {
    /// Hands out all that there may be, in the order in which they are looked at. `handshaking`:
    /// Initial or Handshake packets may still be sent; `slots`: of paths.
    // Inlined, so that the kind of each is known where its deadline is looked up: that happens
    // after every datagram.
    #[inline(always)]
    fn each(handshaking: bool, slots: u8, mut take: impl FnMut(Timer)) {
        take(Timer::EndIdle);
        take(Timer::ClosePathless);
        take(Timer::DiscardOldKeys);
        take(Timer::ExpirePaths);
        if handshaking {
            take(Timer::EndHandshake);
            for space in [Space::Initial, Space::Handshake] {
                take(Timer::DetectLoss(space));
                take(Timer::Acknowledge(space));
            }
        }
        for slot in 0..slots {
            take(Timer::DetectLoss(Space::Data(slot)));
            take(Timer::Acknowledge(Space::Data(slot)));
            take(Timer::RepeatChallenge(slot));
            take(Timer::GiveUpMtuProbe(slot));
            take(Timer::KeepPathAlive(slot));
        }
        take(Timer::KeepAlive);
        take(Timer::EndFarewell);
        take(Timer::AskSilent);
        take(Timer::ReleasePacket);
        take(Timer::WakePolicies);
    }

    /// The same as a list.
    fn all(handshaking: bool, slots: u8) -> SmallVec<[Timer; 16]> {
        let mut timers = SmallVec::new();
        Timer::each(handshaking, slots, |timer| timers.push(timer));
        timers
    }
}

/// The earliest of the instants that it is told.
struct Earliest(Instant);

impl Earliest {
    #[inline(always)]
    fn note(&mut self, at: Option<Instant>) {
        if let Some(at) = at {
            self.0 = self.0.min(at);
        }
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
        // The deadlines of each path are looked up together: this is done after every datagram.
        let of_paths = self.earliest_of_paths();
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.1
        //# When ack-eliciting packets in multiple packet number spaces are in flight, the
        //# timer MUST be set to the earlier value of the Initial and Handshake packet number
        //# spaces.
        let earliest = self.earliest_of(0, of_paths);
        debug_assert_eq!(
            earliest,
            self.earliest_of(self.shared.paths.slots(), Instant::FAR_FUTURE)
        );
        (earliest != Instant::FAR_FUTURE).then_some(earliest)
    }

    /// Time has come. Harmless if nothing is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.rest.end();
        self.lifecycle.handle_timeout(now);
        for timer in Timer::all(self.is_in_handshake(), self.shared.paths.slots()) {
            if !self.lifecycle.is_open() {
                return;
            }
            if self.deadline(timer).is_some_and(|at| at <= now) {
                self.rest.serve(now);
                self.fire(now, timer);
            }
        }
    }

    /// True while Initial or Handshake packets may be sent.
    fn is_in_handshake(&self) -> bool {
        self.handshake.keys().has_handshake_keys()
    }

    /// The earliest of `known` and the deadlines of the connection and of so many paths.
    #[inline]
    fn earliest_of(&self, slots: u8, known: Instant) -> Instant {
        let mut earliest = Earliest(known);
        Timer::each(self.is_in_handshake(), slots, |timer| {
            // When exactly an idle connection ends matters only if nothing comes before.
            if timer != Timer::EndIdle || self.lifecycle.may_end_idle_before(earliest.0) {
                earliest.note(self.deadline(timer));
            }
        });
        earliest.0
    }

    /// The earliest deadline of all paths.
    fn earliest_of_paths(&self) -> Instant {
        let mut earliest = Earliest(Instant::FAR_FUTURE);
        for slot in 0..self.shared.paths.slots() {
            let Some(path) = self.shared.paths.at(slot) else { continue };
            let data = path.data;
            earliest.note(self.data_loss_deadline(path));
            let acknowledge = data.packets.received.deadline();
            earliest.note(acknowledge.filter(|at| !self.rest.had_its_turn(*at)));
            earliest.note(data.addresses.next_timeout());
            earliest.note(data.mtu.probe_expires_at().filter(|_| data.lives()));
            earliest.note(self.path_keep_alive_at(slot));
        }
        earliest.0
    }

    #[inline(always)]
    fn deadline(&self, timer: Timer) -> Option<Instant> {
        match timer {
            Timer::EndIdle => self.lifecycle.idle_deadline(|| self.longest_probe_timeout()),
            Timer::EndHandshake => self.lifecycle.handshake_deadline(),
            Timer::ClosePathless => self.plan.pathless_until(),
            Timer::DiscardOldKeys => self.handshake.keys().discard_at(),
            Timer::DetectLoss(space) => self.loss_deadline(space),
            Timer::Acknowledge(space) => {
                let at = self.packets(space)?.received.deadline();
                at.filter(|at| !self.rest.had_its_turn(*at))
            }
            Timer::ExpirePaths => self.plan.expires_at(),
            Timer::RepeatChallenge(slot) => self.shared.paths.get(slot)?.addresses.next_timeout(),
            Timer::GiveUpMtuProbe(slot) => {
                let data = self.shared.paths.get(slot).filter(|data| data.lives())?;
                data.mtu.probe_expires_at()
            }
            Timer::KeepAlive => {
                self.lifecycle.keep_alive_deadline(self.shared.streams.is_blocked())
            }
            Timer::KeepPathAlive(slot) => self.path_keep_alive_at(slot),
            Timer::EndFarewell => self.lifecycle.farewell().map(|farewell| farewell.until),
            Timer::AskSilent => self.silence_deadline(),
            Timer::ReleasePacket => self.rest.release_at(),
            Timer::WakePolicies => self.scheduler.wake_at(),
        }
    }

    fn fire(&mut self, now: Instant, timer: Timer) {
        match timer {
            Timer::EndIdle => self.lifecycle.abort(CloseReason::IdleTimeout),
            Timer::EndHandshake => self.lifecycle.abort(CloseReason::HandshakeTimeout),
            Timer::ClosePathless => self.close_pathless(now),
            Timer::DiscardOldKeys => self.handshake.discard_old_keys(),
            Timer::DetectLoss(space) => self.on_loss_timeout(now, space),
            // Nothing is to be done but to send: what is due is found then.
            Timer::Acknowledge(_) => {}
            Timer::ExpirePaths => self.expire_paths(now),
            Timer::RepeatChallenge(slot) => self.on_challenge_timeout(now, slot),
            Timer::GiveUpMtuProbe(slot) => self.on_mtu_probe_timeout(now, slot),
            Timer::KeepAlive => self.keep_alive(now),
            Timer::KeepPathAlive(slot) => self.keep_path_alive(slot),
            Timer::EndFarewell => self.close_if_delivered(now),
            Timer::AskSilent => self.ask_silent_server(),
            Timer::ReleasePacket => self.rest.handle_timeout(now),
            Timer::WakePolicies => self.scheduler.handle_timeout(now, &self.shared),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_space_and_path_has_its_timers() {
        let handshaking = Timer::all(true, 1);
        assert_eq!(
            handshaking[..],
            [
                Timer::EndIdle,
                Timer::ClosePathless,
                Timer::DiscardOldKeys,
                Timer::ExpirePaths,
                Timer::EndHandshake,
                Timer::DetectLoss(Space::Initial),
                Timer::Acknowledge(Space::Initial),
                Timer::DetectLoss(Space::Handshake),
                Timer::Acknowledge(Space::Handshake),
                Timer::DetectLoss(Space::Data(0)),
                Timer::Acknowledge(Space::Data(0)),
                Timer::RepeatChallenge(0),
                Timer::GiveUpMtuProbe(0),
                Timer::KeepPathAlive(0),
                Timer::KeepAlive,
                Timer::EndFarewell,
                Timer::AskSilent,
                Timer::ReleasePacket,
                Timer::WakePolicies,
            ]
        );
        assert_eq!(Timer::all(false, 3).len(), 9 + 3 * 5);
    }
}
