//! A client and a server in network namespaces of their own, joined by two links: both are used, and
//! when one is cut in the middle of a transfer, nothing is lost.
//!
//! An ordinary user may make such namespaces on most systems. Where that is forbidden, the tests say so
//! and do nothing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod network;
mod roles;

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The whole test may take so long, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a transfer during which `cut` takes its end of the second link down, the server or the client;
/// `"none"`: nobody does; `"back"`: the client does, and takes it up again; `"told"`: the server does so
/// while nothing is sent.
#[expect(clippy::disallowed_methods, reason = "the test ends by itself")]
fn transfer(cut: &str) {
    if let Err(reason) = network::may_make() {
        eprintln!("skipped: this user may not make network namespaces: {reason}");
        return;
    }
    let mut client = Command::new("unshare")
        .arg("-Urn")
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "roles::client", "--nocapture"])
        .env(roles::CUT, cut)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        match client.try_wait().unwrap() {
            Some(status) => break status,
            None if begin.elapsed() > LIMIT => {
                client.kill().unwrap();
                break client.wait().unwrap();
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let mut said = String::new();
    client.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    client.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[test]
fn both_links_are_used() {
    transfer("none");
}

#[test]
fn a_link_that_the_client_takes_down_loses_nothing() {
    transfer("client");
}

#[test]
fn a_link_that_the_server_takes_down_loses_nothing() {
    transfer("server");
}

#[test]
fn a_link_that_comes_back_is_used_again() {
    transfer("back");
}

#[test]
fn a_link_without_carrier_is_left_as_soon_as_the_kernel_tells() {
    transfer("told");
}

#[test]
fn a_socket_that_takes_nothing_stops_its_path_alone() {
    transfer("blocked");
}
