//! An engine that knows [`Joint`] only: the life of a decision, to the letter.

use std::collections::BTreeMap;

use quipu_base::{Bytes, Duration, Instant, PacketNumber, PathId, StreamId};

use super::audit::Audit;
use super::world::{Flight, World};
use crate::joint::Joint;
use crate::key::{PathKey, Span, StreamKey};
use crate::seam::decision::{Ask, Decision, Notes, Refusal};
use crate::seam::event::Event;
use crate::seam::referee::{Checked, Placement, Referee, fit};
use crate::seam::view::{PathState, Piece, StreamTable};

mod network;
mod rest;

use network::Link;

/// Bytes of a packet beside the first frame's data, and of a frame beside its data.
const PACKET_OVERHEAD: u64 = 40;
const FRAME_OVERHEAD: u64 = 8;

/// A policy under test.
pub struct Subject {
    /// The policy.
    pub joint: Box<dyn Joint>,
    /// Its stream policy's books, where it has one that is watched.
    pub audit: Option<Audit>,
    /// True if it may answer [`Decision::Copy`].
    pub copies: bool,
}

/// How the mock engine asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Packets that a path's batch holds.
    pub batch: usize,
    /// True to ask every question twice.
    pub twice: bool,
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Answers refused.
    pub refused: u32,
    /// Times that the engine decided itself.
    pub overridden: u32,
    /// Frames that were copies.
    pub copies: u64,
    /// PINGs that a policy asked for.
    pub probes: u64,
    /// Frames of bytes never sent before that were decided for a path of backup status while an
    /// available path that answers was open. No fault by itself: some policies use such paths at will.
    pub on_backup: u64,
    /// Packets in all.
    pub packets: u64,
    /// When everything was delivered.
    pub ended_at: Instant,
    /// Answers carried out, with rests.
    pub decisions: Vec<Decision>,
    /// What went against the rules.
    pub faults: Vec<String>,
}

/// The engine.
pub struct MockEngine {
    pub(super) world: World,
    pub(super) joint: Box<dyn Joint>,
    audit: Option<Audit>,
    copies: bool,
    manner: Manner,
    pub(super) report: Report,
    /// By path slot.
    pub(super) links: Vec<Option<Link>>,
    /// By stream slot: the last edge told.
    ready: Vec<bool>,
    /// Bytes placed by stream, copies excepted, since the policy took over.
    placed: BTreeMap<StreamId, i128>,
    pub(super) referee: Referee,
    /// An answer dropped because its batch was full: it must come again.
    dropped: Option<Decision>,
    /// The `until` of a wait since which nothing but time has passed.
    waiting_until: Option<Instant>,
    pub(super) wake_at: Option<Instant>,
    next_path: u32,
}

/// Why sending stopped.
enum Stop {
    BatchFull,
    Rest,
    Limit,
}

impl MockEngine {
    /// A connection of `paths` paths with `credit` and a policy.
    pub fn new(subject: Subject, manner: Manner, paths: u8, credit: Bytes) -> Self {
        let mut engine = MockEngine {
            world: World::new(credit),
            joint: subject.joint,
            audit: subject.audit,
            copies: subject.copies,
            manner,
            report: Report::default(),
            links: Vec::new(),
            ready: Vec::new(),
            placed: BTreeMap::new(),
            referee: Referee::new(),
            dropped: None,
            waiting_until: None,
            wake_at: None,
            next_path: 0,
        };
        for index in 0..paths {
            engine.add_path(Duration::from_millis(10 + 40 * u64::from(index)));
        }
        engine
    }

    /// All that a view shows.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// What the run came to so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// A path comes up.
    pub(super) fn add_path(&mut self, rtt: Duration) {
        let Some(key) = self.world.add_path(PathId(self.next_path)) else { return };
        self.next_path += 1;
        if self.links.len() <= key.index() {
            self.links.resize_with(key.index() + 1, || None);
        }
        self.links[key.index()] = Some(Link::new(rtt));
        self.tell(Event::PathUp(key));
    }

    pub(super) fn fault(&mut self, fault: String) {
        self.report.faults.push(format!("at {}: {fault}", self.world.now));
    }

    pub(super) fn tell(&mut self, event: Event<'_>) {
        if !matches!(event, Event::Woken | Event::Drained) {
            self.waiting_until = None;
        }
        self.joint.on_event(&event, &self.world.view());
    }

