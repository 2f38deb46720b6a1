//! What the mock engine does at rest, and what it holds against a policy there.

use quipu_base::{Bytes, Duration};

use super::MockEngine;
use crate::path::eligible;
use crate::seam::decision::Decision;
use crate::seam::event::Event;

impl MockEngine {
    /// Checks a rest; `true` if the watchdog must send.
    pub(super) fn check_rest(&mut self, decision: Decision) -> bool {
        let view = self.world.view();
        let now = view.now;
        let sendable = |credit: Bytes| {
            self.world.streams.iter().any(|stream| {
                !stream.free.is_zero()
                    || stream.bare_fin
                    || (!stream.sendable.is_zero() && !credit.is_zero())
            })
        };
        if !sendable(view.conn.credit) {
            return false;
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
        let least = view.paths.usable().filter_map(|path| path.srtt).min();
        let in_flight = view.conn.in_flight;
        for fault in faults {
            self.fault(fault);
        }
        if !in_flight.is_zero() {
            self.stalled_until = None;
            return false;
        }
        let latest = now + least.unwrap_or(Duration::from_millis(1)).max(Duration::from_millis(1));
        now >= *self.stalled_until.get_or_insert(latest) && latest > now
    }

    /// Step 7.
    pub(super) fn rest(&mut self, decision: Option<Decision>) {
        self.refusals = 0;
        self.check_commits();
        self.tell(Event::Drained);
        let view = self.world.view();
        let largest = view.paths.usable().filter_map(|path| path.srtt).max().unwrap_or_default();
        let soonest = view.now + Duration::from_millis(1);
        let until = match decision {
            Some(Decision::Wait { until, .. }) => {
                Some(until.min(view.now + largest.saturating_mul(2)).max(soonest))
            }
            _ => None,
        };
        let periodic = self.joint.wake_at().map(|at| at.max(soonest));
        let released = view
            .paths
            .usable()
            .filter(|path| path.release_at > view.now && path.room() >= path.payload)
            .map(|path| path.release_at)
            .min();
        let stalled = self.stalled_until.map(|at| at.max(soonest));
        self.wake_at = [until, periodic, released, stalled].into_iter().flatten().min();
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
