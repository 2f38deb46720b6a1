//! 0-RTT: what a client sends before the handshake is over, with the keys of an earlier connection.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-4.6>
//!
//! A client keeps to the limits that the server set in the earlier connection. If the server does
//! not read what came early, everything is sent again once the handshake is over. A server that
//! does may answer at once, before it knows that the client is there and no copy of an earlier one:
//! its application asks [`Connection::is_early`].

use quipu_base::{Bytes, Instant, PacketNumber, Role};
use quipu_policy::Event;

use super::lifecycle::CloseFrame;
use super::{CloseReason, Connection, ConnectionEvent, Space};
use crate::error::{ErrorCode, TransportError};
use crate::stream::PeerLimits;
use crate::tls::EarlyData;
use crate::transport_parameters::{RememberedLimits, TransportParameters};
use crate::wire::frame::Ack;

/// 0-RTT of a connection.
#[derive(Debug, Default)]
pub(super) struct Early {
    outcome: EarlyData,
    /// The limits that a client keeps to until it knows those of this connection. Boxed, since most
    /// send nothing early.
    remembered: Option<Box<RememberedLimits>>,
    /// At a client whose 0-RTT was rejected: all packets of lower numbers were sent in it.
    rejected_below: Option<PacketNumber>,
}

impl Early {
    /// 0-RTT packets that were rejected cannot be acknowledged.
    #[inline]
    pub(super) fn check_ack(&self, ack: &Ack<'_>) -> Result<(), TransportError> {
        let Some(first) = self.rejected_below else { return Ok(()) };
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
        //# When 0-RTT was rejected, a client SHOULD treat receipt of an acknowledgment for a 0-RTT
        //# packet as a connection error of type PROTOCOL_VIOLATION, if it is able to detect the
        //# condition.
        if ack.ranges.iter().any(|range| range.first < first) {
            let reason = "acknowledged a 0-RTT packet that was rejected";
            return Err(TransportError::protocol_violation(reason));
        }
        Ok(())
    }
}

impl From<&TransportParameters> for PeerLimits {
    fn from(peer: &TransportParameters) -> Self {
        PeerLimits {
            max_data: peer.initial_max_data.0,
            max_stream_data_bidi_local: peer.initial_max_stream_data_bidi_local.0,
            max_stream_data_bidi_remote: peer.initial_max_stream_data_bidi_remote.0,
            max_stream_data_uni: peer.initial_max_stream_data_uni.0,
            max_streams_bidi: peer.initial_max_streams_bidi,
            max_streams_uni: peer.initial_max_streams_uni,
        }
    }
}

impl Connection {
    /// What became of 0-RTT. A client may open streams and write from the start while it is
    /// [`EarlyData::Offered`]; changes are told by [`ConnectionEvent::EarlyData`].
    pub fn early_data(&self) -> EarlyData {
        self.early.outcome
    }

    /// True at a server while all that came may be a copy, recorded by somebody and sent again: it
    /// came in 0-RTT, and the handshake, which nobody can copy, is not over. An application acts on
    /// it only if it makes no difference how often, or waits for [`ConnectionEvent::Connected`].
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-9.2>
    pub fn is_early(&self) -> bool {
        // 1-RTT packets are not read before.
        !self.role.is_client() && self.lifecycle.is_handshaking()
    }

    /// Begins with what TLS remembers of an earlier connection, if it does.
    pub(super) fn begin_early(&mut self) {
        let Some(remembered) = self.handshake.begin_early() else { return };
        self.early.outcome = EarlyData::Offered;
        self.early.remembered = Some(Box::new(RememberedLimits::of(&remembered)));
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
        //# When sending frames in 0-RTT packets, a client MUST only use remembered transport
        //# parameters; importantly, it MUST NOT use updated values that it learns from the server's
        //# updated transport parameters or from frames received in 1-RTT packets.
        self.shared.streams.set_peer_limits(PeerLimits::from(&remembered));
        self.handshake.set_parameters(&remembered);
        self.events.tell(ConnectionEvent::EarlyData(EarlyData::Offered));
    }

    /// The ClientHello was read: the server may have accepted 0-RTT.
    pub(super) fn notice_early(&mut self) -> Result<(), TransportError> {
        let news = self.early.outcome == EarlyData::NotOffered && !self.role.is_client();
        if !news || !self.handshake.keys().reads_early() {
            return Ok(());
        }
        self.early.outcome = EarlyData::Accepted;
        let client = self.handshake.early_parameters()?;
        // What answers early keeps to what the client says now; that it is the client who says so is
        // known later.
        self.shared.streams.set_peer_limits(PeerLimits::from(&client));
        self.handshake.set_parameters(&client);
        self.events.tell(ConnectionEvent::EarlyData(EarlyData::Accepted));
        Ok(())
    }

    /// True if data may be sent: after the handshake, or early.
    pub(super) fn may_send_data(&self) -> bool {
        self.lifecycle.is_established() || self.lifecycle.is_handshaking() && self.may_send_early()
    }

