//! Random bytes on a wire come from the TLS provider, those of virtual time from a seed, and the
//! two cannot take each other's place.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use quipu_base::Instant;
use quipu_quic::endpoint::{ClientConfig, ConnectError, EndpointConfig, ServerConfig};
use quipu_quic::random::{NoRandomness, SecureSource};
use quipu_quic::tls::rustls::{RustlsClient, RustlsServer, provider, secure_source};
use quipu_quic::{Arrival, Endpoint, Outbox, Route, Transmit, TransportConfig};
use quipu_testkit::{Identity, SERVER_NAME, client_address, plain_policies, server_address};

/// Where seeded endpoints may be made: experiments and tests, none of which has a network, and the
/// one benchmark of ours whose two ends pass datagrams in memory.
const SEEDED: [&str; 5] = [
    "crates/quipu-lab/",
    "crates/quipu-testkit/",
    "interop/",
    "fuzz/fuzz_targets/",
    "bench/peers/src/bin/quipu.rs",
];

/// The files of the engine that may name a seeded generator, in code that is no test: the source
/// itself, and the constructor that takes one.
const ENGINE: [&str; 2] =
    ["crates/quipu-quic/src/random.rs", "crates/quipu-quic/src/endpoint/mod.rs"];

/// Names of seeded generators.
const GENERATORS: [&str; 6] = ["Random", "Rng", "Seed", "rand_core", "rand_pcg", "xxhash_rust"];

#[test]
fn only_experiments_and_tests_make_seeded_endpoints() {
    let names = ["seeded", "seeded_with"];
    let users: Vec<_> = sources()
        .into_iter()
        .filter(|(path, _)| !path.starts_with("crates/quipu-quic/"))
        .filter(|(_, code)| mentions(code, &names))
        .map(|(path, _)| path)
        .collect();
    for folder in [SEEDED[0], SEEDED[4]] {
        assert!(users.iter().any(|path| path.starts_with(folder)), "{folder} has one: {users:?}");
    }
    let others: Vec<_> =
        users.iter().filter(|path| !SEEDED.iter().any(|folder| path.starts_with(folder))).collect();
    assert!(others.is_empty(), "seeded endpoints in {others:?}, which may meet a network");
}

#[test]
fn the_engine_draws_from_a_seeded_generator_in_one_place() {
    let engine: Vec<_> = sources()
        .into_iter()
        .filter(|(path, _)| path.starts_with("crates/quipu-quic/src/"))
        .filter(|(path, _)| !path.ends_with("/tests.rs") && !path.ends_with("set/random.rs"))
        .filter(|(_, code)| {
            // Tests of a file stand at its end.
            let code = code.split("#[cfg(test)]").next().unwrap_or_default();
            mentions(code, &GENERATORS)
        })
        .map(|(path, _)| path)
        .collect();
    let mut expected = ENGINE.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(engine, expected);
}

#[test]
fn a_name_is_found_in_code_and_not_in_comments_or_other_names() {
    assert!(mentions("let endpoint = Endpoint::seeded(random);", &["seeded"]));
    assert!(!mentions("// Endpoint::seeded is not for you\nlet unseeded = 1;", &["seeded"]));
    assert!(!mentions("trait Randomness {} // Random", &["Random"]));
}

/// The code of all our Rust files with their paths from the root on, in order.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the root");
    let mut files = Vec::new();
    for folder in ["crates", "examples", "interop", "fuzz", "bench"] {
        collect(&root.join(folder), &mut files);
    }
    let mut sources: Vec<_> = files
        .iter()
        .map(|file| {
            let path = file.strip_prefix(root).expect("within the root");
            let path = path.to_str().expect("our names are plain").replace('\\', "/");
            (path, fs::read_to_string(file).expect("a source can be read"))
        })
        .collect();
    sources.sort();
    assert!(sources.len() > 300, "only {} files were found", sources.len());
    sources
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// True if one of `names` stands in `code` as a word of its own, outside comments.
fn mentions(code: &str, names: &[&str]) -> bool {
    let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    code.flat_map(|line| line.split(|letter| !is_name(letter))).any(|word| names.contains(&word))
}

