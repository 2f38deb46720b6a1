//! What the peer is told of paths that break.

use quipu_base::Instant;
use quipu_policy::{PathState, PathStatus};
use smallvec::SmallVec;

use crate::connection::Connection;
use crate::recorder::PathEvent;

impl Connection {
    /// A path fell silent, or answers again: while only backup paths are left to carry data, the
    /// peer is told to spare those that keep silent.
    pub(in crate::connection) fn tell_of_broken_paths(&mut self, now: Instant) {
        if self.multipath().is_none() || !self.config.warns_of_broken_paths {
            return;
        }
        let views = &self.shared.paths.views;
        let usable = |status| views.usable().any(move |view| view.status == status);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.3
        //# If an endpoint starts using a backup path because it has detected issues on the paths
        //# marked as "available", it is RECOMMENDED to update its own path state signaling such
        //# that the peer avoids using the broken path.
        let backup_serves = !usable(PathStatus::Available) && usable(PathStatus::Backup);
        let told: SmallVec<[_; 8]> = views
            .iter()
            .map(|view| (view.key.id, backup_serves && view.state == PathState::Suspect))
            .collect();
        for (id, broken) in told {
            if self.plan.set_broken(id, broken) {
                self.rest.end();
                self.control.tell_status(id);
                let status = self.plan.status(id).told();
                self.recording.path(now, id, PathEvent::Status { status, own: true });
            }
        }
    }
}