    /// True if data may be sent before the handshake is over.
    fn may_send_early(&self) -> bool {
        let keys = self.handshake.keys();
        match (self.role, self.early.outcome) {
            (Role::Client, EarlyData::Offered) => keys.seals_early(),
            // A client that sent early can have its answer early.
            (Role::Server, EarlyData::Accepted) => keys.has(Space::Data(0)),
            _ => false,
        }
    }

    /// The handshake is over, and these are the peer's parameters.
    pub(super) fn settle_early(
        &mut self,
        now: Instant,
        peer: &TransportParameters,
    ) -> Result<(), TransportError> {
        if !self.role.is_client() || self.early.outcome == EarlyData::NotOffered {
            return Ok(());
        }
        if self.handshake.is_early_accepted() && self.early.outcome == EarlyData::Offered {
            // https://www.rfc-editor.org/rfc/rfc9000#section-7.4.1
            //# If 0-RTT data is accepted by the server, the server MUST NOT reduce any limits or
            //# alter any values that might be violated by the client with its 0-RTT data. In
            //# particular, a server that accepts 0-RTT data MUST NOT set values for the following
            //# parameters (Section 18.2) that are smaller than the remembered values of the
            //# parameters.
            // https://www.rfc-editor.org/rfc/rfc9221#section-3
            //# If a client stores the value of the max_datagram_frame_size transport parameter with
            //# their 0-RTT state, they MUST validate that the new value of the
            //# max_datagram_frame_size transport parameter sent by the server in the handshake is
            //# greater than or equal to the stored value; if not, the client MUST terminate the
            //# connection with error PROTOCOL_VIOLATION.
            let remembered = self.early.remembered.as_deref();
            if remembered.is_some_and(|limits| !RememberedLimits::of(peer).cover(limits)) {
                let reason = "limits shrank although 0-RTT was accepted";
                return Err(TransportError::protocol_violation(reason));
            }
            self.set_early_outcome(EarlyData::Accepted);
            return Ok(());
        }
        self.reject_early(now);
        if !self.shared.streams.replace_peer_limits(PeerLimits::from(peer)) {
            // Nothing of it is known to the server, but offsets and numbers are given away.
            let timeout = self.longest_probe_timeout();
            let error =
                TransportError::new(ErrorCode::NO_ERROR, "less is allowed than was sent early");
            let reason = CloseReason::EarlyDataLimits;
            self.lifecycle.close(now, timeout, CloseFrame::Transport(error), reason);
        }
        Ok(())
    }

    /// The server does not read what was sent early.
    fn reject_early(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.6.2
        //# The client therefore MUST reset the state of all streams, including application state
        //# bound to those streams.
        // Streams keep their numbers and what was written to them. The application is told, and
        // resets them if what it wrote depends on what does not hold any more.
        self.give_up_early(now);
        let data = self.shared.paths.get(0);
        self.early.rejected_below = data.map(|data| data.packets.sent.next_pn());
        self.set_early_outcome(EarlyData::Rejected);
    }

    fn set_early_outcome(&mut self, outcome: EarlyData) {
        if self.early.outcome != outcome {
            self.early.outcome = outcome;
            self.events.tell(ConnectionEvent::EarlyData(outcome));
        }
    }

    /// Another attempt began: 0-RTT goes on with other keys, or ends.
    pub(super) fn begin_early_again(&mut self, now: Instant) {
        if self.early.outcome == EarlyData::NotOffered {
            return;
        }
        match self.handshake.begin_early() {
            Some(again)
                if self.early.remembered.as_deref() == Some(&RememberedLimits::of(&again)) =>
            {
                self.give_up_early(now);
            }
            _ => {
                self.handshake.end_early();
                self.reject_early(now);
            }
        }
    }

    /// What 0-RTT packets carried is sent again: they do not arrive.
    pub(super) fn give_up_early(&mut self, now: Instant) {
        let Some(data) = self.shared.paths.get_mut(0) else { return };
        let key = data.key;
        // https://www.rfc-editor.org/rfc/rfc9000#section-17.2.3
        //# New packet numbers MUST be used for any new packets that are sent; as described in
        //# Section 17.2.5.3, reusing packet numbers could compromise packet protection.
        let records = data.packets.sent.drain();
        let (mut requeued, mut in_flight) = (Vec::new(), Bytes::ZERO);
        for record in &records {
            in_flight += Bytes(u64::from(record.bytes));
            self.settle_lost(Space::Data(0), record, &mut requeued);
            self.tell_lost_datagrams(record);
        }
        self.release_in_flight(0, in_flight);
        if let Some((data, view)) = self.shared.paths.pair_mut(0) {
            data.recovery.restart_pace(now, view);
        }
        for record in &records {
            let event = Event::Lost(record.as_packet(key));
            self.scheduler.tell_joint(now, &self.shared, event);
        }
        requeued.sort_unstable();
        for (stream, span) in requeued {
            let event = Event::Requeued { stream, span, origin: key };
            self.scheduler.tell_joint(now, &self.shared, event);
        }
        self.flush_edges(now);
        self.rest.end();
    }
}