    /// Tells the edges of readiness that are due, of one stream or of all.
    pub(super) fn tell_edges(&mut self, only: Option<StreamKey>) {
        let keys: Vec<StreamKey> = match only {
            Some(key) => vec![key],
            None => self.world.streams.keys().collect(),
        };
        for key in keys {
            let Some(ready) = self.world.streams.get(key).map(|view| view.is_ready()) else {
                continue;
            };
            if self.ready.len() <= key.index() {
                self.ready.resize(key.index() + 1, false);
            }
            if std::mem::replace(&mut self.ready[key.index()], ready) != ready {
                self.tell(if ready { Event::Ready(key) } else { Event::Stopped(key) });
            }
        }
    }

    /// A stream ended: state first, then the event.
    pub(super) fn tell_closed(&mut self, key: StreamKey) {
        if let Some(ready) = self.ready.get_mut(key.index()) {
            *ready = false;
        }
        self.world.recount();
        self.tell(Event::Closed(key));
    }

    /// Puts another policy in place and replays the present to it.
    pub(super) fn swap(&mut self, subject: Subject) {
        self.check_books();
        self.joint = subject.joint;
        self.audit = subject.audit;
        self.placed.clear();
        self.dropped = None;
        self.referee = Referee::new();
        let paths: Vec<(PathKey, PathState)> =
            self.world.paths.iter().map(|path| (path.key, path.state)).collect();
        for (key, state) in paths {
            self.tell(Event::PathUp(key));
            if state == PathState::Suspect {
                self.tell(Event::PathSuspect(key));
            }
        }
        for edit in self.world.priorities.replay() {
            self.tell(Event::Tree(edit));
        }
        let streams: Vec<StreamKey> = self.world.streams.keys().collect();
        for &key in &streams {
            self.tell(Event::Opened(key));
            self.tell(Event::Written(key));
        }
        self.ready.fill(false);
        self.tell_edges(None);
        let view = self.world.view();
        for path in view.paths.iter() {
            for flight in self.world.flights.on(path.key) {
                self.joint.on_event(&Event::Sent(flight.as_sent()), &view);
            }
        }
    }

    /// Sends until rest, or at most `limit` packets.
    pub(super) fn send(&mut self, limit: Option<u8>) {
        self.referee.start_drain(self.world.now);
        let mut left = limit.map_or(u32::MAX, u32::from);
        while let Stop::BatchFull = self.fill_batches(&mut left) {}
    }

    fn fill_batches(&mut self, left: &mut u32) -> Stop {
        let mut batches = [0usize; 32];
        while *left > 0 {
            let view = self.world.view();
            let any_open = view.paths.open(view.now).next().is_some();
            if !any_open || (view.conn.ready == 0 && !self.joint.has_copies()) {
                self.rest();
                return Stop::Rest;
            }
            let decision = self.ask(Ask::Packet);
            let is_full = |path: PathKey| batches[path.index() & 31] >= self.manner.batch;
            if path_of(decision).is_some_and(is_full) {
                self.dropped = Some(decision);
                return Stop::BatchFull;
            }
            let checked = match self.check(Ask::Packet, decision) {
                Ok(checked) => {
                    self.report.decisions.push(decision);
                    checked
                }
                Err(refusal) if self.refuse(decision, refusal) => self.choose_instead(),
                Err(_) => continue,
            };
            let path = match checked {
                Checked::Frame(path, placement) => {
                    self.data_packet(path, placement);
                    path
                }
                Checked::Probe(path) => {
                    self.probe(path);
                    path
                }
                Checked::Rest => {
                    self.rest();
                    return Stop::Rest;
                }
            };
            batches[path.index() & 31] += 1;
            *left -= 1;
        }
        Stop::Limit
    }

    fn ask(&mut self, ask: Ask) -> Decision {
        let mut notes = Notes::off();
        let decision = self.joint.decide(ask, &self.world.view(), &mut notes);
        if self.manner.twice {
            let again = self.joint.decide(ask, &self.world.view(), &mut notes);
            if again != decision {
                self.fault(format!("asked {ask:?}: {decision:?}, then {again:?}"));
            }
        }
        if ask == Ask::Packet
            && let Some(dropped) = self.dropped.take()
            && dropped != decision
        {
            self.fault(format!("after a full batch {dropped:?} became {decision:?}"));
        }
        decision
    }

    /// Step 4: what of an answer can be sent.
    fn check(&mut self, ask: Ask, decision: Decision) -> Result<Checked, Refusal> {
        self.audit_rest(ask, decision);
        let checked = self.referee.check(ask, decision, &self.world.view())?;
        if self.is_new_on_backup(&checked) {
            self.report.on_backup += 1;
        }
        Ok(checked)
    }

