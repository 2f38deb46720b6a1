//! Datagrams that no connection knows: a client's first, or nothing for us.

use quipu_base::{Duration, Instant, PacketNumber, PathId, Role};

use super::admission::{Source, Verdict};
use super::incoming::{FirstPacket, Incoming, TokenState};
use super::routes::Target;
use super::{ConnectionHandle, Endpoint, ServerConfig, responses};
use crate::connection::Arrival;
use crate::error::ErrorCode;
use crate::route::Route;
use crate::tls::{DirectionKeys, protection};
use crate::wire::header::{MIN_INITIAL_DATAGRAM, Packet};
use crate::wire::{PacketKind, PartialHeader};

/// How a client's first packet is dealt with.
impl Endpoint {
    /// A datagram came that belongs to no connection. Returns the connection that it opens.
    pub(super) fn handle_unknown(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        let opened = self.read_unknown(now, arrival, datagram);
        if opened.is_none() {
            self.ignored += 1;
        }
        opened
    }

    fn read_unknown(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
        //# A server MUST discard an Initial packet that is carried in a UDP
        //# datagram with a payload that is smaller than the smallest allowed
        //# maximum datagram size of 1200 bytes.
        let long_enough = datagram.len() >= MIN_INITIAL_DATAGRAM;
        match Packet::parse(datagram, self.config.connection_ids.length()).ok()? {
            Packet::Protected(header) if header.kind == PacketKind::Initial && long_enough => {
                self.handle_initial(now, arrival, &header, datagram)
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
            //# If a server receives a packet that indicates an unsupported version and if the
            //# packet is large enough to initiate a new connection for any supported version, the
            //# server SHOULD send a Version Negotiation packet as described in Section 6.1.
            //# Servers MUST drop smaller packets that specify unsupported versions. Servers
            //# SHOULD respond with a Version Negotiation packet, provided that the datagram is
            //# sufficiently long.
            Packet::UnknownVersion { dcid, scid, .. } if long_enough => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
                //# A server MUST NOT send more than one Version Negotiation packet in response to
                //# a single UDP datagram.
                self.negotiate_version(arrival.route, dcid, scid);
                None
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
            //# Clients are not able to send Handshake packets prior to receiving a server
            //# response, so servers SHOULD ignore any such packets. Servers MUST drop incoming
            //# packets under all other circumstances.
            // https://www.rfc-editor.org/rfc/rfc9000#section-6.1
            //# An endpoint MUST NOT send a Version Negotiation packet in response to receiving a
            //# Version Negotiation packet.
            _ => None,
        }
    }

    fn negotiate_version(&mut self, route: Route, dcid: &[u8], scid: &[u8]) {
        if self.server.is_none() || !self.responses.has_room() {
            return;
        }
        let Ok([random, ..]) = self.random.draw::<4>() else { return };
        if let Some(answer) = responses::version_negotiation(random, dcid, scid) {
            self.responses.push(route, answer);
        }
    }

    /// The first packet of a client, or of somebody who forges one: nothing is kept of it before it
    /// has opened.
    fn handle_initial(
        &mut self,
        now: Instant,
        arrival: Arrival,
        header: &PartialHeader,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        let server = self.server.clone()?;
        let (dcid, scid) = (header.dcid, header.scid);
        let max_bytes = server.admission.max_incoming_bytes;
        if self.waiting.keep(&dcid, arrival, datagram, max_bytes) {
            return None;
        }
        let token = TokenState::Absent;
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# This Destination Connection ID MUST be at least 8 bytes in length.
        if dcid.length() < 8 {
            return None;
        }
        let source = Source::of(arrival.route.remote);
        let verdict =
            self.table.gate().verdict(&server.admission, source, token, self.waiting.len(), false);
        let keys = server.tls.initial_keys(&dcid, Role::Server);
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.2
        //# Invalid packets that lack strong integrity protection, such as Initial,
        //# Retry, or Version Negotiation, MAY be discarded.
        self.scratch.clear();
        self.scratch.extend_from_slice(datagram.get(..header.packet_length)?);
        let _payload = open(&keys.remote, header, &mut self.scratch)?;
        let first = FirstPacket {
            route: arrival.route,
            dcid,
            scid,
            token,
            server_name: None,
            at: now,
            keys,
        };
        match verdict {
            Verdict::Accept => self.accept_client(now, &server, first),
            Verdict::Ask => {
                let until = match server.admission.handshake_timeout {
                    Duration::ZERO => Instant::FAR_FUTURE,
                    timeout => now + timeout,
                };
                self.waiting.insert(until, first, arrival, datagram, max_bytes);
                None
            }
            Verdict::Refuse | Verdict::Retry => {
                self.refuse_client(&first, ErrorCode::CONNECTION_REFUSED);
                None
            }
        }
    }

    /// Tells a client that it is not let in.
    fn refuse_client(&mut self, first: &FirstPacket, code: ErrorCode) {
        if !self.responses.has_room() {
            return;
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
        //# If a server refuses to accept a new connection, it SHOULD send an Initial packet
        //# containing a CONNECTION_CLOSE frame with error code CONNECTION_REFUSED.
        let Ok(scid) = self.unused_cid() else { return };
        if let Some(answer) = responses::refusal(&first.keys.local, first.scid, scid, code) {
            self.responses.push(first.route, answer);
        }
    }
}

/// What the application decides: see [`Admission::ask`](super::Admission::ask).
impl Endpoint {
    /// The next client that waits for a decision.
    pub fn poll_incoming(&mut self) -> Option<Incoming> {
        self.waiting.next_unseen()
    }

    /// Accepts a client: its connection, or `None` if it can have none any more, since it waited too
    /// long or TLS refuses its configuration. `config`: what its connection is made of, if that is
    /// not what [`Endpoint::listen`] was given.
    pub fn admit(
        &mut self,
        now: Instant,
        incoming: Incoming,
        config: Option<&ServerConfig>,
    ) -> Option<ConnectionHandle> {
        let waiter = self.waiting.take(incoming.number())?;
        let server = config.or(self.server.as_ref())?.clone();
        let handle = self.accept_client(now, &server, waiter.first)?;
        for (arrival, mut datagram) in waiter.datagrams {
            let target = Target { handle, path: PathId::ZERO };
            self.table.deliver(now, target, arrival, &mut datagram);
        }
        // The caller has it.
        self.table.hand_out(handle);
        Some(handle)
    }

    /// Tells a client that it is not let in.
    pub fn refuse(&mut self, incoming: Incoming) {
        if let Some(waiter) = self.waiting.take(incoming.number()) {
            self.refuse_client(&waiter.first, ErrorCode::CONNECTION_REFUSED);
        }
    }

    /// Forgets a client without a word. If it sends its first packet again, it is back.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.waiting.take(incoming.number());
    }
}

/// Opens the first Initial packet, all of `packet`, in place: its payload.
fn open<'p>(
    keys: &DirectionKeys,
    header: &PartialHeader,
    packet: &'p mut [u8],
) -> Option<&'p [u8]> {
    let unprotected = protection::unprotect(packet, header.packet_number_at, &*keys.header).ok()?;
    let number = unprotected.packet_number.expand(PacketNumber(0));
    let length = unprotected.header_length;
    let payload = protection::open(packet, length, PathId::ZERO, number, &*keys.packet).ok()?;
    Some(payload)
}
