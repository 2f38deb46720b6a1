//! What each case asks of quiche's configuration.

use std::path::Path;

use quiche::Config;
use quipu_interop_live::{Case, Failure, Options};
use ring::rand::{SecureRandom, SystemRandom};

/// Bytes of a connection ID.
pub(crate) const ID_BYTES: usize = 16;

/// Bytes of a datagram, at most.
pub(crate) const MAX_DATAGRAM: usize = 65_535;

/// Streams that a client may have open at once.
const STREAMS: u64 = 100;

/// Connection IDs that the other end may give: one for each address of a client that moves.
const IDS: u64 = 4;

/// A version of the pattern that is kept to exercise version negotiation.
const RESERVED: u32 = 0xbaba_baba;

fn common(options: &Options, version: u32) -> Result<Config, Failure> {
    let mut config = Config::new(version)?;
    config.set_application_protos(&[options.case.alpn()])?;
    config.set_max_idle_timeout(30_000);
    config.set_max_send_udp_payload_size(1350);
    config.set_initial_max_data(8 << 20);
    config.set_initial_max_stream_data_bidi_local(4 << 20);
    config.set_initial_max_stream_data_bidi_remote(1 << 20);
    config.set_initial_max_streams_bidi(STREAMS);
    if options.case.is_http3() {
        // HTTP/3's own streams.
        config.set_initial_max_streams_uni(8);
        config.set_initial_max_stream_data_uni(1 << 20);
    }
    config.set_active_connection_id_limit(IDS);
    // The loops send at once what they are given.
    config.enable_pacing(false);
    Ok(config)
}

pub(crate) fn server(options: &Options) -> Result<Config, Failure> {
    let mut config = common(options, quiche::PROTOCOL_VERSION)?;
    config.load_cert_chain_from_pem_file(text(&options.cert)?)?;
    config.load_priv_key_from_pem_file(text(&options.key)?)?;
    if options.case.is_early() {
        config.enable_early_data();
    }
    Ok(config)
}

pub(crate) fn client(options: &Options) -> Result<Config, Failure> {
    let version = match options.case {
        Case::VersionNegotiation => RESERVED,
        _ => quiche::PROTOCOL_VERSION,
    };
    let mut config = common(options, version)?;
    config.load_verify_locations_from_file(text(&options.ca)?)?;
    config.verify_peer(true);
    if options.case.is_early() {
        config.enable_early_data();
    }
    Ok(config)
}

fn text(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| format!("{}: expected a path in UTF-8", path.display()).into())
}

/// Random bytes of the system.
pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES], Failure> {
    let mut bytes = [0; BYTES];
    SystemRandom::new().fill(&mut bytes).map_err(|_| "the system has no random bytes")?;
    Ok(bytes)
}
