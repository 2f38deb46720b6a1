//! The datagram that closes a connection.

use quipu_base::Instant;
use quipu_policy::PathKey;

use super::Full;
use crate::config::MIN_UDP_PAYLOAD;
use crate::connection::lifecycle::CloseFrame;
use crate::connection::{Connection, Space};
use crate::error::ErrorCode;
use crate::outbox::Outbox;
use crate::path::PathTable;
use crate::wire::{Frame, FrameType, NoSpace, Writer};

impl Connection {
    pub(super) fn send_close(&mut self, now: Instant, outbox: &mut dyn Outbox) -> Result<(), Full> {
        if !self.lifecycle.wants_close() {
            return Ok(());
        }
        let Some(slot) = self.shared.paths.closing_slot(outbox) else { return Ok(()) };
        let size = usize::from(MIN_UDP_PAYLOAD);
        let path = self.shared.paths.get(slot);
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.1
        //# An endpoint in the closing state MUST either discard packets received from an
        //# unvalidated address or limit the cumulative size of packets it sends to an unvalidated
        //# address to three times the size of packets it receives from that address.
        if !path.is_some_and(|data| data.addresses.active().amplification.allows(size)) {
            return Ok(());
        }
        self.path_with_room(outbox, slot)?;
        let Some(frame) = self.lifecycle.take_close().cloned() else { return Ok(()) };
        // The peer may not have our latest keys yet: every level that we have says it.
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# After the handshake is confirmed (see Section 4.1.2 of [QUIC-TLS]), an endpoint MUST
        //# send any CONNECTION_CLOSE frames in a 1-RTT packet. Under these circumstances, a
        //# server SHOULD send a CONNECTION_CLOSE frame in both Handshake and Initial packets to
        //# ensure that at least one of them is processable by the client. Prior to confirming the
        //# handshake, a peer might be unable to process 1-RTT packets, so an endpoint SHOULD send
        //# a CONNECTION_CLOSE frame in both Handshake and 1-RTT packets. A server SHOULD also
        //# send a CONNECTION_CLOSE frame in an Initial packet.
        let levels = [Space::Initial, Space::Handshake, Space::Data(slot)];
        let last = levels.into_iter().rfind(|&space| self.handshake.keys().has(space));
        let pads = self.role.is_client() && self.handshake.keys().has(Space::Initial);
        self.send_udp_datagram(now, outbox, slot, size, |connection, datagram| {
            for space in levels {
                if !connection.handshake.keys().has(space) {
                    continue;
                }
                connection.write_packet(now, space, datagram, |_, packet| {
                    let early = space != Space::Data(slot);
                    packet.write(|writer| write_close(&frame, early, writer));
                    // https://www.rfc-editor.org/rfc/rfc9000#section-14.1
                    //# A client MUST expand the payload of all UDP datagrams carrying Initial
                    //# packets to at least the smallest allowed maximum datagram size of 1200
                    //# bytes
                    if pads && last == Some(space) {
                        packet.pad_to_end();
                    }
                });
            }
            connection.lifecycle.on_close_sent(datagram.length());
        })?;
        Ok(())
    }
}

impl Connection {
    /// True if the end of the connection is to be told, and no route takes datagrams.
    pub(super) fn close_is_blocked(&self, outbox: &dyn Outbox) -> bool {
        let paths = &self.shared.paths;
        self.lifecycle.wants_close()
            && paths.iter().next().is_some()
            && paths.closing_slot(outbox).is_none()
    }
}

impl PathTable {
    /// The path on which to close: the best usable one, else any whose route is not blocked.
    fn closing_slot(&self, outbox: &dyn Outbox) -> Option<u8> {
        let is_free = |key: &PathKey| {
            self.get(key.slot).is_some_and(|data| !outbox.is_blocked(&data.addresses.route()))
        };
        let best = self.views.least_srtt_of(|view| is_free(&view.key));
        let any = || self.views.iter().map(|view| view.key).find(is_free);
        let closing = || self.iter().map(|data| data.key).find(is_free);
        best.or_else(any).or_else(closing).map(|key| key.slot)
    }
}

fn write_close(frame: &CloseFrame, early: bool, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
    match frame {
        CloseFrame::Transport(error) => Frame::ConnectionClose {
            // https://www.rfc-editor.org/rfc/rfc9000#section-11
            //# The most appropriate error code (Section 20) SHOULD be included in the frame that
            //# signals the error.
            error_code: error.code.0,
            frame_type: error.frame_type.unwrap_or(FrameType::PADDING),
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.19
            //# This SHOULD be a UTF-8 encoded string [RFC3629], though the frame does not carry
            //# information, such as language tags, that would aid comprehension by any entity
            //# other than the one that created the text.
            reason: error.reason.as_bytes(),
        }
        .write_shortened(writer),
        // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
        //# A CONNECTION_CLOSE of type 0x1d MUST be replaced by a CONNECTION_CLOSE
        //# of type 0x1c when sending the frame in Initial or Handshake packets.
        // https://www.rfc-editor.org/rfc/rfc9000#section-12.5
        //# CONNECTION_CLOSE frames signaling application errors (type 0x1d) MUST only appear in
        //# the application data packet number space.
        CloseFrame::Application { .. } if early => Frame::ConnectionClose {
            // https://www.rfc-editor.org/rfc/rfc9000#section-10.2.3
            //# Endpoints MUST clear the value of the Reason Phrase field and SHOULD use the
            //# APPLICATION_ERROR code when converting to a CONNECTION_CLOSE of type 0x1c.
            error_code: ErrorCode::APPLICATION_ERROR.0,
            frame_type: FrameType::PADDING,
            reason: b"",
        }
        .write(writer),
        CloseFrame::Application { code, reason } => {
            Frame::ApplicationClose { error_code: *code, reason }.write_shortened(writer)
        }
    }
}
