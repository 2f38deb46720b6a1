//! Both ends' handshakes: the stand-in without arithmetic, or rustls with a certificate made here.

use std::sync::{Arc, LazyLock};

use quipu_null_tls::{NullClient, NullServer};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer};
use quipu_quic::tls::{ClientTls, ServerTls};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use thiserror::Error;

use quipu_scenario::{Scenario, Tls};

/// TLS could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("TLS: {0}")]
pub struct TlsError(String);

impl TlsError {
    fn new(error: impl std::fmt::Display) -> TlsError {
        TlsError(error.to_string())
    }
}

/// The client's end of the handshake, for the protocol `alpn`.
pub(super) fn client(scenario: &Scenario, alpn: &[u8]) -> Result<Arc<dyn ClientTls>, TlsError> {
    match scenario.transport.tls {
        Tls::Null => Ok(Arc::new(NullClient::new(&[alpn]).map_err(TlsError::new)?)),
        Tls::Rustls => {
            let mut roots = rustls::RootCertStore::empty();
            roots.add(identity()?.chain_end.clone()).map_err(TlsError::new)?;
            Ok(Arc::new(RustlsClient::with_roots(roots, &[alpn]).map_err(TlsError::new)?))
        }
    }
}

/// The server's end of the handshake, for the protocol `alpn`.
pub(super) fn server(scenario: &Scenario, alpn: &[u8]) -> Result<Arc<dyn ServerTls>, TlsError> {
    let chain = scenario.transport.certificate_chain;
    let bytes = usize::try_from(chain.0).map_err(TlsError::new)?;
    match scenario.transport.tls {
        Tls::Null => {
            let server = NullServer::new(&[alpn]).map_err(TlsError::new)?;
            Ok(Arc::new(server.with_certificate_chain(bytes).map_err(TlsError::new)?))
        }
        Tls::Rustls => {
            let identity = identity()?;
            let key = PrivateKeyDer::Pkcs8(identity.key.clone_key());
            let chain = identity.padded_chain(bytes);
            Ok(Arc::new(
                RustlsServer::with_certificate(chain, key, &[alpn]).map_err(TlsError::new)?,
            ))
        }
    }
}

/// A certificate that signs itself, and its Ed25519 key.
struct Identity {
    chain_end: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Identity {
    /// The certificate, and a second one of zeros that makes the chain `bytes` long. Nobody reads
    /// the second: the first is trusted by itself.
    fn padded_chain(&self, bytes: usize) -> Vec<CertificateDer<'static>> {
        // Length and extensions of a certificate in TLS 1.3's list:
        // https://www.rfc-editor.org/rfc/rfc8446#section-4.4.2
        const ENTRY: usize = 5;
        let mut chain = vec![self.chain_end.clone()];
        let padding = bytes.saturating_sub(self.chain_end.len() + ENTRY);
        if padding > 0 {
            chain.push(CertificateDer::from(vec![0; padding]));
        }
        chain
    }
}

/// One identity for the whole process: to make it costs more than a run.
fn identity() -> Result<&'static Identity, TlsError> {
    static IDENTITY: LazyLock<Result<Identity, TlsError>> = LazyLock::new(make);
    IDENTITY.as_ref().map_err(Clone::clone)
}

fn make() -> Result<Identity, TlsError> {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(TlsError::new)?;
    let params =
        rcgen::CertificateParams::new(vec!["page.test".to_owned()]).map_err(TlsError::new)?;
    let certificate = params.self_signed(&key).map_err(TlsError::new)?;
    Ok(Identity {
        chain_end: certificate.der().clone(),
        key: PrivatePkcs8KeyDer::from(key.serialize_der()),
    })
}
