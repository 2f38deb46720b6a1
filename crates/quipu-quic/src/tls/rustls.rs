//! The seam over `rustls` with `ring`.
//!
//! [`RustlsClient`] and [`RustlsServer`] wrap a `rustls` configuration of the caller's, or make
//! one with this project's defaults: [`provider`]. Key exchange is X25519 alone, so that flights
//! have constant sizes, equal to those of the TLS for virtual time.
//!
//! Always made with an explicit provider: where a build holds two, `rustls` panics on its default.

use std::sync::Arc;

use ::rustls as tls;
use quipu_base::{PacketNumber, PathId, Role};
use thiserror::Error;
use tls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tls::quic;

use super::key::{DirectionKeys, HeaderKey, Keys, OpenError, PacketKey, PacketKeyPair, SealError};
use super::session::{
    ClientTls, InitialSecrets, KeyChange, Level, ServerTls, Session, StartError, TlsError,
};
use crate::random::{NoRandomness, SecureSource};
use crate::wire::ConnectionId;

mod own;

pub use own::{reset_key, token_key};

/// A configuration cannot be used for QUIC. Never goes on the wire.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The provider lacks TLS13_AES_128_GCM_SHA256, which protects Initial packets.
    #[error("the crypto provider has no TLS13_AES_128_GCM_SHA256 for QUIC")]
    NoInitialSuite,
    /// The provider lacks a suite of TLS 1.3 with an AEAD whose keys have 32 bytes, which seals
    /// tokens: TLS13_AES_256_GCM_SHA384 or TLS13_CHACHA20_POLY1305_SHA256.
    #[error("the crypto provider has no AEAD with keys of 32 bytes for QUIC")]
    NoTokenSuite,
    /// `rustls` refuses a part of it.
    #[error("rustls refuses the configuration: {0}")]
    Rustls(#[from] tls::Error),
}

/// `ring` with X25519 as its only key exchange, suites in the order of `rustls`.
pub fn provider() -> Arc<tls::crypto::CryptoProvider> {
    Arc::new(tls::crypto::CryptoProvider {
        kx_groups: vec![tls::crypto::ring::kx_group::X25519],
        ..tls::crypto::ring::default_provider()
    })
}

/// The secure random bytes of a provider, for [`Endpoint::new`](crate::Endpoint::new).
pub fn secure_source(provider: &tls::crypto::CryptoProvider) -> Arc<dyn SecureSource> {
    Arc::new(ProviderRandom(provider.secure_random))
}

struct ProviderRandom(&'static dyn tls::crypto::SecureRandom);

impl SecureSource for ProviderRandom {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.0.fill(bytes).map_err(|_| NoRandomness)
    }
}

/// Starts the client's sessions.
#[derive(Clone)]
pub struct RustlsClient {
    config: Arc<tls::ClientConfig>,
    initial: quic::Suite,
}

/// Starts the server's sessions.
#[derive(Clone)]
pub struct RustlsServer {
    config: Arc<tls::ServerConfig>,
    initial: quic::Suite,
}

impl RustlsClient {
    /// Wraps a configuration, which has to allow TLS 1.3.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`].
    pub fn new(config: Arc<tls::ClientConfig>) -> Result<Self, ConfigError> {
        let initial = initial_suite(config.crypto_provider())?;
        Ok(RustlsClient { config, initial })
    }

    /// Trusts `roots`, offers `alpn` in this order, shows no certificate, resumes no session: every
    /// handshake has the flights of a first one. Certificates are checked against the host's clock.
    ///
    /// # Errors
    /// [`ConfigError`] if `rustls` refuses.
    pub fn with_roots(roots: tls::RootCertStore, alpn: &[&[u8]]) -> Result<Self, ConfigError> {
        let mut config = tls::ClientConfig::builder_with_provider(provider())
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.2
            //# Clients MUST NOT offer TLS versions older than 1.3.
            .with_protocol_versions(&[&tls::version::TLS13])?
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.4
            //# A client MUST authenticate the identity of the server.
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = owned(alpn);
        config.resumption = tls::client::Resumption::disabled();
        Self::new(Arc::new(config))
    }
}

impl RustlsServer {
    /// Wraps a configuration, which has to allow TLS 1.3.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`].
    pub fn new(config: Arc<tls::ServerConfig>) -> Result<Self, ConfigError> {
        let initial = initial_suite(config.crypto_provider())?;
        Ok(RustlsServer { config, initial })
    }

