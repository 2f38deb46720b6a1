//! Datagrams that no connection knows: a client's first, a stateless reset, or nothing for us.

use std::sync::Arc;

use quipu_base::{Duration, Instant, PacketNumber, PathId, Role};

use super::admission::{Source, Verdict};
use super::incoming::{FirstPacket, Incoming};
use super::resets::{self, stateless_reset};
use super::routes::Target;
use super::tokens::TokenState;
use super::{ConnectionHandle, Endpoint, ServerConfig, responses};
use crate::connection::Arrival;
use crate::error::ErrorCode;
use crate::route::Route;
use crate::tls::{DirectionKeys, ServerTls, protection};
use crate::wire::header::{MIN_INITIAL_DATAGRAM, Packet};
use crate::wire::{ConnectionId, Frame, Frames, PacketKind, PartialHeader, ResetToken, Version};

/// What a datagram turned out to be that belongs to no connection.
pub(super) enum Stranger {
    /// A client's first: it opens a connection, and is still to be read.
    Opens(ConnectionHandle),
    /// A stateless reset of a connection.
    Resets(ConnectionHandle),
    /// Nothing for a connection.
    Ignored,
}

/// What is done with datagrams that belong to no connection.
impl Endpoint {
    /// A datagram came that belongs to no connection.
    pub(super) fn handle_unknown(
        &mut self,
        now: Instant,
        arrival: Arrival,
        datagram: &[u8],
    ) -> Stranger {
        if let Some(handle) = self.find_reset(now, arrival.route, datagram) {
            return Stranger::Resets(handle);
        }
        match self.read_unknown(now, arrival, datagram) {
            Some(handle) => Stranger::Opens(handle),
            None => {
                self.ignored += 1;
                Stranger::Ignored
            }
        }
    }

    /// The connection that a datagram of no connection resets.
    fn find_reset(
        &mut self,
        now: Instant,
        route: Route,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
        //# However, the comparison MUST be performed when the first packet in an incoming datagram
        //# either cannot be associated with a connection or cannot be decrypted.
        let token = datagram.last_chunk().filter(|_| datagram.len() >= resets::MIN_LENGTH)?;
        self.table.reset(now, route.remote, &ResetToken::new(*token))
    }

