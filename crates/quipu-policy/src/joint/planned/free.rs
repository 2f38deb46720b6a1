//! Sending what costs no connection credit.

use super::Planned;
use super::place::{Placement, costs_no_credit, fallback, send};
use crate::joint::free_set::Spare;
use crate::joint::planner::Planner;
use crate::key::StreamKey;
use crate::seam::decision::{DecidedBy, Decision, Notes};
use crate::seam::view::{Run, View};

impl<P: Planner> Planned<P> {
    /// The stream longest in the free set that has something to send, and what.
    pub(super) fn find(&mut self, why: Spare, view: &View<'_>) -> Option<(StreamKey, Run)> {
        while let Some(key) = self.free.first(why) {
            let run = view.streams.get(key).and_then(|stream| match why {
                Spare::Lost => self.ledger.lowest_lost(stream, view.streams),
                Spare::Skipped => self
                    .ledger
                    .lowest_unheld(key, view.streams)
                    .filter(|run| costs_no_credit(run, stream)),
            });
            match run {
                Some(run) => return Some((key, run)),
                None => self.free.remove(key, why),
            }
        }
        None
    }

    pub(super) fn send_lost(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Decision> {
        let (stream, run) = self.find(Spare::Lost, view)?;
        let decision = self.send_free(stream, run, view, notes)?;
        notes.answered_by(DecidedBy::Lost);
        Some(decision)
    }

    pub(super) fn send_skipped(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Decision> {
        let (stream, run) = self.find(Spare::Skipped, view)?;
        let decision = self.send_free(stream, run, view, notes)?;
        notes.answered_by(DecidedBy::Skipped);
        Some(decision)
    }

    /// Sends bytes that cost no credit. A planner that would wait with them is overruled by
    /// the best open path: what was skipped may be all that the peer waits for.
    fn send_free(
        &mut self,
        stream: StreamKey,
        run: Run,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Decision> {
        let len = run.span.len();
        let path = match self.place_run(stream, run, len, false, view, notes) {
            Placement::On(path) | Placement::FromBack(path) => path,
            Placement::Later(_) | Placement::Wait { .. } => fallback(view.paths, view.now)?,
            Placement::Nowhere => return None,
        };
        Some(send(path, stream, run.span, len))
    }
}
