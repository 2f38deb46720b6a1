//! The handshake, and what follows from its end.
//! <https://www.rfc-editor.org/rfc/rfc9001#section-4>

use quipu_base::{Instant, PathId, Role};

use super::{Connection, ConnectionEvent, FirstIds, Space};
use crate::config::PreferredAddresses;
use crate::error::{ErrorCode, TransportError};
use crate::recorder::{ConnectionState, Event};
use crate::stream::PeerLimits;
use crate::transport_parameters::{PreferredAddress, TransportParameters};
use crate::wire::frame::NewConnectionId;

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
pub(super) use version::VersionState;

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
        // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
        //# After switching to a negotiated version after a Retry, the server MUST include the
        //# relevant transport parameters to validate that the server sent the Retry and the
        //# connection IDs used in the exchange, as described in Section 7.3 of [QUIC].
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
        preferred_address: ids.preferred.filter(|_| server).map(|own| PreferredAddress {
            ipv4: config.preferred_address.ipv4,
            ipv6: config.preferred_address.ipv6,
            connection_id: own.id,
            reset_token: own.token,
        }),
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
        self.notice_early()?;
        if self.lifecycle.is_handshaking() && self.handshake.is_complete() {
            self.complete(now)?;
        }
        Ok(())
    }

    /// TLS finished.
    fn complete(&mut self, now: Instant) -> Result<(), TransportError> {
        let parameters = self.handshake.parameters(&self.config)?;
        self.check_connection_ids(&parameters)?;
        self.settle_early(now, &parameters)?;
        self.apply_parameters(&parameters);
        self.learn_preferred(&parameters)?;
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
            self.move_to_preferred(now);
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
        check_length(peer, self.ids.remote().is_empty(PathId::ZERO))?;
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

    /// The server wants to be reached elsewhere: the connection ID that came with the address is one
    /// like others.
    fn learn_preferred(&mut self, peer: &TransportParameters) -> Result<(), TransportError> {
        let Some(preferred) = &peer.preferred_address else { return Ok(()) };
        let new = NewConnectionId {
            path: None,
            // https://www.rfc-editor.org/rfc/rfc9000#section-5.1.1
            // If the preferred_address transport parameter is sent, that of its connection ID is 1.
            sequence: 1,
            retire_prior_to: 0,
            id: preferred.connection_id,
            reset_token: preferred.reset_token,
        };
        self.ids.remote_mut().on_new(PathId::ZERO, &new)?;
        let addresses = PreferredAddresses { ipv4: preferred.ipv4, ipv6: preferred.ipv6 };
        self.places.learn(addresses, self.config.follows_preferred_address);
        Ok(())
    }

    fn apply_parameters(&mut self, peer: &TransportParameters) {
        self.shared.streams.set_peer_limits(PeerLimits::from(peer));
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

/// What a peer must not declare if its packets have an empty connection ID.
fn check_length(peer: &TransportParameters, is_empty: bool) -> Result<(), TransportError> {
    // https://www.rfc-editor.org/rfc/rfc9000#section-18.2
    //# A server that chooses a zero-length connection ID MUST NOT provide a preferred address.
    //# Similarly, a server MUST NOT include a zero-length connection ID in this transport
    //# parameter. A client MUST treat a violation of these requirements as a connection error of
    //# type TRANSPORT_PARAMETER_ERROR.
    if is_empty && peer.preferred_address.is_some() {
        let reason = "preferred_address beside an empty connection ID";
        return Err(TransportError::new(ErrorCode::TRANSPORT_PARAMETER_ERROR, reason));
    }
    // https://www.rfc-editor.org/rfc/rfc10069#section-2.1
    //# If an initial_max_path_id transport parameter is received and the carrying packet contains
    //# a zero-length connection ID, the receiver MUST treat this as a connection error of type
    //# PROTOCOL_VIOLATION and close the connection.
    if is_empty && peer.initial_max_path_id.is_some() {
        let reason = "initial_max_path_id beside an empty connection ID";
        return Err(TransportError::protocol_violation(reason));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{ConnectionId, ResetToken};

    #[test]
    fn an_empty_connection_id_goes_with_neither_multipath_nor_another_address() {
        let plain = TransportParameters::default();
        let multipath =
            TransportParameters { initial_max_path_id: Some(PathId(3)), ..plain.clone() };
        let address = PreferredAddress {
            ipv4: None,
            ipv6: None,
            connection_id: ConnectionId::new(&[1; 8]).unwrap(),
            reset_token: ResetToken::new([1; 16]),
        };
        let elsewhere = TransportParameters { preferred_address: Some(address), ..plain.clone() };
        for (parameters, expected) in [
            (&plain, None),
            (&multipath, Some(ErrorCode::PROTOCOL_VIOLATION)),
            (&elsewhere, Some(ErrorCode::TRANSPORT_PARAMETER_ERROR)),
        ] {
            assert_eq!(check_length(parameters, false), Ok(()));
            assert_eq!(check_length(parameters, true).err().map(|error| error.code), expected);
        }
    }
}
