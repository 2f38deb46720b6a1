//! Building datagrams: packets with header, frames and seal, and the books.
//!
//! The buffer of a datagram is fetched once ([`Connection::send_udp_datagram`]) and belongs to its
//! [`DatagramBuilder`] until the datagram is sent. A packet is written by a closure between
//! its header and its seal ([`Connection::write_packet`]): however the closure returns, what it wrote
//! is sealed and entered in the books, and the number of a packet without frames is not used up.

use quipu_base::{Bytes, Instant, PacketNumber};
use quipu_policy::{Event, PathKey, Span, StreamKey};

use super::transmit::Full;
use super::{CloseReason, Connection, Space};
use crate::outbox::{Outbox, Transmit};
use crate::recovery::{SentControl, SentRecord};
use crate::route::Route;
use crate::stream::Streams;
use crate::tls::protection;
use crate::wire::frame::StreamLayout;
use crate::wire::header::{FIXED_BIT, HeaderLayout, LongHeader, LongKind, ShortHeader};
use crate::wire::{ConnectionId, NoSpace, PacketKind, TruncatedPacketNumber, Writer};

/// Bytes of the tag of every AEAD of QUIC v1.
pub(super) const TAG: usize = 16;
/// Bytes of a short header beside the connection ID, at most.
pub(super) const MAX_SHORT_HEADER: usize = 1 + 4;
/// Bytes of a long header without token beside the connection IDs, at most: the first byte, the
/// version, two lengths, the length of the rest, the packet number.
pub(super) const MAX_LONG_HEADER: usize = 1 + 4 + 1 + 1 + 2 + 4;
/// By so many bytes the largest datagram of the application may leave its packet short of a full one.
const NEARLY: u16 = 8;
/// The codepoint of packets that may be marked. <https://www.rfc-editor.org/rfc/rfc3168#section-5>
const ECT_0: u8 = 2;

/// A datagram under construction, in the buffer that the outbox gave for it.
pub(super) struct DatagramBuilder<'b> {
    /// As long as the datagram may be.
    buffer: &'b mut [u8],
    /// Where the packets that are sealed end.
    end: usize,
    /// It is marked as ECN-capable.
    ect: bool,
    /// It goes to another address than that of its path, with this connection ID.
    apart: Option<Apart>,
}

/// Where a datagram goes that only tries an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    pub(super) route: Route,
    pub(super) dcid: ConnectionId,
}

impl<'b> DatagramBuilder<'b> {
    /// A datagram of at most `size` bytes.
    fn new(buffer: &'b mut [u8], size: usize) -> Self {
        let size = size.min(buffer.len());
        DatagramBuilder { buffer: &mut buffer[..size], end: 0, ect: false, apart: None }
    }

    /// Bytes of the packets that are sealed.
    pub(super) fn length(&self) -> usize {
        self.end
    }
}

/// A packet of which the header is written.
struct BegunPacket {
    kind: PacketKind,
    key: PathKey,
    number: PacketNumber,
    layout: HeaderLayout,
    /// Where the next frame goes.
    at: usize,
    /// Where frames must end.
    limit: usize,
    /// Where frames end at the earliest, padding included.
    least: usize,
    dcid: ConnectionId,
    /// It goes to another address than that of its path.
    apart: bool,
}

/// A packet under construction, behind the packets of its datagram that are sealed.
pub(super) struct PacketBuilder<'b> {
    space: Space,
    begun: BegunPacket,
    /// What is left of the datagram, from the packet's first byte on.
    room: &'b mut [u8],
    /// It shall take all that the datagram may be long.
    pads: bool,
    /// What frames were written.
    pub(super) record: SentRecord,
    /// Padding makes a packet count as in flight.
    padded: bool,
    /// A frame without length field took the rest.
    full: bool,
}

