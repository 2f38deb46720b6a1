//! The handshake, and what follows from its end.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-4>

use quipu_base::{Instant, PathId, Role};

use super::{Connection, ConnectionEvent, FirstIds, Space};
use crate::error::{ErrorCode, TransportError};
use crate::recorder::{ConnectionState, Event};
use crate::stream::PeerLimits;
use crate::transport_parameters::TransportParameters;

mod crypto;
mod kept;
mod keys;
mod start;
mod state;
mod version;

pub(super) use crypto::CryptoSend;
pub(super) use kept::KeptPacket;
pub(crate) use keys::KeyRing;
pub(super) use keys::{OpenedPayload, Unopened};
pub(crate) use start::{ClientOrigin, ServerOrigin, Start};
pub(super) use state::{Handshake, Readable};

/// Our transport parameters.
pub(crate) fn parameters(
    role: Role,
    config: &crate::TransportConfig,
    ids: &FirstIds,
) -> TransportParameters {
    let server = !role.is_client();
    TransportParameters {
        // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
        //# This transport parameter MUST NOT be sent by a client but MAY be sent by a server. A
        //# client MUST NOT include any server-only transport parameter:
        //# original_destination_connection_id, preferred_address, retry_source_connection_id, or
        //# stateless_reset_token.
        original_destination_connection_id: server.then_some(ids.original),
        retry_source_connection_id: ids.retry_source.filter(|_| server),
        stateless_reset_token: ids.reset_token.filter(|_| server),
        max_idle_timeout: config.idle_timeout,
        max_udp_payload_size: u64::from(config.max_received_payload),
        initial_max_data: config.connection_window,
        initial_max_stream_data_bidi_local: config.stream_window,
        initial_max_stream_data_bidi_remote: config.stream_window,
        initial_max_stream_data_uni: config.stream_window,
        initial_max_streams_bidi: config.max_streams,
        initial_max_streams_uni: config.max_streams,
        max_ack_delay: config.max_ack_delay,
        // https://www.rfc-editor.org/rfc/rfc9000#section-5.2.3
        //# A server in a deployment that does not implement a solution to maintain connection
        //# continuity when the client address changes SHOULD indicate that migration is not
        //# supported by using the disable_active_migration transport parameter.
        disable_active_migration: config.disable_active_migration,
        active_connection_id_limit: super::cids::ACTIVE_LIMIT,
        initial_source_connection_id: Some(ids.local),
        min_ack_delay: config.ack_frequency.map(|config| config.least_delay.as_micros()),
        grease_quic_bit: config.grease,
        max_datagram_frame_size: config.datagrams.map_or(0, |config| config.max_frame.into()),
        initial_max_path_id: (config.max_paths > 1).then(|| PathId(config.max_paths - 1)),
        ack_return_paths: config.offers_return_paths(),
        ..TransportParameters::default()
    }
}

impl Connection {
    /// Gives TLS what came in order, takes what it has to say, and goes on from there.
    pub(super) fn advance_tls(&mut self, now: Instant) {
        if let Err(error) = self.try_advance_tls(now) {
            self.fault(now, error);
        }
    }

    fn try_advance_tls(&mut self, now: Instant) -> Result<(), TransportError> {
        self.handshake.advance()?;
        if self.lifecycle.is_handshaking() && self.handshake.is_complete() {
            self.complete(now)?;
        }
        Ok(())
    }

    /// TLS finished.
    fn complete(&mut self, now: Instant) -> Result<(), TransportError> {
        let parameters = self.handshake.parameters(&self.config)?;
        self.check_connection_ids(&parameters)?;
        self.apply_parameters(&parameters);
        self.recording.record(now, || Event::Parameters { own: false, parameters: &parameters });
        self.lifecycle.on_handshake_complete(now);
        self.recording.state(now, ConnectionState::HandshakeComplete);
        self.events.tell(ConnectionEvent::Connected);
        self.allow_datagrams(now, 0);
        // https://www.rfc-editor.org/rfc/rfc9000#section-9.5
        //# To ensure that migration is possible and packets sent on different paths cannot be
        //# correlated, endpoints SHOULD provide new connection IDs before peers migrate; see
        //# Section 5.1.1.
        self.fill_supply(PathId::ZERO);
        self.issue_path_ids();
        if !self.role.is_client() {
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.2
            //# the TLS handshake is considered confirmed at the server when the
            //# handshake completes. The server MUST send a HANDSHAKE_DONE frame as
            //# soon as the handshake is complete.
            // https://www.rfc-editor.org/rfc/rfc9000#section-19.20
            //# Servers MUST NOT send a HANDSHAKE_DONE frame before completing the handshake.
            self.control.tell_handshake_done();
            self.confirm(now);
        }
        Ok(())
    }

