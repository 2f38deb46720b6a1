//! What the mock engine does at rest, and what it holds against a policy there.

use quipu_base::{Bytes, Duration};

use super::MockEngine;
use crate::path::choose::keeps_backups_idle;
use crate::path::eligible;
use crate::seam::decision::{Ask, Decision};
use crate::seam::event::Event;
use crate::seam::referee::Checked;
use crate::seam::view::{PathStatus, StreamTable};

impl MockEngine {
    /// What is held against a rest beside what the engine refuses: a policy ends its waits itself,
    /// and waits for nothing while it could send all the same.
    pub(super) fn audit_rest(&mut self, ask: Ask, decision: Decision) {
        let rests = matches!(decision, Decision::Wait { .. } | Decision::Idle);
        let view = self.world.view();
        let now = view.now;
        if !rests || ask != Ask::Packet || !self.something_can_go() {
            return;
        }
        let mut faults = Vec::new();
        if view.paths.usable().count() == 1 {
            faults.push(format!("{decision:?} with one usable path, and that open"));
        }
        if let Decision::Wait { until, .. } = decision {
            let lost = self.world.streams.keys().any(|key| self.world.streams.has_lost(key));
            if lost && eligible(view.paths).any(|path| path.is_open(now)) {
                faults.push(format!("{decision:?} with lost bytes pending"));
            }
            let stated = *self.waiting_until.get_or_insert(until);
            if now >= stated {
                faults.push(format!("{decision:?}, but had said until {stated}"));
            }
        }
        for fault in faults {
            self.fault(fault);
        }
    }

    /// True of bytes never sent before on a path of backup status, while an available path that
    /// answers is open.
    /// <https://www.rfc-editor.org/rfc/rfc10069#section-3.3>
    pub(super) fn is_new_on_backup(&self, checked: &Checked) -> bool {
        let Checked::Frame(path, frame) = checked else { return false };
        let view = self.world.view();
        let high_sent = self.world.streams.get(frame.stream).map(|stream| stream.high_sent);
        let is_new = !frame.copy && high_sent.is_some_and(|high| frame.span.start >= high);
        let is_backup = view.paths.get(*path).is_some_and(|path| path.status == PathStatus::Backup);
        is_new && is_backup && view.paths.open(view.now).any(keeps_backups_idle)
    }

    /// True if some stream has bytes that credit allows.
    fn something_can_go(&self) -> bool {
        let credit = self.world.conn.credit;
        self.world.streams.iter().any(|stream| {
            !stream.free.is_zero()
                || stream.bare_fin
                || (!stream.sendable.is_zero() && !credit.is_zero())
        })
    }

    /// Step 7.
    pub(super) fn rest(&mut self) {
        self.referee.end_drain();
        self.check_commits();
        self.tell(Event::Drained);
        let view = self.world.view();
        let soonest = view.now + Duration::from_millis(1);
        let periodic = self.joint.wake_at().map(|at| at.max(soonest));
        let released = view
            .paths
            .usable()
            .filter(|path| path.release_at > view.now && path.room() >= path.payload)
            .map(|path| path.release_at)
            .min();
        self.wake_at = [self.referee.wait_until(), periodic, released].into_iter().flatten().min();
    }

    /// Plans stay within what is pending and within credit.
    fn check_commits(&mut self) {
        let planned: Bytes =
            self.world.paths.iter().map(|path| self.joint.committed(path.key)).sum();
        let sendable: Bytes = self.world.streams.iter().map(|stream| stream.sendable).sum();
        let free: Bytes = self.world.streams.iter().map(|stream| stream.free).sum();
        let affordable = free + self.world.conn.credit;
        if planned > sendable || planned > affordable {
            self.fault(format!("{planned} planned of {sendable} pending and {affordable} credit"));
        }
    }

    /// The stream policy was charged what was sent, plans aside.
    pub(in crate::conformance) fn check_books(&mut self) {
        let Some(audit) = self.audit.clone() else { return };
        for fault in audit.faults() {
            self.fault(format!("the stream policy {fault}"));
        }
        let planned: Bytes =
            self.world.paths.iter().map(|path| self.joint.committed(path.key)).sum();
        if !planned.is_zero() {
            return;
        }
        let (mut charged, mut placed) = (audit.charged(), self.placed.clone());
        charged.retain(|_, bytes| *bytes != 0);
        placed.retain(|_, bytes| *bytes != 0);
        if charged != placed {
            self.fault(format!("charged {charged:?}, sent {placed:?}"));
        }
    }
}
