//! The handshake of one connection, by `rustls`.

use std::sync::Arc;

use ::rustls as tls;
use quipu_base::Role;
use tls::pki_types::CertificateDer;
use tls::quic;

use super::keys::{direction, keys, pair};
use super::labels::{self, LevelSecrets, LoggedLevel, SecretLog};
use super::rustls_version;
use crate::tls::{
    CipherSuite, DirectionKeys, EarlyData, KeyChange, KeyExchangeGroup, Level, Negotiated,
    PacketKeyPair, Session, TlsError,
};
use crate::wire::Version;

/// Description of the alert `internal_error`, for failures that `rustls` gives no alert for.
const INTERNAL_ERROR: u8 = 80;
/// Description of the alert `unexpected_message`.
pub(super) const UNEXPECTED_MESSAGE: u8 = 10;

/// The label of key updates in QUIC v1, <https://www.rfc-editor.org/rfc/rfc9001#section-6.1>, and
/// v2, <https://www.rfc-editor.org/rfc/rfc9369#section-3.3.2>.
const fn update_label(version: Version) -> &'static [u8] {
    if version.0 == Version::V2.0 { b"quicv2 ku" } else { b"quic ku" }
}

/// The handshake of one connection.
pub(super) struct RustlsSession {
    connection: quic::Connection,
    /// Where the peer's next handshake bytes have to come from.
    reading: Level,
    has_one_rtt_keys: bool,
    next: Option<NextKeys>,
    /// At a client whose server may go on in another version.
    log: Option<Arc<SecretLog>>,
    /// The version in which the server went on, if it is another.
    changed: Option<Version>,
    /// At a client that offers 0-RTT.
    remembered: Option<Vec<u8>>,
}

/// What payload keys of later phases are made from.
enum NextKeys {
    Rustls(quic::Secrets),
    /// With the labels of another version than that with which `rustls` began.
    Relabelled(&'static tls::Tls13CipherSuite, LevelSecrets, Version),
}

impl RustlsSession {
    pub(super) fn client(connection: quic::ClientConnection, log: Option<Arc<SecretLog>>) -> Self {
        let early = connection.zero_rtt_keys().is_some();
        let remembered = connection.quic_transport_parameters().filter(|_| early);
        let remembered = remembered.map(<[u8]>::to_vec);
        RustlsSession { log, remembered, ..Self::new(quic::Connection::Client(connection)) }
    }

    pub(super) fn server(connection: quic::ServerConnection) -> Self {
        Self::new(quic::Connection::Server(connection))
    }

    fn new(connection: quic::Connection) -> Self {
        RustlsSession {
            connection,
            reading: Level::Initial,
            has_one_rtt_keys: false,
            next: None,
            log: None,
            changed: None,
            remembered: None,
        }
    }

    /// A client reads 1-RTT messages once it has verified the server's Finished message, a server
    /// once it has verified the client's, though it has the keys before.
    fn update_reading_level(&mut self) {
        if self.has_one_rtt_keys && !self.connection.is_handshaking() {
            self.reading = Level::OneRtt;
        }
    }

    fn suite(&self) -> Option<&'static tls::Tls13CipherSuite> {
        self.connection.negotiated_cipher_suite()?.tls13()
    }

    /// The keys of a level with the labels of the version in which the server went on; `None` if it
    /// did not.
    fn relabelled(&self, level: LoggedLevel) -> Option<(quic::Keys, NextKeys)> {
        let secrets = self.log.as_ref()?.take(level)?;
        let (version, suite) = (self.changed?, self.suite()?);
        let keys =
            labels::with_labels(suite, &secrets, tls::Side::Client, rustls_version(version))?;
        let next = labels::next_phase(suite, &secrets, update_label(version));
        Some((keys, NextKeys::Relabelled(suite, next, version)))
    }
}

