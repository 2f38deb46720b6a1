//! What policies that allot the bytes of streams to paths have in common.

use quipu_base::{Bytes, Duration, Instant};
use smallvec::SmallVec;

use super::lanes::{Estimator, Lanes};
use super::planned::Planned;
use super::planner::Planner;
use crate::key::{PathKey, StreamKey};
use crate::path::choose::opens_by;
use crate::path::{Choice, IdleProbe, MinRtt, Parcel, PathPolicy, eligible, rest_unless_stuck};
use crate::reinject::ResendRules;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Class, PathView, View};
use crate::stream::{Pack, Turn};

/// An algorithm that allots the bytes of streams to paths. [`Allotting`] makes a
/// [`Planner`](super::Planner) of it.
pub trait Allotter: Send {
    /// Takes note of what happened, and tells what it does to the allotments.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) -> Effect;

    /// Makes the allotments anew over `lanes`; `cause` tells why.
    fn renew(&mut self, cause: Cause, lanes: &Lanes, view: &View<'_>);

    /// The stream that is next on a path, and how many bytes it has left there; takes nothing.
    /// `None`: no ready stream has anything left there.
    fn next_on(&mut self, path: PathKey, view: &View<'_>, notes: &mut Notes) -> Option<Turn>;

    /// Any ready stream.
    fn any_ready(&mut self, view: &View<'_>) -> Option<StreamKey>;

    /// When the open paths get what was allotted to others, if the connection sends nothing until
    /// then although a path is open. `on` is the closed path that is waited for. By default: when
    /// its pacer lets go, or its next acknowledgement is late.
    fn waits_until(&self, on: Option<&PathView>, view: &View<'_>) -> Instant {
        let a_tick = view.now + Duration::from_millis(1);
        on.map_or(a_tick, |path| opens_by(path, view.now).max(a_tick))
    }
}

/// What an event does to the allotments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// Nothing.
    Keeps,
    /// They rest on values that may have changed: to be made anew before the next send batch.
    Ages,
    /// They no longer hold: to be made anew before the next packet.
    Voids,
}

/// Why allotments are made anew. Where there is more than one reason, the last of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A send batch ended, and estimates may have moved since.
    Batch,
    /// Streams changed.
    Streams,
    /// The lanes are others than before, or limited and were not, or the other way round.
    Paths,
    /// What is allotted waits for paths that do not open: the lanes are only those open now.
    Stuck,
}

/// An [`Allotter`] with what is common to all: when allotments are made anew, in which order paths
/// are served, how long an open path may be kept idle.
///
/// Open paths are served in order of round-trip time, those without a sample last; each takes the
/// next stream that has bytes left on it. Allotments are made anew before the first packet of a send
/// batch, if anything that they rest on changed since the last one, and at once if streams or paths
/// changed. Lost bytes go first, on the open path of least round-trip time, and are not limited.
/// Idle paths are probed, as the estimates of a path that carries nothing go stale.
///
/// If all that is left waits for closed paths while a path is open, the answer is a wait. When the
/// connection sent nothing until the end that the algorithm sets, the open paths get it all: our
/// repair, against estimates that are wrong.
pub struct Allotting<A> {
    pub(super) allotter: A,
    estimator: Estimator,
    probe: IdleProbe,
    lanes: Lanes,
    /// Why the allotments must be made anew before the next packet.
    void: Option<Cause>,
    /// Something that the allotments rest on may have changed.
    aged: bool,
    /// A send batch ended since they were made.
    batch_over: bool,
    /// When the present rest ends, and if that was told.
    rest_ends: Option<(Instant, bool)>,
    picked: Option<Picked>,
    renewals: u64,
}

/// The turn named last.
#[derive(Clone, Copy, Debug)]
struct Picked {
    stream: StreamKey,
    on: On,
}

#[derive(Clone, Copy, Debug)]
enum On {
    Path(PathKey),
    Waiting { until: Option<Instant>, on: Option<PathKey> },
}

impl<A: Allotter> Allotting<A> {
    /// The planner of that allotter.
    pub fn new(allotter: A, estimator: Estimator, probe: IdleProbe) -> Self {
        Allotting {
            allotter,
            estimator,
            probe,
            lanes: Lanes::default(),
            void: Some(Cause::Paths),
            aged: false,
            batch_over: false,
            rest_ends: None,
            picked: None,
            renewals: 0,
        }
    }

    /// The joint policy. Whatever `resend` says, lost bytes go first.
    pub fn planned(self, resend: ResendRules, pack: Pack) -> Planned<Self> {
        Planned::of(self, ResendRules { first: true, ..resend }, pack)
    }

    /// The algorithm.
    pub fn allotter(&self) -> &A {
        &self.allotter
    }

    /// How often allotments were made anew.
    pub fn renewals(&self) -> u64 {
        self.renewals
    }

