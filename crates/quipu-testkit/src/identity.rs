//! Who the server is, and what TLS both sides speak.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The name in the certificate.
pub const SERVER_NAME: &str = "localhost";
/// The application protocol of an exchange.
pub const ALPN: &[u8] = b"quipu-exchange";

/// A self-signed Ed25519 certificate with its key. Its signatures have one length, so that all
/// handshakes have the same size.
#[derive(Clone, Debug)]
pub struct Identity {
    certificate: CertificateDer<'static>,
    /// PKCS #8.
    key: Vec<u8>,
}

impl Identity {
    /// A new key and its certificate.
    ///
    /// # Errors
    /// If the system has no randomness to give.
    pub fn generate() -> Result<Self, rcgen::Error> {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
        let params = rcgen::CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        let certificate = params.self_signed(&key)?;
        Ok(Identity { certificate: certificate.der().clone(), key: key.serialize_der() })
    }

    /// Bytes of the certificate, in DER.
    pub fn certificate_length(&self) -> usize {
        self.certificate.len()
    }

    /// TLS of a server with this identity.
    ///
    /// # Errors
    /// If rustls refuses the certificate or its key.
    pub fn server_tls(&self) -> Result<rustls::ServerConfig, rustls::Error> {
        let key = PrivateKeyDer::try_from(self.key.clone())
            .map_err(|reason| rustls::Error::General(reason.to_owned()))?;
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }

    /// TLS of a client that trusts this identity alone.
    ///
    /// # Errors
    /// If rustls refuses the certificate.
    pub fn client_tls(&self) -> Result<rustls::ClientConfig, rustls::Error> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(config)
    }
}

/// TLS configurations of both sides that several connections share, so that a later one resumes what an
/// earlier one left.
#[derive(Clone, Debug)]
pub struct SharedTls {
    /// The client's, with its store of sessions.
    pub client: Arc<rustls::ClientConfig>,
    /// The server's, with its store of sessions.
    pub server: Arc<rustls::ServerConfig>,
}

impl SharedTls {
    /// Both sides of `identity`. `early_data`: the client sends it, and the server takes it.
    ///
    /// # Errors
    /// If rustls refuses the certificate or its key.
    pub fn new(identity: &Identity, early_data: bool) -> Result<Self, rustls::Error> {
        let (mut client, mut server) = (identity.client_tls()?, identity.server_tls()?);
        if early_data {
            client.enable_early_data = true;
            // https://www.rfc-editor.org/rfc/rfc9001#section-4.6.1
            server.max_early_data_size = u32::MAX;
        }
        Ok(SharedTls { client: Arc::new(client), server: Arc::new(server) })
    }

    /// The same client with a server that has forgotten all sessions, as one that was restarted.
    ///
    /// # Errors
    /// If rustls refuses the certificate or its key.
    pub fn with_forgetful_server(&self, identity: &Identity) -> Result<Self, rustls::Error> {
        let mut server = identity.server_tls()?;
        server.max_early_data_size = self.server.max_early_data_size;
        Ok(SharedTls { client: Arc::clone(&self.client), server: Arc::new(server) })
    }
}

/// ring with X25519 alone, so that key shares have one length.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = rustls::crypto::ring::default_provider();
    provider.kx_groups.retain(|group| group.name() == rustls::NamedGroup::X25519);
    Arc::new(provider)
}