impl PacketBuilder<'_> {
    pub(super) fn space(&self) -> Space {
        self.space
    }

    /// Which packet it is.
    pub(super) fn kind(&self) -> PacketKind {
        self.begun.kind
    }

    /// The path that carries it.
    pub(super) fn key(&self) -> PathKey {
        self.begun.key
    }

    /// The connection ID that it is sent to.
    pub(super) fn dcid(&self) -> ConnectionId {
        self.begun.dcid
    }

    /// Bytes that frames may still take.
    pub(super) fn space_left(&self) -> usize {
        if self.full { 0 } else { self.begun.limit.saturating_sub(self.begun.at) }
    }

    /// What frames were written, before the packet is sealed.
    pub(super) fn payload(&self) -> &[u8] {
        self.room.get(self.begun.layout.header_length()..self.begun.at).unwrap_or_default()
    }

    /// True if no frame was written.
    fn is_empty(&self) -> bool {
        self.begun.at == self.begun.layout.header_length()
    }

    /// The last frame reaches to the end of the packet: nothing follows it.
    pub(super) fn end_here(&mut self) {
        self.full = true;
    }

    /// Padding is to take what no frame does, so that the datagram is as long as it may be.
    pub(super) fn pad_to_end(&mut self) {
        self.pads = true;
    }

    /// Writes one frame, or nothing if it does not fit. True if it was written.
    pub(super) fn write(
        &mut self,
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        if self.full {
            return false;
        }
        let Some(room) = self.room.get_mut(self.begun.at..self.begun.limit) else { return false };
        let mut writer = Writer::new(room);
        if frame(&mut writer).is_err() {
            return false;
        }
        self.begun.at += writer.position();
        true
    }

    /// The same for an ack-eliciting frame.
    pub(super) fn write_eliciting(
        &mut self,
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        let written = self.write(frame);
        self.record.ack_eliciting |= written;
        written
    }

    /// Writes a frame of which a note is kept.
    pub(super) fn write_control(
        &mut self,
        control: SentControl,
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        let written = self.write_eliciting(frame);
        if written {
            self.record.controls.push(control);
        }
        written
    }

    /// Writes a STREAM frame with as much of `span` as fits: what was written, and whether it
    /// carries the end. What the frame is for is noted by the caller.
    pub(super) fn write_stream(
        &mut self,
        streams: &Streams,
        stream: StreamKey,
        span: Span,
    ) -> Option<(Span, bool)> {
        let available = usize::try_from(span.len().0).unwrap_or(usize::MAX);
        let layout = StreamLayout::new(stream.id, span.start, available, self.space_left())?;
        let span = Span::from_len(span.start, Bytes(layout.data_length() as u64));
        let fin = streams.ends_at(stream, span.end);
        let written = self.write_eliciting(|writer| {
            layout.write_header(writer, fin)?;
            let room = writer.reserve(layout.data_length())?;
            if streams.copy_to(stream, span, room) { Ok(()) } else { Err(NoSpace) }
        });
        self.full |= written && layout.fills_packet();
        written.then_some((span, fin))
    }

    /// Keeps note of an acknowledgement in the packet.
    pub(super) fn note_ack(&mut self, control: SentControl) {
        self.record.controls.push(control);
    }

    /// Pads the packet as far as its datagram and header protection want it: where it ends, tag
    /// included.
    fn pad(&mut self) -> usize {
        let wanted =
            if self.pads { self.begun.limit } else { self.begun.least.min(self.begun.limit) };
        if !self.full
            && let Some(padding) = self.room.get_mut(self.begun.at..wanted)
            && !padding.is_empty()
        {
            padding.fill(0);
            self.padded = self.pads;
            self.begun.at = wanted;
        }
        self.begun.at + TAG
    }
}

