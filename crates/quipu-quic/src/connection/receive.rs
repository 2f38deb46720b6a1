//! Datagrams in. A packet is one of three types on its way, each made of the one before, so that
//! nothing is applied that is not authentic, new and of a path:
//!
//! - [`SealedPacket`]: as it came. Its keys open it, or it is kept until they come.
//! - [`OpenedPacket`]: the peer sealed it. Its space is found, and duplicates are dropped.
//! - [`PacketFrames`](frames::PacketFrames): its frames are applied, and it will be acknowledged.

use std::net::SocketAddr;

use quipu_base::{Instant, PacketNumber, PathId, Role};
use quipu_policy::PathKey;

use super::handshake::{KeptPacket, Readable};
use super::{CloseReason, Connection, Space};
use crate::constant_time;
use crate::recorder::{DropReason, Event};
use crate::route::Route;
use crate::stream::Spares;
use crate::tls::Level;
use crate::wire::header::{MIN_INITIAL_DATAGRAM, Packet};
use crate::wire::{ConnectionId, PacketKind, PartialHeader, ResetToken, Version};

pub(super) mod frames;
mod opened;
mod sealed;

pub(super) use opened::OpenedPacket;
use sealed::{SealedPacket, Unreadable};

/// How a datagram came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Our address and the peer's.
    pub route: Route,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
}

/// Where a packet was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) arrival: Arrival,
    /// The path that the datagram's connection ID names.
    path: PathId,
    /// Size of the datagram in bytes.
    pub(super) datagram: usize,
    /// When it came: packets may wait for their keys.
    came_at: Instant,
}

/// The path on which a packet came, and when.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    pub(super) on: PathKey,
    pub(super) at: Instant,
}

/// What a packet that is authentic and new says of where its path leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sighting {
    /// By which addresses it came.
    pub(super) route: Route,
    /// Size of its datagram in bytes.
    pub(super) datagram: usize,
    /// Our connection ID that it was sent to.
    pub(super) called_by: ConnectionId,
    /// Its number among the path's 1-RTT packets; `None`: it is of the handshake, before them all.
    pub(super) number: Option<PacketNumber>,
    /// It does more than trying an address.
    pub(super) non_probing: bool,
    /// It asks for an answer the same way.
    pub(super) challenge: bool,
}

