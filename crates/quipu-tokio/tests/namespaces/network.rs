//! The links: `v0`–`w0` is 10.0.1.0/24, `v1`–`w1` is 10.0.2.0/24; the client has the first end and
//! address of each.

use std::process::Command;

/// Bits per second of each link and direction, if the kernel can limit them.
const RATE: &str = "200mbit";

/// An error if no namespaces with links can be made.
pub(crate) fn may_make() -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["-Urn", "ip", "link", "add", "v0", "type", "veth", "peer", "name", "w0"]);
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Runs `ip` with these arguments.
pub(crate) fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {error}");
}

/// The links, with both ends in this namespace.
pub(crate) fn make_links() {
    ip("link set lo up");
    ip("link add v0 type veth peer name w0");
    ip("link add v1 type veth peer name w1");
}

/// The server's ends go to the namespace of that process.
pub(crate) fn give_ends(process: u32) {
    ip(&format!("link set w0 netns {process}"));
    ip(&format!("link set w1 netns {process}"));
}

/// An end of a link gets its address.
pub(crate) fn set_up(end: &str, address: &str) {
    ip(&format!("address add {address} dev {end}"));
    ip(&format!("link set {end} up"));
    let limit = format!("qdisc add dev {end} root tbf rate {RATE} burst 64kb latency 20ms");
    // Without it the links are as fast as the host.
    let _ = Command::new("tc").args(limit.split(' ')).output();
}