impl Session for RustlsSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TlsError> {
        // `rustls` is not told the level, so a message at the wrong one would pass.
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        if level != self.reading {
            return Err(TlsError {
                alert: UNEXPECTED_MESSAGE,
                reason: format!("handshake bytes at {level:?}, expected {:?}", self.reading).into(),
            });
        }
        let result = self.connection.read_hs(data);
        self.update_reading_level();
        result.map_err(|error| TlsError {
            alert: self.connection.alert().map_or(INTERNAL_ERROR, u8::from),
            reason: error.to_string().into(),
        })
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let change = match self.connection.write_hs(out)? {
            quic::KeyChange::Handshake { keys: level_keys } => {
                self.reading = Level::Handshake;
                let relabelled = self.relabelled(LoggedLevel::Handshake);
                KeyChange::Handshake(keys(relabelled.map_or(level_keys, |(keys, _)| keys)))
            }
            quic::KeyChange::OneRtt { keys: level_keys, next } => {
                self.has_one_rtt_keys = true;
                let relabelled = self.relabelled(LoggedLevel::OneRtt);
                let unchanged = (level_keys, NextKeys::Rustls(next));
                let (level_keys, next) = relabelled.unwrap_or(unchanged);
                self.next = Some(next);
                self.log = None;
                KeyChange::OneRtt(keys(level_keys))
            }
        };
        self.update_reading_level();
        Some(change)
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.connection.quic_transport_parameters()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    fn next_packet_keys(&mut self) -> Option<PacketKeyPair> {
        match self.next.as_mut()? {
            NextKeys::Rustls(secrets) => Some(pair(secrets.next_packet_keys())),
            NextKeys::Relabelled(suite, secrets, version) => {
                let side = tls::Side::Client;
                let keys = labels::with_labels(suite, secrets, side, rustls_version(*version))?;
                *secrets = labels::next_phase(suite, secrets, update_label(*version));
                Some(pair(quic::PacketKeySet {
                    local: keys.local.packet,
                    remote: keys.remote.packet,
                }))
            }
        }
    }

    fn server_name(&self) -> Option<&str> {
        match &self.connection {
            quic::Connection::Client(_) => None,
            quic::Connection::Server(server) => server.server_name(),
        }
    }

    fn early_data(&self) -> EarlyData {
        match &self.connection {
            quic::Connection::Client(_) if self.remembered.is_none() => EarlyData::NotOffered,
            quic::Connection::Client(client) if client.is_early_data_accepted() => {
                EarlyData::Accepted
            }
            quic::Connection::Client(_) if self.has_one_rtt_keys => EarlyData::Rejected,
            quic::Connection::Client(_) => EarlyData::Offered,
            quic::Connection::Server(server) if server.zero_rtt_keys().is_some() => {
                EarlyData::Accepted
            }
            quic::Connection::Server(_) => EarlyData::NotOffered,
        }
    }

    fn zero_rtt_keys(&mut self) -> Option<DirectionKeys> {
        self.connection.zero_rtt_keys().map(direction)
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.remembered.as_deref()
    }

    fn change_version(&mut self, version: Version) -> Result<(), TlsError> {
        if self.log.is_none() || self.reading != Level::Initial {
            let reason = "the version cannot change any more".into();
            return Err(TlsError { alert: INTERNAL_ERROR, reason });
        }
        self.changed = Some(version);
        Ok(())
    }

    fn negotiated(&self) -> Option<Negotiated> {
        let resumed = self.connection.handshake_kind()? == tls::HandshakeKind::Resumed;
        let group = self.connection.negotiated_key_exchange_group();
        Some(Negotiated {
            cipher_suite: CipherSuite(u16::from(self.suite()?.common.suite)),
            group: group.map(|group| KeyExchangeGroup(u16::from(group.name()))),
            resumed,
        })
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.connection.peer_certificates()
    }
}

/// The side of `rustls` at the end of `role`.
pub(super) fn side(role: Role) -> tls::Side {
    match role {
        Role::Client => tls::Side::Client,
        Role::Server => tls::Side::Server,
    }
}
