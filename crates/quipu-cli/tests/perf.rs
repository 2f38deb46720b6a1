//! `quipu perf` and `quipu paths` over the loopback interface.
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

use std::io::{BufRead, BufReader};
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
        let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .args(["perf", "server", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
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
    command.args(arguments).env_remove("COLUMNS");
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
fn secrets_are_written_where_the_environment_says() {
    let server = Server::start();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("keys.log");
    let output = Command::new(env!("CARGO_BIN_EXE_quipu"))
        .args(["perf", "client", "--bytes", "1kB", &server.address, "--pin", &server.pin])
        .env("SSLKEYLOGFILE", &file)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let secrets = std::fs::read_to_string(&file).expect("it was written");
    for label in ["CLIENT_HANDSHAKE_TRAFFIC_SECRET ", "SERVER_TRAFFIC_SECRET_0 "] {
        assert!(secrets.contains(label), "{secrets}");
    }
}

#[test]
fn another_pin_and_a_server_that_is_not_there_are_failures() {
    let server = Server::start();
    let output = quipu(&["perf", "client", &server.address, "--pin", &"0".repeat(64)]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("has another pin") && error.lines().count() == 1, "{error}");
    let second = quipu(&["perf", "server", "--listen", &server.address]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("is in use"), "{}", text(&second.stderr));
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

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_server_with_its_exit_code() {
    let mut server = Server::start();
    let id = server.child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &id]).status().expect("there is a kill");
    assert!(sent.success());
    let status = server.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130));
}
