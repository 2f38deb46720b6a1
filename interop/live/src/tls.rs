//! TLS by rustls, for the libraries that take its configurations.

use std::sync::Arc;

use ring::hmac;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;

use crate::{Case, Failure, Options, certificate};

/// The suites of a case.
fn provider(case: Case) -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    if case == Case::ChaCha20 {
        provider
            .cipher_suites
            .retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    Arc::new(provider)
}

/// A server's configuration, which gives out tickets for 0-RTT.
///
/// # Errors
/// If the certificates or the key are missing or do not fit each other.
pub fn server(options: &Options) -> Result<rustls::ServerConfig, Failure> {
    let (chain, key) = certificate::of_server(options)?;
    let mut tls = rustls::ServerConfig::builder_with_provider(provider(options.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![options.case.alpn().to_vec()];
    tls.max_early_data_size = u32::MAX;
    Ok(tls)
}

/// A client's configuration, which keeps tickets.
///
/// # Errors
/// If the certificates that it trusts are missing.
pub fn client(options: &Options) -> Result<rustls::ClientConfig, Failure> {
    let mut tls = rustls::ClientConfig::builder_with_provider(provider(options.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(certificate::roots(options)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![options.case.alpn().to_vec()];
    tls.enable_early_data = options.case.is_early();
    Ok(tls)
}

/// What a server makes stateless reset tokens with: the same each time that one with that
/// certificate starts.
///
/// # Errors
/// If the key is missing.
pub fn reset_key(options: &Options) -> Result<hmac::Key, Failure> {
    let (_, key): (_, PrivateKeyDer<'static>) = certificate::of_server(options)?;
    Ok(hmac::Key::new(hmac::HMAC_SHA256, key.secret_der()))
}

/// The reset token of a connection ID.
pub fn reset_token(key: &hmac::Key, connection_id: &[u8]) -> [u8; 16] {
    let mut token = [0; 16];
    let tag = hmac::sign(key, connection_id);
    for (byte, from) in token.iter_mut().zip(tag.as_ref()) {
        *byte = *from;
    }
    token
}
