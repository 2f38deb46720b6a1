//! Paths that change their addresses: a peer that moves or whose address is rebound, and a client
//! that moves of its own accord.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-9>, for each path by
//! <https://www.rfc-editor.org/rfc/rfc10069#section-3.1.2>.

use quipu_base::{Bytes, Duration, Instant, PathId};
use quipu_policy::PathKey;
use thiserror::Error;

use crate::config::PreferredAddresses;
use crate::connection::receive::Sighting;
use crate::connection::receive::frames::PacketFrames;
use crate::connection::{Connection, ConnectionEvent, Migration};
use crate::path::{Action, Input, Leg, PathMtu, Purpose, State, Which, hosts};
use crate::recorder::PathEvent;
use crate::route::Route;

/// Why a path does not move to other addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// Only the client moves.
    #[error("only the client moves")]
    NotClient,
    /// The handshake is not confirmed yet.
    #[error("the handshake is not confirmed yet")]
    NotConfirmed,
    /// The connection is closing or closed.
    #[error("the connection is closed")]
    Closed,
    /// There is no such path, or it was abandoned.
    #[error("there is no such path")]
    NoPath,
    /// The server forbids it (`disable_active_migration`): its address may only be reached from the
    /// address of the handshake.
    #[error("the server forbids migration")]
    Forbidden,
    /// The server never said that it can be reached at that address.
    #[error("the server is not known to be at that address")]
    UnknownServer,
    /// The server has issued no connection ID that was not used with another address; it is told.
    #[error("the server issued no spare connection ID yet")]
    NoConnectionId,
    /// The path uses these addresses, or another path does.
    #[error("a path between these addresses exists")]
    Exists,
    /// The path is not validated yet, or is moving already.
    #[error("the path is not validated yet, or is moving already")]
    Busy,
}

