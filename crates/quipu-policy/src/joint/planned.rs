//! What all joint policies have in common: plans, credit, lost bytes, waits, filling of packets.

use quipu_base::{Bytes, Duration, Instant};

use super::Joint;
use super::free_set::{FreeSet, Spare};
use super::ledger::{Commit, Ledger};
use super::planner::Planner;
use crate::key::{PathKey, Span, StreamKey};
use crate::path::{Parcel, choose};
use crate::reinject::ResendRules;
use crate::seam::decision::{Ask, DecidedBy, Decision, Notes};
use crate::seam::event::Event;
use crate::seam::view::{Paths, Run, StreamView, View};
use crate::stream::Pack;

mod again;
mod ask;
mod edges;
mod free;
mod place;
mod revise;

use again::Again;
use edges::Edges;
use place::{avoids, fallback, send};

/// A [`Planner`] as a [`Joint`].
///
/// Per packet, in this order:
/// 1. plans that no longer hold are taken back, newest first;
/// 2. lost bytes, if they go first or if connection credit is used up;
/// 3. the oldest commit whose path is open;
/// 4. the planner's turns, one after the other: it sends a turn now, or plans it for later (then the
///    next turn is asked for), or waits (then lost bytes of any stream may go). While it
///    [repeats](Planner::repeats) its answer, the packets that follow do without all of this.
///
/// To the planner, *ready* means: has pending bytes that no path holds. A commit charges it once;
/// its sending later does not charge again. The sum of commits is bounded by the planner's limit and
/// by connection credit, which commits reserve. If all that is pending is planned while a path is
/// open, the newest packet planned is looked at once more: that path may have opened since.
///
/// A wait ends when it said: if nothing but its end came meanwhile, the bytes go on the best open
/// path. So no planner can hold a connection up for longer than it stated.
pub struct Planned<P> {
    pub(super) planner: P,
    resend: ResendRules,
    pack: Pack,
    replan: Replan,
    ledger: Ledger,
    free: FreeSet,
    edges: Edges,
    /// What the planner answers until something happens.
    again: Option<Again>,
    /// The planner's order when the plans were made.
    order: u64,
    /// Something but the sending of packets happened since the last revision.
    changed: bool,
    /// Anything happened since the last revision.
    touched: bool,
    /// The newest plan was reconsidered since anything happened.
    reconsidered: bool,
    /// The end of the wait answered last, if nothing but its end came since.
    waiting_until: Option<Instant>,
    /// When it first waited with nothing in flight.
    stalled_since: Option<Instant>,
    /// Stream bytes that fit one packet, on the path where most fit.
    packet: Bytes,
    /// The stream of the last frame of the open packet.
    packet_stream: Option<StreamKey>,
    /// The paths as shown for lost bytes that must avoid one.
    shown: Paths,
}

/// When plans are made anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replan {
    /// When an estimate that they rest on moved, or the order of streams changed.
    #[default]
    OnDrift,
    /// Before every packet: the literal walk over all pending bytes, for tests.
    Always,
}

impl<P: Planner> Planned<P> {
    /// The joint policy of that planner. `resend` tells how lost bytes go again, `pack` how many
    /// streams may share a packet.
    pub fn of(planner: P, resend: ResendRules, pack: Pack) -> Self {
        Planned {
            planner,
            resend,
            pack,
            replan: Replan::OnDrift,
            ledger: Ledger::new(),
            free: FreeSet::new(),
            edges: Edges::default(),
            again: None,
            order: 0,
            changed: true,
            touched: true,
            reconsidered: false,
            waiting_until: None,
            stalled_since: None,
            packet: Bytes::ZERO,
            packet_stream: None,
            shown: Paths::new(),
        }
    }

    /// The same with another rule of making plans anew.
    #[must_use]
    pub fn with_replan(mut self, replan: Replan) -> Self {
        self.replan = replan;
        self
    }

