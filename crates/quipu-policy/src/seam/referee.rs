//! Which answers of a policy are carried out: the rules that every engine keeps.
//!
//! The engine and the mock engine of [`conformance`](crate::conformance) ask the same [`Referee`], so
//! an answer is accepted, cut or refused for the same reason by both.

use quipu_base::{Bytes, Duration, Instant, Offset};

use super::decision::{Ask, Decision, Refusal};
use super::view::{PathStatus, PathView, StreamTable, View};
use crate::key::{PathKey, PathSet, Span, StreamKey};

/// Answers refused in one drain before the engine chooses itself; our choice.
const MAX_REFUSALS: u32 = 3;
/// The shortest wait; our choice.
const LEAST_WAIT: Duration = Duration::from_millis(1);
/// Stands for the round-trip time in the bounds of a wait while no path has a sample; our choice.
const UNKNOWN_RTT: Duration = Duration::from_millis(100);

/// What an accepted answer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checked {
    /// A STREAM frame in a packet on that path.
    Frame(PathKey, Placement),
    /// A packet with a PING on that path.
    Probe(PathKey),
    /// Nothing more goes at this instant, or in this packet.
    Rest,
}

/// Which bytes of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Whose.
    pub stream: StreamKey,
    /// Which, cut to stream and connection credit; empty for a bare FIN.
    pub span: Span,
    /// True if they are in flight already.
    pub copy: bool,
}

/// Judges answers and keeps what the rules need to remember of a connection.
///
/// A *drain* is what an engine sends from the first question at an instant until nothing more goes;
/// a full outbox interrupts it, the next instant begins another. The engine calls
/// [`start_drain`](Self::start_drain), then [`check`](Self::check) for each answer, tells what it did
/// of it, and calls [`end_drain`](Self::end_drain) at rest.
///
/// The rules, in the order in which they are applied:
/// 1. To [`Ask::Packet`] the path must be open ([`PathView::is_open`](crate::PathView::is_open));
///    to [`Ask::Fill`] it must be the path of the open packet.
/// 2. A probe opens a packet, and no more than one goes on a path in one drain. A closed path is
///    never probed by a policy, without exception: probes of suspect paths and after timeouts are
///    the engine's own.
/// 3. The bytes to send must be pending ([`fit`]), the bytes to copy in flight ([`fit_copy`]).
/// 4. A connection with one usable path does not wait, nor does an open packet. With nothing in
///    flight, one rest of the least round-trip time is allowed, be it [`Decision::Wait`] or, while
///    something could go, [`Decision::Idle`]: nothing else would wake the sender.
#[derive(Clone, Debug, Default)]
pub struct Referee {
    refusals: u32,
    /// Paths probed in this drain.
    probed: PathSet,
    /// When the present drain began; `None` at rest.
    drain: Option<Instant>,
    wait_until: Option<Instant>,
    /// When a rest began with nothing in flight.
    stalled_since: Option<Instant>,
}

impl Referee {
    /// At rest, with nothing to remember.
    pub fn new() -> Self {
        Referee::default()
    }

    /// Sending begins, or goes on after a full outbox. What goes on at the same instant is the same
    /// drain.
    pub fn start_drain(&mut self, now: Instant) {
        self.wait_until = None;
        if self.drain != Some(now) {
            self.refusals = 0;
            self.probed = PathSet::EMPTY;
            self.drain = Some(now);
        }
    }

    /// Nothing more goes now.
    pub fn end_drain(&mut self) {
        self.drain = None;
    }

    /// What an answer asks for, given the view in which it was given. Bytes are cut to credit and to
    /// the space of a fill; an engine may cut them further to its packet.
    ///
    /// # Errors
    /// The first rule that the answer breaks: to be counted by [`on_refused`](Self::on_refused).
    pub fn check(
        &mut self,
        ask: Ask,
        decision: Decision,
        view: &View<'_>,
    ) -> Result<Checked, Refusal> {
        match decision {
            Decision::Send { path, stream, from, max } => {
                let space = space_on(ask, path, view)?;
                let span = fit(view.streams, view.conn.credit, stream, from, max.min(space))?;
                Ok(Checked::Frame(path, Placement { stream, span, copy: false }))
            }
            Decision::Copy { path, stream, span } => {
                let space = space_on(ask, path, view)?;
                let span = fit_copy(view.streams, stream, span, space)?;
                Ok(Checked::Frame(path, Placement { stream, span, copy: true }))
            }
            Decision::Probe { path } => {
                space_on(ask, path, view)?;
                let may = ask == Ask::Packet && !self.probed.contains(path);
                if may { Ok(Checked::Probe(path)) } else { Err(Refusal::MustNotProbe(path)) }
            }
            Decision::Wait { until, .. } => {
                let may = ask == Ask::Packet && self.grant_wait(until, view);
                if may { Ok(Checked::Rest) } else { Err(Refusal::MustNotWait) }
            }
            Decision::Idle => {
                let may = ask != Ask::Packet || self.grant_idle(view);
                if may { Ok(Checked::Rest) } else { Err(Refusal::MustNotWait) }
            }
        }
    }

    /// Counts a refusal; true if the engine is to choose itself now.
    pub fn on_refused(&mut self) -> bool {
        self.refusals += 1;
        self.refusals >= MAX_REFUSALS
    }

    /// A packet with stream data left.
    pub fn on_data_packet(&mut self) {
        self.stalled_since = None;
    }

    /// A probe left that a policy had asked for.
    pub fn on_probe(&mut self, path: PathKey) {
        self.probed = self.probed.with(path);
    }

    /// When the present rest ends at the latest, if there is a limit: the policy is to be asked
    /// again then.
    pub fn wait_until(&self) -> Option<Instant> {
        self.wait_until
    }