    /// The handshake is confirmed: its keys go, and paths may be opened.
    pub(super) fn confirm(&mut self, now: Instant) {
        if self.lifecycle.on_confirmed(now) {
            self.discard_space(Space::Initial);
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.2
            //# An endpoint MUST discard its Handshake keys when the TLS handshake is confirmed
            //# (Section 4.1.2).
            self.discard_space(Space::Handshake);
            self.recording.state(now, ConnectionState::HandshakeConfirmed);
            self.events.tell(ConnectionEvent::Confirmed);
            self.give_tokens(now);
        }
    }

    /// Drops keys and state of a space of the handshake.
    /// <https://www.rfc-editor.org/rfc/rfc9001#section-4.9>
    pub(super) fn discard_space(&mut self, space: Space) {
        let Some(dropped) = self.handshake.discard(space) else { return };
        self.release_in_flight(0, dropped.sent.in_flight());
        // https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2
        //# When Initial or Handshake keys are discarded, the PTO and loss detection
        //# timers MUST be reset
        if let Some((_, view)) = self.shared.paths.pair_mut(0) {
            view.pto_count = 0;
        }
    }

    /// <https://www.rfc-editor.org/rfc/rfc9000#section-7.3>
    fn check_connection_ids(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        let wrong = |reason: &'static str| {
            Err(TransportError::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, reason))
        };
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.3
        //# The values provided by a peer for these transport parameters MUST match the values
        //# that an endpoint used in the Destination and Source Connection ID fields of Initial
        //# packets that it sent (and received, for servers). Endpoints MUST validate that
        //# received transport parameters match received connection ID values. An endpoint MUST
        //# treat the absence of the initial_source_connection_id transport parameter from either
        //# endpoint or the absence of the original_destination_connection_id transport parameter
        //# from the server as a connection error of type TRANSPORT_PARAMETER_ERROR. An endpoint
        //# MUST treat the following as a connection error of type TRANSPORT_PARAMETER_ERROR or
        //# PROTOCOL_VIOLATION:
        if peer.initial_source_connection_id != self.ids.remote().active(PathId::ZERO) {
            return wrong("initial_source_connection_id is not that of the packets");
        }
        if self.role.is_client() {
            if peer.original_destination_connection_id != Some(self.ids.original()) {
                return wrong("original_destination_connection_id is not ours");
            }
            if peer.retry_source_connection_id != self.handshake.retry_source() {
                return wrong("retry_source_connection_id is not that of the Retry");
            }
        }
        Ok(())
    }

    fn apply_parameters(&mut self, peer: &TransportParameters) {
        self.shared.streams.set_peer_limits(PeerLimits {
            max_data: peer.initial_max_data.0,
            max_stream_data_bidi_local: peer.initial_max_stream_data_bidi_local.0,
            max_stream_data_bidi_remote: peer.initial_max_stream_data_bidi_remote.0,
            max_stream_data_uni: peer.initial_max_stream_data_uni.0,
            max_streams_bidi: peer.initial_max_streams_bidi,
            max_streams_uni: peer.initial_max_streams_uni,
        });
        self.handshake.set_parameters(peer);
        self.shared.streams.conn_view_mut().return_paths = peer.ack_return_paths
            && self.config.offers_return_paths()
            && peer.initial_max_path_id.is_some();
        self.lifecycle.agree_idle_timeout(peer.max_idle_timeout);
        if let Some(token) = peer.stateless_reset_token {
            self.ids.remote_mut().set_first_token(token);
        }
    }
}
