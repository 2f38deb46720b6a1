//! Challenges and responses into packets, each to the address that it is for.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-8.2>

use quipu_base::Instant;

use super::Full;
use crate::config::MIN_UDP_PAYLOAD;
use crate::connection::Connection;
use crate::connection::packet::{Apart, PacketBuilder};
use crate::outbox::Outbox;
use crate::path::{PathMut, PathRef, Response, Which};
use crate::recovery::SentControl;
use crate::wire::{ConnectionId, Frame};

/// A datagram with a challenge or a response needs so many bytes at most: first byte, connection ID
/// of 20, packet number of 4, two frames of 9, tag of 16. With less nothing is tried.
const LEAST: usize = 1 + ConnectionId::MAX_LENGTH + 4 + 2 * 9 + 16;

/// What goes to another address than that of the path.
struct Errand {
    apart: Apart,
    size: usize,
    response: Option<[u8; 8]>,
    challenge: bool,
}

impl PathRef<'_> {
    /// True if the congestion window is full.
    fn is_full(&self) -> bool {
        self.view.is_none_or(|view| view.in_flight >= view.cwnd)
    }

    /// A response is an answer that a peer can ask for at will: beyond the window there are few, so
    /// that neither what is sent nor what is kept of it can be made to grow.
    fn may_respond(&self) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
        //# An endpoint MUST NOT delay transmission of a packet containing a PATH_RESPONSE frame
        //# unless constrained by congestion control.
        self.view.is_some() && (!self.is_full() || self.data.responses.may_exceed())
    }

    /// The response owed next, if it goes to the address in use.
    fn own_response(&self) -> Option<&Response> {
        let response = self.data.responses.first()?;
        (response.route == self.data.addresses.route()).then_some(response)
    }
}

impl Connection {
    /// Sends the challenges that are wanted and the responses that are owed on the path in `slot`.
    pub(super) fn send_validation(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        while let Some(errand) = self.next_errand(now, slot) {
            if outbox.is_blocked(&errand.apart.route) {
                if let Some(mut path) = self.shared.paths.at_mut(slot) {
                    path.withhold_challenge(now, Which::Other);
                }
                break;
            }
            self.run_errand(now, slot, &errand, outbox)?;
        }
        let Some(path) = self.shared.paths.at(slot) else { return Ok(()) };
        let challenges = path.data.addresses.active().validation.wants_challenge();
        let responds = path.own_response().is_some() && path.may_respond();
        let exceeds = path.is_full();
        if !challenges && !responds || path.is_blocked() {
            return Ok(());
        }
        let has_id = self.ids.remote().active(path.data.key.id).is_some();
        let mut path = self.path_with_room(outbox, slot)?;
        let full = usize::from(MIN_UDP_PAYLOAD);
        let available = path.data.addresses.active().amplification.available();
        if available < LEAST || !has_id {
            path.withhold_challenge(now, Which::Active);
            return Ok(());
        }
        self.send_one_rtt(now, outbox, slot, full.min(available), |connection, packet| {
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
            //# An endpoint MUST expand datagrams that contain a PATH_CHALLENGE frame
            //# to at least the smallest allowed maximum datagram size of 1200 bytes,
            //# unless the anti-amplification limit for the path does not permit
            //# sending a datagram of this size.
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.2
            //# An endpoint MUST expand datagrams that contain a PATH_RESPONSE frame to at least
            //# the smallest allowed maximum datagram size of 1200 bytes. However, an endpoint
            //# MUST NOT expand the datagram containing the PATH_RESPONSE if the resulting data
            //# exceeds the anti-amplification limit.
            let is_full = available >= full;
            if is_full {
                packet.pad_to_end();
            }
            if challenges {
                connection.write_challenge(now, slot, Which::Active, is_full, packet);
            }
            if responds {
                connection.write_responses(slot, exceeds, packet);
            }
            connection.write_acks(now, packet);
            // https://www.rfc-editor.org/rfc/rfc9000#section-9.3.3
            //# An endpoint that receives a PATH_CHALLENGE on an active path SHOULD send a
            //# non-probing packet in response.
            let is_ack = |control: &SentControl| matches!(control, SentControl::Ack { .. });
            if responds && !packet.record.controls.iter().any(is_ack) {
                packet.write_eliciting(|writer| Frame::Ping.write(writer));
            }
        })?;
        Ok(())
    }