    /// The present rest is over.
    pub fn end_wait(&mut self) {
        self.wait_until = None;
    }

    fn grant_wait(&mut self, until: Instant, view: &View<'_>) -> bool {
        if view.paths.usable().nth(1).is_none() {
            return false;
        }
        let longest = view.paths.usable().filter_map(|path| path.srtt).max();
        let most = longest.unwrap_or(UNKNOWN_RTT).saturating_mul(2).max(LEAST_WAIT);
        let mut until = until.clamp(view.now + LEAST_WAIT, view.now + most);
        if view.conn.in_flight.is_zero() {
            let Some(limit) = self.stall_limit(view) else { return false };
            until = until.min(limit);
        } else {
            self.stalled_since = None;
        }
        self.wait_until = Some(until);
        true
    }

    /// An idle answer is one to bytes that cannot go; with nothing in flight it is a wait if some
    /// can, unless a socket is blocked: the question comes again when it is not.
    fn grant_idle(&mut self, view: &View<'_>) -> bool {
        let nothing_to_go = view.conn.ready == 0 || view.conn.credit.is_zero();
        let blocked = || view.paths.usable().any(|path| path.blocked);
        if !view.conn.in_flight.is_zero() || nothing_to_go || blocked() {
            self.stalled_since = None;
            return true;
        }
        self.wait_until = self.stall_limit(view);
        self.wait_until.is_some()
    }

    /// When a rest with nothing in flight ends; `None` once that has come.
    fn stall_limit(&mut self, view: &View<'_>) -> Option<Instant> {
        // A policy that spares backup paths may wait for the others, as long as those take.
        let available = || view.paths.usable().filter(|path| path.status == PathStatus::Available);
        let spares = available().next().is_some();
        let counts = |path: &&PathView| !spares || path.status == PathStatus::Available;
        let shortest = view.paths.usable().filter(counts).filter_map(|path| path.srtt).min();
        let began = *self.stalled_since.get_or_insert(view.now);
        let limit = began + shortest.unwrap_or(UNKNOWN_RTT).max(LEAST_WAIT);
        // Nor does the pacer's time count: it ends by itself.
        let paced = view.paths.usable().filter(counts).map(|path| {
            if path.is_open(view.now.max(path.release_at)) {
                path.release_at
            } else {
                Instant::ZERO
            }
        });
        let limit = limit.max(paced.min().unwrap_or(Instant::ZERO));
        (view.now < limit).then_some(limit)
    }
}

/// Rule 1: bytes that a frame on `path` may take.
fn space_on(ask: Ask, path: PathKey, view: &View<'_>) -> Result<Bytes, Refusal> {
    match ask {
        Ask::Fill { path: open, space } if open == path => Ok(space),
        Ask::Fill { .. } => Err(Refusal::OtherPath(path)),
        Ask::Packet => {
            let open = view.paths.get(path).is_some_and(|path| path.is_open(view.now));
            // https://www.rfc-editor.org/rfc/rfc9002#section-7
            //# An endpoint MUST NOT send a packet if it would cause bytes_in_flight (see Appendix
            //# B.2) to be larger than the congestion window, unless the packet is sent on a PTO
            //# timer expiration (see Section 6.2) or when entering recovery (see Section 7.3.2).
            if open { Ok(Bytes::MAX) } else { Err(Refusal::PathClosed(path)) }
        }
    }
}

/// What a frame may carry of a stream: from `from`, which must be pending, or from the lowest
/// pending byte; cut to `max`, to the run's end, to stream credit and to connection credit, of which
/// a skip costs the bytes skipped too. Empty for a bare FIN.
///
/// # Errors
/// Why the answer that names these bytes must be refused.
pub fn fit<S: StreamTable + ?Sized>(
    streams: &S,
    credit: Bytes,
    stream: StreamKey,
    from: Option<Offset>,
    max: Bytes,
) -> Result<Span, Refusal> {
    let view = streams.get(stream).ok_or(Refusal::NoStream(stream))?;
    let run = streams.pending_from(stream, from.unwrap_or(Offset::ZERO));
    let run = match from {
        None => run.ok_or(Refusal::NothingLeft(stream))?,
        Some(from) => {
            run.filter(|run| run.span.start == from).ok_or(Refusal::NotPending(stream, from))?
        }
    };
    let Span { start, end } = run.span;
    if run.span.is_empty() {
        return Ok(run.span);
    }
    // https://www.rfc-editor.org/rfc/rfc9000#section-4.1
    //# Senders MUST NOT send data in excess of either limit.
    let end = end.min(start.advanced(max)).min(view.high_sent.advanced(credit));
    if start < end { Ok(Span { start, end }) } else { Err(Refusal::NothingLeft(stream)) }
}

/// What a copy may carry: the front of `span`, whose first byte must be in flight and not pending; at
/// most `max` bytes. A copy has at least one byte: the end of a stream goes with the last of them.
///
/// # Errors
/// Why the answer that names these bytes must be refused.
pub fn fit_copy<S: StreamTable + ?Sized>(
    streams: &S,
    stream: StreamKey,
    span: Span,
    max: Bytes,
) -> Result<Span, Refusal> {
    streams.get(stream).ok_or(Refusal::NoStream(stream))?;
    let run = streams
        .unacked_from(stream, span.start)
        .filter(|run| run.start == span.start && !span.is_empty())
        .ok_or(Refusal::NotInFlight(stream, span))?;
    let cut = Span::new(span.start, run.end.min(span.end).min(span.start.advanced(max)));
    if cut.is_empty() { Err(Refusal::NothingLeft(stream)) } else { Ok(cut) }
}

#[cfg(test)]
mod tests;
