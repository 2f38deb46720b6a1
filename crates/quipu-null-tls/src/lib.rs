//! A TLS seam without arithmetic, for virtual time only.
//!
//! [`NullClient`] and [`NullServer`] implement [`quipu_quic::tls`] so that an experiment sees the
//! same datagrams as with real TLS, at a fraction of the cost and the same in every run:
//!
//! - the same messages, in the same order, at the same levels, of the same sizes as `rustls` 0.23
//!   with X25519, an Ed25519 certificate and SHA-384 ([`flight`]); two session tickets included,
//!   which a client resumes if it is [told to](NullClient::with_resumption), with 0-RTT if the
//!   transport wants it;
//! - real transport parameters and a real choice of the application protocol;
//! - a tag of 16 bytes that a packet with another key, path or number does not have, key updates,
//!   and the limits of AES-GCM.
//!
//! Nothing is secret and nobody is authentic: **never** use this for real traffic.
//!
//! Not here: client certificates, retry of the key exchange, protection against replay.

pub mod flight;
mod key;
mod message;
mod own;
mod resumption;
mod session;

use quipu_base::Role;
use quipu_quic::tls::{
    ClientHello, ClientStart, ClientTls, InitialSecrets, Keys, Level, ServerStart, ServerTls,
    Session, StartError, TlsError,
};
use quipu_quic::wire::{ConnectionId, Version};
use thiserror::Error;

pub use own::{NullResetKey, NullTokenKey};

use key::Secret;
use resumption::Store;
use session::{NullSession, ServerTraits};

/// Size of a server's certificate chain if none is named, in bytes: a common one, so that the
/// anti-amplification limit acts as in life.
pub const DEFAULT_CERTIFICATE_CHAIN: usize = 3_000;

/// Starts the client's sessions. Clones share the sessions to resume.
#[derive(Clone, Debug)]
pub struct NullClient {
    alpn: Vec<Vec<u8>>,
    /// `None`: no session is resumed.
    store: Option<Store>,
}

/// Starts the server's sessions.
#[derive(Clone, Debug)]
pub struct NullServer {
    alpn: Vec<Vec<u8>>,
    certificate_chain: usize,
    ticket_key: u64,
}

/// A configuration that no TLS could send.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A protocol's name has no bytes or more than 255.
    #[error("protocol name of {length} bytes, expected 1 to 255")]
    ProtocolName {
        /// Its length in bytes.
        length: usize,
    },
    /// The names of the protocols, with a byte before each, are too long together.
    #[error("protocol names of {length} bytes in all, expected at most {MAX_PROTOCOLS}")]
    Protocols {
        /// Their length in bytes.
        length: usize,
    },
    /// The certificate chain is too long.
    #[error(
        "certificate chain of {length} bytes, expected at most {}",
        flight::MAX_CERTIFICATE_CHAIN
    )]
    CertificateChain {
        /// Its length in bytes.
        length: usize,
    },
}

/// The most bytes of protocol names, with a byte before each.
const MAX_PROTOCOLS: usize = 1 << 15;

impl NullClient {
    /// Offers `alpn` in this order; resumes no session.
    ///
    /// # Errors
    /// [`ConfigError`] if a name is too long or empty.
    pub fn new(alpn: &[&[u8]]) -> Result<Self, ConfigError> {
        Ok(NullClient { alpn: checked(alpn)?, store: None })
    }

    /// The same client, which keeps tickets of servers and resumes each session once.
    #[must_use]
    pub fn with_resumption(self) -> Self {
        NullClient { store: Some(Store::default()), ..self }
    }
}

impl NullServer {
    /// Takes the first of `alpn` that the client offers; shows a chain of
    /// [`DEFAULT_CERTIFICATE_CHAIN`].
    ///
    /// # Errors
    /// [`ConfigError`] if a name is too long or empty.
    pub fn new(alpn: &[&[u8]]) -> Result<Self, ConfigError> {
        let alpn = checked(alpn)?;
        Ok(NullServer { alpn, certificate_chain: DEFAULT_CERTIFICATE_CHAIN, ticket_key: 0 })
    }

    /// The same server with a ticket key of its own: sessions of a server with another key, the
    /// default being 0, are not resumed, as those of a server that was restarted.
    #[must_use]
    pub fn with_ticket_key(self, ticket_key: u64) -> Self {
        NullServer { ticket_key, ..self }
    }

    /// The same server with a certificate chain of `bytes`, as one certificate: each further one
    /// of a chain takes 5 bytes beside its own.
    ///
    /// # Errors
    /// [`ConfigError::CertificateChain`] if no TLS message could hold it.
    pub fn with_certificate_chain(self, bytes: usize) -> Result<Self, ConfigError> {
        if bytes > flight::MAX_CERTIFICATE_CHAIN {
            return Err(ConfigError::CertificateChain { length: bytes });
        }
        Ok(NullServer { certificate_chain: bytes, ..self })
    }
}

fn checked(alpn: &[&[u8]]) -> Result<Vec<Vec<u8>>, ConfigError> {
    let wrong = alpn.iter().map(|name| name.len()).find(|length| !(1..=255).contains(length));
    if let Some(length) = wrong {
        return Err(ConfigError::ProtocolName { length });
    }
    let length = alpn.iter().map(|name| name.len() + 1).sum();
    if length > MAX_PROTOCOLS {
        return Err(ConfigError::Protocols { length });
    }
    Ok(alpn.iter().map(|name| name.to_vec()).collect())
}

/// The most bytes of transport parameters that fit into an extension.
const MAX_PARAMETERS: usize = u16::MAX as usize;

fn check_parameters(parameters: &[u8]) -> Result<(), StartError> {
    if parameters.len() > MAX_PARAMETERS {
        let length = parameters.len();
        return Err(StartError::Config(format!(
            "transport parameters of {length} bytes, expected at most {MAX_PARAMETERS}"
        )));
    }
    Ok(())
}

impl ClientTls for NullClient {
    fn start(&self, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        check_parameters(start.parameters)?;
        let server_name = start.server_name;
        if server_name.is_empty() || server_name.len() > 253 || !server_name.is_ascii() {
            return Err(StartError::ServerName(server_name.to_owned()));
        }
        Ok(Box::new(NullSession::client(&self.alpn, self.store.as_ref(), start)))
    }
}

impl ServerTls for NullServer {
    fn client_hello<'h>(&self, bytes: &'h [u8]) -> Result<Option<ClientHello<'h>>, TlsError> {
        session::read_client_hello(bytes)
    }

    fn start(&self, start: &ServerStart<'_>) -> Result<Box<dyn Session>, StartError> {
        check_parameters(start.parameters)?;
        let traits = ServerTraits {
            certificate_chain: self.certificate_chain,
            ticket_key: Secret::of(&self.ticket_key.to_be_bytes()),
        };
        Ok(Box::new(NullSession::server(self.alpn.clone(), traits, start)))
    }
}

fn initial_keys(version: Version, dcid: &ConnectionId, role: Role) -> Keys {
    Secret::of(dcid.as_bytes()).in_version(version).keys(Level::Initial, role)
}

impl InitialSecrets for NullClient {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(version, dcid, role)
    }
}

impl InitialSecrets for NullServer {
    fn initial_keys(&self, version: Version, dcid: &ConnectionId, role: Role) -> Keys {
        initial_keys(version, dcid, role)
    }
}
