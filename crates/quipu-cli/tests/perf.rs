//! `quipu perf` and `quipu paths` over the loopback interface.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// A server that runs until it is dropped.
struct Server {
    child: Child,
    address: String,
    pin: String,
}

impl Server {
    fn start() -> Server {
        Server::start_with("127.0.0.1:0", &[])
    }

    fn start_with(listen: &str, more: &[&str]) -> Server {
        Server::start_at(listen, more, None)
    }

    /// `secrets`: the file for those of its connections.
    fn start_at(listen: &str, more: &[&str], secrets: Option<&Path>) -> Server {
        let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
        command.args(["perf", "server", "--listen", listen]).args(more);
        command.env_remove("QLOGDIR").env_remove("QUIPU_LOG").env_remove("SSLKEYLOGFILE");
        command.envs(secrets.map(|file| ("SSLKEYLOGFILE", file)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = child.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines();
        let mut after = |start: &str| {
            let line = lines.next().expect("a line").expect("UTF-8");
            let rest = line.strip_prefix(start);
            rest.unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (address, pin) = (after("listening on "), after("pin "));
        Server { child, address, pin }
    }

    /// Waits until a handshake is over.
    fn wait_for_client(&mut self) {
        let output = self.child.stderr.take().expect("it is piped");
        let mut lines = BufReader::new(output).lines().map(|line| line.expect("UTF-8"));
        assert!(lines.any(|line| line.ends_with(" connected")), "the server ended");
    }

    /// Asks it to end, and waits until it has.
    #[cfg(unix)]
    fn stop(&mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("there is a kill");
        assert!(sent.success());
        self.child.wait().expect("it ends").code()
    }

    fn quipu(&self, arguments: &[&str]) -> Output {
        let mut all = arguments.to_vec();
        all.extend([self.address.as_str(), "--pin", &self.pin]);
        quipu(&all)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quipu(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command.args(arguments).env_remove("COLUMNS").env_remove("QLOGDIR").env_remove("QUIPU_LOG");
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn goodput_is_measured_both_ways_over_two_paths() {
    let server = Server::start();
    let more = ["--via", "127.0.0.1", "--via", "127.0.0.2", "--bytes", "8MB", "--streams", "2"];
    let arguments = [&["perf", "client", "--json", "--path", "path-rr"], &more[..]].concat();
    let output = server.quipu(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["world"], "live");
    assert_eq!((&value["streams"], &value["policies"]), (&json!(2), &json!("path=path-rr")));
    for way in ["down", "up"] {
        let measured = &value[way];
        assert_eq!(measured["bytes"], 8_000_000, "{value}");
        assert!(measured["bits_per_second"].as_f64() > Some(0.0));
        let paths = measured["paths"].as_array().expect("a list");
        assert_eq!(paths.len(), 2, "{value}");
    }
    // The client's policy decides what goes up.
    for path in value["up"]["paths"].as_array().expect("a list") {
        assert!(path["udp_bytes"].as_u64() > Some(30_000), "{value}");
    }
}

/// A connection has eight paths at most, so that the ninth address stays without one.
#[cfg(target_os = "linux")]
#[test]
fn an_uplink_that_does_not_become_a_path_is_named() {
    let server = Server::start();
    let addresses: Vec<String> = (1..=9).map(|last| format!("127.0.0.{last}")).collect();
    let vias = addresses.iter().flat_map(|address| ["--via", address]);
    let mut arguments = vec!["perf", "client", "--bytes", "1kB"];
    arguments.extend(vias);
    let output = server.quipu(&arguments);
    let error = text(&output.stderr);
    assert!(output.status.success(), "{error}");
    let named = error.trim_end().strip_prefix("8 of 9 uplinks reach the server so far; not yet: ");
    assert!(named.is_some_and(|named| addresses.iter().any(|it| it == named)), "{error}");
}

#[cfg(unix)]
#[test]
fn a_server_of_several_shards_serves_clients_on_one_port() {
    let mut server = Server::start_with("127.0.0.1:0", &["--shards", "3"]);
    for _ in 0..6 {
        let output = server.quipu(&["perf", "client", "--bytes", "20kB", "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let port = server.address.clone();
    let second = quipu(&["perf", "server", "--listen", &port]);
    assert!(text(&second.stderr).contains("in use"), "{}", text(&second.stderr));
    assert_eq!(server.stop(), Some(130));
    drop(server);
}

#[test]
fn a_table_has_a_row_for_all_paths_and_for_each() {
    let server = Server::start();
    let output = server.quipu(&["perf", "client", "--direction", "up", "--time", "100ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("up ")).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows[0].contains("all") && rows[0].contains("bit/s"), "{table}");
    assert!(rows[1].contains("127.0.0.1"), "{table}");
}

#[test]
fn datagrams_are_measured_both_ways_with_their_losses() {
    let server = Server::start();
    let arguments = ["perf", "client", "--datagrams=1000", "--rate", "8mbit", "--bytes", "200kB"];
    let output = server.quipu(&[&arguments[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let value: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let asked = json!({"size": 1_000, "bits_per_second": 8_000_000});
    assert_eq!((&value["datagrams"], &value["streams"]), (&asked, &Value::Null));
    for way in ["down", "up"] {
        let (flow, bytes) = (&value[way]["datagrams"], &value[way]["bytes"]);
        assert_eq!(flow["sent"], 200, "{value}");
        let received = flow["received"].as_u64().expect("a number");
        assert_eq!(
            (flow["lost"].as_u64(), bytes.as_u64()),
            (Some(200 - received), Some(1_000 * received))
        );
        assert!(received > 0 && flow["jitter_ms"].as_f64() > Some(0.0), "{value}");
        // The last one is due after 0.199 s.
        assert!(value[way]["seconds"].as_f64() > Some(0.15), "{value}");
    }
    let output =
        server.quipu(&["perf", "client", "--datagrams", "--time", "100ms", "--direction", "up"]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    for part in ["datagrams", "jitter", "%)"] {
        assert!(table.contains(part), "{part}: {table}");
    }
}

#[test]
fn datagrams_of_an_impossible_size_or_rate_are_named() {
    let server = Server::start();
    for (option, expected) in [
        ("--datagrams=15", "15 is not in 16..=65535"),
        ("--datagrams=9000", "--datagrams: the datagram has 9000 bytes, expected at most 1"),
        ("--rate=5mbit", "--datagrams"),
        ("--streams=2", "cannot be used with"),
    ] {
        let mut arguments = vec!["perf", "client", "--direction=up", "--bytes=1MB", option];
        arguments.extend(option.starts_with("--streams").then_some("--datagrams"));
        let output = server.quipu(&arguments);
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    let output = server.quipu(&["perf", "client", "--datagrams", "--rate", "fast"]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("--rate: ") && error.contains("expected a rate"), "{error}");
}

#[test]
fn secrets_are_written_where_the_environment_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (of_server, of_client) = (file("server.log"), file("client.log"));
    let server = Server::start_at("127.0.0.1:0", &[], Some(&of_server));
    let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["perf", "client", "--bytes", "1kB", &server.address, "--pin", &server.pin])
        .env("SSLKEYLOGFILE", &of_client)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |file| {
        let secrets = std::fs::read_to_string(file).expect("it was written");
        let mut lines: Vec<String> = secrets.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let secrets = read(&of_client);
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
        assert!(secrets.iter().any(|line| line.starts_with(label)), "{secrets:?}");
    }
    // Both ends have the same ones.
    assert_eq!(read(&of_server), secrets);
}

#[test]
fn another_pin_and_a_server_that_is_not_there_are_failures() {
    let server = Server::start();
    let output = quipu(&["perf", "client", &server.address, "--pin", &"0".repeat(64)]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("has another pin") && error.lines().count() == 1, "{error}");
    if cfg!(target_os = "linux") {
        // No program has that port of UDP.
        let output = quipu(&["perf", "client", "127.0.0.1:1", "--pin", &server.pin]);
        assert_eq!(output.status.code(), Some(1));
        let error = text(&output.stderr);
        assert!(error.contains("nothing listens at 127.0.0.1:1 (UDP port"), "{error}");
    }
    let second = quipu(&["perf", "server", "--listen", &server.address]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("is in use"), "{}", text(&second.stderr));
}

/// Many hosts have two addresses of that name.
#[test]
fn each_address_of_a_name_is_tried() {
    let server = Server::start();
    let (_, port) = server.address.rsplit_once(':').expect("a port");
    let (named, pin) = (format!("localhost:{port}"), server.pin.as_str());
    let output = quipu(&["perf", "client", "--bytes", "1kB", &named, "--pin", pin]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn paths_are_listed_and_tried_with_a_server() {
    let server = Server::start();
    let output = server.quipu(&["paths", "--format", "csv"]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let loopback = table.lines().find(|line| line.contains("127.0.0.1"));
    let loopback = loopback.unwrap_or_else(|| panic!("{table}"));
    assert!(loopback.contains("leads to this host only"), "{table}");
    assert!(loopback.contains("answers in "), "{table}");
}

#[test]
fn only_the_uplinks_that_are_named_are_listed_and_tried() {
    let server = Server::start();
    let options =
        ["--format", "csv", "--via", "127.0.0.2", "--via", "127.0.0.1", "--via", "127.0.0.2"];
    let output = server.quipu(&[&["paths"], &options[..]].concat());
    let table = text(&output.stdout);
    assert!(output.status.success(), "{table}{}", text(&output.stderr));
    let rows: Vec<&str> = table.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{table}");
    assert!(rows[0].contains("127.0.0.2,not used: no interface lists it,answers in"), "{table}");
    assert!(rows[1].contains("127.0.0.1,not used: leads to this host only,answers in"), "{table}");
}

#[test]
fn an_uplink_that_the_host_does_not_have_is_named() {
    for (via, expected) in [
        ("no-such-0", "--via: there is no interface \"no-such-0\"; this host has "),
        ("203.0.113.77", "--via: this host has no address 203.0.113.77"),
    ] {
        let output = quipu(&["paths", "--via", "127.0.0.1", "--via", via]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn a_server_that_keeps_its_identity_has_one_pin_and_resets_older_connections() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("identity").display().to_string();
    let mut first = Server::start_with("127.0.0.1:0", &["--identity", &kept]);
    let (address, pin) = (first.address.clone(), first.pin.clone());
    let mut client = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["perf", "client", "--direction", "up", "--time", "60s"])
        .args([&address, "--pin", &pin])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    first.wait_for_client();
    // It is killed, and says no word.
    drop(first);
    let second = Server::start_with(&address, &["--identity", &kept]);
    assert_eq!(second.pin, pin);
    let mut error = String::new();
    let stderr = client.stderr.as_mut().expect("it is piped");
    stderr.read_to_string(&mut error).expect("UTF-8");
    assert_eq!(client.wait().expect("it ends").code(), Some(1), "{error}");
    assert!(error.contains("connect again"), "{error}");
}

#[test]
fn a_server_is_known_by_a_certificate_of_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().display().to_string();
    let pin = Server::start_with("127.0.0.1:0", &["--identity", &kept]).pin.clone();
    let (cert, key) = (format!("{kept}/certificate.pem"), format!("{kept}/key.pem"));
    let server = Server::start_with("127.0.0.1:0", &["--cert", &cert, "--key", &key]);
    assert_eq!(server.pin, pin);
    let client = |more: &[&str]| {
        let all = [&["perf", "client", "--bytes", "1kB", &server.address, "--ca", &cert], more];
        quipu(&all.concat())
    };
    let output = client(&["--name", "quipu.invalid"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = client(&[]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("not valid for name \"127.0.0.1\""), "{error}");
    assert!(error.contains("--name with a name that it is for"), "{error}");
    for (arguments, expected) in [
        (&["--ca", &key][..], "key.pem: no certificate; expected certificates in PEM"),
        (&["--ca", "none.pem"], "--ca: cannot read none.pem"),
        (&[], "give --pin PIN, which it prints when it starts, or --ca FILE"),
    ] {
        let output = quipu(&[&["perf", "client", &server.address], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(expected), "{}", text(&output.stderr));
    }
    let output = quipu(&["perf", "server", "--cert", &cert, "--key", &cert]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("no private key"), "{}", text(&output.stderr));
}

/// The records of the one file of that end in a folder, and the connection that its name tells.
#[cfg(unix)]
fn log(folder: &Path, end: &str) -> (Vec<Value>, String) {
    let names = std::fs::read_dir(folder).expect("a folder").map(|entry| {
        let name = entry.expect("an entry").file_name();
        name.into_string().expect("UTF-8")
    });
    let names: Vec<String> = names.collect();
    let ending = format!("_{end}.sqlog");
    let name = names.iter().find(|name| name.ends_with(&ending));
    let name = name.unwrap_or_else(|| panic!("{names:?}"));
    let bytes = std::fs::read(folder.join(name)).expect("it can be read");
    let records = bytes.split(|byte| *byte == 0x1e).skip(1);
    let records = records.map(|record| serde_json::from_slice(record).expect("JSON"));
    (records.collect(), name.trim_end_matches(&ending).to_owned())
}

#[cfg(unix)]
#[test]
fn both_ends_of_a_connection_are_logged() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().display().to_string();
    let mut server = Server::start_with("127.0.0.1:0", &["--qlog", &place]);
    let output = server.quipu(&[
        "perf",
        "client",
        "--via",
        "127.0.0.1",
        "--via",
        "127.0.0.2",
        "--bytes",
        "100kB",
        "--path",
        "path-rr",
        "--qlog",
        &place,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (records, connection) = log(folder.path(), "client");
    assert_eq!(records[0]["title"], "quipu perf client");
    assert_eq!(records[0]["trace"]["common_fields"]["group_id"], connection);
    let events = |records: &[Value], name: &str, path: &str| {
        let is = |record: &&Value| {
            record["name"] == name && record["tuple"].as_str().unwrap_or("0") == path
        };
        records.iter().filter(is).count()
    };
    for path in ["0", "1"] {
        assert!(events(&records, "quic:packet_sent", path) > 10, "path {path}");
    }
    // The server's is whole once it has ended at the latest.
    assert_eq!(server.stop(), Some(130));
    let (records, same) = log(folder.path(), "server");
    assert_eq!(same, connection);
    assert_eq!(records[0]["title"], "quipu perf server");
    assert!(events(&records, "quic:packet_received", "1") > 10);
}

#[test]
fn what_happens_to_connections_is_printed_on_request() {
    let server = Server::start();
    let arguments =
        ["perf", "client", "--via", "127.0.0.1", "--via", "127.0.0.2", "--bytes", "1kB"];
    let logged = |option: &[&str], variable: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .args(arguments)
            .args([&server.address, "--pin", &server.pin])
            .args(option)
            .env_remove("QLOGDIR")
            .env("QUIPU_LOG", variable)
            .output()
            .expect("the program starts");
        (output.status.code(), text(&output.stderr))
    };
    let (code, error) = logged(&["--log", "debug"], "off");
    assert_eq!(code, Some(0), "{error}");
    let up = error.lines().find(|line| line.contains("path up"));
    let up = up.unwrap_or_else(|| panic!("{error}"));
    for part in
        ["DEBUG endpoint{role=\"client\"", "connection{role=\"client\"", "path=1", "local=127.0.0."]
    {
        assert!(up.contains(part), "{part}: {up}");
    }
    let (code, error) = logged(&[], "quipu_tokio=info");
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("connected") && !error.contains("path up"), "{error}");
    let (code, error) = logged(&[], "");
    assert_eq!((code, error.contains("connected")), (Some(0), false), "{error}");
    let (code, error) = logged(&["--log", "debg"], "");
    assert_eq!(code, Some(2));
    assert!(error.contains("--log: `debg`: expected a level"), "{error}");
}

#[test]
fn a_folder_for_logs_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    std::fs::write(&file, "").expect("it is written");
    let output = quipu(&["perf", "server", "--qlog", &file.join("logs").display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot write"), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_server_with_its_exit_code() {
    let mut server = Server::start();
    assert_eq!(server.stop(), Some(130));
}
