//! A client begins again while nothing came of the server: as far as the network is concerned, this is
//! another connection; for the application it is the same.

use quipu_base::{Bytes, Instant};

use super::Connection;
use super::handshake::VersionState;
use crate::path::{Addresses, Leg, PathMtu};
use crate::recorder::PathEvent;
use crate::route::Route;
use crate::wire::ConnectionId;

impl Connection {
    /// Nothing came of the server by the route so far: the handshake begins again by `route`, with a first
    /// flight of its own. What was written early goes there, too; if TLS knows the server no more, once the
    /// handshake is complete, which [`ConnectionEvent::EarlyData`](super::ConnectionEvent::EarlyData) tells.
    /// An answer to the attempt before is not read any more, so a slow server needs time for each; if that
    /// reached the server, both may be acted on.
    ///
    /// False, with nothing done, at a server, after something came, or once the handshake is over.
    pub fn begin_by(&mut self, now: Instant, route: Route) -> bool {
        if !self.lifecycle.is_handshaking() || !self.handshake.may_begin_again() {
            return false;
        }
        let Some(data) = self.shared.paths.get(0) else { return false };
        let (key, old) = (data.key, data.addresses.route());
        let version = VersionState::new(self.handshake.version().original());
        if !self.begin_again(now, version) {
            return false;
        }
        self.places.begin_at(route);
        let mtu = PathMtu::new(self.config.mtu, self.initial_payload());
        if let Some(mut path) = self.shared.paths.at_mut(0) {
            path.data.addresses = Addresses::new(now, Leg::new(route, true));
            path.leave(now, route, mtu);
            path.data.recovery.forget_probes();
        }
        self.restart(now, key, None);
        self.recording.path(now, key.id, PathEvent::Moved { old, new: route });
        true
    }

    /// Begins again with a first flight of that version; false if TLS does not.
    pub(super) fn begin_again(&mut self, now: Instant, version: VersionState) -> bool {
        let Some(dcid) = self.random.draw::<8>().ok().and_then(|bytes| ConnectionId::new(&bytes))
        else {
            return false;
        };
        // https://www.rfc-editor.org/rfc/rfc9368#section-6
        //# When incompatible version negotiation is in use, the second connection that is created
        //# in response to the received Version Negotiation packet MUST restart its
        //# application-layer protocol negotiation process without taking into account the Original
        //# Version.
        let Some(mut before) = self.handshake.begin_again(version, dcid) else { return false };
        self.ids.begin_again(dcid);
        let in_flight: Bytes =
            before.sent.drain().iter().map(|record| Bytes(u64::from(record.bytes))).sum();
        self.release_in_flight(0, in_flight);
        if let Some((_, view)) = self.shared.paths.pair_mut(0) {
            view.pto_count = 0;
        }
        self.advance_tls(now);
        self.begin_early_again(now);
        true
    }
}
