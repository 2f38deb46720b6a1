//! Uplinks that come and go while a connection lives.
//!
//! Once a second, and on Linux as soon as the kernel tells of a change, the host is asked which there are.
//! One that is new, or is back, becomes a path; the path of one that is gone is abandoned, if there is
//! another. If there is none, and the peer or this end allows no second path, the path moves to an uplink
//! that is left. Packets that a dead uplink swallows are noticed sooner, by probe timeouts: this is for what
//! comes after.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use quipu_base::PathId;
use quipu_policy::{PathState, PathStatus};
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

/// The first uplinks are on their way to be paths: none is tried before.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// An uplink that does not become a path, or stays none, is tried again after this time, which doubles each
/// time. The first is short, since the peer may have to allow another path first. Our choice.
const PAUSES: RangeInclusive<Duration> = Duration::from_millis(125)..=Duration::from_secs(64);

/// How an uplink that is no path fares.
struct Trial {
    /// When it is tried again.
    at: Instant,
    /// How long is waited after that.
    pause: Duration,
}

impl Trial {
    fn at(at: Instant) -> Trial {
        Trial { at, pause: *PAUSES.start() }
    }

    /// It is tried `now`.
    fn put_off(&mut self, now: Instant) {
        self.at = now + self.pause;
        self.pause = (self.pause * 2).min(*PAUSES.end());
    }
}

/// Keeps the paths of a client's connection to `remote` to the uplinks that there are; `several`: it may
/// have more than one.
pub(crate) async fn watch(
    shared: Arc<Shared>,
    handle: ConnectionHandle,
    vias: Arc<[Via]>,
    remote: SocketAddr,
    several: bool,
) {
    let start = Instant::now();
    let first = present(&vias, remote).into_iter();
    let mut trials: BTreeMap<IpAddr, Trial> =
        first.map(|uplink| (uplink.address, Trial::at(start + HANDSHAKE))).collect();
    let mut changes = shared.changes.subscribe();
    // Of those that are no paths.
    let mut next_trial = None;
    let mut was_stranded = false;
    loop {
        let next_look = Instant::now() + EVERY;
        let wake = next_trial.map_or(next_look, |at| next_look.min(at));
        if timeout_at(wake, changes.changed()).await.is_ok() {
            sleep(TOGETHER).await;
            changes.mark_unchanged();
        }
        let now = Instant::now();
        let uplinks = present(&vias, remote);
        let Some(settled) = settle(&shared, handle, &uplinks) else { return };
        let Settled { missing, proved, stranded } = settled;
        let is_there = |address| uplinks.iter().any(|uplink| uplink.address == address);
        // One that was a path, or was gone, is tried at once when it is missed.
        trials.retain(|address, _| is_there(*address) && !proved.contains(address));
        if stranded.is_some() && !was_stranded {
            // However often they could not become a second path.
            trials.clear();
        }
        was_stranded = stranded.is_some();
        let wanted = if several || was_stranded { missing } else { Vec::new() };
        let mut moves = stranded;
        for uplink in uplinks.iter().filter(|uplink| wanted.contains(&uplink.address)) {
            let trial = trials.entry(uplink.address).or_insert_with(|| Trial::at(now));
            if trial.at <= now {
                trial.put_off(now);
                let Ok(route) = path::route_by(&shared, uplink.clone(), remote) else { continue };
                let reach = |connection: &mut Calls<'_>, _: &mut _, now| {
                    // Both ends may have to allow it first: the next trial is the time for that.
                    let opened = connection.open_path_as(now, route, PathStatus::Available);
                    if opened.is_err()
                        && let Some(path) = moves
                        && connection.rebind(now, path, route).is_ok()
                    {
                        // It goes to one of them only.
                        moves = None;
                    }
                };
                if shared.with_connection(handle, reach).is_err() {
                    return;
                }
            }
        }
        next_trial = wanted.iter().filter_map(|address| Some(trials.get(address)?.at)).min();
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

/// How the addresses of uplinks fare.
struct Settled {
    /// They are wanted and no path.
    missing: Vec<IpAddr>,
    /// They are a path on which the peer answered.
    proved: Vec<IpAddr>,
    /// A path whose uplink is gone, if all are.
    stranded: Option<PathId>,
}

/// Abandons the paths whose uplinks are gone; `None` once the connection has ended.
fn settle(shared: &Shared, handle: ConnectionHandle, uplinks: &[Uplink]) -> Option<Settled> {
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
    let (mut gone, mut served, mut proved) = (Vec::new(), Vec::new(), Vec::new());
    for sample in connection.path_samples() {
        let local = sample.route.local;
        if stale(local.ip(), sockets, local.port()) {
            gone.push(sample.path);
        } else {
            served.push(local.ip());
            let view = connection.path_views().find(|view| view.key.id == sample.path);
            if view.is_some_and(|view| view.state != PathState::Validating) {
                proved.push(local.ip());
            }
        }
    }
    let stranded = gone.first().copied().filter(|_| served.is_empty());
    served.extend(&entry.unwanted);
    drop(state);
    for path in gone {
        let abandon = |connection: &mut Calls<'_>, _: &mut _, now| {
            connection.abandon_path(now, path, ErrorCode::PATH_UNSTABLE_OR_POOR);
        };
        shared.with_connection(handle, abandon).ok()?;
    }
    let missing = uplinks.iter().map(|uplink| uplink.address);
    let missing = missing.filter(|address| !served.contains(address)).collect();
    Some(Settled { missing, proved, stranded })
}