impl Connection {
    /// A datagram for this connection came. `path` is that of its connection ID. It is opened in
    /// place.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        arrival: Arrival,
        path: PathId,
        datagram: &mut [u8],
    ) {
        if self.is_from_stranger(path, &arrival.route) {
            self.dropped += 1;
            self.record_dropped(now, None, path, datagram.len(), DropReason::UnknownAddress);
            return;
        }
        self.rest.end();
        if self.lifecycle.is_closing() {
            self.lifecycle.on_datagram_while_closing(datagram.len());
        }
        if let Some(slot) = self.shared.paths.slot_of(path)
            && let Some((data, view)) = self.shared.paths.pair_mut(slot)
        {
            data.counters.packets_received += 1;
            data.counters.bytes_received += datagram.len() as u64;
            if data.lives() {
                // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
                //# For the purposes of avoiding amplification prior to address validation,
                //# servers MUST count all of the payload bytes received in datagrams that are
                //# uniquely attributed to a single connection.
                data.addresses.on_received(&arrival.route, datagram.len());
                view.amplification_limited = data.is_amplification_limited();
            }
        }
        let origin = Origin { arrival, path, datagram: datagram.len(), came_at: now };
        self.read_packets(now, origin, datagram);
        self.read_kept(now);
        self.flush_edges(now);
    }

    /// The same of a datagram in the first `length` bytes of `buffer`. The connection may keep the
    /// buffer instead of copying stream data out of it: `buffer` is another one then, of the same
    /// length and with any content, one of `spares` if there is any.
    pub(crate) fn handle_buffer(
        &mut self,
        now: Instant,
        arrival: Arrival,
        path: PathId,
        (buffer, length): (&mut Box<[u8]>, usize),
        spares: &mut Spares,
    ) {
        self.shared.streams.lend(buffer);
        if let Some(datagram) = buffer.get_mut(..length) {
            self.handle_datagram(now, arrival, path, datagram);
        }
        self.shared.streams.keep(buffer, spares);
    }

    /// What comes next may be copied into a buffer that was left by another connection.
    pub(crate) fn take_spare(&mut self, spares: &mut Spares) {
        self.shared.streams.take_spare(spares);
    }

    /// Hands on buffers that were read, for other connections to use.
    pub(crate) fn give_spent(&mut self, spares: &mut Spares) {
        self.shared.streams.give_spent(spares);
    }

    /// Reads the kept packets whose keys have come; Handshake packets may bring the keys of others.
    fn read_kept(&mut self, now: Instant) {
        while self.lifecycle.is_open()
            && let Some(kept) = self.handshake.next_kept(self.lifecycle.is_handshaking())
        {
            let KeptPacket { origin, mut bytes, .. } = kept;
            self.read_packets(now, origin, &mut bytes);
        }
    }

    fn read_packets(&mut self, now: Instant, origin: Origin, mut rest: &mut [u8]) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.2
        //# Receivers MUST be able to process coalesced packets. The receiver of coalesced QUIC
        //# packets MUST individually process each QUIC packet and separately acknowledge them, as
        //# if they were received as the payload of different UDP datagrams.
        let mut first: Option<ConnectionId> = None;
        while !rest.is_empty() {
            let length = match Packet::parse(rest, self.ids.local_length()) {
                Ok(Packet::Protected(header)) => {
                    let length = header.packet_length;
                    let Some((packet, after)) = rest.split_at_mut_checked(length) else { return };
                    // https://www.rfc-editor.org/rfc/rfc9000#section-12.2
                    //# Receivers SHOULD ignore any subsequent packets with a different Destination
                    //# Connection ID than the first packet in the datagram.
                    let strange = first.is_some_and(|first| first != header.dcid);
                    if strange || self.is_out_of_place(&header, origin.datagram) {
                        self.dropped += 1;
                        let kind = Some(header.kind);
                        self.record_dropped(now, kind, origin.path, length, DropReason::Invalid);
                        first.get_or_insert(header.dcid);
                        rest = after;
                        continue;
                    }
                    // https://www.rfc-editor.org/rfc/rfc9000#section-12.2
                    //# For example, if decryption fails (because the keys are not available or
                    //# for any other reason), the receiver MAY either discard or buffer the
                    //# packet for later processing and MUST attempt to process the remaining
                    //# packets.
                    self.read_packet(now, SealedPacket::new(&origin, &header, packet));
                    if !after.is_empty() {
                        first.get_or_insert(header.dcid);
                    }
                    rest = after;
                    continue;
                }
                Ok(Packet::Retry { fixed_bit, version, dcid: _, scid, token, protected, tag }) => {
                    // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
                    //# Clients MUST discard Retry packets that have a Retry Integrity Tag that
                    //# cannot be validated; see Section 5.8 of [QUIC-TLS].
                    let tag_of = crate::tls::retry_tag(version, &self.ids.original(), protected);
                    // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
                    // A Retry is of the version of the packet that it answers.
                    let valid = !self.needs_quic_bit(fixed_bit)
                        && version == self.handshake.version().original()
                        && constant_time::equal(&tag_of, &tag);
                    let token = token.to_vec();
                    if valid {
                        self.on_retry(now, scid, token);
                    }
                    return;
                }
                Ok(packet @ Packet::VersionNegotiation { scid, .. }) => {
                    // https://www.rfc-editor.org/rfc/rfc8999#section-6
                    //# Echoing both connection IDs gives clients some assurance that the
                    //# server received the packet
                    let echoed = scid == self.ids.original().as_bytes();
                    if echoed {
                        self.on_version_negotiation(now, packet.versions());
                    }
                    return;
                }
                // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.1
                //# If a client receives a packet that uses a different version than it initially
                //# selected, it MUST discard that packet.
                Ok(Packet::UnknownVersion { .. }) | Err(_) => 0,
            };
            debug_assert_eq!(length, 0);
            self.dropped += 1;
            self.record_dropped(now, None, origin.path, rest.len(), DropReason::Invalid);
            return;
        }
    }

    /// True for a packet that is dropped for what lies open of it. `datagram`: bytes
    /// of the datagram that carries it.
    fn is_out_of_place(&self, header: &PartialHeader, datagram: usize) -> bool {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.3.1
        //# Packets containing a zero value for this bit are not valid packets in this version and
        //# MUST be discarded.
        if self.needs_quic_bit(header.fixed_bit) {
            return true;
        }
        if header.kind == PacketKind::OneRtt {
            return false;
        }
        let initial = header.kind == PacketKind::Initial;
        match self.role {
            // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
            //# A server MUST discard an Initial packet that is carried in a UDP
            //# datagram with a payload that is smaller than the smallest allowed
            //# maximum datagram size of 1200 bytes.
            Role::Server if initial && datagram < MIN_INITIAL_DATAGRAM => return true,
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.2
            //# Initial packets sent by the server MUST set the Token Length field to 0; clients
            //# that receive an Initial packet with a non-zero Token Length field MUST either
            //# discard the packet or generate a connection error of type PROTOCOL_VIOLATION.
            Role::Client if initial && !header.token.is_empty() => return true,
            _ => {}
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# Once a client has received a valid Initial packet from the server, it MUST discard any
        //# subsequent packet it receives on that connection with a different Source Connection ID.
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.2
        //# Any further changes to the Destination Connection ID are only permitted if the values
        //# are taken from NEW_CONNECTION_ID frames; if subsequent Initial packets include a
        //# different Source Connection ID, they MUST be discarded.
        let known = !self.role.is_client() || self.handshake.has_heard();
        known && header.scid != self.ids.first_remote()
    }

    fn read_packet(&mut self, now: Instant, sealed: SealedPacket<'_>) {
        if !self.lifecycle.is_open() && !self.lifecycle.is_closing() {
            return;
        }
        if let Some(opened) = self.open(now, sealed)
            && let Some(frames) = self.admit(now, &opened)
        {
            self.apply(now, frames);
        }
    }

    /// Opens a packet, or keeps it until its keys come.
    fn open<'p>(&mut self, now: Instant, sealed: SealedPacket<'p>) -> Option<OpenedPacket<'p>> {
        let (kind, size, path) = (sealed.kind(), sealed.size(), sealed.path());
        let level = sealed.level();
        let reason = match self.readable(level, sealed.version()) {
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.4
            //# While waiting for TLS processing to complete, an endpoint SHOULD buffer
            //# received packets if they might be processed using keys that are not yet
            //# available.
            Readable::Later if self.handshake.keep(sealed.to_kept(level)) => {
                self.recording.record(now, || Event::PacketKept { kind, size });
                return None;
            }
            Readable::Later | Readable::Never => DropReason::NoKeys,
            Readable::Now => {
                let expected = self.expected(level, path);
                match sealed.open(level, expected, &mut self.handshake) {
                    Ok(opened) => {
                        if self.handshake.keys().wants_discard() {
                            self.set_key_timer(now);
                        }
                        return Some(opened);
                    }
                    Err(unreadable) => {
                        self.on_unreadable(now, unreadable);
                        DropReason::DoesNotOpen
                    }
                }
            }
        };
        self.dropped += 1;
        self.record_dropped(now, Some(kind), path, size, reason);
        None
    }

    /// Whether a packet of a level can be read, whose long header is of `version`.
    fn readable(&mut self, level: Level, version: Option<Version>) -> Readable {
        if level == Level::Initial {
            self.handshake.consider_version(version);
        }
        self.handshake.readable(level, version, self.lifecycle.is_handshaking())
    }

    /// One above the largest packet number that came at a level, in the space of `path`.
    fn expected(&self, level: Level, path: PathId) -> PacketNumber {
        let received = match level {
            Level::Initial => self.handshake.space(Space::Initial).map(|space| &space.received),
            Level::Handshake => self.handshake.space(Space::Handshake).map(|space| &space.received),
            Level::ZeroRtt | Level::OneRtt => {
                self.shared.paths.by_id(path).map(|data| &data.packets.received)
            }
        };
        let largest = received.and_then(|received| received.largest());
        largest.map_or(PacketNumber(0), PacketNumber::next)
    }

    /// A datagram that opens with no key may be a stateless reset.
    fn on_unreadable(&mut self, now: Instant, packet: Unreadable) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
        //# However, endpoints MUST treat any packet ending in a valid stateless reset token as a
        //# Stateless Reset, as other QUIC versions might allow the use of a long header.
        if let Some((remote, token)) = packet.reset_token() {
            self.on_reset_token(now, remote, token);
        }
        if let Some(error) = packet.fault {
            self.fault(now, error);
        }
    }

    /// A datagram from `remote` that is none of ours ends in these bytes. True if they are the peer's
    /// reset token, which ends the connection.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1>
    pub(crate) fn on_reset_token(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        token: &[u8; ResetToken::LENGTH],
    ) -> bool {
        let mut paths = self.shared.paths.iter();
        let is_one = paths.any(|data| {
            data.addresses.reach(remote) && self.ids.remote().is_reset_token(data.id(), token)
        });
        if is_one {
            // https://www.rfc-editor.org/rfc/rfc9000#section-10.3.1
            //# If the last 16 bytes of the datagram are identical in value to a stateless reset
            //# token, the endpoint MUST enter the draining period and not send any further
            //# packets on this connection.
            let timeout = self.longest_probe_timeout();
            self.lifecycle.drain(now, timeout, CloseReason::StatelessReset);
        }
        is_one
    }

    /// A Retry came: the first flight goes again, with the token and new keys.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
    fn on_retry(&mut self, now: Instant, scid: ConnectionId, token: Vec<u8>) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //# A client MUST discard a Retry packet that contains a Source Connection ID field that is
        //# identical to the Destination Connection ID field of its Initial packet.
        if scid == self.ids.first_remote() {
            return;
        }
        let Some(lost) = self.handshake.on_retry(scid, token) else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.1
        //# The client MUST use the value from the Source Connection ID field of the Retry packet
        //# in the Destination Connection ID field of subsequent packets that it sends.
        self.ids.replace_first_remote(scid);
        let mut in_flight = quipu_base::Bytes::ZERO;
        for record in lost {
            in_flight += quipu_base::Bytes(u64::from(record.bytes));
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.3
            //# A client MUST use the same cryptographic handshake message it included in this
            //# packet.
            self.settle_lost(Space::Initial, &record, &mut Vec::new());
        }
        self.release_in_flight(0, in_flight);
        if self.handshake.keys().seals_early() {
            // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
            //# A client SHOULD attempt to resend data in 0-RTT packets after it sends a new Initial
            //# packet.
            self.give_up_early(now);
        }
    }
}