impl Connection {
    /// Sends one datagram of at most `size` bytes on the path in `slot`, whose packets are those
    /// that `fill` writes; without any, none is sent. True if it was sent.
    pub(super) fn send_udp_datagram(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
        slot: u8,
        size: usize,
        fill: impl FnOnce(&mut Self, &mut DatagramBuilder<'_>),
    ) -> Result<bool, Full> {
        self.path_with_room(outbox, slot)?;
        let mut datagram = DatagramBuilder::new(outbox.buffer(size), size);
        fill(self, &mut datagram);
        let DatagramBuilder { end: len, ect, apart, .. } = datagram;
        let path = self.shared.paths.at_mut(slot).filter(|_| len > 0);
        let Some(mut path) = path else { return Ok(false) };
        let route = apart.map_or_else(|| path.data.addresses.route(), |apart| apart.route);
        path.on_datagram_sent(&route, len);
        let ecn = if ect { ECT_0 } else { 0 };
        outbox.send(Transmit { path: path.data.key, route, ecn, len });
        self.rest.on_sent();
        self.look_at_route(now, slot, outbox);
        Ok(true)
    }

    /// Sends one datagram of at most `size` bytes to another address than that of the path in
    /// `slot`, with one packet, whose frames `write` writes. It takes a number in the path's space,
    /// but says nothing of the path, so that no note of it is kept: only frames that are never sent
    /// again may be in it. True if it was sent.
    pub(super) fn send_apart(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
        slot: u8,
        (size, apart): (usize, Apart),
        write: impl FnOnce(&mut Self, &mut PacketBuilder<'_>),
    ) -> Result<bool, Full> {
        self.send_udp_datagram(now, outbox, slot, size, |connection, datagram| {
            datagram.apart = Some(apart);
            connection.write_packet(now, Space::Data(slot), datagram, write);
        })
    }

    /// Sends one datagram with one 1-RTT packet, whose frames `write` writes. What `write` returned;
    /// `None` if no packet can be begun.
    pub(super) fn send_one_rtt<R>(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
        slot: u8,
        size: usize,
        write: impl FnOnce(&mut Self, &mut PacketBuilder<'_>) -> R,
    ) -> Result<Option<R>, Full> {
        let mut returned = None;
        self.send_udp_datagram(now, outbox, slot, size, |connection, datagram| {
            returned = connection.write_packet(now, Space::Data(slot), datagram, |this, packet| {
                let returned = write(this, packet);
                if !packet.is_empty()
                    && let Some(path) = this.shared.paths.at_mut(slot)
                {
                    // The datagram is this one packet. What is lost for its size would say nothing of
                    // marks.
                    packet.record.ect =
                        !packet.record.mtu_probe && path.data.recovery.marks_next(now);
                }
                returned
            });
        })?;
        Ok(returned)
    }

    /// Writes one packet into a datagram: its header, the frames that `write` writes, and its seal;
    /// enters it in the books. What `write` returned; `None` if no packet can be begun.
    pub(super) fn write_packet<R>(
        &mut self,
        now: Instant,
        space: Space,
        datagram: &mut DatagramBuilder<'_>,
        write: impl FnOnce(&mut Self, &mut PacketBuilder<'_>) -> R,
    ) -> Option<R> {
        let begun = self.begin_packet(space, datagram)?;
        let room = datagram.buffer.get_mut(datagram.end..)?;
        // Made in its place, as it is large.
        let mut packet = PacketBuilder {
            space,
            room,
            pads: false,
            record: SentRecord::new(begun.number, now),
            padded: false,
            full: false,
            begun,
        };
        let returned = write(self, &mut packet);
        let ect = packet.record.ect;
        if let Some(length) = self.seal_packet(now, &mut packet) {
            datagram.end += length;
            datagram.ect = ect;
        }
        Some(returned)
    }

    /// Writes the header of a packet.
    fn begin_packet(
        &mut self,
        space: Space,
        datagram: &mut DatagramBuilder<'_>,
    ) -> Option<BegunPacket> {
        let slot = space.slot();
        let data = self.shared.paths.get(slot)?;
        let key = data.key;
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        //# An endpoint MUST NOT reuse a connection ID when sending from more than one local
        //# address -- for example, when initiating connection migration as described in Section
        //# 9.2 or when probing a new network path as described in Section 9.1. Similarly, an
        //# endpoint MUST NOT reuse a connection ID when sending to more than one destination
        //# address.
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# An endpoint MUST use a connection ID associated to the same path ID as used in the
        //# packet received by the endpoint when it intends to send packets on the same path.
        let dcid = match &datagram.apart {
            Some(apart) => apart.dcid,
            None => self.ids.remote().active(key.id)?,
        };
        let sent = &self.packets(space)?.sent;
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.3
        //# If the packet number for sending reaches 2^62-1, the sender MUST close the connection
        //# without sending a CONNECTION_CLOSE frame or any further packets; an endpoint MAY send a
        //# Stateless Reset (Section 10.3) in response to further packets that it receives.
        if sent.is_used_up() {
            self.lifecycle.abort(CloseReason::PacketNumbers);
            return None;
        }
        let number = sent.next_pn();
        let packet_number = TruncatedPacketNumber::new(number, sent.largest_acked());
        let apart = datagram.apart.is_some();
        let clears_quic_bit = matches!(space, Space::Data(_)) && self.clears_quic_bit();
        let room = datagram.buffer.get_mut(datagram.end..)?;
        let limit = room.len().checked_sub(TAG)?;
        let mut writer = Writer::new(room.get_mut(..limit)?);
        let kind = match space {
            Space::Data(_) if self.handshake.keys().seals_early() => PacketKind::ZeroRtt,
            _ => space.kind(),
        };
        let layout = match kind {
            PacketKind::OneRtt => {
                let key_phase = self.handshake.keys().phase();
                // https://www.rfc-editor.org/rfc/rfc9000#section-17.4
                //# An endpoint that does not support this feature MUST disable it, as defined
                //# below. Implementations MUST allow administrators of clients and servers to
                //# disable the spin bit either globally or on a per-connection basis. Even when
                //# the spin bit is not disabled by the administrator, endpoints MUST disable
                //# their use of the spin bit for a random selection of at least one in every 16
                //# network paths, or for one in every 16 connection IDs, in order to ensure that
                //# QUIC connections that disable the spin bit are commonly observed on the
                //# network.
                ShortHeader { dcid, spin: false, key_phase, packet_number }.write(&mut writer)
            }
            PacketKind::ZeroRtt => {
                // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
                //# The client MUST NOT send 0-RTT packets using the negotiated version, even after
                //# processing a packet of that version from the server.
                let version = self.handshake.version().original();
                let header = self.long_header(LongKind::ZeroRtt, dcid, packet_number);
                LongHeader { version, ..header }.write(&mut writer)
            }
            PacketKind::Initial => {
                // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.2
                //# This token MUST be repeated by the client in all Initial packets it sends for
                //# that connection after it receives the Retry packet.
                // https://www.rfc-editor.org/rfc/rfc9000#section-8.1.3
                //# The client MUST include the token in all Initial packets it sends, unless a
                //# Retry replaces the token with a newer one.
                let kind = LongKind::Initial { token: self.handshake.token() };
                self.long_header(kind, dcid, packet_number).write(&mut writer)
            }
            PacketKind::Handshake => {
                // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
                //# Both endpoints MUST send Handshake and 1-RTT packets using the negotiated
                //# version.
                self.long_header(LongKind::Handshake, dcid, packet_number).write(&mut writer)
            }
        };
        let layout = layout.ok()?;
        let at = writer.position();
        if clears_quic_bit && let Some(first) = room.first_mut() {
            *first &= !FIXED_BIT;
        }
        let mut least = layout.header_length() + layout.min_payload();
        if let Space::Data(_) = space {
            // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
            //# To achieve that end, the endpoint SHOULD ensure that all packets it sends are at
            //# least 22 bytes longer than the minimum connection ID length that it requests the
            //# peer to include in its packets, adding PADDING frames as necessary.
            least = least.max(22 + self.ids.local_length() - TAG);
        }
        Some(BegunPacket { kind, key, number, layout, at, limit, least, dcid, apart })
    }

    fn long_header<'a>(
        &self,
        kind: LongKind<'a>,
        dcid: ConnectionId,
        packet_number: TruncatedPacketNumber,
    ) -> LongHeader<'a> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5.2
        //# The client MUST NOT change the Source Connection ID because the server could include
        //# the connection ID as part of its token validation logic; see Section 8.1.4.
        let version = self.handshake.version().present();
        LongHeader { kind, version, dcid, scid: self.ids.first_local(), packet_number }
    }

    /// Seals a packet and enters it in the books: its length. `None` if it holds nothing or cannot
    /// be sealed.
    fn seal_packet(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) -> Option<usize> {
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
        //# The payload of a packet that contains frames MUST contain at least one frame, and MAY
        //# contain multiple frames and multiple frame types.
        if packet.is_empty() {
            return None;
        }
        let length = packet.pad();
        self.record_sent(now, packet, length);
        let bytes = packet.room.get_mut(..length)?;
        let keys = self.handshake.sealing(packet.space, (packet.begun.key.id, packet.record.pn))?;
        protection::seal(bytes, &packet.begun.layout, packet.begun.key.id, packet.record.pn, keys)
            .ok()?;
        if self.handshake.keys().owes_answer() {
            self.note_acks_sent(packet);
        }
        packet.record.bytes = u16::try_from(length).unwrap_or(u16::MAX);
        self.enter_packet(now, packet);
        Some(length)
    }

    /// The peer may begin the next key phase once a packet of this one is acknowledged.
    fn note_acks_sent(&mut self, packet: &PacketBuilder<'_>) {
        let Space::Data(_) = packet.space else { return };
        for control in &packet.record.controls {
            if let SentControl::Ack { path, largest } = control {
                self.handshake.on_ack_sent(path.id, *largest);
            }
        }
    }

    /// A packet is sealed: what it carries is in flight from now on, and the policies are told.
    fn enter_packet(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) {
        let PacketBuilder { space, ref mut record, padded, ref begun, .. } = *packet;
        let BegunPacket { key, apart, .. } = *begun;
        let Some(mut path) = self.shared.paths.at_mut(space.slot()) else { return };
        let bytes = Bytes(u64::from(record.bytes));
        if apart {
            path.count_sent_apart(bytes);
            let random = || self.random.draw().map_or(0, u64::from_le_bytes);
            path.data.packets.sent.take_pn(random);
            return;
        }
        let counts = record.ack_eliciting || padded;
        let number = record.pn;
        path.count_sent(now, bytes, &record.pieces);
        let (size, full) = (record.bytes, path.data.mtu.size());
        if size >= full && !record.pieces.is_empty()
            || size.saturating_add(NEARLY) >= full && record.carries_datagrams()
        {
            path.data.mtu.on_full_sent(now);
        }
        if counts {
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.7
            //# To avoid delaying their delivery to the peer, packets containing only ACK frames
            //# SHOULD therefore not be paced.
            path.depart(record);
            // https://www.rfc-editor.org/rfc/rfc9002#section-7.5
            //# A sender MUST however count these packets as being additionally in flight, since
            //# these packets add network load without establishing packet loss.
            self.shared.streams.conn_view_mut().in_flight += bytes;
        }
        if record.ack_eliciting {
            self.lifecycle.on_eliciting_sent(now);
        }
        let sent = match space {
            Space::Data(_) => &mut path.data.packets.sent,
            _ => match self.handshake.space_mut(space) {
                Some(state) => &mut state.sent,
                None => return,
            },
        };
        // Without randomness the numbers that are skipped can be foreseen; nothing else is at stake.
        sent.take_pn(|| self.random.draw().map_or(0, u64::from_le_bytes));
        if !counts {
            sent.on_plain_sent(number, now);
            return;
        }
        sent.on_sent(record);
        if let Space::Data(slot) = space {
            let (scheduler, shared) = (&mut self.scheduler, &self.shared);
            let record = shared.paths.get(slot).and_then(|data| data.packets.sent.last());
            // Policies hear of packets that can be acknowledged: those that the view lists.
            let listed = record.filter(|record| record.pn == number && record.ack_eliciting);
            if let Some(record) = listed {
                scheduler.tell_joint(now, shared, Event::Sent(record.as_packet(key)));
            }
        }
    }
}
