//! Opening, validating, sparing and abandoning paths (RFC 10069).

use quipu_base::{Bytes, Instant, PathId};
use quipu_policy::{Event, PathKey, PathState, PathStatus, PathView};
use thiserror::Error;

use super::{Connection, ConnectionEvent, EndpointEvent, Space};
use crate::counters::PathCounters;
use crate::error::{ErrorCode, TransportError};
use crate::outbox::Route;
use crate::path::{Abandon, PathData};
use crate::recorder::PathEvent;

/// Why a path was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenPathError {
    /// Only the client opens paths.
    #[error("only the client opens paths")]
    NotClient,
    /// The peer does not speak the multipath extension.
    #[error("the peer does not speak the multipath extension")]
    NoMultipath,
    /// The handshake is not confirmed yet.
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The connection is closing or closed.
    #[error("the connection is closed")]
    Closed,
    /// All path identifiers that both ends allow were used.
    #[error("path {0:?} is above what both ends allow")]
    Limit(PathId),
    /// The peer has issued no connection ID for the path yet.
    #[error("the peer issued no connection ID for path {0:?} yet")]
    NoConnectionId(PathId),
    /// A path between these addresses exists.
    #[error("a path between these addresses exists")]
    Exists,
}

impl Connection {
    /// Opens a path between two addresses: it is validated first, and usable one round trip
    /// later ([`ConnectionEvent::PathUp`]).
    ///
    /// # Errors
    /// See [`OpenPathError`]; nothing is sent then.
    pub fn open_path(&mut self, now: Instant, route: Route) -> Result<PathId, OpenPathError> {
        if !self.role.is_client() {
            return Err(OpenPathError::NotClient);
        }
        if !self.lifecycle.is_open() {
            return Err(OpenPathError::Closed);
        }
        if !self.lifecycle.is_confirmed() {
            return Err(OpenPathError::NotConfirmed);
        }
        let peer_max = self.multipath().ok_or(OpenPathError::NoMultipath)?;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# Similarly, endpoints SHOULD consume path IDs in a continuous way, i.e., when creating
        //# paths.
        let id = self.plan.next();
        let slot = self.shared.paths.free_slot().ok_or(OpenPathError::Limit(id))?;
        if id > peer_max || !self.plan.allows(id) {
            return Err(OpenPathError::Limit(id));
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# To open a new path, an endpoint MUST use a new connection ID associated with an unused
        //# path ID.
        if self.ids.remote(id).is_none() {
            return Err(OpenPathError::NoConnectionId(id));
        }
        if self.shared.paths.iter().any(|data| data.lives() && data.route == route) {
            return Err(OpenPathError::Exists);
        }
        self.rest.end();
        self.plan.on_used(id);
        self.add_path(now, PathKey { slot, id }, route, true);
        Ok(id)
    }

    /// Abandons a path; what was in flight on it is sent again elsewhere. The last one that is
    /// validated stays: nothing, not even that it is abandoned, could be told.
    ///
    /// Returns whether there was such a path to abandon.
    pub fn abandon_path(&mut self, now: Instant, id: PathId) -> bool {
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
        self.retire_path(now, key, ErrorCode::APPLICATION_ABANDON_PATH.0);
        true
    }

    /// Asks the peer to spare a path, or to use it again.
    ///
    /// Returns whether there is such a path.
    pub fn set_path_status(&mut self, now: Instant, id: PathId, status: PathStatus) -> bool {
        let Some(slot) = self.shared.paths.slot_of(id) else { return false };
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return false };
        self.rest.end();
        data.status.own = status;
        // https://www.rfc-editor.org/rfc/rfc10069#section-4.3
        //# The sequence number space is common to the two frame types, and monotonically
        //# increasing values MUST be used when sending PATH_STATUS_AVAILABLE or
        //# PATH_STATUS_BACKUP frames for a given path ID.
        data.status.own_sequence += 1;
        view.status = status;
        let key = view.key;
        if self.multipath().is_some() {
            self.control.tell_status(id);
        }
        self.recording.path(now, id, PathEvent::Status { status, own: true });
        self.scheduler.tell(now, &self.shared, Event::PathStatus(key));
        true
    }

    /// Largest path identifier that the peer allows, if both ends speak multipath.
    pub(super) fn multipath(&self) -> Option<PathId> {
        // https://www.rfc-editor.org/rfc/rfc10069#section-2
        //# If either of the endpoints does not advertise the initial_max_path_id transport
        //# parameter, then both endpoints MUST NOT use any frame or mechanism defined in this
        //# document.
        if self.config.max_paths > 1 { self.handshake.peer().max_path_id } else { None }
    }