    /// Makes the allotments anew.
    pub fn renew(&mut self, cause: Cause, view: &View<'_>) {
        let others = self.lanes.look(self.estimator, cause == Cause::Stuck, view);
        let cause = if others { cause.max(Cause::Paths) } else { cause };
        self.allotter.renew(cause, &self.lanes, view);
        self.void = None;
        self.aged = false;
        self.batch_over = false;
        self.renewals += 1;
    }

    fn bring_up_to_date(&mut self, view: &View<'_>) {
        match self.void {
            Some(cause) => self.renew(cause, view),
            None if self.aged && self.batch_over => self.renew(Cause::Batch, view),
            None => {}
        }
    }

    /// The first open path with something to carry, and what.
    fn pick(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<(PathKey, Turn)> {
        let mut open: SmallVec<[&PathView; 8]> =
            eligible(view.paths).filter(|path| path.is_open(view.now)).collect();
        open.sort_unstable_by_key(|path| MinRtt::rank(path));
        let allotter = &mut self.allotter;
        open.iter().find_map(|path| Some((path.key, allotter.next_on(path.key, view, notes)?)))
    }

    /// What opens the next packet.
    fn next_packet(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        self.bring_up_to_date(view);
        self.picked = None;
        let mut pick = self.pick(view, notes);
        let any_open = eligible(view.paths).any(|path| path.is_open(view.now));
        if pick.is_none() && any_open {
            self.allotter.any_ready(view)?;
            if self.aged {
                self.renew(Cause::Batch, view);
                pick = self.pick(view, notes);
            }
            if pick.is_none() && self.rest_ends.is_some_and(|(at, _)| at <= view.now) {
                self.renew(Cause::Stuck, view);
                // The next batch looks at all paths again.
                self.aged = true;
                pick = self.pick(view, notes);
            }
        }
        if let Some((path, turn)) = pick {
            self.picked = Some(Picked { stream: turn.stream, on: On::Path(path) });
            return Some(turn);
        }
        self.rest(any_open, view, notes)
    }

    /// Nothing that may go now: the stream whose turn it is when a path opens, and which path.
    fn rest(&mut self, any_open: bool, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        let closed = view.paths.usable().filter(|path| !path.is_open(view.now));
        let waits = closed
            .filter_map(|path| Some((path, self.allotter.next_on(path.key, view, notes)?.stream)))
            .min_by_key(|(path, _)| MinRtt::rank(path));
        let (path, stream) = match waits {
            Some((path, stream)) => (Some(path), stream),
            None => (None, self.allotter.any_ready(view)?),
        };
        let until = any_open.then(|| {
            let until = self.allotter.waits_until(path, view);
            self.rest_ends.get_or_insert((until, false)).0
        });
        let on = On::Waiting { until, on: path.map(|path| path.key) };
        self.picked = Some(Picked { stream, on });
        Some(Turn::unlimited(stream))
    }
}

impl<A: Allotter> PathPolicy for Allotting<A> {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let lost = matches!(parcel.class, Class::Lost { .. });
        let picked = self.picked.take().filter(|it| it.stream == parcel.stream && !lost);
        match picked.map(|picked| picked.on) {
            Some(On::Path(path)) => Choice::Now(path),
            Some(On::Waiting { until: Some(until), on }) => Choice::Wait { until, on },
            Some(On::Waiting { until: None, .. }) => rest_unless_stuck(parcel, view),
            None => match MinRtt::pick(view, notes) {
                Some(path) => Choice::Now(path.key),
                None => rest_unless_stuck(parcel, view),
            },
        }
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.probe.on_event(event);
        let effect = self.allotter.on_event(event, view);
        match *event {
            Event::Drained => self.batch_over = true,
            Event::Woken => {
                if let Some((at, told)) = &mut self.rest_ends {
                    *told |= *at <= view.now;
                }
            }
            Event::Sent(packet) if !packet.pieces.is_empty() => self.rest_ends = None,
            Event::PathUp(_)
            | Event::PathSuspect(_)
            | Event::PathRevived(_)
            | Event::PathStatus(_)
            | Event::PathGone(_) => self.void = Some(Cause::Paths),
            Event::Acked(_) | Event::Lost(_) | Event::PathMeasured(_) | Event::Pto(_) => {
                self.aged = true;
            }
            _ => {}
        }
        match effect {
            Effect::Keeps => {}
            Effect::Ages => self.aged = true,
            Effect::Voids => self.void = self.void.max(Some(Cause::Streams)),
        }
        if self.void.is_some() {
            self.rest_ends = None;
        }
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.probe.due(view)
    }
}

impl<A: Allotter> Planner for Allotting<A> {
    fn next(
        &mut self,
        filling: Option<PathKey>,
        view: &View<'_>,
        notes: &mut Notes,
    ) -> Option<Turn> {
        match filling {
            Some(path) => self.allotter.next_on(path, view, notes),
            None => self.next_packet(view, notes),
        }
    }

    fn wake_at(&self) -> Option<Instant> {
        self.rest_ends.filter(|(_, told)| !told).map(|(at, _)| at)
    }
}

/// No limit on the bytes of a stream on a path.
pub(super) const NO_LIMIT: Bytes = Bytes::MAX;