impl Connection {
    /// Moves a path to other addresses: they are validated first, with a connection ID of their
    /// own, while data goes on at the present ones. [`ConnectionEvent::PathMigrated`] tells when
    /// the path has moved, [`ConnectionEvent::MigrationFailed`] that it stays. Congestion control
    /// and round-trip time begin anew unless only the port changes.
    ///
    /// For a path whose local address is gone, see [`Connection::rebind`].
    ///
    /// # Errors
    /// See [`MigrateError`].
    pub fn migrate(&mut self, now: Instant, id: PathId, route: Route) -> Result<(), MigrateError> {
        let key = self.may_migrate(id, route)?;
        let state = self.shared.paths.get(key.slot).map(|data| data.addresses.state());
        if state.is_none_or(|state| state.after(Input::Choose).1 == Action::Refuse) {
            return Err(MigrateError::Busy);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        //# An endpoint MUST NOT reuse a connection ID when sending from more than one local
        //# address -- for example, when initiating connection migration as described in Section
        //# 9.2 or when probing a new network path as described in Section 9.1.
        if !self.ids.remote().has_spare(id) {
            self.tell_cids_blocked(id);
            return Err(MigrateError::NoConnectionId);
        }
        self.rest.end();
        self.change_addresses(now, key, Input::Choose, Some(Leg::new(route, true)), None);
        Ok(())
    }

    /// The local address of a path is gone, and `route` takes its place at once: packets go there
    /// from now on, with another connection ID if the peer issued one, while it is validated. If it
    /// does not prove to work the path returns to the addresses before.
    ///
    /// # Errors
    /// See [`MigrateError`]; a missing connection ID is none here.
    pub fn rebind(&mut self, now: Instant, id: PathId, route: Route) -> Result<(), MigrateError> {
        let key = self.may_migrate(id, route)?;
        self.rest.end();
        self.change_addresses(now, key, Input::Rebind, Some(Leg::new(route, true)), None);
        Ok(())
    }

    fn may_migrate(&self, id: PathId, route: Route) -> Result<PathKey, MigrateError> {
        if !self.role.is_client() {
            return Err(MigrateError::NotClient);
        }
        if !self.lifecycle.is_open() {
            return Err(MigrateError::Closed);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# An endpoint MUST NOT initiate connection migration before the handshake is confirmed,
        //# as defined in Section 4.1.2 of [QUIC-TLS].
        if !self.lifecycle.is_confirmed() {
            return Err(MigrateError::NotConfirmed);
        }
        let path = self.shared.paths.by_id(id).filter(|path| path.lives());
        let path = path.ok_or(MigrateError::NoPath)?;
        if !self.is_known_server(&route) && !self.places.is_preferred(route.remote) {
            return Err(MigrateError::UnknownServer);
        }
        if self.is_forbidden(&route) {
            return Err(MigrateError::Forbidden);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        //# An endpoint SHOULD NOT initiate migration with a peer that has requested a zero-length
        //# connection ID, because traffic over the new path might be trivially linkable to
        //# traffic over the old one.
        if self.ids.remote().is_empty(id) {
            return Err(MigrateError::NoConnectionId);
        }
        let mut others = self.shared.paths.iter().filter(|other| other.lives());
        if others.any(|other| other.addresses.find(&route).is_some()) {
            return Err(MigrateError::Exists);
        }
        Ok(path.key)
    }

    /// The peer wants no new paths and no migration from `route` to where it is.
    pub(in crate::connection) fn is_forbidden(&self, route: &Route) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# If the peer sent the disable_active_migration transport parameter, an endpoint also
        //# MUST NOT send packets (including probing packets; see Section 9.1) from a different
        //# local address to the address the peer used during the handshake, unless the endpoint
        //# has acted on a preferred_address transport parameter from the peer.
        // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# An endpoint that receives this transport parameter MUST NOT use a new local address
        //# when sending to the address that the peer used during the handshake.
        self.handshake.peer().disables_migration
            && route.remote == self.places.first().remote
            && route.local != self.places.first().local
    }

    /// True if the server may be sent to and heard from at the remote address of `route`.
    fn is_known_server(&self, route: &Route) -> bool {
        let at = |known: &Route| known.remote == route.remote;
        let live = self.shared.paths.iter().flat_map(|path| {
            [Which::Active, Which::Other].into_iter().filter_map(|which| path.addresses.leg(which))
        });
        at(self.places.first()) || live.map(|leg| &leg.route).any(at)
    }

    /// A datagram for `path` came from where no server is known: a client does not read it.
    pub(in crate::connection) fn is_from_stranger(&self, path: PathId, route: &Route) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# If a client receives packets from an unknown server address, the client MUST discard
        //# these packets.
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.6
        //# If a client receives packets from a new server address when the client has not
        //# initiated a migration to that address, the client SHOULD discard these packets.
        let own = self.shared.paths.by_id(path);
        let elsewhere = own.is_none_or(|data| data.addresses.route().remote != route.remote);
        self.role.is_client() && elsewhere && !self.is_known_server(route)
    }

    /// The frames of a packet were applied: if it came from another address than its path uses, the
    /// peer may have moved. Only at a server: a client decides itself where it is, and where it
    /// looks for the server.
    pub(in crate::connection) fn follow_peer(&mut self, now: Instant, frames: &PacketFrames<'_>) {
        let Some(data) = self.shared.paths.get(frames.key().slot) else { return };
        if data.addresses.route() != frames.route() && !self.role.is_client() {
            self.on_strange_packet(now, frames.key(), &frames.sighting());
        }
    }

    #[cold]
    fn on_strange_packet(&mut self, now: Instant, key: PathKey, seen: &Sighting) {
        let Some(data) = self.shared.paths.get(key.slot).filter(|data| data.lives()) else {
            return;
        };
        // Only the highest-numbered packet moves the path, and only one that does more than probe.
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.3
        let is_newest = data.packets.received.largest().is_none_or(|max| seen.number > Some(max));
        if !is_newest || !self.lifecycle.is_established() {
            return;
        }
        let fresh = data.addresses.state() == State::Fresh;
        let at_preferred = self.places.is_preferred(data.addresses.route().local);
        let to_preferred = self.places.is_preferred(seen.route.local);
        // It left that address for good: whoever sends there is no client of ours.
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
        if at_preferred && !to_preferred {
            return;
        }
        let arrives = to_preferred && !at_preferred && !fresh;
        let (input, leg) = match data.addresses.find(&seen.route) {
            Some(Which::Other) if seen.non_probing && arrives => (Input::OtherPreferred, None),
            Some(Which::Other) if seen.non_probing => (Input::FromOther, None),
            None if seen.non_probing && arrives => {
                (Input::StrangePreferred, Some(Leg::received(seen.route, seen.datagram)))
            }
            None if seen.non_probing || fresh => {
                (Input::Strange, Some(Leg::received(seen.route, seen.datagram)))
            }
            None if seen.challenge => {
                (Input::StrangeTry, Some(Leg::received(seen.route, seen.datagram)))
            }
            _ => return,
        };
        // https://www.rfc-editor.org/rfc/rfc9000#section-9
        //# An endpoint MUST perform path validation (Section 8.2) if it detects any change to a
        //# peer's address, unless it has previously validated that address.
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1.2
        //# This MUST be treated as path migration, as specified in Section 9.3 of
        //# [QUIC-TRANSPORT], with the constraint that all connection IDs used during path
        //# migration MUST be associated with the current path ID of the path being migrated.
        self.note_caller(key, seen);
        self.change_addresses(now, key, input, leg, None);
    }

    /// Takes note of the connection ID by which a peer calls that is about to move.
    fn note_caller(&mut self, key: PathKey, seen: &Sighting) {
        if let Some(data) = self.shared.paths.get_mut(key.slot) {
            data.calls_anew = data.called_by.replace(seen.called_by) != Some(seen.called_by);
        }
    }

    /// Something happened that may change the addresses of a path: changes them, and does what that
    /// entails. `rtt`: of the challenge that proved one. What was done.
    pub(super) fn change_addresses(
        &mut self,
        now: Instant,
        key: PathKey,
        input: Input,
        leg: Option<Leg>,
        rtt: Option<Duration>,
    ) -> Action {
        let Some(data) = self.shared.paths.get_mut(key.slot).filter(|data| data.lives()) else {
            return Action::None;
        };
        let old = data.addresses.route();
        let other = data.addresses.other().map(|(purpose, leg)| (purpose, leg.route.remote));
        let before = data.addresses.state();
        let action = data.addresses.on(now, input, leg);
        let new = data.addresses.route();
        let is_spared =
            matches!(before, State::Tried | State::Ready | State::Awaited | State::Moving);
        match action {
            Action::None | Action::Adopt | Action::Refuse => {}
            Action::GiveUp => self.give_up_validation(now, key),
            Action::Try | Action::Await | Action::Choose => {
                if is_spared {
                    self.release_id(now, key.id);
                }
                self.reserve_id(key.id);
                self.validate(now, key, Which::Other);
            }
            Action::Drop => {
                self.release_id(now, key.id);
                if other.is_some_and(|(purpose, _)| purpose == Purpose::Chosen) {
                    self.events.tell(ConnectionEvent::MigrationFailed(key.id));
                }
            }
            // The first address of a path is for its caller to announce.
            Action::Settle if before == State::Fresh => {}
            Action::Settle => {
                self.release_id(now, key.id);
                self.arrive(now, key, rtt);
                self.tell_peer_address(key.id, new);
            }
            Action::Move | Action::Replace => {
                if is_spared {
                    self.release_id(now, key.id);
                }
                if before == State::Moving
                    && other.is_some_and(|(_, to)| self.places.is_preferred(to))
                {
                    self.places.on_interrupted();
                }
                self.rotate_id(now, key, input);
                self.depart(now, key, (old, new));
                self.validate(now, key, Which::Active);
                if action == Action::Move {
                    // https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3
                    //# In response to an apparent migration, endpoints MUST validate the
                    //# previously active path using a PATH_CHALLENGE frame.
                    self.validate(now, key, Which::Other);
                }
            }
            Action::Follow => {
                self.promote_id(now, key.id, true);
                self.depart(now, key, (old, new));
                self.validate(now, key, Which::Active);
                self.validate(now, key, Which::Other);
            }
            Action::Switch | Action::Return => {
                self.promote_id(now, key.id, false);
                self.depart(now, key, (old, new));
                self.arrive(now, key, rtt);
                if action == Action::Switch {
                    self.tell_peer_address(key.id, new);
                }
            }
        }
        if matches!(action, Action::Settle | Action::Return) {
            self.move_to_preferred(now);
        }
        action
    }

    /// A client moves its first path to where the server wants to be reached, if it has not tried
    /// that yet.
    pub(in crate::connection) fn move_to_preferred(&mut self, now: Instant) {
        let present = self.shared.paths.by_id(PathId::ZERO).map(|data| data.addresses.route());
        let Some(route) = present.and_then(|present| self.places.wanted(&present)) else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.6.1
        //# Once the handshake is confirmed, the client SHOULD select one of the two addresses
        //# provided by the server and initiate path validation (see Section 8.2).
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.6.2
        //# A client that migrates to a preferred address MUST validate the address it chooses
        //# before migrating; see Section 21.5.3.
        if self.migrate(now, PathId::ZERO, route).is_ok() {
            self.places.on_tried();
        }
    }

    /// Where the server wants to be reached, as a client was told or a server tells: a client that
    /// has an address of the other family may [migrate](Connection::migrate) its first path there.
    pub fn preferred_addresses(&self) -> &PreferredAddresses {
        self.places.preferred()
    }

    /// Packets of the path go elsewhere from now on.
    fn depart(&mut self, now: Instant, key: PathKey, (old, new): (Route, Route)) {
        let mtu = PathMtu::new(self.config.mtu, self.initial_payload());
        let Some(mut path) = self.shared.paths.at_mut(key.slot) else { return };
        let before = path.data.mtu.size();
        let released = path.begin_epoch(now);
        path.leave(now, new, mtu);
        path.data.recovery.forget_probes();
        // What was on its way may be lost; nothing else would make the peer tell.
        if path.data.packets.sent.has_eliciting() {
            path.data.recovery.ask_for_probes(1);
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.2
        // A packet that does more than probe makes the server follow, and it may be lost.
        if self.role.is_client() {
            path.data.pings.show();
        }
        self.shared.streams.conn_view_mut().in_flight -= released;
        let migration = Migration { path: key.id, old, new };
        self.events.tell(ConnectionEvent::PathMigrated(Box::new(migration)));
        self.recording.path(now, key.id, PathEvent::Moved { old, new });
        self.tell_if_resized(now, key.slot, before);
    }

    /// The address in use is proved: what is known of the network holds on, or begins anew.
    fn arrive(&mut self, now: Instant, key: PathKey, rtt: Option<Duration>) {
        let Some(data) = self.shared.paths.get(key.slot) else { return };
        let route = data.addresses.route();
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.4
        //# On confirming a peer's ownership of its new address, an endpoint MUST immediately
        //# reset the congestion controller and round-trip time estimator for the new path to
        //# initial values (see Appendices A.3 and B.3 of [QUIC-RECOVERY]) unless the only change
        //# in the peer's address is its port number.
        if hosts(&route) != data.measured.hosts {
            self.restart(now, key, rtt);
            self.allow_datagrams(now, key.slot);
        }
    }

    fn tell_peer_address(&mut self, path: PathId, route: Route) {
        self.events.tell(ConnectionEvent::PeerAddress { path, remote: route.remote });
    }

    pub(in crate::connection) fn restart(
        &mut self,
        now: Instant,
        key: PathKey,
        rtt: Option<Duration>,
    ) {
        let size = self.initial_payload();
        let controller = self.scheduler.controllers.make(key, Bytes(u64::from(size)));
        let Some(mut path) = self.shared.paths.at_mut(key.slot) else { return };
        let released = path.begin_epoch(now);
        path.restart(now, controller, &self.config);
        if let (Some(rtt), Some(view)) = (rtt, path.view.as_deref_mut()) {
            path.data.recovery.on_first_rtt(now, rtt, view);
        }
        self.shared.streams.conn_view_mut().in_flight -= released;
        self.scheduler.tell(now, &self.shared, quipu_policy::Event::PathMeasured(key));
    }

    /// Begins to validate one of a path's addresses, unless that goes on already.
    fn validate(&mut self, now: Instant, key: PathKey, which: Which) {
        let Some(path) = self.shared.paths.at_mut(key.slot) else { return };
        let end = path.validation_end(now);
        let fresh = path.data.addresses.state() == State::Fresh;
        if let Some(leg) = path.data.addresses.leg_mut(which)
            && !leg.validation.is_under_way()
        {
            if fresh { leg.validation.start() } else { leg.validation.start_until(end) }
        }
    }

    /// Another connection ID for a path that moved: if this end moved, or the peer did so on
    /// purpose.
    fn rotate_id(&mut self, now: Instant, key: PathKey, input: Input) {
        let calls_anew = self.shared.paths.get(key.slot).is_some_and(|data| data.calls_anew);
        // With the same connection ID it is a rebinding that the peer knows nothing of.
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        if input != Input::Rebind && !calls_anew {
            return;
        }
        if !self.ids.remote().has_spare(key.id) {
            return self.tell_cids_blocked(key.id);
        }
        let keep = self
            .shared
            .paths
            .get(key.slot)
            .is_some_and(|data| data.addresses.state() == State::Moved);
        let retired = self.ids.remote_mut().rotate(key.id, keep);
        self.retire_ids(now, key.id, &retired);
    }

    fn reserve_id(&mut self, path: PathId) {
        if !self.ids.remote_mut().reserve(path) {
            self.tell_cids_blocked(path);
        }
    }

    fn release_id(&mut self, now: Instant, path: PathId) {
        let retired = self.ids.remote_mut().release(path);
        self.retire_ids(now, path, &retired);
    }

    fn promote_id(&mut self, now: Instant, path: PathId, keep: bool) {
        let retired = self.ids.remote_mut().promote(path, keep);
        self.retire_ids(now, path, &retired);
    }

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2>
    fn retire_ids(&mut self, now: Instant, path: PathId, retired: &[u64]) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.2
        //# Endpoints SHOULD retire connection IDs when they are no longer actively using either
        //# the local or destination address for which the connection ID was used.
        if let Err(error) = self.retire_remote_ids(path, retired) {
            self.fault(now, error);
        }
    }

    fn tell_cids_blocked(&mut self, path: PathId) {
        if self.multipath().is_some() {
            self.control.tell_cids_blocked(path, self.ids.remote().next(path));
        }
    }
}
