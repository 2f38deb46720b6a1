//! What path policies share: which paths count, and how to rest when none is open.

use quipu_base::{Duration, Instant};

use super::{Choice, Parcel};
use crate::seam::view::{Class, PathState, PathStatus, PathView, Paths, View};

/// Probe timeouts in a row after which an available path no longer keeps backups idle; our choice:
/// one may be a burst of losses.
const BACKUP_AFTER_PTO: u32 = 2;

/// True if a usable path can be expected to carry data soon: its window holds a packet, the
/// anti-amplification limit is met, and its socket takes datagrams.
pub fn is_promising(path: &PathView) -> bool {
    network_promises(path) && !path.blocked
}

/// The same, whatever the path's socket does.
fn network_promises(path: &PathView) -> bool {
    path.state == PathState::Usable && path.cwnd >= path.payload && !path.amplification_limited
}

/// True if bytes may be planned for a path, or wait for it, its window closed or not: it answers, and
/// can be expected to carry data soon.
pub fn can_wait(path: &PathView) -> bool {
    path.pto_count == 0 && is_promising(path)
}

/// True if backup paths may have to stay idle for this one: an available path that can be expected
/// to carry data soon, and answers. A full socket is how a busy path looks, and no reason to use
/// backups.
pub(crate) fn keeps_backups_idle(path: &PathView) -> bool {
    path.status == PathStatus::Available
        && network_promises(path)
        && path.pto_count < BACKUP_AFTER_PTO
}

/// The usable paths that data may take, window or not, in order of path identifier: paths of
/// backup status only if no available path is promising and answers.
///
/// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>, PATH_STATUS_BACKUP. Two probe timeouts in a row make
/// an available path count as one that does not answer.
pub fn eligible(paths: &Paths) -> impl Iterator<Item = &PathView> + Clone {
    let any_backup = paths.usable().any(|path| path.status == PathStatus::Backup);
    let skip_backups = any_backup && paths.usable().any(keeps_backups_idle);
    paths.usable().filter(move |path| !skip_backups || path.status == PathStatus::Available)
}

/// The answer when no path that data may take is open: nothing can go, unless nothing at all is in
/// flight. Then only a pacer can hold the eligible paths, and the answer says when it lets go.
pub fn rest_unless_stuck(parcel: &Parcel<'_>, view: &View<'_>) -> Choice {
    if !view.conn.in_flight.is_zero() || matches!(parcel.class, Class::Lost { .. }) {
        return Choice::None;
    }
    eligible(view.paths)
        .filter(|path| is_promising(path) && path.release_at > view.now)
        .min_by_key(|path| (path.release_at, path.key))
        .map_or(Choice::None, |path| Choice::Wait { until: path.release_at, on: Some(path.key) })
}

/// A wait for `path` to open.
pub fn wait_for(path: &PathView, view: &View<'_>) -> Choice {
    Choice::Wait { until: opens_by(path, view.now), on: Some(path.key) }
}

/// When a closed path should have opened: when its pacer lets go if there is room, else when its
/// next acknowledgement is late.
pub fn opens_by(path: &PathView, now: Instant) -> Instant {
    if path.release_at > now && path.room() >= path.payload {
        path.release_at
    } else {
        now + patience(path)
    }
}

/// How long a policy waits for an acknowledgement on `path` before it should be asked again: a
/// smoothed round-trip time and four deviations, at least a millisecond. Our choice: an
/// acknowledgement that does not come within it is late.
fn patience(path: &PathView) -> Duration {
    let rtt = path.srtt.unwrap_or(UNKNOWN_RTT) + path.rttvar.saturating_mul(4);
    rtt.max(Duration::from_millis(1))
}

/// <https://www.rfc-editor.org/rfc/rfc9002#section-6.2.2>: the initial round-trip time.
pub(crate) const UNKNOWN_RTT: Duration = Duration::from_millis(333);
