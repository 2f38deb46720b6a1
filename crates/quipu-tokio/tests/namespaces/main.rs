//! A client and a server in network namespaces of their own, joined by two links: both are used, and
//! when one is cut in the middle of a transfer, nothing is lost.
//!
//! An ordinary user may make such namespaces on most systems. Where that is forbidden, the tests say so
//! and do nothing.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod cuts;
mod network;
mod process;
mod roles;
mod routes;

use std::time::Duration;

use process::{Ended, in_namespace};

/// The whole test may take so long, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Runs a transfer during which `cut` takes its end of the second link down, the server or the client;
/// `"none"`: nobody does; `"back"`: the client does, and takes it up again; `"told"`: the server does so
/// while nothing is sent; `"only"`: the client may have one path, whose link it takes down; `"replaced"`: it has
/// the first link only, until it takes that down and the second up.
fn transfer(cut: &str) {
    if let Err(reason) = network::may_make() {
        eprintln!("skipped: this user may not make network namespaces: {reason}");
        return;
    }
    let Ended { success, said } =
        in_namespace("roles::client", &[(roles::CUT, cut.to_owned())], LIMIT);
    assert!(success, "{said}");
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

#[test]
fn the_only_path_moves_to_an_uplink_that_is_left() {
    transfer("only");
}

#[test]
fn an_uplink_that_replaces_the_only_one_carries_the_rest() {
    transfer("replaced");
}
