//! Firefox, driven over WebDriver BiDi, <https://w3c.github.io/webdriver-bidi/>.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

use crate::processes::Processes;
use crate::served::{LIMIT, SURPLUS, Served};

/// Debian's program, and that of others.
const PROGRAMS: [&str; 2] = ["firefox-esr", "firefox"];
/// Between looks at a file or a socket.
const TICK: Duration = Duration::from_millis(25);

/// A Firefox without a window and with a new profile, which is ended with all its processes.
pub(crate) struct Firefox {
    socket: WebSocket<TcpStream>,
    tab: Value,
    last_id: u64,
    events: Vec<Value>,
    // Ended before the profile is removed.
    _processes: Processes,
    _profile: TempDir,
}

/// What Firefox reports of a load.
#[derive(Debug)]
pub(crate) struct Report {
    /// Time of the load event, in ms of Unix time; Firefox gives whole ones.
    pub(crate) load_event: f64,
    /// Responses that came over the network in full, in the order of their completion.
    pub(crate) responses: Vec<Response>,
    /// Requests without a response: the URL, and why.
    pub(crate) failed: Vec<(String, String)>,
}

/// A response that is complete. Times are in ms of Unix time.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) url: String,
    /// Such as `h3`.
    pub(crate) protocol: String,
    pub(crate) status: u64,
    /// Encoded bytes of the body.
    pub(crate) bytes: u64,
    /// When the channel was opened; 0 for requests that Firefox reports no such time of.
    pub(crate) opened: f64,
    /// When the request was handed to its connection.
    pub(crate) requested: f64,
    /// When the last byte had come.
    pub(crate) complete: f64,
}

impl Firefox {
    /// Starts a browser that finds all hosts of the page at the server, and accepts its certificate. HTTP/3 is used
    /// from the first request on if it is forced, or as soon as the browser has found it. Without Firefox the caller is
    /// to skip its test.
    pub(crate) fn start(served: &Served, force: bool) -> Option<Firefox> {
        let profile = TempDir::new().unwrap();
        std::fs::write(profile.path().join("user.js"), preferences(served, force)).unwrap();
        std::fs::write(profile.path().join("cert_override.txt"), exceptions(served)).unwrap();
        let Some(child) = spawn(profile.path()) else {
            let required = std::env::var_os("QUIPU_FIREFOX_REQUIRED").is_some();
            assert!(!required, "no Firefox, and QUIPU_FIREFOX_REQUIRED is set");
            eprintln!("skipped: no Firefox is installed");
            return None;
        };
        let processes = Processes(child);
        let port = port(profile.path());
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let url = format!("ws://127.0.0.1:{port}/session");
        let (socket, _) = tungstenite::client::client(url, stream).unwrap();
        socket.get_ref().set_read_timeout(Some(TICK)).unwrap();
        let mut firefox = Firefox {
            socket,
            tab: Value::Null,
            last_id: 0,
            events: Vec::new(),
            _processes: processes,
            _profile: profile,
        };
        let session = firefox.call("session.new", &json!({ "capabilities": {} }));
        eprintln!("Firefox {}", session["capabilities"]["browserVersion"]);
        let events = ["network.responseCompleted", "network.fetchError", "browsingContext.load"];
        firefox.call("session.subscribe", &json!({ "events": events }));
        let tree = firefox.call("browsingContext.getTree", &json!({}));
        firefox.tab = tree["contexts"][0]["context"].clone();
        Some(firefox)
    }

    /// Loads a page, and waits for its load event, for `count` responses, and some time for more.
    pub(crate) fn load(&mut self, url: &str, count: usize) -> Report {
        self.events.clear();
        let navigated = json!({ "context": self.tab, "url": url, "wait": "complete" });
        let navigation = self.call("browsingContext.navigate", &navigated)["navigation"].take();
        let is_whole =
            |report: Option<Report>| report.is_some_and(|it| it.responses.len() >= count);
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline && !is_whole(self.report(&navigation)) {
            self.receive();
        }
        let surplus = Instant::now() + SURPLUS;
        while Instant::now() < surplus {
            self.receive();
        }
        self.report(&navigation).unwrap()
    }

