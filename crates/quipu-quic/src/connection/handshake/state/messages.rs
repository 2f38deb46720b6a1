//! Messages of TLS: from the packets in which they come to TLS, and from TLS to where they wait to
//! be sent.

use quipu_base::{Duration, Role};

use super::{Handshake, PeerSettings, Tls};
use crate::config::TransportConfig;
use crate::connection::Space;
use crate::connection::handshake::crypto::CryptoSend;
use crate::connection::handshake::start::{Answer, missing_parameters};
use crate::error::TransportError;
use crate::tls::{EarlyData, KeyChange, Level};
use crate::transport_parameters::TransportParameters;

impl Handshake {
    /// Gives TLS what came in order, takes what it has to say, and installs its keys.
    pub(in crate::connection) fn advance(&mut self) -> Result<(), TransportError> {
        self.take_output()?;
        if let Tls::Waiting(_) = self.tls {
            return self.await_hello();
        }
        for level in Level::MESSAGES {
            while let Some(bytes) = self.crypto.at(level).and_then(|stream| stream.receive.next()) {
                if let Tls::Session(session) = &mut self.tls {
                    session.read(level, bytes)?;
                }
                self.crypto.at_mut(level).receive.advance();
                self.take_output()?;
            }
        }
        Ok(())
    }

    /// A server starts TLS once the ClientHello is whole: a client that does not come so far costs
    /// no session.
    fn await_hello(&mut self) -> Result<(), TransportError> {
        let (original, dcid) = (self.version.original(), self.keys.initial_dcid());
        let receive = &mut self.crypto.at_mut(Level::Initial).receive;
        while let Some(bytes) = receive.next() {
            let Tls::Waiting(origin) = &mut self.tls else { return Ok(()) };
            let answer = origin.read(bytes, original, dcid)?;
            receive.advance();
            let Some(Answer { mut session, bytes, version, initial_keys }) = answer else {
                continue;
            };
            if let Some(keys) = initial_keys {
                // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
                //# The server MUST send all CRYPTO frames using the negotiated version.
                // https://www.rfc-editor.org/rfc/rfc9369#section-4.1
                //# The server MUST NOT discard its original version Initial receive keys until it
                //# successfully processes a Handshake packet with the negotiated version.
                self.keys.expect_initial(version, keys);
                self.keys.change_initial(version);
                self.version.change(version);
            }
            let read = session.read(Level::Initial, &bytes);
            self.tls = Tls::Session(session);
            read?;
            self.take_output()?;
            self.accept_early();
            return self.advance();
        }
        Ok(())
    }

