//! The seam over `rustls`.
//!
//! [`RustlsClient`] and [`RustlsServer`] wrap a `rustls` configuration of the caller's, or make
//! one with this project's defaults: [`provider`]. Key exchange is X25519 alone, so that flights
//! have constant sizes, equal to those of the TLS for virtual time.
//!
//! Always made with an explicit provider: where a build holds two, `rustls` panics on its default.
//!
//! Sessions are resumed as the configuration wants. Whether 0-RTT is offered and accepted is not
//! its business: [`ClientStart::early_data`] and [`ServerStart::early_data`] say that. A server
//! resumes each session that it keeps once, which is the protection against replay; tickets that
//! the client keeps ([`ServerConfig::ticketer`](tls::ServerConfig::ticketer)) allow no 0-RTT.
//! <https://www.rfc-editor.org/rfc/rfc8446#section-8>

use std::sync::{Arc, Mutex, PoisonError};

use ::rustls as tls;
use quipu_base::Role;
use thiserror::Error;
use tls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tls::quic;

use self::keys::keys;
use self::labels::SecretLog;
use self::session::{RustlsSession, side};
use self::sessions::Terms;
use super::key::Keys;
use super::session::{
    ClientHello, ClientStart, ClientTls, InitialSecrets, ServerStart, ServerTls, Session,
    StartError, TlsError,
};
use crate::random::{NoRandomness, SecureSource};
use crate::transport_parameters::TransportParameters;
use crate::wire::{ConnectionId, Version};

mod client_hello;
mod keys;
mod labels;
mod session;
mod sessions;

/// Configurations of a server that are kept, one for each set of terms under which sessions are
/// made: transports that share one TLS.
const MAX_BOUND: usize = 8;

/// Tickets that `rustls` keeps for each server.
const TICKETS_OF_SERVER: usize = 8;

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
    /// The same with 0-RTT.
    early: Arc<tls::ClientConfig>,
    initial: quic::Suite,
}

/// A configuration whose sessions are made under these terms.
type Bound = (Terms, Arc<tls::ServerConfig>);

/// Starts the server's sessions.
#[derive(Clone)]
pub struct RustlsServer {
    config: Arc<tls::ServerConfig>,
    bound: Arc<Mutex<Vec<Bound>>>,
    initial: quic::Suite,
}

impl RustlsClient {
    /// Wraps a configuration, which has to allow TLS 1.3. `enable_early_data` does not count.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`].
    pub fn new(config: Arc<tls::ClientConfig>) -> Result<Self, ConfigError> {
        Self::with_initial(Arc::clone(&config), config.crypto_provider())
    }

    /// The same, with Initial packets protected by another provider's suite, so that the
    /// configuration need not offer that.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`] of `initial`.
    pub fn with_initial(
        config: Arc<tls::ClientConfig>,
        initial: &tls::crypto::CryptoProvider,
    ) -> Result<Self, ConfigError> {
        let initial = initial_suite(initial)?;
        let with = |early| {
            let mut config = (*config).clone();
            config.enable_early_data = early;
            Arc::new(config)
        };
        Ok(RustlsClient { config: with(false), early: with(true), initial })
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

    /// The same client, which resumes sessions: it keeps tickets of at most so many servers, up to
    /// 8 of each, in memory that its clones share, and uses each once.
    #[must_use]
    pub fn with_resumption(self, servers: usize) -> Self {
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.5
        //# Clients SHOULD NOT reuse tickets as that allows entities other than the server to
        //# correlate connections; see Appendix C.4 of [TLS13].
        let resumption =
            tls::client::Resumption::in_memory_sessions(servers.saturating_mul(TICKETS_OF_SERVER));
        let with = |config: &tls::ClientConfig| {
            let mut config = config.clone();
            config.resumption = resumption.clone();
            Arc::new(config)
        };
        RustlsClient { config: with(&self.config), early: with(&self.early), ..self }
    }

    fn connect(
        &self,
        config: Arc<tls::ClientConfig>,
        start: &ClientStart<'_>,
    ) -> Result<quic::ClientConnection, StartError> {
        let name = ServerName::try_from(start.server_name)
            .map_err(|_| StartError::ServerName(start.server_name.to_owned()))?
            .to_owned();
        let version = rustls_version(start.version);
        quic::ClientConnection::new(config, version, name, start.parameters.to_vec())
            .map_err(refused)
    }
}

impl RustlsServer {
    /// Wraps a configuration, which has to allow TLS 1.3. `max_early_data_size` does not count.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`].
    pub fn new(config: Arc<tls::ServerConfig>) -> Result<Self, ConfigError> {
        Self::with_initial(Arc::clone(&config), config.crypto_provider())
    }

