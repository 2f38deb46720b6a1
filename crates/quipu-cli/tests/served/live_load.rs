//! `quipu load --live`.

use std::process::{Output, Stdio};
use std::sync::Arc;

use quipu_tokio::tokio::sync::Notify;

use crate::fetch::stay_silent;
use crate::scripted::{Exchange, Scripted, interrupt};
use crate::server::{Server, assert_failed, quipu, text};

fn replaying(page: &str) -> Server {
    let mut command = quipu();
    command.args(["serve", "--har", page, "--listen", "127.0.0.1:0"]);
    Server::run(command, |line| line.starts_with("pin "))
}

fn url(server: &Server) -> String {
    format!("https://127.0.0.1:{}", server.port)
}

fn load(server: &Server, more: &[&str]) -> Output {
    let pin = server.lines.iter().find_map(|line| line.strip_prefix("pin "));
    let pin = pin.expect("it is printed");
    let mut command = quipu();
    command.args(["load", "--live", &url(server), "--pin", pin]).args(more);
    command.output().expect("the program starts")
}

#[test]
fn a_page_comes_over_two_paths_and_is_drawn() {
    let server = replaying("dojo-demo");
    let logs = tempfile::TempDir::new().expect("a folder");
    let folder = logs.path().to_str().expect("UTF-8");
    let vias = ["--via", "127.0.0.1", "--via", "127.0.0.2", "--start", "paths-ready"];
    let more = ["--page", "dojo-demo", "--qlog", folder];
    let output = load(&server, &[&vias[..], &more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("dojo-demo from 127.0.0.1:"), "{printed}");
    assert!(lines[0].ends_with("over real uplinks (live), as chrome"), "{printed}");
    assert!(lines[1].starts_with("connect ") && lines[1].contains(" ms, page "), "{printed}");
    let received = lines.iter().find(|line| line.starts_with("received: ")).expect("a line");
    assert!(received.contains("127.0.0.1 ") && received.contains("; 127.0.0.2 "), "{printed}");
    let drawn = lines.iter().filter(|line| line.ends_with('│')).count();
    // One of the 78 does not count for the page time, and may still be under way.
    assert!(drawn >= 77, "{drawn}: {printed}");
    assert_eq!(std::fs::read_dir(logs.path()).expect("a folder").count(), 1);
}

#[test]
fn what_is_wrong_is_told_in_one_line() {
    let server = replaying("rust-vec");
    assert_failed(&load(&server, &["--http", "h2"]), 2, "expected h3");
    assert_failed(&load(&server, &["--start", "warm:3"]), 2, "start: expected cold");
    assert_failed(&load(&server, &["--out", "results"]), 2, "cannot be used with");
    assert_failed(&load(&server, &["--page", "rust-vek"]), 2, "rust-vec");
    let load_from = |url: &str, more: &[&str]| {
        quipu().args(["load", "--live", url]).args(more).output().expect("the program starts")
    };
    let pin = "0".repeat(64);
    assert_failed(&load_from(&url(&server), &["--pin", &pin]), 1, "certificate");
    assert_failed(&load_from("127.0.0.1:1", &["--pin", &pin]), 2, "https://127.0.0.1:1");
    assert_failed(&load_from("https://127.0.0.1:1", &["--pin", &pin]), 1, "listens");
    assert_failed(&load_from("https://a.invalid", &["--pin", &pin]), 1, "has no address");
    let via = quipu().args(["load", "--via", "lo"]).output().expect("the program starts");
    assert_failed(&via, 2, "--live");
}

#[test]
fn a_server_of_another_protocol_is_told_in_one_line() {
    let mut command = quipu();
    command.args(["perf", "server", "--listen", "127.0.0.1:0"]);
    let server = Server::run(command, |line| line.starts_with("pin "));
    let output = load(&server, &[]);
    assert_failed(&output, 1, "ALPN");
    assert_eq!(text(&output.stderr).lines().count(), 1, "{}", text(&output.stderr));
}

#[test]
fn an_interrupted_load_ends_at_once_and_prints_nothing() {
    let asked = Arc::new(Notify::new());
    let tell = Arc::clone(&asked);
    let server = Scripted::start(move |exchange: Exchange| {
        tell.notify_one();
        stay_silent(exchange)
    });
    let mut command = quipu();
    command.args(["load", "--live", &server.url("/"), "--pin", &server.pin]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let loading = command.spawn().expect("the program starts");
    server.block_on(asked.notified());
    interrupt(&loading);
    let output = loading.wait_with_output().expect("it ends");
    assert_failed(&output, 130, "interrupted");
}
