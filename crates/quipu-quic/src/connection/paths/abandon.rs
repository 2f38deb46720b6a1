//! Giving paths up, and what is kept of them for a while.
//! <https://www.rfc-editor.org/rfc/rfc10069#section-3.4>

use quipu_base::{Instant, PathId};
use quipu_policy::{Event, PathKey, PathState, PathView};

use crate::connection::{Connection, ConnectionEvent};
use crate::error::{ErrorCode, TransportError};
use crate::path::{Stage, Step};
use crate::recorder::PathEvent;

impl Connection {
    /// Abandons a path; what was in flight on it is sent again elsewhere. The peer is told `code`:
    /// [`ErrorCode::APPLICATION_ABANDON_PATH`], or another of
    /// <https://www.rfc-editor.org/rfc/rfc10069#section-4.2.1>. The last path that is validated
    /// stays: nothing, not even that it is abandoned, could be told.
    ///
    /// Returns whether there was such a path to abandon.
    pub fn abandon_path(&mut self, now: Instant, id: PathId, code: ErrorCode) -> bool {
        let other = |view: &PathView| view.key.id != id && view.state != PathState::Validating;
        let another = self.shared.paths.views.iter().any(other);
        let Some(data) = self.shared.paths.by_id(id).filter(|data| data.lives()) else {
            return false;
        };
        if !another || self.multipath().is_none() {
            return false;
        }
        let key = data.key;
        self.rest.end();
        self.give_up_path(now, key, code);
        true
    }

    /// This end gives a path up and tells the peer.
    pub(in crate::connection) fn give_up_path(
        &mut self,
        now: Instant,
        key: PathKey,
        code: ErrorCode,
    ) {
        if self.plan.step(key.id, Step::Abandon).is_some() {
            self.tell_abandoned(now, key.id, code);
            self.close_path(now, key, code);
        }
    }

    /// PATH_ABANDON came.
    pub(in crate::connection) fn on_path_abandon(
        &mut self,
        now: Instant,
        id: PathId,
    ) -> Result<(), TransportError> {
        self.plan.check(id, "abandoned a path never allowed")?;
        let before = self.plan.stage(id);
        if matches!(before, Stage::Draining | Stage::Gone)
            || self.plan.step(id, Step::PeerAbandons).is_none()
        {
            return Ok(());
        }
        if before.is_current() {
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
            //# When an endpoint receives a PATH_ABANDON frame, it MUST send a corresponding
            //# PATH_ABANDON frame, if it has not already done so, and respectively treat all
            //# connection IDs received from the peer for that path as immediately retired.
            self.tell_abandoned(now, id, ErrorCode::NO_ERROR);
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# Therefore, knowledge of the connection IDs issued to the peer and of the state of the
        //# number space associated to the path SHOULD be retained for 3 PTO after the
        //# PATH_ABANDON frame has been received.
        self.plan.expire_at(id, now + self.longest_probe_timeout().saturating_mul(3));
        if let Some(key) = self.shared.paths.by_id(id).map(|data| data.key) {
            self.close_path(now, key, ErrorCode::NO_ERROR);
        }
        if self.shared.paths.views.is_empty() {
            // The first packet of the next path may be lost or on its way: RFC 10069 has a server
            // wait for one probe timeout; three let the packet be sent again.
            let grace = self.longest_probe_timeout().saturating_mul(3);
            self.plan.on_pathless(now + grace);
        }
        Ok(())
    }

    /// The peer abandoned the last path, and no other came.
    pub(in crate::connection) fn close_pathless(&mut self, now: Instant) {
        self.plan.on_path();
        let code = ErrorCode::NO_VIABLE_PATH;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# If a PATH_ABANDON frame is received for the only open path of a QUIC connection, the
        //# receiving peer SHOULD send a CONNECTION_CLOSE frame and enter the closing state.
        self.fault(now, TransportError::new(code, "the last path was abandoned"));
    }

    /// The peer is told that a path is abandoned, and its connection IDs are used no more.
    fn tell_abandoned(&mut self, now: Instant, id: PathId, code: ErrorCode) {
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# An endpoint that wants to abandon a path MUST explicitly close the path by sending a
        //# PATH_ABANDON frame (see Section 4.2).
        self.control.tell_abandoned(id, code.0);
        self.control.forget_path(id);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# Endpoints that send a PATH_ABANDON frame MUST treat all connection IDs received from
        //# the peer for the path ID indicated in the PATH_ABANDON as immediately retired, and
        //# subsequently cannot send any packet on that path anymore.
        self.ids.remote_mut().drop_path(id);
        self.plan.expire_at(id, now + self.longest_probe_timeout().saturating_mul(3));
    }

    /// Takes a path that was given up out of use. Its packets are acknowledged, and acknowledged
    /// elsewhere, until its state is dropped.
    fn close_path(&mut self, now: Instant, key: PathKey, code: ErrorCode) {
        let Some(data) = self.shared.paths.get_mut(key.slot).filter(|data| data.lives()) else {
            return;
        };
        data.closing = true;
        data.addresses.stop();
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# It is RECOMMENDED to send the PATH_ABANDON frames on another open path, especially if
        //# connectivity on the to-be-abandoned path is expected to be broken.
        if let Some(view) = self.shared.paths.hide(key) {
            self.shared.streams.conn_view_mut().in_flight -= view.in_flight;
        }
        self.events.tell(ConnectionEvent::PathGone(key.id));
        self.recording.path(now, key.id, PathEvent::Abandoned { code: code.0 });
        self.scheduler.tell(now, &self.shared, Event::PathGone(key));
        // Nothing is sent on it any more, so that this is all that may ever be lost.
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3
        //# When an endpoint finally deletes all state associated with the path, the packets sent
        //# over the path and not yet acknowledged MUST be considered lost.
        self.requeue_in_flight(now, key.slot);
    }

    /// The time of abandoned paths has come: their state is dropped, and another identifier takes
    /// the place of one that both ends gave up.
    pub(in crate::connection) fn expire_paths(&mut self, now: Instant) {
        while let Some((id, stage)) = self.plan.next_expired(now) {
            if let Some(key) = self.shared.paths.by_id(id).map(|data| data.key) {
                self.drop_path(now, key);
            }
            if stage == Stage::Gone {
                self.forget_local_ids(id);
                self.replace_path_id();
            }
        }
    }

    fn drop_path(&mut self, now: Instant, key: PathKey) {
        let Some(data) = self.shared.paths.remove(key) else { return };
        for record in data.packets.sent.iter() {
            self.tell_lost_datagrams(record);
        }
        self.recording.path(now, key.id, PathEvent::Dropped);
        self.plan.on_dropped(key.id, data.counters);
    }
}
