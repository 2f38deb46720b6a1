//! A server and a client that trusts it.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use quipu_base::Bytes;
use quipu_policy::Registry;
use quipu_quic::DatagramConfig;
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer};
use quipu_tokio::{
    ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, Via, policies,
};
use rustls::pki_types::PrivatePkcs8KeyDer;

pub(crate) const NAME: &str = "quipu.test";
pub(crate) const ALPN: &[u8] = b"test";

/// Runs a test that may take so long, on a busy machine.
pub(crate) async fn limited<R>(test: impl Future<Output = R>) -> R {
    let limit = Duration::from_secs(20);
    tokio::time::timeout(limit, test).await.expect("the test ends in time")
}

pub(crate) struct Setup {
    pub(crate) server: ServerConfig,
    pub(crate) client: ClientConfig,
    roots: rustls::RootCertStore,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self::with(TransportConfig {
            datagrams: Some(DatagramConfig::default()),
            ..TransportConfig::default()
        })
    }

    pub(crate) fn with(transport: TransportConfig) -> Self {
        Self::speaking(transport, ALPN, ALPN)
    }

    pub(crate) fn speaking(transport: TransportConfig, server: &[u8], client: &[u8]) -> Self {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).unwrap();
        let server_tls =
            RustlsServer::with_certificate(vec![certificate], key.into(), &[server]).unwrap();
        let client_tls = RustlsClient::with_roots(roots.clone(), &[client]).unwrap();
        let policies = policies(&Registry::builtin(), "").unwrap();
        let transport = Arc::new(transport);
        Setup {
            server: ServerConfig::new(
                Arc::new(server_tls),
                Arc::clone(&transport),
                Arc::clone(&policies),
            ),
            client: ClientConfig::new(Arc::new(client_tls), transport, policies),
            roots,
        }
    }

    /// What a client has to trust.
    pub(crate) fn roots(&self) -> rustls::RootCertStore {
        self.roots.clone()
    }

    /// A server at 127.0.0.1, and where it listens.
    pub(crate) fn listen(&self) -> (Endpoint, SocketAddr) {
        let server = Endpoint::server(self.server.clone());
        let server = server.listen("127.0.0.1:0".parse().unwrap()).bind().unwrap();
        let address = server.local_addresses()[0];
        (server, address)
    }

    /// A connection from one end to the other.
    pub(crate) async fn connect(&self) -> Pair {
        self.connect_by(&[]).await
    }

    /// The same by these addresses of the client.
    pub(crate) async fn connect_by(&self, vias: &[&str]) -> Pair {
        let (server, address) = self.listen();
        let mut builder = Endpoint::client();
        for via in vias {
            builder = builder.via(Via::Address(via.parse().unwrap()));
        }
        let client = builder.bind().unwrap();
        let accept = async { server.accept().await.unwrap().accept().await.unwrap() };
        let connect = async { client.connect(&self.client, address, NAME).await.unwrap() };
        let (there, here) = tokio::join!(accept, connect);
        Pair { server, client, here, there }
    }
}

/// Both ends of a connection.
pub(crate) struct Pair {
    pub(crate) server: Endpoint,
    pub(crate) client: Endpoint,
    /// The client's end.
    pub(crate) here: Connection,
    /// The server's end.
    pub(crate) there: Connection,
}

/// Bytes that differ everywhere.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut step = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| step()).collect()
}

/// A transport with windows of that size.
pub(crate) fn narrow(window: u64) -> TransportConfig {
    TransportConfig {
        stream_window: Bytes(window),
        connection_window: Bytes(window),
        send_buffer: Bytes(window),
        ..TransportConfig::default()
    }
}
