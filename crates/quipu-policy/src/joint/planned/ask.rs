//! Asking the planner: its turns are sent or planned, one after the other.

use quipu_base::{Bytes, Instant, Offset};

use super::Planned;
use super::place::{Placement, fallback, place, send};
use crate::joint::free_set::Spare;
use crate::joint::planner::Planner;
use crate::key::{PathKey, Span, StreamKey};
use crate::path::Parcel;
use crate::seam::decision::{Decision, Notes};
use crate::seam::view::{Kind, Run, StreamView, View};
use crate::stream::Turn;

/// What a turn offers to send or to plan.
pub(super) struct Offer<'v> {
    pub(super) stream: &'v StreamView,
    pub(super) turn: Turn,
    /// The lowest bytes of the stream that no path holds, within connection credit.
    pub(super) run: Run,
    /// How many of them the turn allows; zero for a bare FIN.
    pub(super) max: Bytes,
}

/// Why a turn offers nothing.
pub(super) enum NoOffer {
    /// Paths hold all that is pending.
    Held,
    /// The stream is gone, or credit allows it nothing.
    Nothing,
}

/// What came of asking for the next turn.
enum Next<'v> {
    Offer(Offer<'v>),
    /// What the planner knows has changed: it may be asked again.
    Again,
    /// Connection credit is used up.
    OutOfCredit,
    /// No turn offers anything.
    Nothing,
}

impl Offer<'_> {
    fn send_on(&self, path: PathKey) -> Decision {
        send(path, self.turn.stream, self.run.span, self.max)
    }
}

impl<P: Planner> Planned<P> {
    /// Step 4: turns are planned until one is sent, waits, or none is left.
    pub(super) fn ask_planner(&mut self, view: &View<'_>, notes: &mut Notes) -> Decision {
        let mut limit = None;
        loop {
            let offer = match self.next_offer(view, notes) {
                Next::Offer(offer) => offer,
                Next::Again => continue,
                Next::OutOfCredit => return self.without_credit(view, notes),
                Next::Nothing => return self.rest(view, notes),
            };
            let back_fits = self.back_fits(offer.stream, view);
            let stream = offer.turn.stream;
            let placement = self.place_run(stream, offer.run, offer.max, back_fits, view, notes);
            match placement {
                Placement::On(path) => {
                    self.note_answer(offer.turn, path, view);
                    return offer.send_on(path);
                }
                Placement::FromBack(path) => {
                    let from_back = self.send_from_back(path, &offer, view);
                    return from_back.unwrap_or_else(|| offer.send_on(path));
                }
                Placement::Later(path) => {
                    if let Some(decision) = self.plan_for(path, &offer, &mut limit, view, notes) {
                        return decision;
                    }
                }
                Placement::Wait { until, on } => {
                    return self.wait_with(&offer, until, on, view, notes);
                }
                Placement::Nowhere => return self.rest(view, notes),
            }
        }
    }

    /// What the planner offers next.
    fn next_offer<'v>(&mut self, view: &View<'v>, notes: &mut Notes) -> Next<'v> {
        let Some(turn) = self.planner.next(None, view, notes) else {
            return if self.reconsider(view) { Next::Again } else { Next::Nothing };
        };
        if self.credit_used_up(view) {
            return Next::OutOfCredit;
        }
        match self.offer_of(turn, view) {
            Ok(offer) => Next::Offer(offer),
            // The planner was told that all is held, or has it from a stale view.
            Err(NoOffer::Held) if self.refresh(turn.stream, view) => Next::Again,
            Err(_) => Next::Nothing,
        }
    }

    /// What a turn offers.
    pub(super) fn offer_of<'v>(
        &mut self,
        turn: Turn,
        view: &View<'v>,
    ) -> Result<Offer<'v>, NoOffer> {
        let stream = view.streams.get(turn.stream).ok_or(NoOffer::Nothing)?;
        let run = self.ledger.lowest_unheld(turn.stream, view.streams).ok_or(NoOffer::Held)?;
        let run = self.within_credit(run, stream, view);
        if run.span.is_empty() && !stream.bare_fin {
            return Err(NoOffer::Nothing);
        }
        let max = run.span.len().min(turn.max.max(Bytes(1)));
        Ok(Offer { stream, turn, run, max })
    }

    /// Asks for the path of at most `max` bytes of a run, one packet's worth.
    pub(super) fn place_run(
        &mut self,
        stream: StreamKey,
        run: Run,
        max: Bytes,
        back_fits: bool,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Placement {
        let parcel = Parcel {
            stream,
            len: max.min(self.packet),
            class: run.class,
            back_fits,
            committed: self.ledger.totals(),
        };
        place(&mut self.planner, &self.resend, &mut self.shown, &parcel, view, notes)
    }

    /// The end of the stream's bytes instead of the offer; `None` if credit does not allow it.
    fn send_from_back(
        &mut self,
        path: PathKey,
        offer: &Offer<'_>,
        view: &View<'_>,
    ) -> Option<Decision> {
        let stream = offer.stream;
        let run = self.ledger.highest_unheld(stream.key, view.streams)?;
        let payload = view.paths.get(path)?.payload;
        let len = run.span.len().min(payload).min(offer.turn.max.max(Bytes(1)));
        if run.span.end > self.ledger.credit_end(stream, view.conn.credit) {
            return None;
        }
        let start = Offset(run.span.end.0 - len.0);
        Some(send(path, stream.key, Span::new(start, run.span.end), len))
    }

    /// Plans a packet of the offer for a path. An answer ends the question: `limit`, which is asked
    /// for once, allows no more plans, or the path is open and takes what is planned. `None`: the
    /// next turn.
    fn plan_for(
        &mut self,
        path: PathKey,
        offer: &Offer<'_>,
        limit: &mut Option<Bytes>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Decision> {
        let Some(path) = view.paths.get(path) else { return Some(self.rest(view, notes)) };
        let limit = *limit.get_or_insert_with(|| self.planner.commit_limit(view));
        let len = offer.max.min(path.payload);
        if self.ledger.total() + len > limit {
            // With no plan to wait for, the answer is no plan but a fault.
            let best = fallback(view.paths, view.now).filter(|_| self.ledger.is_empty());
            return Some(match best {
                Some(path) => offer.send_on(path),
                None => self.rest(view, notes),
            });
        }
        self.plan(path.key, offer.stream, Span::from_len(offer.run.span.start, len), view);
        if path.is_open(view.now) { self.send_commit(view, notes) } else { None }
    }

    fn plan(&mut self, path: PathKey, stream: &StreamView, span: Span, view: &View<'_>) {
        if self.ledger.is_empty() {
            self.order = self.planner.order();
        }
        self.ledger.commit(path, stream, span);
        let turn = Turn { stream: stream.key, max: span.len() };
        self.planner.on_taken(turn, Kind::Fresh, view);
        self.refresh(stream.key, view);
    }

    /// The planner would wait with the offer: lost bytes of any stream do not, and once the wait is
    /// over the offer goes on the best open path.
    fn wait_with(
        &mut self,
        offer: &Offer<'_>,
        until: Instant,
        on: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Decision {
        if let Some(decision) = self.send_lost(view, notes) {
            return decision;
        }
        if self.find(Spare::Lost, view).is_some() {
            return Decision::Idle;
        }
        if let Some(wait) = self.wait(until, on, view) {
            return wait;
        }
        fallback(view.paths, view.now).map_or(Decision::Idle, |path| offer.send_on(path))
    }
}
