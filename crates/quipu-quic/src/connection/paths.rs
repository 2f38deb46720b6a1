//! Opening, validating and sparing paths (RFC 10069).

use quipu_base::{Bytes, Instant, PathId};
use quipu_policy::{Event, PathKey, PathStatus};
use thiserror::Error;

use super::Connection;
use crate::error::TransportError;
use crate::path::{PathData, Stage, Step};
use crate::recorder::PathEvent;
use crate::route::Route;
use crate::wire::ConnectionId;

mod abandon;
mod ids;
mod moving;
mod proving;
mod status;

pub use moving::MigrateError;

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
    /// All path identifiers that both ends allow now are in use; more come when paths are
    /// abandoned. If it is the peer that allows no more, it is told (PATHS_BLOCKED).
    #[error("path {0:?} is above what both ends allow")]
    Limit(PathId),
    /// The peer has issued no connection ID for the path yet; it is told (PATH_CIDS_BLOCKED).
    #[error("the peer issued no connection ID for path {0:?} yet")]
    NoConnectionId(PathId),
    /// A path between these addresses exists.
    #[error("a path between these addresses exists")]
    Exists,
    /// The server forbids it (`disable_active_migration`): its address may only be reached from the
    /// address of the handshake.
    #[error("the server forbids paths from other addresses")]
    Forbidden,
}

impl Connection {
    /// Opens a path between two addresses: it is validated first, and usable one round trip
    /// later ([`PathUp`](crate::ConnectionEvent::PathUp)).
    ///
    /// # Errors
    /// See [`OpenPathError`].
    pub fn open_path(&mut self, now: Instant, route: Route) -> Result<PathId, OpenPathError> {
        self.open_path_as(now, route, PathStatus::Available)
    }

    /// The same, with a status that the peer is told with the first packets:
    /// [`PathStatus::Backup`] asks both ends to spare the path from the start.
    ///
    /// # Errors
    /// See [`OpenPathError`].
    pub fn open_path_as(
        &mut self,
        now: Instant,
        route: Route,
        status: PathStatus,
    ) -> Result<PathId, OpenPathError> {
        let route = route.canonical();
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
        let id = self.plan.next_unused();
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.2.1
        //# When an endpoint cannot open a path because there are no unused path IDs, it SHOULD
        //# either send a MAX_PATH_ID frame to increase the maximum path ID limit (when limited by
        //# the sender) or a PATHS_BLOCKED frame (see Section 4.7) to inform the peer that its
        //# current limit prevented the creation of the new path.
        if id > peer_max {
            self.rest.end();
            self.control.tell_paths_blocked(peer_max);
            return Err(OpenPathError::Limit(id));
        }
        let slot = self.shared.paths.free_slot().filter(|_| self.plan.grants(id));
        let slot = slot.ok_or(OpenPathError::Limit(id))?;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# To open a new path, an endpoint MUST use a new connection ID associated with an unused
        //# path ID.
        if self.ids.remote().active(id).is_none() {
            self.rest.end();
            self.control.tell_cids_blocked(id, self.ids.remote().next(id));
            return Err(OpenPathError::NoConnectionId(id));
        }
        if self.shared.paths.iter().any(|data| data.lives() && data.addresses.route() == route) {
            return Err(OpenPathError::Exists);
        }
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.2
        if self.is_forbidden(&route) {
            return Err(OpenPathError::Forbidden);
        }
        self.rest.end();
        if status == PathStatus::Backup {
            self.plan.set_own_status(id, status);
            self.control.tell_status(id);
        }
        self.add_path(now, PathKey { slot, id }, (route, true), ConnectionId::EMPTY);
        Ok(id)
    }

    /// Asks the peer to spare a path, or to use it again; it need not be open yet. This end spares
    /// it as long as either end asks for it.
    ///
    /// Returns whether there is such a path, or may be.
    pub fn set_path_status(&mut self, now: Instant, id: PathId, status: PathStatus) -> bool {
        if !self.plan.set_own_status(id, status) {
            return false;
        }
        self.rest.end();
        if self.multipath().is_some() {
            self.control.tell_status(id);
        }
        self.recording.path(now, id, PathEvent::Status { status, own: true });
        self.apply_status(now, id);
        true
    }