/// The provider's source, which keeps what it gave.
struct Recorded {
    provider: Arc<dyn SecureSource>,
    given: Mutex<Vec<u8>>,
}

impl SecureSource for Recorded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), NoRandomness> {
        self.provider.fill(bytes)?;
        self.given.lock().expect("no thread panics").extend_from_slice(bytes);
        Ok(())
    }
}

impl Recorded {
    fn new() -> Arc<Self> {
        let provider = secure_source(&provider());
        Arc::new(Recorded { provider, given: Mutex::default() })
    }

    fn gave(&self, bytes: &[u8]) -> bool {
        let given = self.given.lock().expect("no thread panics");
        given.windows(bytes.len()).any(|window| window == bytes)
    }
}

#[derive(Default)]
struct Sent {
    buffer: Vec<u8>,
    datagrams: Vec<(SocketAddr, Vec<u8>)>,
}

impl Outbox for Sent {
    fn has_room(&self) -> bool {
        true
    }

    fn buffer(&mut self, size: usize) -> &mut [u8] {
        self.buffer.resize(size, 0);
        &mut self.buffer
    }

    fn send(&mut self, transmit: Transmit) {
        self.datagrams.push((transmit.route.remote, self.buffer[..transmit.len].to_vec()));
    }
}

fn sent(endpoint: &mut Endpoint) -> Vec<u8> {
    let mut sent = Sent::default();
    endpoint.poll_transmit(Instant::ZERO, &mut sent);
    sent.datagrams.into_iter().next().expect("a datagram").1
}

/// Destination and source connection ID of a long header.
fn connection_ids(datagram: &[u8]) -> (&[u8], &[u8]) {
    let (dcid, rest) = datagram[6..].split_at(usize::from(datagram[5]));
    (dcid, &rest[1..1 + usize::from(rest[0])])
}

fn client_config(identity: &Identity) -> ClientConfig {
    let tls = identity.client_tls().expect("an identity");
    let tls = RustlsClient::new(Arc::new(tls)).expect("usable with QUIC");
    ClientConfig::new(Arc::new(tls), Arc::new(TransportConfig::default()), plain_policies())
}

#[test]
fn connection_ids_of_rustls_endpoints_come_from_the_provider() {
    let identity = Identity::generate().expect("a certificate");
    let (here, there) = (Recorded::new(), Recorded::new());
    let mut client = Endpoint::new(EndpointConfig::default(), here.clone()).expect("valid");
    let mut server = Endpoint::new(EndpointConfig::default(), there.clone()).expect("valid");
    let tls = RustlsServer::new(Arc::new(identity.server_tls().expect("an identity")));
    let tls = Arc::new(tls.expect("usable with QUIC"));
    let transport = Arc::new(TransportConfig::default());
    server.listen(ServerConfig::new(tls, transport, plain_policies())).expect("valid");
    let route = Route::new(client_address(0), server_address());
    let config = client_config(&identity);
    client.connect(Instant::ZERO, &config, SERVER_NAME, route).expect("valid");

    let mut first = sent(&mut client);
    let (dcid, scid) = connection_ids(&first);
    assert!(here.gave(dcid) && here.gave(scid));
    let route = Route::new(server_address(), client_address(0));
    let arrival = Arrival { route, ecn: 0 };
    server.handle_datagram(Instant::ZERO, arrival, &mut first.clone());
    let answer = sent(&mut server);
    let (to, from) = connection_ids(&answer);
    assert_eq!(to, scid);
    assert!(there.gave(from) && !here.gave(from));
    first.clear();
}

#[test]
fn nothing_is_sent_that_should_have_been_random_and_is_not() {
    struct Dry;
    impl SecureSource for Dry {
        fn fill(&self, _bytes: &mut [u8]) -> Result<(), NoRandomness> {
            Err(NoRandomness)
        }
    }
    let identity = Identity::generate().expect("a certificate");
    let mut client = Endpoint::new(EndpointConfig::default(), Arc::new(Dry)).expect("valid");
    let route = Route::new(client_address(0), server_address());
    let error = client.connect(Instant::ZERO, &client_config(&identity), SERVER_NAME, route);
    assert_eq!(error, Err(ConnectError::Randomness(NoRandomness)));
    assert_eq!(client.handles().count(), 0);
}