    pub(super) fn add_first_path(&mut self, now: Instant, route: Route) {
        let validated = self.role.is_client();
        self.add_path(now, PathKey { slot: 0, id: PathId::ZERO }, route, validated);
    }

    /// Adds a path. `known`: the peer's address needs no amplification limit.
    fn add_path(&mut self, now: Instant, key: PathKey, route: Route, known: bool) {
        self.plan.on_path();
        let datagram_size = self.initial_payload();
        let controller = self.scheduler.controllers.make(key, Bytes(u64::from(datagram_size)));
        let data = PathData::new(now, key, route, known, datagram_size, controller, &self.config);
        let view = data.first_view(now);
        self.shared.paths.insert(data, view);
        self.recording.path(now, key.id, PathEvent::Assigned { route });
        if key.id == PathId::ZERO {
            self.scheduler.tell(now, &self.shared, Event::PathUp(key));
        }
    }

    /// Largest datagram of the handshake, and of a path that is not validated.
    pub(super) fn initial_payload(&self) -> u16 {
        self.config.initial_udp_payload.min(self.handshake.peer().max_udp_payload)
    }

    /// The first packet on a path that the peer opened.
    pub(super) fn accept_path(
        &mut self,
        now: Instant,
        id: PathId,
        route: Route,
    ) -> Result<u8, TransportError> {
        if self.role.is_client() {
            return Err(TransportError::protocol_violation("a server opened a path"));
        }
        let slot = self.shared.paths.free_slot();
        let slot = slot.ok_or_else(|| TransportError::protocol_violation("too many paths"))?;
        self.plan.on_used(id);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# After receiving packets from the client on a new path, if the server decides to use
        //# the new path, the server MUST validate the peer's address before sending any data as
        //# described in (Section 8.2 of [QUIC-TRANSPORT]), unless it has previously validated the
        //# 4-tuple used for that path.
        self.add_path(now, PathKey { slot, id }, route, false);
        Ok(slot)
    }

    /// A PATH_RESPONSE came on `arrived_on`; it validates the path whose challenge it answers.
    pub(super) fn on_path_response(&mut self, now: Instant, response: [u8; 8]) {
        for slot in 0..self.shared.paths.slots() {
            let Some((data, view)) = self.shared.paths.pair_mut(slot) else { continue };
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
            //# This requirement MUST NOT be enforced by the endpoint that initiates path
            //# validation, as that would enable an attack on migration; see Section 9.3.3.
            let Some(sent_at) = data.validation.on_response(response) else { continue };
            data.amplification.validate();
            view.amplification_limited = false;
            if view.srtt.is_none() {
                data.recovery.on_first_rtt(now, now - sent_at, view);
            }
            let (key, state) = (view.key, view.state);
            if state == PathState::Validating {
                view.state = PathState::Usable;
                self.events.tell(ConnectionEvent::PathUp(key.id));
                self.recording.path(now, key.id, PathEvent::Validated);
                self.raise_datagram_size(now, slot);
                self.scheduler.tell(now, &self.shared, Event::PathUp(key));
            }
            return;
        }
    }

    /// A path was validated, or the handshake is complete: full datagrams may go.
    pub(super) fn raise_datagram_size(&mut self, now: Instant, slot: u8) {
        let size = self.config.max_udp_payload.min(self.handshake.peer().max_udp_payload);
        if let Some(mut path) = self.shared.paths.at_mut(slot) {
            path.raise_datagram_size(now, size);
        }
    }

    /// No answer to any challenge: the path is abandoned.
    pub(super) fn give_up_validation(&mut self, now: Instant, key: PathKey) {
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# If validation fails, the client MUST NOT use the path and can remove any status
        //# associated to the path initiation attempt. As the used path ID is consumed either way,
        //# the endpoint MUST explicitly close the path, as specified in Section 3.4.
        self.retire_path(now, key, ErrorCode::PATH_UNSTABLE_OR_POOR.0);
    }