    /// Counts a refusal; true if the engine is to choose itself.
    fn refuse(&mut self, decision: Decision, refusal: Refusal) -> bool {
        self.fault(format!("refused {decision:?}: {refusal:?}"));
        self.report.refused += 1;
        self.tell(Event::Refused(refusal));
        self.referee.on_refused()
    }

    /// A PING that the policy asked for.
    fn probe(&mut self, path: PathKey) {
        self.report.probes += 1;
        self.close_packet(path, Bytes(PACKET_OVERHEAD), Vec::new(), Vec::new(), true);
        self.referee.on_probe(path);
    }

    /// Steps 5 and 6: writes the packet that begins with `first`.
    fn data_packet(&mut self, path: PathKey, first: Placement) {
        let mut pieces = Vec::new();
        let mut fins = Vec::new();
        let payload = self.world.paths.get(path).map_or(0, |path| path.payload.0);
        let mut space = payload;
        let mut next = Some(first);
        while let Some(frame) = next.take() {
            let span = Span::from_len(frame.span.start, frame.span.len().min(Bytes(space)));
            space = space.saturating_sub(span.len().0 + FRAME_OVERHEAD);
            let (piece, fin) = self.write(path, Placement { span, ..frame });
            pieces.push(piece);
            fins.push(fin);
            if space <= FRAME_OVERHEAD {
                break;
            }
            let ask = Ask::Fill { path, space: Bytes(space) };
            let decision = self.ask(ask);
            match self.check(ask, decision) {
                Ok(Checked::Frame(_, frame)) => {
                    self.report.decisions.push(decision);
                    next = Some(frame);
                }
                Ok(_) => {}
                Err(refusal) => {
                    self.refuse(decision, refusal);
                }
            }
        }
        let bytes = Bytes(payload.saturating_sub(space) + PACKET_OVERHEAD);
        self.close_packet(path, bytes, pieces, fins, true);
        self.referee.on_data_packet();
    }

    fn write(&mut self, path: PathKey, frame: Placement) -> (Piece, bool) {
        if frame.copy {
            self.report.copies += 1;
            if !self.copies {
                self.fault(format!("an undeclared copy of {:?}", frame.stream));
            }
        }
        let (piece, fin) = self.world.place(frame.stream, frame.span, frame.copy);
        if !frame.copy {
            *self.placed.entry(frame.stream.id).or_default() += i128::from(frame.span.len().0);
        }
        self.world.recount();
        self.tell(Event::Placed { path, piece });
        self.tell_edges(Some(frame.stream));
        (piece, fin)
    }

    /// Step 6, and what the network does with the packet. `counts`: whether its loss makes bytes
    /// pending.
    pub(super) fn close_packet(
        &mut self,
        path: PathKey,
        bytes: Bytes,
        pieces: Vec<Piece>,
        fins: Vec<bool>,
        counts: bool,
    ) {
        let now = self.world.now;
        let Some(Some(link)) = self.links.get_mut(path.index()) else { return };
        let pn = PacketNumber(link.next_pn);
        let (acked_at, release_at) = link.on_sent(now);
        self.world.set_path(path, |path| {
            path.in_flight += bytes;
            path.packets_sent += 1;
            path.last_sent_at = Some(now);
            path.release_at = path.release_at.max(release_at);
        });
        let flight = Flight { path, pn, bytes, sent_at: now, pieces, fins, counts, acked_at };
        self.world.flights.push(flight.clone());
        self.arm_pto(path);
        self.report.packets += 1;
        self.tell(Event::Sent(flight.as_sent()));
    }

    /// The lowest pending stream's front on the best open path.
    fn choose_instead(&mut self) -> Checked {
        self.report.overridden += 1;
        self.fault("the engine had to decide itself".to_owned());
        let view = self.world.view();
        let Some(path) = view.paths.least_srtt_open(view.now) else { return Checked::Rest };
        let mut streams: Vec<StreamKey> = self.world.streams.keys().collect();
        streams.sort();
        let fit = |stream| {
            let span = fit(view.streams, view.conn.credit, stream, None, Bytes::MAX).ok()?;
            Some(Checked::Frame(path, Placement { stream, span, copy: false }))
        };
        streams.into_iter().find_map(fit).unwrap_or(Checked::Rest)
    }
}

/// The path that an answer names for a packet.
fn path_of(decision: Decision) -> Option<PathKey> {
    match decision {
        Decision::Send { path, .. } | Decision::Copy { path, .. } | Decision::Probe { path } => {
            Some(path)
        }
        Decision::Wait { .. } | Decision::Idle => None,
    }
}