    /// A packet with a short header is for a connection that we do not know: its sender is told,
    /// for it may have been ours.
    fn reset_stranger(&mut self, now: Instant, route: Route, dcid: &ConnectionId, trigger: usize) {
        let Some(key) = &self.config.reset_key else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.11
        //# To defend against this style of denial of service, endpoints that share a static key for
        //# stateless resets (see Section 10.3.2) MUST be arranged so that packets with a given
        //# connection ID always arrive at an instance that has connection state, unless that
        //# connection is no longer active.
        // https://www.rfc-editor.org/rfc/rfc9000#section-21.11
        //# More generally, servers MUST NOT generate a stateless reset if a connection with the
        //# corresponding connection ID could be active on any endpoint using the same static key.
        let ours = self.config.connection_ids.is_own(dcid);
        if !ours || trigger <= resets::MIN_LENGTH || !self.responses.has_room() {
            return;
        }
        if !self.resets.take(now) {
            return;
        }
        let token = key.reset_token(dcid);
        if let Ok(Some(answer)) = stateless_reset(trigger, &token, &mut *self.random) {
            self.responses.push(route, answer);
        }
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
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2
            //# Packets containing a zero value for this bit are not valid packets in this version
            //# and MUST be discarded.
            Packet::Protected(header) if !header.fixed_bit && !self.takes_clear_quic_bits() => None,
            Packet::Protected(header) if header.kind == PacketKind::OneRtt => {
                self.reset_stranger(now, arrival.route, &header.dcid, datagram.len());
                None
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-6.1
            // A version that we know but do not want is as one that we do not know.
            Packet::Protected(PartialHeader { version: Some(version), dcid, scid, .. })
                if long_enough && !self.speaks(version) =>
            {
                self.negotiate_version(arrival.route, version, dcid.as_bytes(), scid.as_bytes());
                None
            }
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.2
            // "If the packet is a 0-RTT packet, the server MAY buffer a limited number of these
            // packets in anticipation of a late-arriving Initial packet."
            Packet::Protected(header) if header.kind == PacketKind::ZeroRtt => {
                let server = self.server.as_ref();
                if server.is_some_and(|server| server.config.transport.early_data) {
                    self.early.keep(now, header.dcid, arrival, datagram);
                }
                None
            }
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
            Packet::UnknownVersion { version, dcid, scid } if long_enough => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.1
                //# A server MUST NOT send more than one Version Negotiation packet in response to
                //# a single UDP datagram.
                self.negotiate_version(arrival.route, version, dcid, scid);
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

    /// True if clients may clear the QUIC bit, as they may in their first packets if they remember
    /// that. <https://www.rfc-editor.org/rfc/rfc9287#section-3.1>
    fn takes_clear_quic_bits(&self) -> bool {
        self.server.as_ref().is_some_and(|server| server.config.transport.grease)
    }

    /// True if connections of that version are let in.
    fn speaks(&self, version: Version) -> bool {
        let server = self.server.as_ref();
        server.is_some_and(|server| server.config.transport.versions.contains(&version))
    }

    /// A client's packet of `version`, which we do not speak, is answered with those that we do.
    fn negotiate_version(&mut self, route: Route, version: Version, dcid: &[u8], scid: &[u8]) {
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.1
        //# Clients MUST NOT send Version Negotiation packets and servers MUST ignore all received
        //# Version Negotiation packets.
        let Some(server) = self.server.as_ref().filter(|_| self.responses.has_room()) else {
            return;
        };
        let Ok([a, b, c, d, random, ..]) = self.random.draw::<8>() else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-6.3
        // A version that nobody speaks keeps clients used to such.
        let reserved = u32::from_be_bytes([a, b, c, d]) & 0xf0f0_f0f0 | 0x0a0a_0a0a;
        // The client's own one would look as if we spoke it.
        let same = u32::from(reserved == version.0);
        let reserved = Version(reserved ^ same << 28);
        // https://www.rfc-editor.org/rfc/rfc9368#section-2.1
        //# This packet SHALL include each entry from the server's set of Offered Versions (see
        //# Section 5) in a Supported Version field.
        let ours = server.config.transport.versions.iter().copied();
        let versions: Vec<Version> = ours.chain([reserved]).collect();
        if let Some(answer) = responses::version_negotiation(&versions, random, dcid, scid) {
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
        let server = self.server.as_mut()?;
        let config = Arc::clone(&server.config);
        let (route, dcid, scid) = (arrival.route, header.dcid, header.scid);
        let version = header.version?;
        let max_bytes = config.admission.max_incoming_bytes;
        if self.waiting.keep(&dcid, arrival, datagram, max_bytes) {
            return None;
        }
        let token = datagram.get(header.token.clone()).unwrap_or_default();
        let token = server.tokens.check(now, version, route.remote, &dcid, token);
        // Of a connection ID that we chose for a Retry packet, we know the length.
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# This Destination Connection ID MUST be at least 8 bytes in length.
        if dcid.length() < 8 && token.state != TokenState::FromRetry {
            return None;
        }
        let can_retry = server.tokens.can_retry();
        let (waiting, source) = (self.waiting.len(), Source::of(route.remote));
        let gate = self.table.gate();
        let verdict = gate.verdict(&config.admission, source, token.state, waiting, can_retry);
        if verdict == Verdict::Retry && !token.is_failed_retry {
            // Stateless, so that there is no need to look further.
            self.retry_client(now, route, version, (dcid, scid));
            return None;
        }
        if verdict == Verdict::Later && !token.is_failed_retry {
            return None;
        }
        let keys = config.tls.initial_keys(version, &dcid, Role::Server);
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.2
        //# Invalid packets that lack strong integrity protection, such as Initial,
        //# Retry, or Version Negotiation, MAY be discarded.
        self.scratch.clear();
        self.scratch.extend_from_slice(datagram.get(..header.packet_length)?);
        let payload = open(&keys.remote, header, &mut self.scratch)?;
        let asks = verdict == Verdict::Ask;
        let server_name = asks.then(|| server_name(&*config.tls, payload)).flatten();
        let at = now;
        let first = FirstPacket { route, version, dcid, scid, token, server_name, at, keys };
        match verdict {
            // The client has followed a Retry, and will not follow another.
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.2
            //# Instead, the server SHOULD immediately close (Section 10.2) the connection with an
            //# INVALID_TOKEN error.
            _ if token.is_failed_retry => self.refuse_client(&first, ErrorCode::INVALID_TOKEN),
            Verdict::Accept => return self.accept_client(now, &config, first),
            Verdict::Ask => {
                let until = match config.admission.handshake_timeout {
                    Duration::ZERO => Instant::FAR_FUTURE,
                    timeout => now + timeout,
                };
                self.waiting.insert(until, first, arrival, datagram, max_bytes);
            }
            Verdict::Refuse | Verdict::Retry | Verdict::Later => {
                self.refuse_client(&first, ErrorCode::CONNECTION_REFUSED);
            }
        }
        None
    }

    /// Asks a client to come again with a token; nothing is kept of it.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-8.1.2>
    fn retry_client(
        &mut self,
        now: Instant,
        route: Route,
        version: Version,
        (dcid, scid): (ConnectionId, ConnectionId),
    ) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //# A server MUST NOT send more than one Retry packet in response to a single UDP datagram.
        if !self.responses.has_room() {
            return;
        }
        let Ok(source) = self.unused_cid() else { return };
        let Some(server) = &self.server else { return };
        let random = &mut *self.random;
        let token = server.tokens.for_retry(now, version, route.remote, dcid, source, random);
        // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
        //# If the server sends a Retry packet, it MUST use the original version.
        if let Some(token) = token
            && let Some(answer) = responses::retry(version, (scid, source), &dcid, &token)
        {
            self.responses.push(route, answer);
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
        let (version, keys) = (first.version, &first.keys.local);
        if let Some(answer) = responses::refusal(keys, version, (first.scid, scid), code) {
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
        let own = self.server.as_ref().map(|server| Arc::clone(&server.config));
        let dcid = waiter.first.dcid;
        let handle = self.accept_client(now, config.or(own.as_deref())?, waiter.first)?;
        for (arrival, mut datagram) in waiter.datagrams {
            let target = Target { handle, path: PathId::ZERO };
            self.table.deliver(now, target, arrival, &mut datagram);
        }
        self.deliver_early(now, handle, Some(dcid));
        // The caller has it.
        self.table.hand_out(handle);
        Some(handle)
    }

    /// Asks a client to prove its address and come again: `false` if it cannot be asked, since the
    /// server has no key for tokens or the client was asked before. It is forgotten either way.
    pub fn retry(&mut self, now: Instant, incoming: Incoming) -> bool {
        let can_retry = self.server.as_ref().is_some_and(|server| server.tokens.can_retry());
        let Some(waiter) = self.waiting.take(incoming.number()) else { return false };
        let FirstPacket { route, version, dcid, scid, .. } = waiter.first;
        if !can_retry || !incoming.may_retry() {
            return false;
        }
        self.retry_client(now, route, version, (dcid, scid));
        true
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

/// The name of the server that a client asks for in the payload of its first packet, if that holds
/// the whole ClientHello.
fn server_name(tls: &dyn ServerTls, payload: &[u8]) -> Option<String> {
    let mut pieces: Vec<(u64, &[u8])> = Frames::new(payload)
        .filter_map(|frame| match frame {
            Ok(Frame::Crypto { offset, data }) => Some((offset.0, data)),
            _ => None,
        })
        .collect();
    // Clients put them in any order, so that nobody comes to rely on one.
    pieces.sort_unstable_by_key(|(offset, _)| *offset);
    let mut hello = Vec::new();
    for (offset, data) in pieces {
        let known = (hello.len() as u64).checked_sub(offset)?;
        let new = usize::try_from(known).ok().and_then(|known| data.get(known..));
        hello.extend_from_slice(new.unwrap_or_default());
    }
    tls.client_hello(&hello).ok()??.server_name.map(str::to_owned)
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
