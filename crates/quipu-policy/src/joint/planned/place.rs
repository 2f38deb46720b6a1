//! Asking for a path, and what stands in for its answer.

use quipu_base::{Bytes, Instant};

use crate::joint::planner::Planner;
use crate::key::{PathKey, Span, StreamKey};
use crate::path::{Choice, Parcel, choose};
use crate::reinject::{ResendPath, ResendRules};
use crate::seam::decision::{Decision, Notes};
use crate::seam::view::{Class, PathState, PathStatus, Paths, Run, StreamView, View};

/// What came of asking for a path.
pub(super) enum Placement {
    On(PathKey),
    FromBack(PathKey),
    Later(PathKey),
    Wait { until: Instant, on: Option<PathKey> },
    Nowhere,
}

/// An answer; from the lowest pending byte for a bare FIN, which has no byte.
pub(super) fn send(path: PathKey, stream: StreamKey, span: Span, max: Bytes) -> Decision {
    let from = (!span.is_empty()).then_some(span.start);
    Decision::Send { path, stream, from, max }
}

/// The open path of least round-trip time, backups only where no available path counts.
pub(super) fn fallback(paths: &Paths, now: Instant) -> Option<PathKey> {
    choose::eligible(paths)
        .filter(|path| path.is_open(now))
        .min_by_key(|path| (path.srtt.is_none(), path.srtt, path.key))
        .map(|path| path.key)
}

/// The open path that has sent nothing for longest, backups only where no available path counts.
fn longest_unused(view: &View<'_>) -> Option<PathKey> {
    choose::eligible(view.paths)
        .filter(|path| path.is_open(view.now))
        .min_by_key(|path| (path.last_sent_at, path.key))
        .map(|path| path.key)
}

/// True if sending a run needs no connection credit.
pub(super) fn costs_no_credit(run: &Run, stream: &StreamView) -> bool {
    if run.span.is_empty() { stream.bare_fin } else { run.span.start < stream.high_sent }
}

/// The path that lost bytes must avoid, if another is open.
pub(super) fn avoids(resend: &ResendRules, class: Class, view: &View<'_>) -> Option<PathKey> {
    let Class::Lost { origin } = class else { return None };
    let suspicious = view.paths.get(origin)?.pto_count >= resend.avoid_origin_after_pto;
    let mut others = view.paths.open(view.now).filter(|path| path.key != origin);
    (suspicious && others.next().is_some()).then_some(origin)
}

/// Asks for a path. Lost bytes neither wait nor are planned, and do not see the path that
/// they must avoid.
pub(super) fn place(
    planner: &mut impl Planner,
    resend: &ResendRules,
    shown: &mut Paths,
    parcel: &Parcel<'_>,
    view: &View<'_>,
    notes: &mut Notes,
) -> Placement {
    let Class::Lost { .. } = parcel.class else {
        return match planner.select(parcel, view, notes) {
            Choice::Now(path) => Placement::On(path),
            Choice::NowFromBack(path) if parcel.back_fits => Placement::FromBack(path),
            Choice::NowFromBack(path) => Placement::On(path),
            Choice::Later(path) => Placement::Later(path),
            Choice::Wait { until, on } => Placement::Wait { until, on },
            Choice::None => Placement::Nowhere,
        };
    };
    let view = match avoids(resend, parcel.class, view) {
        None => *view,
        Some(avoided) => {
            shown.clone_from(view.paths);
            if let Some(path) = shown.get_mut(avoided) {
                path.state = PathState::Suspect;
            }
            View { paths: shown, ..*view }
        }
    };
    if resend.path == ResendPath::Open {
        return longest_unused(&view).map_or(Placement::Nowhere, Placement::On);
    }
    match planner.select(parcel, &view, notes) {
        Choice::Now(path) | Choice::NowFromBack(path) => Placement::On(path),
        Choice::Later(_) | Choice::Wait { .. } => {
            fallback(view.paths, view.now).map_or(Placement::Nowhere, Placement::On)
        }
        Choice::None => Placement::Nowhere,
    }
}

/// True if commits must not stay on a path of that status.
pub(super) fn is_backup(view: &View<'_>, path: PathKey) -> bool {
    view.paths.get(path).is_some_and(|path| path.status == PathStatus::Backup)
}
