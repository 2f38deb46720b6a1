//! Endpoints and configurations of quinn and noq.

use std::net::UdpSocket;
use std::sync::Arc;

use quipu_interop_live::{Failure, Options, facts, tls};

use crate::extra;
use crate::library::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use crate::library::rustls;
use crate::library::{
    ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig,
};

/// Streams that a client may have open at once.
const STREAMS: u32 = 100;

/// A server that listens, and has told so.
pub(crate) fn server(options: &Options) -> Result<Endpoint, Failure> {
    let tls = QuicServerConfig::with_initial(Arc::new(tls::server(options)?), initial()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport(options));
    let socket = UdpSocket::bind(options.listen)?;
    let mut endpoint_config = EndpointConfig::new(Arc::new(tls::reset_key(options)?));
    // One that starts again takes the connection IDs of the one before for its own.
    extra::same_ids(&mut endpoint_config);
    let endpoint = Endpoint::new(endpoint_config, Some(config), socket, Arc::new(TokioRuntime))?;
    facts::tell("listening", endpoint.local_addr()?);
    Ok(endpoint)
}

/// The configuration of a client.
pub(crate) fn client(options: &Options) -> Result<ClientConfig, Failure> {
    let tls = QuicClientConfig::with_initial(Arc::new(tls::client(options)?), initial()?)?;
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport(options));
    Ok(config)
}

/// The suite of Initial packets.
fn initial() -> Result<rustls::quic::Suite, Failure> {
    let suites = rustls::crypto::ring::default_provider().cipher_suites;
    let mut found = suites
        .iter()
        .filter(|suite| suite.suite() == rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
    let suite = found.find_map(|suite| suite.tls13()?.quic_suite());
    suite.ok_or_else(|| "there is no suite for Initial packets".into())
}

fn transport(options: &Options) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.max_concurrent_bidi_streams(STREAMS.into());
    extra::transport(options, &mut config);
    Arc::new(config)
}
