//! The TLS of clients.

use std::path::Path;
use std::sync::Arc;

use quipu_quic::tls::rustls::{RustlsClient, provider};
use rustls::client::WantsClientCert;
use rustls::{ConfigBuilder, RootCertStore, WantsVerifier};

use super::error::IdentityError;
use super::files;
use super::key_log::key_log;
use super::pin::{Pin, Pinned};

/// A client that trusts the server with that pin, whatever its name, and no other. If the environment
/// variable `SSLKEYLOGFILE` names a file, the secrets of its connections are appended there, for tools
/// that decrypt recorded packets:
/// <https://www.ietf.org/archive/id/draft-ietf-tls-keylogfile-05.html>.
///
/// # Errors
/// See [`IdentityError`].
pub fn pinned(pin: Pin, alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    by_pin(Some(pin), alpn)
}

/// A client that trusts whoever answers, with any certificate: nothing tells the server from an attacker between. For
/// tests of servers. `SSLKEYLOGFILE` as in [`pinned`].
///
/// # Errors
/// See [`IdentityError`].
pub fn trusting_anyone(alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    by_pin(None, alpn)
}

/// The configuration of a client that trusts as [`pinned`] does, for TLS 1.3 over TCP.
///
/// # Errors
/// See [`IdentityError`].
pub fn pinned_config(pin: Pin, alpn: &[&[u8]]) -> Result<Arc<rustls::ClientConfig>, IdentityError> {
    Ok(config(knowing(Some(pin))?, alpn))
}

fn by_pin(pin: Option<Pin>, alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    client(knowing(pin)?, alpn)
}

fn knowing(
    pin: Option<Pin>,
) -> Result<ConfigBuilder<rustls::ClientConfig, WantsClientCert>, IdentityError> {
    let verifier = Arc::new(Pinned { pin, provider: provider() });
    Ok(builder()?.dangerous().with_custom_certificate_verifier(verifier))
}

/// A client that trusts the certificates of a PEM file, and whatever they signed for the server's name:
/// those of authorities, or a server's own. `SSLKEYLOGFILE` as in [`pinned`].
///
/// # Errors
/// See [`IdentityError`].
pub fn trusting(authorities: &Path, alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    let mut roots = RootCertStore::empty();
    for certificate in files::read_certificates(authorities)? {
        let added = roots.add(certificate);
        added.map_err(|source| IdentityError::Root { path: authorities.to_owned(), source })?;
    }
    client(builder()?.with_root_certificates(roots), alpn)
}

/// A client that trusts the authorities that this host does, as its other programs: for servers on the
/// Internet. `SSL_CERT_FILE` and `SSL_CERT_DIR` name others. `SSLKEYLOGFILE` as in [`pinned`].
///
/// # Errors
/// [`IdentityError::NoRoots`] if the host has none; see there for others.
pub fn trusting_host(alpn: &[&[u8]]) -> Result<RustlsClient, IdentityError> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Hosts have some that nobody can read; those are trusted for nothing.
    if roots.add_parsable_certificates(found.certs).0 == 0 {
        return Err(IdentityError::NoRoots);
    }
    client(builder()?.with_root_certificates(roots), alpn)
}

fn builder() -> Result<ConfigBuilder<rustls::ClientConfig, WantsVerifier>, IdentityError> {
    let builder = rustls::ClientConfig::builder_with_provider(provider());
    Ok(builder.with_protocol_versions(&[&rustls::version::TLS13])?)
}

fn client(
    builder: ConfigBuilder<rustls::ClientConfig, WantsClientCert>,
    alpn: &[&[u8]],
) -> Result<RustlsClient, IdentityError> {
    Ok(RustlsClient::new(config(builder, alpn))?)
}

fn config(
    builder: ConfigBuilder<rustls::ClientConfig, WantsClientCert>,
    alpn: &[&[u8]],
) -> Arc<rustls::ClientConfig> {
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.key_log = key_log();
    Arc::new(config)
}
