//! Replayed pages in a real Chromium, which finds one server at the names of all hosts. Without Chromium the tests are
//! passed over, unless the environment variable `QUIPU_CHROMIUM_REQUIRED` is set. `QUIPU_REPLAY_PAGES` names other
//! pages, separated by commas, and prints what came of each; `cnn` takes longer than the limit.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a real browser is driven in real time")]
#![expect(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use quipu_policy::Registry;
use quipu_serve::access::{AccessLog, Format, LogWriter};
use quipu_serve::tcp::{Limits, Listener, Server};
use quipu_serve::{Certificates, Recorded, Replay, http3};
use quipu_tokio::http3::ALPN;
use quipu_tokio::{Endpoint, ServerConfig, TransportConfig, policies};
use quipu_web::page::{Object, Page};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::{NamedTempFile, TempDir};
use tokio::runtime::Runtime;

/// One test at a time has the machine.
static ALONE: Mutex<()> = Mutex::new(());

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Connections over TCP that are idle for so long are closed.
const IDLE: Duration = Duration::from_secs(1);
/// What comes this long after all is one request too many.
const SURPLUS: Duration = Duration::from_millis(500);

/// A page that is served over HTTP/3 and TCP, at one port.
struct Served {
    replay: Replay,
    port: u16,
    key: String,
    log: NamedTempFile,
    // Dropped with the runtime that its tasks run on.
    _writer: LogWriter,
    _runtime: Runtime,
}

impl Served {
    fn new(page: &Page) -> Served {
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
            let policies = policies(&Registry::builtin(), "").unwrap();
            let config = ServerConfig::new(tls, Arc::new(TransportConfig::default()), policies);
            let any = "127.0.0.1:0".parse().unwrap();
            let endpoint = Endpoint::server(config).listen(any).bind().unwrap();
            let address = endpoint.local_addresses()[0];
            let listener = Listener::bind(address).unwrap();
            let tcp = Server::new(listener, certificates.tcp().unwrap(), service.clone());
            let tcp = tcp.limits(Limits { idle: IDLE, ..Limits::default() }).unwrap();
            tokio::spawn(tcp.run(std::future::pending()));
            let quic = http3::Server::new(endpoint, service);
            tokio::spawn(quic.run(std::future::pending()));
            address.port()
        });
        let key = base64(&certificates.key_hash().unwrap());
        Served { replay, port, key, log, _writer: writer, _runtime: runtime }
    }

    /// The requests for hosts of the page.
    fn requests(&self) -> Vec<Value> {
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
    fn wait(&self, count: usize) -> Vec<Value> {
        let begin = Instant::now();
        while self.requests().len() < count && begin.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(50));
        }
        std::thread::sleep(SURPLUS);
        self.requests()
    }
}

/// A browser without a window, which is ended with all its processes.
struct Browser {
    child: Child,
    profile: TempDir,
}