    /// PATH_ABANDON came.
    pub(super) fn on_path_abandon(
        &mut self,
        now: Instant,
        id: PathId,
    ) -> Result<(), TransportError> {
        self.plan.check(id, "abandoned a path never allowed")?;
        let Some(data) = self.shared.paths.by_id(id) else {
            // A path that was never opened here: its identifier is used up all the same.
            if !self.plan.is_past(id) && id != PathId::ZERO {
                self.forget_path_ids(id);
                self.plan.on_gone(id, PathCounters::default());
                self.plan.on_used(id);
                self.replace_path_id();
            }
            return Ok(());
        };
        if data.lives() {
            let key = data.key;
            // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
            //# When an endpoint receives a PATH_ABANDON frame, it MUST send a corresponding
            //# PATH_ABANDON frame, if it has not already done so, and respectively treat all
            //# connection IDs received from the peer for that path as immediately retired.
            self.retire_path(now, key, 0);
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
    pub(super) fn close_pathless(&mut self, now: Instant) {
        self.plan.on_path();
        let code = ErrorCode::NO_VIABLE_PATH;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# If a PATH_ABANDON frame is received for the only open path of a QUIC connection, the
        //# receiving peer SHOULD send a CONNECTION_CLOSE frame and enter the closing state.
        self.fault(now, TransportError::new(code, "the last path was abandoned"));
    }

    /// Takes a path out of use on our side and tells the peer.
    fn retire_path(&mut self, now: Instant, key: PathKey, code: u64) {
        let timeout = self.longest_probe_timeout();
        let Some(data) = self.shared.paths.get_mut(key.slot).filter(|data| data.lives()) else {
            return;
        };
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# Therefore, knowledge of the connection IDs issued to the peer and of the state of the
        //# number space associated to the path SHOULD be retained for 3 PTO after the
        //# PATH_ABANDON frame has been received.
        data.abandon = Abandon::Draining { until: now + timeout.saturating_mul(3) };
        let in_flight: Bytes =
            data.packets.sent.iter().map(|record| Bytes(u64::from(record.bytes))).sum();
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# An endpoint that wants to abandon a path MUST explicitly close the path by sending a
        //# PATH_ABANDON frame (see Section 4.2).
        self.control.tell_abandoned(key.id, code);
        self.plan.on_abandoned(key.id, code);
        self.shared.streams.conn_view_mut().in_flight -= in_flight;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4
        //# Endpoints that send a PATH_ABANDON frame MUST treat all connection IDs received from
        //# the peer for the path ID indicated in the PATH_ABANDON as immediately retired, and
        //# subsequently cannot send any packet on that path anymore. It is RECOMMENDED to send
        //# the PATH_ABANDON frames on another open path, especially if connectivity on the
        //# to-be-abandoned path is expected to be broken.
        self.shared.paths.hide(key);
        self.events.tell(ConnectionEvent::PathGone(key.id));
        self.recording.path(now, key.id, PathEvent::Abandoned { code });
        self.scheduler.tell(now, &self.shared, Event::PathGone(key));
        self.requeue_in_flight(now, key.slot);
    }

    /// The state of an abandoned path is dropped; another identifier takes its place.
    pub(super) fn drop_path(&mut self, now: Instant, key: PathKey) {
        let Some(mut data) = self.shared.paths.remove(key) else { return };
        self.recording.path(now, key.id, PathEvent::Dropped);
        let mut requeued = Vec::new();
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.4.3
        //# When an endpoint finally deletes all state associated with the path, the packets sent
        //# over the path and not yet acknowledged MUST be considered lost.
        for record in data.packets.sent.drain() {
            if !record.requeued {
                self.settle_lost(Space::Data(key.slot), &record, &mut requeued);
            }
        }
        self.plan.on_gone(key.id, data.counters);
        self.forget_path_ids(key.id);
        self.replace_path_id();
    }

    fn forget_path_ids(&mut self, id: PathId) {
        for cid in self.ids.drop_path(id) {
            self.events.tell_endpoint(EndpointEvent::Retired(cid));
        }
        self.control.forget_path(id);
    }

    /// Lets the peer use one more path identifier, since one was used up.
    fn replace_path_id(&mut self) {
        if self.multipath().is_some() && self.plan.allow_one_more() {
            self.control.tell_max_path_id();
            self.issue_path_ids();
        }
    }

    /// Issues connection IDs for every path that both ends allow and that has none yet.
    pub(super) fn issue_path_ids(&mut self) {
        let Some(peer_max) = self.multipath() else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
        //# An endpoint MUST NOT provide more connection IDs than the peer's limit.
        let each = u64::from(self.config.connection_ids_per_path)
            .min(self.handshake.peer().active_cid_limit);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# In order to let the peer open new paths, it is RECOMMENDED to proactively issue at
        //# least one Connection ID for each unused path ID up to the minimum of the peer's and
        //# the local maximum path ID limits.
        while let Some(id) = self.plan.next_to_issue(peer_max) {
            for _ in 0..each {
                self.issue_cid(id);
            }
        }
    }

    /// Issues one more connection ID for a path.
    pub(super) fn issue_cid(&mut self, path: PathId) {
        let (sequence, cid) = self.ids.issue(path, &mut self.random);
        self.events.tell_endpoint(EndpointEvent::Issued(cid, path));
        self.control.tell_new_cid(path, sequence);
    }
}
