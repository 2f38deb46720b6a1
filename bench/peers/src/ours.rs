//! How both binaries of ours are set up: TLS, windows and policies.

use std::sync::Arc;

use quic_bulk::*;
use quipu_base::{Bytes as Amount, Seed};
use quipu_policy::{BuildContext, PolicySpec, Registry};
use quipu_quic::TransportConfig;
use quipu_quic::endpoint::{ClientConfig, PolicyFactory, ServerConfig};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

#[derive(Clone)]
pub struct Setup {
    pub name: String,
    pub server: ServerConfig,
    pub client: ClientConfig,
}

fn provider(name: &str) -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = match name {
        "ring" => rustls::crypto::ring::default_provider(),
        "aws-lc-rs" => rustls::crypto::aws_lc_rs::default_provider(),
        _ => panic!("provider {name}"),
    };
    provider.cipher_suites.retain(|s| s.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    provider.kx_groups.retain(|g| g.name() == rustls::NamedGroup::X25519);
    assert_eq!((provider.cipher_suites.len(), provider.kx_groups.len()), (1, 1));
    Arc::new(provider)
}

impl Setup {
    /// `lib`: what the rows are called; `transport` has all but the windows, which are quinn's by
    /// default: `window` bytes for each stream, or those of the library itself if it is 0.
    pub fn new(
        lib: &str,
        transport: TransportConfig,
        provider_name: &str,
        window: u64,
        policies: &str,
    ) -> Self {
        let (cert, key, _, _) = cert();
        let cert = CertificateDer::from(cert);
        let provider = provider(provider_name);
        let mut server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.clone()], PrivatePkcs8KeyDer::from(key).into())
            .unwrap();
        server.alpn_protocols = vec![b"bench".to_vec()];
        let mut roots = rustls::RootCertStore::empty();
        roots.add(cert).unwrap();
        let mut client = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![b"bench".to_vec()];
        client.resumption = rustls::client::Resumption::disabled();
        let mut transport = TransportConfig { max_udp_payload: UDP_PAYLOAD as u16, ..transport };
        if window > 0 {
            transport.stream_window = Amount(window);
            transport.connection_window = Amount(window.max(10_000_000));
            // Others take no more than the stream window, which the peer extends as it reads.
            transport.send_buffer = Amount(window);
        }
        let transport = Arc::new(transport);
        let policies = factory(policies);
        let name = match provider_name {
            "ring" => lib.to_string(),
            other => format!("{lib}+{other}"),
        };
        Setup {
            name,
            server: ServerConfig::new(
                Arc::new(RustlsServer::new(Arc::new(server)).unwrap()),
                Arc::clone(&transport),
                Arc::clone(&policies),
            ),
            client: ClientConfig::new(
                Arc::new(RustlsClient::new(Arc::new(client)).unwrap()),
                transport,
                policies,
            ),
        }
    }
}

fn factory(text: &str) -> PolicyFactory {
    let registry = Registry::builtin();
    let spec = PolicySpec::parse(&registry, text).unwrap();
    Arc::new(move || spec.build(&BuildContext::new(Seed::new(1))).unwrap())
}