    /// The same, with Initial packets protected by another provider's suite, so that the
    /// configuration need not accept that.
    ///
    /// # Errors
    /// [`ConfigError::NoInitialSuite`] of `initial`.
    pub fn with_initial(
        config: Arc<tls::ServerConfig>,
        initial: &tls::crypto::CryptoProvider,
    ) -> Result<Self, ConfigError> {
        let initial = initial_suite(initial)?;
        Ok(RustlsServer { config, bound: Arc::default(), initial })
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

    /// The configuration whose sessions are made under `terms`: the same for each connection of a
    /// transport.
    fn under(&self, terms: Terms) -> Arc<tls::ServerConfig> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = bound.iter().find(|(known, _)| *known == terms) {
            return Arc::clone(config);
        }
        let config = Arc::new(sessions::bound(&self.config, terms));
        if bound.len() >= MAX_BOUND {
            bound.remove(0);
        }
        bound.push((terms, Arc::clone(&config)));
        config
    }
}

fn owned(alpn: &[&[u8]]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.to_vec()).collect()
}

fn refused(error: tls::Error) -> StartError {
    StartError::Config(error.to_string())
}

/// What `rustls` calls one of [`Version::KNOWN`].
fn rustls_version(version: Version) -> quic::Version {
    if version == Version::V2 { quic::Version::V2 } else { quic::Version::V1 }
}

fn initial_suite(provider: &tls::crypto::CryptoProvider) -> Result<quic::Suite, ConfigError> {
    provider
        .cipher_suites
        .iter()
        .filter(|suite| suite.suite() == tls::CipherSuite::TLS13_AES_128_GCM_SHA256)
        .find_map(|suite| suite.tls13()?.quic_suite())
        .ok_or(ConfigError::NoInitialSuite)
}

fn initial_keys(suite: &quic::Suite, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
    // https://www.rfc-editor.org/rfc/rfc9001#section-5.2
    //# The HKDF-Expand-Label function defined in TLS 1.3 MUST be used for Initial packets even
    //# where the TLS versions offered do not include TLS 1.3.
    keys(suite.keys(dcid.as_bytes(), side(role), rustls_version(version)))
}

impl InitialSecrets for RustlsClient {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(&self.initial, version, dcid, role)
    }
}

impl InitialSecrets for RustlsServer {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(&self.initial, version, dcid, role)
    }
}

impl ClientTls for RustlsClient {
    fn start(&self, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let mut config = if start.early_data { &self.early } else { &self.config }.clone();
        let log = start.may_change.then(|| {
            let log = Arc::new(SecretLog::new(Arc::clone(&config.key_log)));
            let mut logging = (*config).clone();
            logging.key_log = Arc::<SecretLog>::clone(&log);
            config = Arc::new(logging);
            log
        });
        let mut connection = self.connect(Arc::clone(&config), start)?;
        // Each attempt uses a ticket up.
        let mut attempts = 1;
        while resumes_another_version(&connection, start.version) {
            if attempts > TICKETS_OF_SERVER {
                let mut fresh = (*config).clone();
                fresh.resumption = tls::client::Resumption::disabled();
                connection = self.connect(Arc::new(fresh), start)?;
                break;
            }
            connection = self.connect(Arc::clone(&config), start)?;
            attempts += 1;
        }
        Ok(Box::new(RustlsSession::client(connection, log)))
    }
}

/// True if a client is about to resume a session of another version.
// https://www.rfc-editor.org/rfc/rfc9369#section-5
//# Clients MUST NOT use a session ticket or token from a QUIC version 1 connection to initiate a
//# QUIC version 2 connection, and vice versa.
fn resumes_another_version(connection: &quic::ClientConnection, version: Version) -> bool {
    // Before the handshake, those of the connection whose session is resumed.
    let Some(remembered) = connection.quic_transport_parameters() else { return false };
    let parameters = TransportParameters::read(remembered, Role::Server);
    let information = parameters.ok().and_then(|parameters| parameters.version_information);
    // A server that does not tell speaks v1 alone.
    information.map_or(Version::V1, |information| information.chosen) != version
}

impl ServerTls for RustlsServer {
    fn client_hello<'h>(&self, bytes: &'h [u8]) -> Result<Option<ClientHello<'h>>, TlsError> {
        client_hello::read(bytes)
    }

    fn start(&self, start: &ServerStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let ServerStart { version, limits, early_data, .. } = *start;
        let config = self.under(Terms { version, limits, early_data });
        let parameters = start.parameters.to_vec();
        let connection = quic::ServerConnection::new(config, rustls_version(version), parameters)
            .map_err(refused)?;
        Ok(Box::new(RustlsSession::server(connection)))
    }
}

#[cfg(test)]
mod tests;
