//! Building one packet: header, frames, seal, and the books.

use quipu_base::{Bytes, Instant, PathId};
use quipu_policy::{Event, PathKey};

use super::{Connection, Space};
use crate::outbox::Transmit;
use crate::recovery::{SentControl, SentRecord};
use crate::tls::protection;
use crate::wire::header::{HeaderLayout, LongHeader, LongKind, ShortHeader};
use crate::wire::{ConnectionId, NoSpace, TruncatedPacketNumber, Writer};

/// Bytes of the tag of every AEAD of QUIC v1.
const TAG: usize = 16;
/// The codepoint of packets that may be marked. <https://www.rfc-editor.org/rfc/rfc3168#section-5>
const ECT_0: u8 = 2;

/// A packet under construction in a datagram's buffer.
pub(super) struct OpenPacket {
    pub(super) space: Space,
    pub(super) key: PathKey,
    path: PathId,
    layout: HeaderLayout,
    /// Where the packet begins in the datagram.
    start: usize,
    /// Where the next frame goes.
    at: usize,
    /// Where frames must end.
    limit: usize,
    pub(super) record: SentRecord,
    /// Padding makes a packet count as in flight.
    pub(super) padded: bool,
    /// A frame without length field took the rest.
    pub(super) full: bool,
}

impl OpenPacket {
    /// Bytes that frames may still take.
    pub(super) fn space_left(&self) -> usize {
        if self.full { 0 } else { self.limit.saturating_sub(self.at) }
    }

    /// What frames were written, before the packet is sealed.
    pub(super) fn payload<'b>(&self, buffer: &'b [u8]) -> &'b [u8] {
        buffer.get(self.start + self.layout.header_length()..self.at).unwrap_or_default()
    }

    /// True if no frame was written.
    pub(super) fn is_empty(&self) -> bool {
        self.at == self.start + self.layout.header_length()
    }

    /// Writes one frame, or nothing if it does not fit. True if it was written.
    pub(super) fn write(
        &mut self,
        buffer: &mut [u8],
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        if self.full {
            return false;
        }
        let Some(room) = buffer.get_mut(self.at..self.limit) else { return false };
        let mut writer = Writer::new(room);
        if frame(&mut writer).is_err() {
            return false;
        }
        self.at += writer.position();
        true
    }

    /// The same for an ack-eliciting frame.
    pub(super) fn write_eliciting(
        &mut self,
        buffer: &mut [u8],
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        let written = self.write(buffer, frame);
        self.record.ack_eliciting |= written;
        written
    }

    /// Writes a frame of which a note is kept.
    pub(super) fn write_control(
        &mut self,
        buffer: &mut [u8],
        control: SentControl,
        frame: impl FnOnce(&mut Writer<'_>) -> Result<(), NoSpace>,
    ) -> bool {
        let written = self.write_eliciting(buffer, frame);
        if written {
            self.record.controls.push(control);
        }
        written
    }

    /// Keeps note of an acknowledgement in the packet.
    pub(super) fn note_ack(&mut self, control: SentControl) {
        self.record.controls.push(control);
    }
}

impl Connection {
    /// Begins a packet at `start` of a datagram that may be `size` bytes long.
    pub(super) fn open_packet(
        &mut self,
        now: Instant,
        space: Space,
        buffer: &mut [u8],
        start: usize,
        size: usize,
    ) -> Option<OpenPacket> {
        let slot = space.slot();
        let key = self.shared.paths.get(slot)?.key;
        let dcid = self.ids.remote(key.id)?;
        let limit = size.min(buffer.len()).checked_sub(TAG)?;
        let sent = match space {
            Space::Data(_) => &mut self.shared.paths.get_mut(slot)?.sent,
            _ => &mut self.handshake.space_mut(space)?.sent,
        };
        let largest_acked = sent.largest_acked();
        let number = sent.next_pn();
        let packet_number = TruncatedPacketNumber::new(number, largest_acked);
        let mut writer = Writer::new(buffer.get_mut(start..limit)?);
        let layout = match space {
            Space::Data(_) => {
                let key_phase = self.handshake.keys().phase();
                ShortHeader { dcid, spin: false, key_phase, packet_number }.write(&mut writer)
            }
            Space::Initial => {
                let kind = LongKind::Initial { token: self.handshake.token() };
                self.long_header(kind, dcid, packet_number).write(&mut writer)
            }
            Space::Handshake => {
                self.long_header(LongKind::Handshake, dcid, packet_number).write(&mut writer)
            }
        };
        let layout = layout.ok()?;
        let at = start + writer.position();
        Some(OpenPacket {
            space,
            key,
            path: key.id,
            layout,
            start,
            at,
            limit,
            record: SentRecord::new(number, now),
            padded: false,
            full: false,
        })
    }