    /// What is planned.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn next_packet(&mut self, view: &View<'_>, notes: &mut Notes) -> Decision {
        self.revise(view);
        if let Some(path) = self.planner.probe(view) {
            return Decision::Probe { path };
        }
        if self.credit_used_up(view) {
            return self.without_credit(view, notes);
        }
        if self.resend.first
            && let Some(decision) = self.send_lost(view, notes)
        {
            return decision;
        }
        if let Some(decision) = self.send_commit(view, notes) {
            return decision;
        }
        self.ask_planner(view, notes)
    }

    /// True if nothing is left of connection credit but what the plans reserve.
    fn credit_used_up(&self, view: &View<'_>) -> bool {
        view.conn.credit <= self.ledger.reserved()
    }

    /// Steps 2 and 3 if credit is used up: only plans and what costs no credit can go.
    fn without_credit(&mut self, view: &View<'_>, notes: &mut Notes) -> Decision {
        if let Some(decision) = self.send_lost(view, notes) {
            return decision;
        }
        if let Some(decision) = self.send_skipped(view, notes) {
            return decision;
        }
        self.send_commit(view, notes).unwrap_or_else(|| self.rest(view, notes))
    }

    /// Ask::Fill: a commit of that path, else lost bytes that go first, else the next turn.
    fn fill(
        &mut self,
        path: PathKey,
        space: Bytes,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Decision {
        while let Some(commit) = self.ledger.front(path) {
            if let Some(commit) = self.still_pending(commit, view) {
                notes.answered_by(DecidedBy::Plan);
                return send(path, commit.stream, commit.span, commit.span.len().min(space));
            }
        }
        let credit_used_up = self.credit_used_up(view);
        let lost =
            if self.resend.first || credit_used_up { self.find(Spare::Lost, view) } else { None };
        let (free, part) = match lost {
            None if credit_used_up => (self.find(Spare::Skipped, view), DecidedBy::Skipped),
            None => (None, DecidedBy::Policy),
            lost => (lost, DecidedBy::Lost),
        };
        notes.answered_by(part);
        let (stream, run, max) = match free {
            Some((stream, run)) => (stream, run, run.span.len()),
            None if credit_used_up => return Decision::Idle,
            None => {
                let Some(turn) = self.planner.next(Some(path), view, notes) else {
                    return Decision::Idle;
                };
                let Ok(offer) = self.offer_of(turn, view) else { return Decision::Idle };
                (turn.stream, offer.run, offer.max)
            }
        };
        if self.pack == Pack::One && self.packet_stream != Some(stream) {
            return Decision::Idle;
        }
        let max = max.min(space);
        let parcel = Parcel {
            stream,
            len: max,
            class: run.class,
            back_fits: false,
            committed: self.ledger.totals(),
        };
        if avoids(&self.resend, run.class, view) == Some(path)
            || !self.planner.fill(path, &parcel, view)
        {
            return Decision::Idle;
        }
        send(path, stream, run.span, max)
    }

    /// Step 3: the commit of least sequence whose path is open.
    fn send_commit(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Decision> {
        let is_open = |path| view.paths.get(path).is_some_and(|path| path.is_open(view.now));
        while !self.ledger.is_empty() {
            let (path, commit) = self.ledger.first_on(view.paths, is_open)?;
            if let Some(commit) = self.still_pending(commit, view) {
                notes.answered_by(DecidedBy::Plan);
                return Some(send(path, commit.stream, commit.span, commit.span.len()));
            }
        }
        None
    }

    /// What is left to send of a commit; takes back what is not pending any more.
    fn still_pending(&mut self, commit: Commit, view: &View<'_>) -> Option<Commit> {
        let run = view.streams.pending_from(commit.stream, commit.span.start);
        let gone_below = match (run, commit.span.is_empty()) {
            (Some(run), true) if run.span.is_empty() => return Some(commit),
            (_, true) => {
                self.ledger.release_fin(commit.stream);
                self.give_back(commit.stream, Bytes::ZERO, view);
                return None;
            }
            (Some(run), false) if run.span.start == commit.span.start => return Some(commit),
            (Some(run), false) => run.span.start.min(commit.span.end),
            (None, false) => commit.span.end,
        };
        let freed = self.ledger.release(commit.stream, Span::new(commit.span.start, gone_below));
        self.give_back(commit.stream, freed, view);
        None
    }

    /// True if all that the application wrote could be sent with the credit there is.
    fn back_fits(&self, stream: &StreamView, view: &View<'_>) -> bool {
        stream.fin
            && stream.written <= stream.credit_end
            && stream.written <= self.ledger.credit_end(stream, view.conn.credit)
    }

    /// The part of a run that connection credit allows.
    fn within_credit(&self, run: Run, stream: &StreamView, view: &View<'_>) -> Run {
        let end = run.span.end.min(self.ledger.credit_end(stream, view.conn.credit));
        Run { span: Span::new(run.span.start, end), ..run }
    }

    /// Nothing more to send but lost bytes: the commits wait for their paths.
    fn rest(&mut self, view: &View<'_>, notes: &mut Notes) -> Decision {
        if let Some(decision) = self.send_lost(view, notes) {
            return decision;
        }
        if self.find(Spare::Lost, view).is_some() {
            // No open path may have them; a wait is not for lost bytes.
            return Decision::Idle;
        }
        let Some((path, commit)) = self.ledger.first_on(view.paths, |_| true) else {
            return Decision::Idle;
        };
        let Some(held_by) = view.paths.get(path) else { return Decision::Idle };
        let until = choose::opens_by(held_by, view.now);
        notes.answered_by(DecidedBy::Plan);
        if let Some(wait) = self.wait(until, Some(path), view) {
            return wait;
        }
        let target = fallback(view.paths, view.now);
        match (target, self.still_pending(commit, view)) {
            (Some(path), Some(commit)) => send(path, commit.stream, commit.span, commit.span.len()),
            _ => Decision::Idle,
        }
    }

    /// A wait until `until`, or until an earlier end that was stated when nothing but time has
    /// passed since; `None` once that end has come. With nothing in flight it lasts at most one
    /// least round-trip time, as no acknowledgement can end it.
    fn wait(&mut self, until: Instant, on: Option<PathKey>, view: &View<'_>) -> Option<Decision> {
        let until = *self.waiting_until.get_or_insert(until);
        let until = if view.conn.in_flight.is_zero() {
            let since = *self.stalled_since.get_or_insert(view.now);
            let least = view.paths.usable().filter_map(|path| path.srtt).min();
            until.min(since + least.unwrap_or(Duration::from_millis(1)))
        } else {
            self.stalled_since = None;
            until
        };
        (view.now < until).then_some(Decision::Wait { until, on })
    }
}

impl<P: Planner> Joint for Planned<P> {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        match ask {
            Ask::Packet => match self.answer_again(view, notes) {
                Some(same) => {
                    #[cfg(debug_assertions)]
                    assert_eq!(
                        same,
                        self.next_packet(view, &mut Notes::off()),
                        "it need not be asked"
                    );
                    same
                }
                None => self.next_packet(view, notes),
            },
            Ask::Fill { path, space } => self.fill(path, space, view, notes),
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.note_event(event, view);
    }

    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        fallback(view.paths, view.now).or_else(|| view.paths.least_srtt_open(view.now))
    }

    fn wake_at(&self) -> Option<Instant> {
        self.planner.wake_at()
    }

    fn committed(&self, path: PathKey) -> Bytes {
        self.ledger.committed(path)
    }
}