    /// PATH_STATUS_AVAILABLE or PATH_STATUS_BACKUP came.
    pub(super) fn on_path_status(
        &mut self,
        now: Instant,
        id: PathId,
        sequence: u64,
        status: PathStatus,
    ) -> Result<(), TransportError> {
        self.plan.check(id, "told the status of a path never allowed")?;
        if self.plan.on_peer_status(id, sequence, status) {
            self.events.tell_status(id, status);
            self.recording.path(now, id, PathEvent::Status { status, own: false });
            self.apply_status(now, id);
        }
        Ok(())
    }

    /// What the ends said of a path's status changed: policies go by it, if the path is open.
    fn apply_status(&mut self, now: Instant, id: PathId) {
        let status = self.plan.status(id).combined();
        let Some(slot) = self.shared.paths.slot_of(id) else { return };
        let Some((_, view)) = self.shared.paths.pair_mut(slot) else { return };
        let key = view.key;
        if std::mem::replace(&mut view.status, status) != status {
            self.scheduler.tell(now, &self.shared, Event::PathStatus(key));
        }
    }

    /// The life of a path moves on, if it is in a stage that allows the step; policies see it.
    pub(super) fn step_path(&mut self, key: PathKey, step: Step) -> Option<Stage> {
        let stage = self.plan.step(key.id, step)?;
        if let Some(view) = self.shared.paths.views.get_mut(key) {
            view.state = stage.seen();
        }
        Some(stage)
    }

    /// Largest path identifier that the peer allows, if both ends speak multipath.
    pub(super) fn multipath(&self) -> Option<PathId> {
        // https://www.rfc-editor.org/rfc/rfc10069#section-2
        //# If either of the endpoints does not advertise the initial_max_path_id transport
        //# parameter, then both endpoints MUST NOT use any frame or mechanism defined in this
        //# document.
        if self.config.max_paths > 1 { self.handshake.peer().max_path_id } else { None }
    }

    pub(super) fn add_first_path(&mut self, now: Instant, route: Route, validated: bool) {
        let called_by = self.ids.first_local();
        let key = PathKey { slot: 0, id: PathId::ZERO };
        self.add_path(now, key, (route, validated), called_by);
    }

    /// Adds a path. `trusted`: the peer's address needs no amplification limit.
    /// `called_by`: our connection ID that the peer uses there.
    fn add_path(
        &mut self,
        now: Instant,
        key: PathKey,
        (route, trusted): (Route, bool),
        called_by: ConnectionId,
    ) {
        self.plan.on_path();
        let datagram_size = self.initial_payload();
        let controller = self.scheduler.controllers.make(key, Bytes(u64::from(datagram_size)));
        let addresses = (route, trusted);
        let mut data = PathData::new(now, key, addresses, datagram_size, controller, &self.config);
        data.called_by = Some(called_by);
        // A path that is back is what it was, as far as anybody knows: a challenge that is lost is soon
        // repeated. What the RFC lets a resumed connection do, a path does here.
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
        if let Some(rtt) = self.shared.paths.known_rtt(&route) {
            data.recovery.expect_rtt(rtt);
        }
        let view = data.first_view(now, self.plan.status(key.id).combined());
        self.shared.paths.insert(data, view);
        self.ids.remote_mut().use_path(key.id);
        self.step_path(key, Step::Open);
        self.recording.path(now, key.id, PathEvent::Assigned { route });
        // The handshake does for the first path what validation does for others.
        if key.id == PathId::ZERO {
            self.step_path(key, Step::Validate);
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
        called_by: ConnectionId,
    ) -> Result<u8, TransportError> {
        if self.role.is_client() {
            return Err(TransportError::protocol_violation("a server opened a path"));
        }
        let slot = self.shared.paths.free_slot();
        let slot = slot.ok_or_else(|| TransportError::protocol_violation("too many paths"))?;
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# After receiving packets from the client on a new path, if the server decides to use
        //# the new path, the server MUST validate the peer's address before sending any data as
        //# described in (Section 8.2 of [QUIC-TRANSPORT]), unless it has previously validated the
        //# 4-tuple used for that path.
        self.add_path(now, PathKey { slot, id }, (route, false), called_by);
        Ok(slot)
    }
}
