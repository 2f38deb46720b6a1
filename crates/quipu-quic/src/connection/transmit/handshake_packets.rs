//! Initial and Handshake packets.

use quipu_base::{Bytes, Instant};

use super::Full;
use super::ack_frames::write_ranges;
use crate::connection::handshake::CryptoSend;
use crate::connection::packet::{DatagramBuilder, PacketBuilder};
use crate::connection::{Connection, Space};
use crate::outbox::Outbox;
use crate::recovery::SentControl;
use crate::wire::frame::CryptoLayout;
use crate::wire::{Frame, NoSpace};

impl Connection {
    /// Initial and Handshake packets, coalesced.
    pub(super) fn send_handshake(
        &mut self,
        now: Instant,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let of_path = self.shared.paths.get(0).map_or(0, |data| data.mtu.size());
        let size = usize::from(self.initial_payload().min(of_path));
        loop {
            let wants = [Space::Initial, Space::Handshake].map(|space| self.wants(now, space));
            let Some(path) = self.shared.paths.at(0) else { return Ok(()) };
            let amplification = &path.data.addresses.active().amplification;
            let held = path.is_blocked() || !amplification.allows(size);
            if wants == [false; 2] || held {
                return Ok(());
            }
            let sent = self.send_udp_datagram(now, outbox, 0, size, |connection, datagram| {
                // https://www.rfc-editor.org/rfc/rfc9000#section-12.2
                //# An endpoint SHOULD include multiple frames in a single packet if they are to
                //# be sent at the same encryption level, instead of coalescing multiple packets
                //# at the same encryption level. Senders MUST NOT coalesce QUIC packets with
                //# different connection IDs into a single UDP datagram.
                // https://www.rfc-editor.org/rfc/rfc9001#section-4
                //# When packets of different types need to be sent, endpoints SHOULD use
                //# coalesced packets to send them in the same UDP datagram.
                for (space, wanted) in [Space::Initial, Space::Handshake].into_iter().zip(wants) {
                    if wanted {
                        connection.write_handshake_packet(now, space, wants, datagram);
                    }
                }
            })?;
            if !sent {
                return Ok(());
            }
        }
    }

    /// Writes the packet of one space. `wants`: which spaces have one in the datagram.
    fn write_handshake_packet(
        &mut self,
        now: Instant,
        space: Space,
        wants: [bool; 2],
        datagram: &mut DatagramBuilder<'_>,
    ) {
        let written = self.write_packet(now, space, datagram, |connection, packet| {
            connection.fill_handshake_packet(now, packet);
            // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
            //# A client MUST expand the payload of all UDP datagrams carrying Initial
            //# packets to at least the smallest allowed maximum datagram size of 1200
            //# bytes [...] Similarly, a server MUST expand the payload of all UDP
            //# datagrams carrying ack-eliciting Initial packets
            let initial = wants[0] && (connection.role.is_client() || packet.record.ack_eliciting);
            let last = space == Space::Handshake || !wants[1];
            // https://www.rfc-editor.org/rfc/rfc9000#section-8.1
            //# Clients MUST ensure that UDP datagrams containing Initial packets have UDP
            //# payloads of at least 1200 bytes, adding PADDING frames as necessary.
            // https://www.rfc-editor.org/rfc/rfc9001#section-9.3
            //# First, the packet containing a ClientHello MUST be padded to a minimum size.
            if initial && last {
                packet.pad_to_end();
            }
        });
        if written.is_some() && space == Space::Handshake && self.role.is_client() {
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.1
            //# a client MUST discard Initial keys when it first sends a
            //# Handshake packet
            self.discard_space(Space::Initial);
        }
    }

    /// True if something must be sent in a space of the handshake.
    fn wants(&self, now: Instant, space: Space) -> bool {
        let Some(state) = self.handshake.space(space) else { return false };
        self.handshake.keys().has(space)
            && (self.handshake.crypto_waits(space)
                || self.handshake.probes_due(space) > 0
                || state.received.wants_ack() && state.received.is_due(now))
    }

    fn fill_handshake_packet(&mut self, now: Instant, packet: &mut PacketBuilder<'_>) {
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.5
        //# All other frame types MUST only be sent in the application data packet number space.
        let (space, key) = (packet.space(), packet.key());
        let Some(state) = self.handshake.space_mut(space) else { return };
        // https://www.rfc-editor.org/rfc/rfc9000#section-13.2.6
        //# ACK frames MUST only be carried in a packet that has the same packet number space as
        //# the packet being acknowledged; see Section 12.1.
        if state.received.has_news() && write_ranges(&state.received, None, now, key, packet) {
            state.received.on_ack_written();
        }
        let probing = self.handshake.take_probe(space);
        if probing && !self.handshake.crypto_waits(space) {
            self.repeat_crypto(space);
        }
        self.handshake.crypto_mut(space).write_to(packet);
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
        //# All probe packets sent on a PTO MUST be ack-eliciting.
        if probing && !packet.record.ack_eliciting {
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
        }
    }

    /// Makes the TLS bytes in flight of a space pending again: a probe repeats them.
    fn repeat_crypto(&mut self, space: Space) {
        let spans: Vec<_> = self
            .handshake
            .space(space)
            .into_iter()
            .flat_map(|state| state.sent.iter())
            .flat_map(|record| record.controls.iter())
            .filter_map(|control| match control {
                SentControl::Crypto { span } => Some(*span),
                _ => None,
            })
            .collect();
        for span in spans {
            self.handshake.crypto_mut(space).on_lost(span);
        }
    }
}

impl CryptoSend {
    /// Writes what TLS has to send at this level, as much as fits.
    pub(super) fn write_to(&mut self, packet: &mut PacketBuilder<'_>) {
        while let Some((offset, bytes)) = self.next(packet.space_left()) {
            let Some(layout) = CryptoLayout::new(offset, bytes.len(), packet.space_left()) else {
                return;
            };
            let length = layout.data_length();
            let span = quipu_policy::Span::from_len(offset, Bytes(length as u64));
            let written = packet.write_control(SentControl::Crypto { span }, |writer| {
                layout.write_header(writer)?;
                writer.put_bytes(bytes.get(..length).ok_or(NoSpace)?)
            });
            if !written {
                return;
            }
            self.on_sent(span);
        }
    }
}