    /// Shows `chain`, end entity first, and signs with `key`, best an Ed25519 key: its signatures
    /// have one length. Takes the first of `alpn` that the client offers.
    ///
    /// # Errors
    /// [`ConfigError::Rustls`] if the key is of no known kind or not that of the certificate.
    pub fn with_certificate(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        alpn: &[&[u8]],
    ) -> Result<Self, ConfigError> {
        let mut config = tls::ServerConfig::builder_with_provider(provider())
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.2
            //# An endpoint MUST terminate the connection if a version of TLS older than 1.3 is
            //# negotiated.
            .with_protocol_versions(&[&tls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = owned(alpn);
        Self::new(Arc::new(config))
    }
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.to_vec()).collect()
}

fn initial_suite(provider: &tls::crypto::CryptoProvider) -> Result<quic::Suite, ConfigError> {
    provider
        .cipher_suites
        .iter()
        .filter(|suite| suite.suite() == tls::CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
        .ok_or(ConfigError::NoInitialSuite)
}

fn initial_keys(suite: &quic::Suite, dcid: &ConnectionId, role: Role) -> Keys {
    let side = match role {
        Role::Client => tls::Side::Client,
        Role::Server => tls::Side::Server,
    };
    // https://www.rfc-editor.org/rfc/rfc9001#section-5.2
    //# The HKDF-Expand-Label function defined in TLS 1.3 MUST be used for Initial packets even
    //# where the TLS versions offered do not include TLS 1.3.
    keys(suite.keys(dcid.as_bytes(), side, quic::Version::V1))
}

impl InitialSecrets for RustlsClient {
    fn initial_keys(&self, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(&self.initial, dcid, role)
    }
}

impl InitialSecrets for RustlsServer {
    fn initial_keys(&self, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(&self.initial, dcid, role)
    }
}

impl ClientTls for RustlsClient {
    fn start(&self, server_name: &str, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        let name = ServerName::try_from(server_name)
            .map_err(|_| StartError::ServerName(server_name.to_owned()))?
            .to_owned();
        let connection = quic::ClientConnection::new(
            self.config.clone(),
            quic::Version::V1,
            name,
            parameters.to_vec(),
        )
        .map_err(|error| StartError::Config(error.to_string()))?;
        Ok(Box::new(RustlsSession::new(quic::Connection::Client(connection))))
    }
}

impl ServerTls for RustlsServer {
    fn start(&self, parameters: &[u8]) -> Result<Box<dyn Session>, StartError> {
        let connection = quic::ServerConnection::new(
            self.config.clone(),
            quic::Version::V1,
            parameters.to_vec(),
        )
        .map_err(|error| StartError::Config(error.to_string()))?;
        Ok(Box::new(RustlsSession::new(quic::Connection::Server(connection))))
    }
}

/// The handshake of one connection.
struct RustlsSession {
    connection: quic::Connection,
    /// Where the peer's next handshake bytes have to come from.
    reading: Level,
    has_one_rtt_keys: bool,
    next: Option<quic::Secrets>,
}

/// Description of the alert `internal_error`, for failures that `rustls` gives no alert for.
const INTERNAL_ERROR: u8 = 80;
/// Description of the alert `unexpected_message`.
const UNEXPECTED_MESSAGE: u8 = 10;

impl RustlsSession {
    fn new(connection: quic::Connection) -> Self {
        RustlsSession { connection, reading: Level::Initial, has_one_rtt_keys: false, next: None }
    }

    /// A client reads 1-RTT messages once it has verified the server's Finished message, a server
    /// once it has verified the client's, though it has the keys before.
    fn update_reading_level(&mut self) {
        if self.has_one_rtt_keys && !self.connection.is_handshaking() {
            self.reading = Level::OneRtt;
        }
    }
}

impl Session for RustlsSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TlsError> {
        // `rustls` is not told the level, so a message at the wrong one would pass.
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        //# If the packet is from a previously installed encryption level, it MUST NOT contain
        //# data that extends past the end of previously received data in that flow.
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
                KeyChange::Handshake(keys(level_keys))
            }
            quic::KeyChange::OneRtt { keys: level_keys, next } => {
                self.has_one_rtt_keys = true;
                self.next = Some(next);
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
        let next = self.next.as_mut()?.next_packet_keys();
        Some(PacketKeyPair {
            local: Box::new(RustlsPacketKey(next.local)),
            remote: Box::new(RustlsPacketKey(next.remote)),
        })
    }

    fn server_name(&self) -> Option<&str> {
        match &self.connection {
            quic::Connection::Client(_) => None,
            quic::Connection::Server(server) => server.server_name(),
        }
    }
}

fn keys(from: quic::Keys) -> Keys {
    Keys { local: direction(from.local), remote: direction(from.remote) }
}

fn direction(from: quic::DirectionalKeys) -> DirectionKeys {
    DirectionKeys {
        header: Box::new(RustlsHeaderKey(from.header)),
        packet: Box::new(RustlsPacketKey(from.packet)),
    }
}

struct RustlsPacketKey(Box<dyn quic::PacketKey>);

impl PacketKey for RustlsPacketKey {
    fn seal(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload_and_tag: &mut [u8],
    ) -> Result<(), SealError> {
        let length = payload_and_tag.len().checked_sub(self.tag_length()).ok_or(SealError)?;
        let (payload, tag) = payload_and_tag.split_at_mut_checked(length).ok_or(SealError)?;
        let sealed = self
            .0
            .encrypt_in_place_for_path(path.0, number.0, header, payload)
            .map_err(|_| SealError)?;
        tag.copy_from_slice(sealed.as_ref());
        Ok(())
    }

    fn open(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, OpenError> {
        self.0
            .decrypt_in_place_for_path(path.0, number.0, header, payload)
            .map(<[u8]>::len)
            .map_err(|_| OpenError)
    }

    fn tag_length(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

struct RustlsHeaderKey(Box<dyn quic::HeaderProtectionKey>);

impl HeaderKey for RustlsHeaderKey {
    fn protect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), SealError> {
        self.0.encrypt_in_place(sample, first, number).map_err(|_| SealError)
    }

    fn unprotect(&self, sample: &[u8], first: &mut u8, number: &mut [u8]) -> Result<(), OpenError> {
        self.0.decrypt_in_place(sample, first, number).map_err(|_| OpenError)
    }

    fn sample_length(&self) -> usize {
        self.0.sample_len()
    }
}

#[cfg(test)]
mod tests;