    fn long_header<'a>(
        &self,
        kind: LongKind<'a>,
        dcid: ConnectionId,
        packet_number: TruncatedPacketNumber,
    ) -> LongHeader<'a> {
        LongHeader { kind, dcid, scid: self.ids.first_local(), packet_number }
    }

    /// Pads the datagram to `pad_to` bytes, seals the packet and enters it in the books. Returns
    /// where the packet ends in the datagram; `None` if it holds nothing or cannot be sealed.
    pub(super) fn close_packet(
        &mut self,
        now: Instant,
        mut packet: OpenPacket,
        buffer: &mut [u8],
        pad_to: usize,
    ) -> Option<usize> {
        if packet.is_empty() {
            return None;
        }
        let least = packet.start + packet.layout.header_length() + packet.layout.min_payload();
        let wanted = least.max(pad_to.saturating_sub(TAG)).min(packet.limit);
        if packet.at < wanted && !packet.full {
            buffer.get_mut(packet.at..wanted)?.fill(0);
            packet.padded = pad_to > 0;
            packet.at = wanted;
        }
        let end = packet.at + TAG;
        self.record_sent(now, &packet, buffer, end - packet.start);
        let number = packet.record.pn;
        let bytes = buffer.get_mut(packet.start..end)?;
        let keys = self.handshake.sealing(packet.space)?;
        protection::seal(bytes, &packet.layout, packet.path, number, keys).ok()?;
        packet.record.bytes = u16::try_from(end - packet.start).unwrap_or(u16::MAX);
        self.enter_packet(now, packet);
        Some(end)
    }

    fn enter_packet(&mut self, now: Instant, packet: OpenPacket) {
        let OpenPacket { space, key, mut record, padded, .. } = packet;
        let slot = space.slot();
        let bytes = Bytes(u64::from(record.bytes));
        let counts = record.ack_eliciting || padded;
        let eliciting = record.ack_eliciting;
        let number = record.pn;
        record.sent_at = now;
        if counts {
            record.at_send = self.note_departure(now, slot, bytes);
        }
        let sent = match space {
            Space::Data(slot) => match self.shared.paths.get_mut(slot) {
                Some(data) => &mut data.sent,
                None => return,
            },
            _ => match self.handshake.space_mut(space) {
                Some(state) => &mut state.sent,
                None => return,
            },
        };
        sent.take_pn();
        if counts {
            sent.on_sent(record);
            self.shared.streams.conn_view_mut().in_flight += bytes;
        }
        if eliciting {
            self.idle.on_sent(now);
        }
        if let Some((data, view)) = self.shared.paths.pair_mut(slot) {
            data.counters.packets_sent += 1;
            data.counters.bytes_sent += bytes.0;
            view.packets_sent += 1;
            view.last_sent_at = Some(now);
        }
        if counts {
            self.control_departure(now, slot, bytes);
        }
        if let (Space::Data(_), true) = (space, counts) {
            let (scheduler, shared) = (&mut self.scheduler, &self.shared);
            let record = shared.paths.get(slot).and_then(|data| data.sent.last());
            if let Some(record) = record.filter(|record| record.pn == number) {
                scheduler.tell_joint(now, shared, Event::Sent(record.as_packet(key)));
            }
        }
    }

    /// A datagram of `len` bytes is ready on the path in `slot`: its envelope. `ect`: it is marked
    /// as ECN-capable.
    pub(super) fn envelope(&mut self, slot: u8, len: usize, ect: bool) -> Option<Transmit> {
        let data = self.shared.paths.get_mut(slot)?;
        data.amplification.on_sent(len);
        let (key, route) = (data.key, data.route);
        let limited = !data.amplification.allows(usize::from(data.datagram_size));
        if let Some(view) = self.shared.paths.views.get_mut(key) {
            view.amplification_limited = limited;
        }
        Some(Transmit { path: key, route, ecn: if ect { ECT_0 } else { 0 }, len })
    }
}
