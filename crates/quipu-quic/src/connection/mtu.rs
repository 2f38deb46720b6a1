//! The size of full datagrams of each path: when it may grow, what probes and losses say of it, and
//! who hears of it.

use quipu_base::{Instant, PathId};

use super::spaces::recovery_of;
use super::{Connection, ConnectionEvent, Space};
use crate::recorder::PathEvent;
use crate::route::Route;

impl Connection {
    /// Size of full datagrams on a path now, in bytes of UDP payload; `None` without such a path.
    pub fn datagram_size(&self, path: PathId) -> Option<u16> {
        self.shared.paths.by_id(path).map(|data| data.mtu.size())
    }

    /// The network says that a datagram on the path of these addresses was too large, and that `size`
    /// bytes of UDP payload are the most that it carries: as ICMP does, or the host itself of its own
    /// interface. To be called only of messages that quote a datagram of this connection; what is
    /// quoted is checked by the caller, who sees it.
    ///
    /// The size limits the next search, and full datagrams have the least size at once if they are
    /// larger. It never raises anything, and below 1,200 it is ignored; so are more than a few of such
    /// messages in a row. True if it was believed.
    pub fn on_datagram_too_big(&mut self, now: Instant, route: Route, size: usize) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.2.1
        //# ICMP message validation MUST include matching IP addresses and UDP ports [RFC8085] and,
        //# when possible, connection IDs to an active QUIC session.
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.2.1
        //# The endpoint SHOULD ignore all ICMP messages that fail validation.
        let of_route =
            self.shared.paths.iter().find(|data| data.lives() && data.addresses.route() == route);
        let Some(slot) = of_route.map(|data| data.key.slot) else { return false };
        let Some(data) = self.shared.paths.get_mut(slot) else { return false };
        let size = u16::try_from(size).unwrap_or(u16::MAX);
        // It answers a datagram, so a larger one is in flight.
        let answers = data.packets.sent.iter().any(|record| record.bytes > size);
        if !answers {
            return false;
        }
        let (before, believed) = (data.mtu.size(), data.mtu.on_too_big(now, size));
        self.rest.end();
        self.tell_if_resized(now, slot, before);
        believed
    }

    /// The path in `slot` was validated, or the handshake is complete: larger datagrams may go, as far
    /// as both ends and the path take them.
    pub(super) fn allow_datagrams(&mut self, now: Instant, slot: u8) {
        let Some(mut path) = self.shared.paths.at_mut(slot) else { return };
        let ours = self.config.max_payload_to(path.data.addresses.route().remote);
        // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# It is expected that this is the space an endpoint dedicates to holding incoming packets.
        path.allow_datagrams(now, ours.min(self.handshake.peer().max_udp_payload));
    }

    /// Packets of the path in `slot` were settled: what they say of its MTU.
    pub(super) fn settle_mtu(
        &mut self,
        now: Instant,
        slot: u8,
        settled: &crate::recovery::Settled,
    ) {
        let Some((data, view)) = self.shared.paths.pair_mut(slot) else { return };
        let before = data.mtu.size();
        let rtt = data.recovery.rules().rtt(view);
        if data.mtu.on_settled(now, rtt, settled) {
            self.tell_if_resized(now, slot, before);
        }
    }

    /// The probe of the path MTU in `slot` is in flight for too long.
    pub(super) fn on_mtu_probe_timeout(&mut self, now: Instant, slot: u8) {
        let expired = |data: &mut crate::path::PathData| data.mtu.take_expired_probe(now);
        let Some(number) = self.shared.paths.get_mut(slot).and_then(expired) else { return };
        let space = Space::Data(slot);
        if let Some(mut recovery) = recovery_of(&mut self.shared.paths, &mut self.handshake, space)
        {
            recovery.on_mtu_probe_expired(now, number, self.scratch.settled_mut());
            self.hand_on(now, space, None);
        }
    }

    /// Nothing of the handshake arrives: it goes on with datagrams of the least size.
    pub(super) fn on_handshake_stalled(&mut self, now: Instant) {
        let Some(data) = self.shared.paths.get_mut(0) else { return };
        let before = data.mtu.size();
        data.mtu.on_handshake_stalled();
        self.tell_if_resized(now, 0, before);
    }

    /// Tells whom it concerns if full datagrams of the path in `slot` had another size `before`.
    pub(super) fn tell_if_resized(&mut self, now: Instant, slot: u8, before: u16) {
        let Some(mut path) = self.shared.paths.at_mut(slot) else { return };
        let (path_id, size) = (path.data.key.id, path.data.mtu.size());
        if size == before {
            return;
        }
        path.on_mtu_found(now);
        self.events.tell(ConnectionEvent::DatagramSize(path_id, size));
        self.recording.path(now, path_id, PathEvent::DatagramSize { before, size });
    }
}
