//! A page that is served.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_link::LinkConfig;
use quipu_policy::Registry;
use quipu_quic::endpoint::PolicyFactory;
use quipu_quic::recorder::RecorderFactory;
use quipu_serve::access::{AccessLog, Format, LogWriter};
use quipu_serve::tcp::{Limits, Listener, Server};
use quipu_serve::{Certificates, Recorded, Replay, http3};
use quipu_tokio::http3::ALPN;
use quipu_tokio::identity::Pin;
use quipu_tokio::{BindError, Endpoint, ServerConfig, TransportConfig, policies};
use quipu_web::page::Page;
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::runtime::Runtime;

use crate::relay::Relay;

/// How long a page may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);
/// Connections over TCP that are idle for so long are closed.
pub(crate) const IDLE: Duration = Duration::from_secs(1);
/// What comes this long after all is one request too many.
pub(crate) const SURPLUS: Duration = Duration::from_millis(500);

/// How a page is served.
pub(crate) struct Setup {
    pub(crate) policies: PolicyFactory,
    pub(crate) recorders: Option<RecorderFactory>,
    /// The link of each direction, without which there is only loopback. HTTP/3 goes over it, and nothing else does.
    pub(crate) link: Option<LinkConfig>,
}

impl Setup {
    /// With these policies, as `stream=rr path=minrtt`.
    pub(crate) fn new(text: &str) -> Setup {
        let policies = policies(&Registry::builtin(), text).unwrap();
        Setup { policies, recorders: None, link: None }
    }
}

/// A page that is served over HTTP/3 and TCP, at one port.
pub(crate) struct Served {
    pub(crate) replay: Replay,
    /// Where the browser finds it.
    pub(crate) port: u16,
    pub(crate) key: String,
    pub(crate) pin: Pin,
    log: NamedTempFile,
    _relay: Option<Relay>,
    // Dropped with the runtime that its tasks run on.
    _writer: LogWriter,
    _runtime: Runtime,
}

impl Served {
    /// Over loopback, with the policies that a server has by default.
    pub(crate) fn new(page: &Page) -> Served {
        Served::with(page, Setup::new(""))
    }

    pub(crate) fn with(page: &Page, setup: Setup) -> Served {
        let replay = Replay::new(page);
        let names: Vec<&str> = replay.hosts().iter().map(String::as_str).collect();
        let certificates = Arc::new(Certificates::generate_for(&names).unwrap());
        let log = NamedTempFile::new().unwrap();
        let (access, writer) = AccessLog::start(Format::Json, log.reopen().unwrap()).unwrap();
        let service = Recorded::new(replay.clone()).log(access);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let port = runtime.block_on(async {
            let tls = Arc::new(certificates.quic(&[ALPN]).unwrap());
            let (endpoint, listener) = loop {
                // A free port for both; that of one may be in use for the other.
                let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                let transport = Arc::new(TransportConfig::default());
                let config = ServerConfig::new(tls.clone(), transport, Arc::clone(&setup.policies));
                let mut builder = Endpoint::server(config).listen(listener.local_address());
                if let Some(recorders) = setup.recorders.clone() {
                    builder = builder.record(recorders);
                }
                match builder.bind() {
                    Ok(endpoint) => break (endpoint, listener),
                    Err(BindError::InUse(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            let address = endpoint.local_addresses()[0];
            let tcp = Server::new(listener, certificates.tcp().unwrap(), service.clone());
            let tcp = tcp.limits(Limits { idle: IDLE, ..Limits::default() }).unwrap();
            tokio::spawn(tcp.run(std::future::pending()));
            let quic = http3::Server::new(endpoint, service);
            tokio::spawn(quic.run(std::future::pending()));
            address.port()
        });
        let key = base64(&certificates.key_hash().unwrap());
        let pin = certificates.pin();
        let relay = setup.link.map(|link| {
            let server = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            Relay::start(server, &link, &link)
        });
        let port = relay.as_ref().map_or(port, |relay| relay.address().port());
        Served { replay, port, key, pin, log, _relay: relay, _writer: writer, _runtime: runtime }
    }

    /// The requests for hosts of the page.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.log.path()).unwrap();
        // The last line may not be there in full.
        let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let all = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
        // The browser has requests of its own for other hosts.
        let hosts = self.replay.hosts();
        all.filter(|entry| {
            let host = entry["host"].as_str().unwrap_or_default();
            let host = host.split(':').next().unwrap_or_default();
            // The browser looks for accounts by itself, of a host that pages have, too.
            let is_own = host == "accounts.google.com"
                && entry["target"]
                    .as_str()
                    .is_some_and(|target| target.starts_with("/ListAccounts?"));
            !is_own && hosts.iter().any(|known| known == host)
        })
        .collect()
    }

    /// Waits until there are `count` requests, and some time for more. What came by then.
    pub(crate) fn wait(&self, count: usize) -> Vec<Value> {
        let begin = Instant::now();
        while self.requests().len() < count && begin.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(SURPLUS);
        self.requests()
    }
}

/// <https://www.rfc-editor.org/rfc/rfc4648#section-4>, of 32 bytes.
pub(crate) fn base64(bytes: &[u8; 32]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let bits = bits << (8 * (3 - group.len()));
        let letters = (0..=group.len()).map(|place| LETTERS[bits >> (18 - 6 * place) & 63]);
        text.extend(letters.map(char::from));
    }
    text + "="
}
