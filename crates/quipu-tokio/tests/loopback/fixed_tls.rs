//! TLS of `rustls` that draws the same each time: for replays, which it makes possible, and nothing
//! else, since whoever knows the seed reads all.

use std::sync::{Arc, Mutex};

use quipu_base::{Random, Rng, Seed};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer, provider};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret,
    SupportedKxGroup,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use rustls::{NamedGroup, RootCertStore};

use crate::setup::{ALPN, NAME};

/// Random bytes that a seed gives.
#[derive(Debug)]
struct Seeded(Mutex<Random>);

impl SecureRandom for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.0.lock().unwrap().fill_bytes(bytes);
        Ok(())
    }
}

/// A key exchange with messages like those of X25519 and no secret: the shares are all it takes.
#[derive(Debug)]
struct Exchange(&'static Seeded);

struct Share([u8; 32]);

impl SupportedKxGroup for Exchange {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, rustls::Error> {
        let mut share = [0; 32];
        self.0.fill(&mut share)?;
        Ok(Box::new(Share(share)))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

impl ActiveKeyExchange for Share {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, rustls::Error> {
        let both: Vec<u8> = self.0.iter().zip(peer).map(|(own, peer)| own ^ peer).collect();
        Ok(SharedSecret::from(both))
    }

    fn pub_key(&self) -> &[u8] {
        &self.0
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

fn fixed(seed: u64) -> Arc<CryptoProvider> {
    // `rustls` holds them for ever.
    let random: &'static Seeded =
        Box::leak(Box::new(Seeded(Mutex::new(Seed::new(seed).stream("tls", 0)))));
    let exchange: &'static Exchange = Box::leak(Box::new(Exchange(random)));
    Arc::new(CryptoProvider {
        kx_groups: vec![exchange],
        secure_random: random,
        ..(*provider()).clone()
    })
}

/// A certificate, and what both ends make of it, the same each time.
pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub(crate) fn new() -> Identity {
        // Signatures of this kind are the same each time, too.
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let params = rcgen::CertificateParams::new([NAME.to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        Identity { certificate, key: key.serialize_der() }
    }

    pub(crate) fn server(&self) -> RustlsServer {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = rustls::ServerConfig::builder_with_provider(fixed(1))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .unwrap();
        config.alpn_protocols = vec![ALPN.to_vec()];
        RustlsServer::new(Arc::new(config)).unwrap()
    }

    pub(crate) fn client(&self) -> RustlsClient {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = rustls::ClientConfig::builder_with_provider(fixed(2))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        RustlsClient::new(Arc::new(config)).unwrap()
    }
}