    /// The next datagram that goes to another address than that of the path, if one may go.
    fn next_errand(&mut self, now: Instant, slot: u8) -> Option<Errand> {
        let full = usize::from(MIN_UDP_PAYLOAD);
        loop {
            let PathMut { data, .. } = self.shared.paths.at_mut(slot)?;
            let active = data.addresses.route();
            let owed = data.responses.first().copied().filter(|owed| owed.route != active);
            let other = data.addresses.leg(Which::Other);
            let wanted = other.filter(|leg| leg.validation.wants_challenge()).map(|leg| leg.route);
            let route = owed.map(|owed| owed.route).or(wanted)?;
            let is_other = other.is_some_and(|leg| leg.route == route);
            let room = match other.filter(|_| is_other) {
                Some(leg) => leg.amplification.available(),
                None => owed.map_or(0, |owed| owed.allowance),
            };
            let (size, key) = (room.min(full), data.key);
            let ids = self.ids.remote();
            let dcid = if is_other { ids.reserved(key.id) } else { ids.active(key.id) };
            if size >= LEAST
                && let Some(dcid) = dcid
            {
                let challenge = is_other && wanted.is_some();
                let response = owed.map(|owed| owed.data);
                return Some(Errand { apart: Apart { route, dcid }, size, response, challenge });
            }
            // What cannot go now: a response never will, a challenge when more came from there.
            let mut path = self.shared.paths.at_mut(slot)?;
            if owed.is_some() {
                path.data.responses.pop();
            } else {
                path.withhold_challenge(now, Which::Other);
                return None;
            }
        }
    }

    fn run_errand(
        &mut self,
        now: Instant,
        slot: u8,
        errand: &Errand,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let Errand { apart, size, response, challenge } = *errand;
        let is_full = size == usize::from(MIN_UDP_PAYLOAD);
        self.send_apart(now, outbox, slot, (size, apart), |connection, packet| {
            if is_full {
                packet.pad_to_end();
            }
            if let Some(data) = response {
                if let Some(path) = connection.shared.paths.get_mut(slot) {
                    path.responses.pop();
                }
                packet.write_eliciting(|writer| Frame::PathResponse { data }.write(writer));
            }
            if challenge {
                connection.write_challenge(now, slot, Which::Other, is_full, packet);
            }
        })?;
        Ok(())
    }

    fn write_challenge(
        &mut self,
        now: Instant,
        slot: u8,
        which: Which,
        is_full: bool,
        packet: &mut PacketBuilder<'_>,
    ) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# However, an endpoint SHOULD NOT send multiple PATH_CHALLENGE frames in a single
        //# packet.
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.1
        //# The endpoint MUST use unpredictable data in every PATH_CHALLENGE frame so that it can
        //# associate the peer's response with the corresponding PATH_CHALLENGE.
        let Ok(data) = self.random.draw() else {
            if let Some(mut path) = self.shared.paths.at_mut(slot) {
                path.withhold_challenge(now, which);
            }
            return;
        };
        if let Some(mut path) = self.shared.paths.at_mut(slot)
            && packet.write_eliciting(|writer| Frame::PathChallenge { data }.write(writer))
        {
            path.on_challenge(now, which, data, is_full);
        }
    }

    /// Responses that go to the address in use, as many as fit; `exceeds`: beyond the window.
    fn write_responses(&mut self, slot: u8, exceeds: bool, packet: &mut PacketBuilder<'_>) {
        if exceeds && let Some(path) = self.shared.paths.get_mut(slot) {
            path.responses.on_exceeded();
        }
        while let Some(response) =
            self.shared.paths.at(slot).and_then(|path| path.own_response().copied())
        {
            let data = response.data;
            if !packet.write_eliciting(|writer| Frame::PathResponse { data }.write(writer)) {
                return;
            }
            if let Some(path) = self.shared.paths.get_mut(slot) {
                path.responses.pop();
            }
        }
    }
}
