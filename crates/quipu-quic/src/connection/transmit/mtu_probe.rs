//! Probes of the path MTU.

use quipu_base::Instant;

use super::Full;
use crate::connection::Connection;
use crate::outbox::Outbox;
use crate::path::PathMut;
use crate::wire::Frame;

impl Connection {
    /// Sends a probe of the path MTU, if one is to go and the path is open.
    pub(super) fn send_mtu_probe(
        &mut self,
        now: Instant,
        slot: u8,
        outbox: &mut dyn Outbox,
    ) -> Result<(), Full> {
        let max_ack_delay = self.handshake.peer().max_ack_delay;
        let Some(PathMut { data, view: Some(view), .. }) = self.shared.paths.at_mut(slot) else {
            return Ok(());
        };
        let Some(size) = data.mtu.wants_probe(now) else { return Ok(()) };
        // https://www.rfc-editor.org/rfc/rfc8899#section-3
        //# A PL MAY use a congestion controller to decide when to send a probe packet.
        // The path is open if a full datagram may go to an address that is not proved; a probe is
        // larger.
        if !view.is_open(now) || !data.addresses.active().amplification.allows(usize::from(size)) {
            return Ok(());
        }
        let timeout = data.recovery.rules().probe_timeout(view, max_ack_delay);
        let sent = self.send_one_rtt(now, outbox, slot, usize::from(size), |_, packet| {
            // https://www.rfc-editor.org/rfc/rfc9000#section-14.4
            //# Endpoints could limit the content of PMTU probes to PING and PADDING frames, since
            //# packets that are larger than the current maximum datagram size are more likely to be
            //# dropped by the network.
            packet.record.mtu_probe = true;
            packet.write_eliciting(|writer| Frame::Ping.write(writer));
            packet.pad_to_end();
        })?;
        if sent.is_some()
            && let Some(data) = self.shared.paths.get_mut(slot)
            && let Some(record) = data.packets.sent.last()
        {
            let (number, sizes) = (record.pn, (record.bytes, size));
            data.mtu.on_probe_sent(now, number, sizes, timeout);
        }
        Ok(())
    }
}