impl Browser {
    /// Opens the page; HTTP/3 is used at once if it is forced, or as soon as the browser has found it.
    fn open(served: &Served, force: bool, more: &[&str]) -> Option<Browser> {
        use std::os::unix::process::CommandExt;
        let profile = TempDir::new().unwrap();
        let mut command = Command::new("chromium");
        command
            .args(["--headless=new", "--no-first-run", "--disable-background-networking"])
            .args(["--disable-component-update", "--disable-sync", "--disable-default-apps"])
            .args(["--disable-extensions", "--disable-gpu", "--disable-dev-shm-usage"])
            .args(["--metrics-recording-only", "--remote-debugging-port=0", "--mute-audio"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("--enable-quic")
            .arg(format!("--host-resolver-rules=MAP * 127.0.0.1:{}", served.port))
            .arg(format!("--ignore-certificate-errors-spki-list={}", served.key));
        if force {
            let origins = served.replay.origins().join(",");
            command.arg(format!("--origin-to-force-quic-on={origins}"));
        }
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        command.args(more).arg(served.replay.start());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        match command.spawn() {
            Ok(child) => Some(Browser { child, profile }),
            Err(error) => {
                let required = std::env::var_os("QUIPU_CHROMIUM_REQUIRED").is_some();
                assert!(!required, "no Chromium, and QUIPU_CHROMIUM_REQUIRED is set: {error}");
                eprintln!("passed over: no Chromium is installed");
                None
            }
        }
    }
}

impl Browser {
    /// Opens another tab, by the DevTools' interface.
    fn open_tab(&self, url: &str) {
        let file = self.profile.path().join("DevToolsActivePort");
        let port: u16 =
            std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = format!("PUT /json/new?{url} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}

/// <https://www.rfc-editor.org/rfc/rfc4648#section-4>, of 32 bytes.
fn base64(bytes: &[u8; 32]) -> String {
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

fn shipped(name: &str) -> Page {
    quipu_web::pages::find(name).unwrap().read().unwrap().page
}

/// The same page at another port. Browsers use no HTTP/3 at a port from 1024 on for a page below that.
fn with_port(page: &Page, port: u16) -> Page {
    let mut objects = page.objects().to_vec();
    for object in &mut objects {
        object.url = format!("https://{}:{port}{}", object.host(), object.path());
    }
    let main = page.main_document();
    Page::new(page.name(), objects).unwrap().with_main_document(main)
}

/// Host and target, as the log has them.
fn place_of(object: &Object) -> String {
    let host = object.host().to_ascii_lowercase();
    let host = [":443", ":80"].iter().find_map(|port| host.strip_suffix(port)).unwrap_or(&host);
    format!("{host}{}", object.path())
}

/// What differs between the objects of `page` and the `requests`, a line each.
fn differences(page: &Page, requests: &[Value]) -> Vec<String> {
    let mut counts: BTreeMap<String, i64> = BTreeMap::new();
    for object in page.objects() {
        *counts.entry(place_of(object)).or_default() += 1;
    }
    let mut found = Vec::new();
    for entry in requests {
        let text = |field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let host = text("host");
        let host = host.strip_suffix(":443").unwrap_or(&host);
        *counts.entry(format!("{host}{}", text("target"))).or_default() -= 1;
        let is_good = matches!(entry["status"].as_u64(), Some(200 | 302));
        if !is_good || entry["complete"] != true {
            found.push(format!("not answered in full: {entry}"));
        }
    }
    for (place, count) in counts {
        match count {
            0 => {}
            1.. => found.push(format!("{count} requests missing: {place}")),
            _ => found.push(format!("{} requests too many: {place}", -count)),
        }
    }
    found
}

fn versions(requests: &[Value]) -> BTreeMap<String, usize> {
    let mut versions = BTreeMap::new();
    for entry in requests {
        *versions.entry(entry["version"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    versions
}

#[test]
fn a_browser_requests_what_the_page_has_and_nothing_else_over_http3() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for name in ["rust-vec", "greenweb", "mobileh2-google"] {
        let page = shipped(name);
        let served = Served::new(&page);
        let Some(_browser) = Browser::open(&served, true, &[]) else { return };
        let requests = served.wait(page.objects().len());
        assert_eq!(differences(&page, &requests), Vec::<String>::new(), "{name}");
        let expected = BTreeMap::from([("HTTP/3.0".to_owned(), page.objects().len())]);
        assert_eq!(versions(&requests), expected, "{name}");
    }
}

#[test]
fn a_browser_finds_http3_by_alt_svc() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let page = with_port(&shipped("sb-admin"), 8443);
    let count = page.objects().len();
    let served = Served::new(&page);
    // Over QUIC a certificate that no authority signed is accepted only for hosts that are named so, at any port.
    let known = format!("--origin-to-force-quic-on={}:1", served.replay.hosts()[0]);
    let more = [known.as_str()];
    let Some(browser) = Browser::open(&served, false, &more) else { return };
    let first = served.wait(count);
    assert_eq!(differences(&page, &first), Vec::<String>::new());
    let document = first
        .iter()
        .find(|entry| entry["target"] == page.object(page.main_document()).unwrap().path());
    assert_eq!(document.unwrap()["version"], "HTTP/2.0");
    // Some of these may come over HTTP/3 already. As long as there is a connection over TCP, it may be used.
    std::thread::sleep(2 * IDLE);
    browser.open_tab(&served.replay.start());
    let both = served.wait(2 * count);
    let second = &both[count..];
    assert_eq!(differences(&page, second), Vec::<String>::new());
    assert_eq!(versions(second), BTreeMap::from([("HTTP/3.0".to_owned(), count)]));
}

#[test]
fn pages_that_are_asked_for_are_compared() {
    let Ok(names) = std::env::var("QUIPU_REPLAY_PAGES") else { return };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for name in names.split(',') {
        let page = shipped(name);
        let served = Served::new(&page);
        let Some(_browser) = Browser::open(&served, true, &[]) else { return };
        let requests = served.wait(page.objects().len());
        let mut lines = String::new();
        for difference in differences(&page, &requests) {
            let _ = writeln!(lines, "  {}", difference.chars().take(240).collect::<String>());
        }
        let (count, larger) = (page.objects().len(), served.replay.differences().len());
        let versions = versions(&requests);
        eprint!(
            "{name}: {} requests for {count} objects, {larger} larger, {versions:?}\n{lines}",
            requests.len()
        );
    }
}