    fn take_output(&mut self) -> Result<(), TransportError> {
        let Tls::Session(session) = &mut self.tls else { return Ok(()) };
        loop {
            // The bytes belong to the level before the keys of the same call.
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.9
            //# Though an endpoint might retain older keys, new data MUST be sent at the highest
            //# currently available encryption level.
            let send = &mut self.crypto.at_mut(self.writes_at).send;
            let (written, change) = send.write_with(|out| session.write(out));
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.writes_at = Level::Handshake;
                    self.keys.install_handshake(keys);
                    self.crypto.at_mut(Level::Initial).receive.close()?;
                    self.origin = None;
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.writes_at = Level::OneRtt;
                    if self.role.is_client() {
                        // https://www.rfc-editor.org/rfc/rfc9001#section-4.9.3
                        //# Therefore, a client SHOULD discard 0-RTT keys as soon as it installs
                        //# 1-RTT keys as they have no use after that moment.
                        self.keys.discard_zero_rtt();
                    }
                    self.keys.install_one_rtt(keys, &mut **session);
                }
                None if written == 0 => break,
                None => {}
            }
        }
        if !session.is_handshaking() && self.crypto.at(Level::Handshake).is_some() {
            self.crypto.at_mut(Level::Handshake).receive.close()?;
        }
        Ok(())
    }

    /// True once TLS has finished.
    pub(in crate::connection) fn is_complete(&self) -> bool {
        self.session().is_some_and(|session| !session.is_handshaking())
    }

    /// The peer's transport parameters, once TLS has finished: checked as far as one connection is
    /// concerned with itself.
    pub(in crate::connection) fn parameters(
        &self,
        config: &TransportConfig,
    ) -> Result<TransportParameters, TransportError> {
        let encoded = self.session().and_then(|session| session.peer_transport_parameters());
        let encoded = encoded.ok_or_else(missing_parameters)?;
        let parameters = TransportParameters::read(encoded, self.role.peer())?;
        if self.role.is_client() {
            self.version.check_server(config, parameters.version_information.as_ref())?;
        }
        Ok(parameters)
    }

    /// The server reads 0-RTT packets if TLS does.
    fn accept_early(&mut self) {
        if let Some(session) = self.tls.session_mut()
            && session.early_data() == EarlyData::Accepted
            && let Some(keys) = session.zero_rtt_keys()
        {
            self.keys.install_zero_rtt(keys);
        }
    }

    /// A client sends early if TLS resumes a session that allows it: what is remembered of the
    /// server.
    pub(in crate::connection) fn begin_early(&mut self) -> Option<TransportParameters> {
        let session = self.tls.session_mut()?;
        let remembered = TransportParameters::remembered(session.remembered_parameters()?).ok()?;
        self.keys.install_zero_rtt(session.zero_rtt_keys()?);
        Some(remembered)
    }

    /// Nothing more is sent early.
    pub(in crate::connection) fn end_early(&mut self) {
        self.keys.discard_zero_rtt();
    }

    /// True once a client knows that the server reads what was sent early.
    pub(in crate::connection) fn is_early_accepted(&self) -> bool {
        self.session().is_some_and(|session| session.early_data() == EarlyData::Accepted)
    }

    /// What the client says in its ClientHello, as far as it counts before the handshake is over.
    pub(in crate::connection) fn early_parameters(
        &self,
    ) -> Result<TransportParameters, TransportError> {
        let encoded = self.session().and_then(|session| session.peer_transport_parameters());
        let client =
            TransportParameters::read(encoded.ok_or_else(missing_parameters)?, Role::Client)?;
        // https://www.rfc-editor.org/rfc/rfc10069#section-2.3
        // Acknowledgements name no path until the handshake has concluded.
        Ok(TransportParameters { initial_max_path_id: None, ..client })
    }

    /// Takes over what the peer's transport parameters say.
    pub(in crate::connection) fn set_parameters(&mut self, peer: &TransportParameters) {
        self.peer = PeerSettings {
            known: true,
            ack_delay_exponent: peer.ack_delay_exponent,
            max_ack_delay: peer.max_ack_delay,
            max_udp_payload: u16::try_from(peer.max_udp_payload_size).unwrap_or(u16::MAX),
            active_cid_limit: peer.active_connection_id_limit,
            min_ack_delay: peer.min_ack_delay.map(Duration::from_micros),
            grease_quic_bit: peer.grease_quic_bit,
            max_datagram_frame: peer.max_datagram_frame_size,
            disables_migration: peer.disable_active_migration,
            max_path_id: peer.initial_max_path_id,
            initial_max_path_id: peer.initial_max_path_id,
        };
    }

    /// The peer may delay acknowledgements so long from now on.
    pub(in crate::connection) fn set_max_ack_delay(&mut self, delay: Duration) {
        self.peer.max_ack_delay = delay;
    }

    /// True if something waits to be sent at the level of `space`.
    pub(in crate::connection) fn crypto_waits(&self, space: Space) -> bool {
        self.crypto.at(space.level()).is_some_and(|stream| stream.send.is_pending())
    }

    /// What is sent at that level, to take from it.
    pub(in crate::connection) fn crypto_mut(&mut self, space: Space) -> &mut CryptoSend {
        &mut self.crypto.at_mut(space.level()).send
    }

    /// A CRYPTO frame came in `space`.
    pub(in crate::connection) fn on_crypto(
        &mut self,
        space: Space,
        offset: u64,
        data: &[u8],
    ) -> Result<(), TransportError> {
        self.crypto.at_mut(space.level()).receive.on_frame(offset, data)
    }
}