    /// What was told so far of a navigation, unless its load event is still to come.
    fn report(&self, navigation: &Value) -> Option<Report> {
        let of = |method: &'static str| {
            let events = self.events.iter().filter(move |event| event["method"] == method);
            events.map(|event| &event["params"])
        };
        // Frames have load events, too, and so has what the tab showed before.
        let load = of("browsingContext.load").find(|told| told["navigation"] == *navigation)?;
        let load_event = load["timestamp"].as_f64().unwrap();
        let url = |told: &Value| told["request"]["url"].as_str().unwrap().to_owned();
        let responses = of("network.responseCompleted").filter_map(|told| {
            let (response, timings) = (&told["response"], &told["request"]["timings"]);
            let url = url(told);
            // What the browser had in its memory, or in the page.
            if response["fromCache"] == true || url.starts_with("data:") {
                return None;
            }
            let time = |name: &str| timings[name].as_f64().unwrap();
            Some(Response {
                url,
                protocol: response["protocol"].as_str().unwrap().to_owned(),
                status: response["status"].as_u64().unwrap(),
                bytes: response["bodySize"].as_u64().unwrap(),
                opened: time("fetchStart"),
                requested: time("requestStart"),
                complete: time("responseEnd"),
            })
        });
        let failed = of("network.fetchError")
            .map(|told| (url(told), told["errorText"].as_str().unwrap_or_default().to_owned()));
        Some(Report { load_event, responses: responses.collect(), failed: failed.collect() })
    }

    /// The result of a command. Events meanwhile are kept.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let command = json!({ "id": self.last_id, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string())).unwrap();
        let deadline = Instant::now() + LIMIT;
        while Instant::now() < deadline {
            let Some(mut message) = self.receive() else { continue };
            assert_eq!(message["id"], self.last_id, "{method}: {message}");
            assert_eq!(message["type"], "success", "{method}: {message}");
            return message["result"].take();
        }
        panic!("{method}: no answer after {LIMIT:?}");
    }

    /// The answer that comes next, if one comes soon. Events are kept.
    fn receive(&mut self) -> Option<Value> {
        let message = match self.socket.read() {
            Ok(Message::Text(text)) => serde_json::from_str::<Value>(text.as_str()).unwrap(),
            Ok(_) => return None,
            Err(tungstenite::Error::Io(error))
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
            {
                return None;
            }
            Err(error) => panic!("Firefox is gone: {error}"),
        };
        if message["type"] == "event" {
            self.events.push(message);
            return None;
        }
        Some(message)
    }
}

/// All names lead to the server, and HTTP/3 is used even with a certificate that no authority signed; at once for the
/// hosts of the page if it is forced.
fn preferences(served: &Served, force: bool) -> String {
    let port = served.port;
    let mut preferences = vec![
        ("network.dns.forceResolve", json!("127.0.0.1")),
        ("network.socket.forcePort", json!(format!("443={port};80={port}"))),
        ("network.http.http3.disable_when_third_party_roots_found", json!(false)),
    ];
    if force {
        let hosts = served.replay.hosts().iter();
        let mapping: Vec<String> = hosts.map(|host| format!("{host};h3=:{port}")).collect();
        let mapping = json!(mapping.join(","));
        preferences.push(("network.http.http3.alt-svc-mapping-for-testing", mapping));
    }
    preferences.iter().map(|(name, value)| format!("user_pref({name:?}, {value});\n")).collect()
}

/// The server's certificate, known by its hash, is accepted for each host of the page: over HTTP/3 at the port of the
/// URL, and over TCP at the one that is connected to.
fn exceptions(served: &Served) -> String {
    let pin: Vec<String> = served.pin.0.iter().map(|byte| format!("{byte:02X}")).collect();
    let pin = pin.join(":");
    let ports = [443, served.port];
    // The identifier of SHA-256.
    let line = |host, port| format!("{host}:{port}:\tOID.2.16.840.1.101.3.4.2.1\t{pin}\t\n");
    let hosts = served.replay.hosts().iter();
    hosts.flat_map(|host| ports.map(|port| line(host, port))).collect()
}

/// The first of the programs that there is.
fn spawn(profile: &Path) -> Option<Child> {
    use std::os::unix::process::CommandExt;
    PROGRAMS.iter().find_map(|program| {
        let mut command = Command::new(program);
        command.args(["--headless", "--no-remote", "--remote-debugging-port=0", "--profile"]);
        command.arg(profile).arg("about:blank").env("HOME", profile);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        match command.spawn() {
            Ok(child) => Some(child),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => panic!("{program}: {error}"),
        }
    })
}

/// Waits for the port at which the browser listens.
fn port(profile: &Path) -> u16 {
    let deadline = Instant::now() + LIMIT;
    while Instant::now() < deadline {
        let told = std::fs::read(profile.join("WebDriverBiDiServer.json")).unwrap_or_default();
        // It may not be there in full.
        let told: Value = serde_json::from_slice(&told).unwrap_or_default();
        if let Some(port) = told["ws_port"].as_u64() {
            return u16::try_from(port).unwrap();
        }
        std::thread::sleep(TICK);
    }
    panic!("Firefox does not listen after {LIMIT:?}");
}
