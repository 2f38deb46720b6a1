//! What each case asks of our configuration.

use std::sync::Arc;

use quipu_base::{Bytes, Duration};
use quipu_interop_live::{Case, Failure, Options, certificate, facts};
use quipu_policy::Registry;
use quipu_quic::PreferredAddresses;
use quipu_quic::endpoint::{EndpointConfig, TokenConfig};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer, provider, reset_key, token_key};
use quipu_quic::wire::Version;
use quipu_tokio::{ClientConfig, Connection, ServerConfig, TransportConfig, policies};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;

/// Streams that a client may have open at once: fewer than the files of the case `multiplexing`.
const STREAMS: u64 = 100;

/// Paths of the cases with several.
const PATHS: u32 = 4;

pub(crate) fn client(options: &Options) -> Result<ClientConfig, Failure> {
    let mut tls = rustls::ClientConfig::builder_with_provider(suites(options.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(certificate::roots(options)?)
        .with_no_client_auth();
    tls.alpn_protocols = vec![options.case.alpn().to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    if !options.case.connects_twice() {
        tls.resumption = rustls::client::Resumption::disabled();
    }
    let tls = RustlsClient::with_initial(Arc::new(tls), &provider())?;
    let policies = policies(&Registry::builtin(), "")?;
    Ok(ClientConfig::new(Arc::new(tls), Arc::new(transport(options.case, false)), policies))
}

pub(crate) fn server(
    options: &Options,
    preferred_address: PreferredAddresses,
) -> Result<(ServerConfig, EndpointConfig), Failure> {
    let (chain, key) = certificate::of_server(options)?;
    let secret = secret(&key);
    let mut tls = rustls::ServerConfig::builder_with_provider(suites(options.case))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![options.case.alpn().to_vec()];
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    let tls = Arc::new(RustlsServer::with_initial(Arc::new(tls), &provider())?);
    let policies = policies(&Registry::builtin(), order(options.case))?;
    let transport = TransportConfig { preferred_address, ..transport(options.case, true) };
    let config = ServerConfig::new(tls, Arc::new(transport), policies)
        .with_tokens(TokenConfig::with_key(token_key(&provider(), &secret)?));
    // One that starts again knows the reset tokens of the connections before.
    let reset_key = Some(reset_key(&provider(), &secret)?);
    Ok((config, EndpointConfig { reset_key, ..EndpointConfig::default() }))
}

/// How a server orders responses: those of HTTP/3 by the priorities that the client states.
const fn order(case: Case) -> &'static str {
    if case.is_http3() { "stream=rfc9218" } else { "" }
}

/// The suites of a case. Initial packets have theirs, whatever is offered.
fn suites(case: Case) -> Arc<CryptoProvider> {
    let mut suites = (*provider()).clone();
    if case == Case::ChaCha20 {
        suites
            .cipher_suites
            .retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    }
    Arc::new(suites)
}

fn transport(case: Case, is_server: bool) -> TransportConfig {
    let standard = TransportConfig {
        max_streams: STREAMS,
        idle_timeout: Duration::from_secs(30),
        stream_window: Bytes(4 << 20),
        connection_window: Bytes(8 << 20),
        ecn: true,
        early_data: case.is_early(),
        max_paths: if case.has_paths() { PATHS } else { 1 },
        ..TransportConfig::default()
    };
    match (case, is_server) {
        (Case::V2, true) => {
            TransportConfig { versions: vec![Version::V2, Version::V1], ..standard }
        }
        (Case::V2, false) => TransportConfig {
            versions: vec![Version::V2, Version::V1],
            first_version: Some(Version::V1),
            ..standard
        },
        (Case::VersionNegotiation, false) => TransportConfig {
            versions: vec![Version::V1, Version::V2],
            first_version: Some(Version::V2),
            ..standard
        },
        _ => standard,
    }
}

/// What tokens are made with, the same each time that a server with that key starts.
fn secret(key: &PrivateKeyDer<'_>) -> [u8; 32] {
    let mut secret = [0; 32];
    for (at, byte) in key.secret_der().iter().enumerate() {
        secret[at % 32] ^= byte;
    }
    secret
}

/// Tells what a connection agreed on and did.
pub(crate) fn tell(connection: &Connection) {
    if let Some(route) = connection.route() {
        facts::tell("route", format_args!("{} {}", route.local, route.remote));
    }
    if let Some(negotiated) = connection.negotiated() {
        facts::tell("suite", negotiated.cipher_suite);
        facts::tell("resumed", u8::from(negotiated.resumed));
    }
    if let Some(version) = connection.version() {
        facts::tell("version", format_args!("{:#x}", version.0));
    }
    if let Some(early) = connection.early_data() {
        facts::tell("early", format!("{early:?}").to_lowercase());
    }
    if let Some(updates) = connection.key_updates() {
        facts::tell("key_updates", updates);
    }
    if let Some(stats) = connection.stats() {
        facts::tell("packets_lost", stats.totals.packets_lost);
        facts::tell("packets_marked", stats.totals.packets_marked);
        for path in stats.paths {
            facts::tell(
                "path",
                format_args!(
                    "{} sent={} received={}",
                    path.id.0, path.sample.counters.bytes_sent, path.sample.counters.bytes_received
                ),
            );
        }
    }
}
