//! Uplinks that are to become paths before anything is measured.

use std::time::Duration;

use quipu_lab::policy::PathState;
use quipu_tokio::tokio::time::sleep;
use quipu_tokio::{Connection, Endpoint, PathInfo, Uplink};

/// How long a client waits for its further uplinks to become paths. Our choice.
const PATHS_WITHIN: Duration = Duration::from_secs(1);

/// Waits until each uplink of the server's family is a path, or for a second; then names those that are
/// none.
pub(crate) async fn wait_for_paths(endpoint: &Endpoint, connection: &Connection) {
    let Some(route) = connection.route() else { return };
    let family = |uplink: &&Uplink| uplink.address.is_ipv4() == route.remote.is_ipv4();
    let wanted: Vec<&Uplink> = endpoint.uplinks().iter().filter(family).collect();
    let mut waited = Duration::ZERO;
    loop {
        let paths = connection.paths();
        let missing = wanted.iter().filter(|uplink| !is_path(uplink, &paths));
        let missing: Vec<&Uplink> = missing.copied().collect();
        if missing.is_empty() {
            return;
        }
        if waited >= PATHS_WITHIN {
            eprintln!("{}", message(&missing, wanted.len()));
            return;
        }
        let step = Duration::from_millis(10);
        sleep(step).await;
        waited += step;
    }
}

/// True if a path that may carry data leaves by the uplink.
fn is_path(uplink: &Uplink, paths: &[PathInfo]) -> bool {
    paths.iter().any(|path| {
        path.state == PathState::Usable
            && path.interface == uplink.interface
            && path.route.local.ip() == uplink.address
    })
}

fn message(missing: &[&Uplink], wanted: usize) -> String {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    let found = wanted - missing.len();
    format!("{found} of {wanted} uplinks reach the server so far; not yet: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use quipu_tokio::uplink::Usable;

    use super::*;

    #[test]
    fn uplinks_without_a_path_are_named_with_interface_and_address() {
        let uplink = |name: Option<&str>, address: &str| Uplink {
            interface: name.map(str::to_owned),
            index: None,
            address: address.parse().unwrap(),
            usable: Usable::Yes,
        };
        let (wwan, other) = (uplink(Some("wwan0"), "198.51.100.7"), uplink(None, "2001:db8::7"));
        assert_eq!(
            message(&[&wwan, &other], 3),
            "1 of 3 uplinks reach the server so far; not yet: 198.51.100.7 by wwan0, 2001:db8::7"
        );
    }
}
