//! Uplinks that come and go while a connection lives.
//!
//! Once a second, and on Linux as soon as the kernel tells of a change, the host is asked which there are.
//! One that is new, or is back, becomes a path; the
//! path of one that is gone is abandoned, if there is another. Packets that a dead uplink swallows are
//! noticed sooner, by probe timeouts: this is for what comes after.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quipu_base::PathId;
use quipu_policy::PathStatus;
use quipu_quic::ConnectionHandle;
use quipu_quic::error::ErrorCode;
use tokio::time::{Instant, sleep, timeout_at};

use crate::engine::Calls;
use crate::path;
use crate::state::Shared;
use crate::uplink::{Uplink, Usable, Via, resolve};

/// How often the host is asked. Our choice.
const EVERY: Duration = Duration::from_secs(1);

/// Changes mostly come by twos and threes: of the link, of its addresses and of routes by it. They are
/// looked at together. Our choice.
const TOGETHER: Duration = Duration::from_millis(20);

/// An uplink that does not become a path is tried again after as many seconds, twice as many each time,
/// up to this.
const MAX_PAUSE: u32 = 64;

/// How an uplink that is no path fares.
#[derive(Clone, Copy, Default)]
struct Trial {
    /// Seconds until the next.
    left: u32,
    /// Seconds after it.
    pause: u32,
}

/// Keeps the paths of a client's connection to `remote` to the uplinks that there are.
pub(crate) async fn watch(
    shared: Arc<Shared>,
    handle: ConnectionHandle,
    vias: Arc<[Via]>,
    remote: SocketAddr,
) {
    let mut trials: BTreeMap<IpAddr, Trial> = BTreeMap::new();
    // The first ones are on their way to be paths.
    for uplink in present(&vias, remote) {
        trials.insert(uplink.address, Trial { left: 2, pause: 2 });
    }
    let mut changes = shared.changes.subscribe();
    let mut next_tick = Instant::now() + EVERY;
    loop {
        if timeout_at(next_tick, changes.changed()).await.is_ok() {
            sleep(TOGETHER).await;
            changes.mark_unchanged();
        }
        // Also where something changes all the time.
        let is_tick = next_tick <= Instant::now();
        if is_tick {
            next_tick = Instant::now() + EVERY;
        }
        let uplinks = present(&vias, remote);
        trials.retain(|address, _| uplinks.iter().any(|uplink| uplink.address == *address));
        let Some(missing) = settle(&shared, handle, &uplinks) else { return };
        for uplink in &uplinks {
            let trial = trials.entry(uplink.address).or_default();
            if !missing.contains(&uplink.address) {
                *trial = Trial::default();
            } else if trial.left > 0 {
                trial.left -= u32::from(is_tick);
            } else {
                trial.pause = (trial.pause * 2).clamp(1, MAX_PAUSE);
                trial.left = trial.pause;
                let Ok(route) = path::route_by(&shared, uplink.clone(), remote) else { continue };
                let open = |connection: &mut Calls<'_>, _: &mut _, now| {
                    // Both ends may have to allow it first: the next trial is the time for that.
                    let _ = connection.open_path_as(now, route, PathStatus::Available);
                };
                if shared.with_connection(handle, open).is_err() {
                    return;
                }
            }
        }
    }
}

/// The uplinks that there are and that reach `remote`.
fn present(vias: &[Via], remote: SocketAddr) -> Vec<Uplink> {
    let mut found: Vec<Uplink> = Vec::new();
    for via in vias {
        // One that cannot be found is gone.
        for uplink in resolve(std::slice::from_ref(via)).unwrap_or_default() {
            let same_family = uplink.address.is_ipv4() == remote.is_ipv4();
            let known = found.iter().any(|other| other.address == uplink.address);
            if same_family && !known && uplink.usable != Usable::Down {
                found.push(uplink);
            }
        }
    }
    found
}

/// Abandons the paths whose uplinks are gone. Returns the addresses that are wanted and no path;
/// `None` once the connection has ended.
fn settle(shared: &Shared, handle: ConnectionHandle, uplinks: &[Uplink]) -> Option<Vec<IpAddr>> {
    let stale = |address: IpAddr, sockets: &[Arc<crate::socket::Socket>], port: u16| {
        let uplink = uplinks.iter().find(|uplink| uplink.address == address);
        let socket = sockets
            .iter()
            .find(|socket| socket.local().ip() == address && socket.local().port() == port);
        let index = socket.and_then(|socket| socket.uplink()?.index);
        uplink.is_none_or(|uplink| uplink.index != index)
    };
    // Most of the time there is nothing to do, and the driver sleeps on.
    let state = shared.lock();
    let entry = state.entries.get(&handle).filter(|entry| entry.ended.is_none())?;
    let connection = state.engine.connection(handle)?;
    let sockets = state.batches.sockets();
    let (mut gone, mut served): (Vec<PathId>, Vec<IpAddr>) = (Vec::new(), Vec::new());
    for sample in connection.path_samples() {
        let local = sample.route.local;
        if stale(local.ip(), sockets, local.port()) {
            gone.push(sample.path);
        } else {
            served.push(local.ip());
        }
    }
    served.extend(&entry.unwanted);
    drop(state);
    for path in gone {
        let abandon = |connection: &mut Calls<'_>, _: &mut _, now| {
            connection.abandon_path(now, path, ErrorCode::PATH_UNSTABLE_OR_POOR);
        };
        shared.with_connection(handle, abandon).ok()?;
    }
    let missing = uplinks.iter().map(|uplink| uplink.address);
    Some(missing.filter(|address| !served.contains(address)).collect())
}
