//! Runs a script, and holds a policy to the rules.

use std::collections::BTreeSet;

use quipu_base::{Bytes, Duration, PathId};

use super::engine::{Manner, MockEngine, Report, Subject};
use super::script::{Script, Step};
use crate::key::{PathKey, StreamKey};
use crate::priority::{NodeId, Priority, PriorityEdit};
use crate::seam::event::Event;
use crate::seam::view::{PathStatus, StreamTable};

/// Timers that may fire after a script's end before everything is delivered.
const FINAL_TIMERS: u32 = 30_000;

/// Runs `script` on the policies that `subject` builds: twice alike, with batches of one packet, and
/// with every question asked twice.
///
/// The report's `faults` list everything that went against the rules of the seam; for a policy that
/// conforms it is empty. [`Report::refused`] and [`Report::overridden`] are then zero, all bytes
/// were delivered within a bound, and the decisions were the same each time.
pub fn check(subject: &dyn Fn() -> Subject, script: &Script) -> Report {
    let plain = Manner { batch: 40, twice: false };
    let mut report = run(subject, script, plain);
    let others = [
        ("run again", plain),
        ("batches of one packet", Manner { batch: 1, twice: false }),
        ("every question asked twice", Manner { batch: 40, twice: true }),
    ];
    for (what, manner) in others {
        let other = run(subject, script, manner);
        let differs = report.decisions.iter().zip(&other.decisions).position(|(a, b)| a != b);
        if let Some(at) = differs {
            let (first, second) = (report.decisions[at], other.decisions[at]);
            let fault = format!("{what}: decision {at} was {first:?}, became {second:?}");
            report.faults.push(fault);
        } else if report.decisions.len() != other.decisions.len() {
            report.faults.push(format!("{what}: another number of decisions"));
        }
        report.faults.extend(other.faults.into_iter().map(|fault| format!("{what}: {fault}")));
    }
    report
}

/// Runs `script` once.
pub fn run(subject: &dyn Fn() -> Subject, script: &Script, manner: Manner) -> Report {
    let credit = Bytes(u64::from(script.credit));
    let mut engine = MockEngine::new(subject(), manner, script.paths.clamp(1, 8), credit);
    if script.backlog > 0 {
        for stream in 0..2 {
            engine.apply(Step::Open { urgency: 3, incremental: false, credit: 1 << 20 }, subject);
            engine.apply(Step::Write { stream, bytes: script.backlog }, subject);
        }
    }
    for step in &script.steps {
        engine.apply(*step, subject);
    }
    engine.settle();
    engine.report().clone()
}

impl MockEngine {
    /// Does one step of a script.
    pub fn apply(&mut self, step: Step, subject: &dyn Fn() -> Subject) {
        match step {
            Step::Pass { ms } => {
                self.pass(self.world.now + Duration::from_millis(u64::from(ms)));
            }
            Step::Trickle { packets } => self.send(Some(packets)),
            Step::Swap => self.swap(subject()),
            Step::Insert { .. } | Step::Move { .. } | Step::Remove { .. } | Step::Attach { .. } => {
                self.edit_tree(step);
            }
            Step::GrantConnection { bytes } => {
                self.world.conn.credit += Bytes(u64::from(bytes));
            }
            Step::PathUp { rtt_ms } => {
                if self.world.paths.len() < 8 {
                    self.add_path(Duration::from_millis(u64::from(rtt_ms)));
                }
            }
            Step::PathGone { path }
            | Step::PathStatus { path, .. }
            | Step::Silence { path, .. }
            | Step::Rtt { path, .. }
            | Step::ForgetRtt { path }
            | Step::Window { path, .. }
            | Step::Lose { path, .. }
            | Step::Amplification { path, .. }
            | Step::Block { path, .. }
            | Step::Pace { path, .. } => {
                let count = self.world.paths.len().max(1);
                let key = self.world.paths.iter().nth(usize::from(path) % count).map(|p| p.key);
                if let Some(key) = key {
                    self.disturb(key, step);
                }
            }
            Step::Open { urgency, incremental, credit } => {
                let priority = Priority { urgency, incremental, ..Priority::default() };
                let credit = Bytes(u64::from(credit));
                let key = self.world.streams.open(self.world.now, priority, credit);
                self.world.recount();
                self.tell(Event::Opened(key));
            }
            Step::Write { stream, .. }
            | Step::Size { stream, .. }
            | Step::Finish { stream }
            | Step::Reset { stream }
            | Step::Urgency { stream, .. }
            | Step::Deadline { stream, .. }
            | Step::Grant { stream, .. } => {
                if let Some(key) = self.stream_key(stream) {
                    self.serve(key, step);
                }
            }
        }
    }

    fn stream_key(&self, stream: u8) -> Option<StreamKey> {
        let count = self.world.streams.keys().count().max(1);
        self.world.streams.keys().nth(usize::from(stream) % count)
    }

    /// A step of the application or the peer on one stream.
    fn serve(&mut self, key: StreamKey, step: Step) {
        let Some(view) = self.world.streams.get(key).cloned() else { return };
        let streams = &mut self.world.streams;
        let event = match step {
            Step::Write { bytes, .. } => {
                streams.write(key, Bytes(u64::from(bytes)));
                Some(Event::Written(key))
            }
            Step::Finish { .. } if !view.fin => {
                streams.finish(key);
                Some(Event::Written(key))
            }
            Step::Size { more, .. } => {
                streams.set_size(key, Bytes(view.written.0 + u64::from(more)));
                Some(Event::Sized(key))
            }
            Step::Urgency { urgency, incremental, .. } => {
                let edit = PriorityEdit::Urgency { stream: key.id, urgency, incremental };
                self.edit_priorities(&edit, Some(key));
                return;
            }
            Step::Deadline { ms, .. } => {
                let latency = Some(Duration::from_millis(u64::from(ms)));
                streams.set_priority(key, Priority { latency, ..view.priority });
                Some(Event::Reprioritised(key))
            }
            Step::Grant { bytes, .. } => {
                streams.grant(key, view.credit_end.advanced(Bytes(u64::from(bytes))));
                None
            }
            Step::Reset { .. } => {
                streams.close(key);
                self.world.priorities.detach(key);
                self.tell_closed(key);
                return;
            }
            _ => None,
        };
        self.world.recount();
        if let Some(event) = event {
            self.tell(event);
        }
        self.tell_edges(Some(key));
    }

    /// A step of the network on one path.
    fn disturb(&mut self, key: PathKey, step: Step) {
        let rtt = |ms: u32| Duration::from_millis(u64::from(ms));
        let link = self.links.get_mut(key.index()).and_then(Option::as_mut);
        match (step, link) {
            (Step::Silence { silent, .. }, Some(link)) => link.silent = silent,
            (Step::Rtt { ms, .. }, Some(link)) => link.rtt = rtt(ms),
            (Step::Lose { packets, .. }, Some(link)) => link.to_lose = u32::from(packets),
            (Step::Pace { paced, .. }, Some(link)) => link.paced = paced,
            (Step::PathGone { .. }, _) if self.world.paths.len() > 1 => self.remove_path(key),
            (Step::PathStatus { backup, .. }, _) => {
                let status = if backup { PathStatus::Backup } else { PathStatus::Available };
                self.world.set_path(key, |path| path.status = status);
                self.tell(Event::PathStatus(key));
            }
            (Step::ForgetRtt { .. }, _) => {
                self.world.set_path(key, |path| {
                    path.srtt = None;
                    path.rttvar = Duration::ZERO;
                    path.min_rtt = None;
                    path.latest_rtt = None;
                });
                self.tell(Event::PathMeasured(key));
            }
            (Step::Window { packets, .. }, _) => {
                self.world
                    .set_path(key, |path| path.cwnd = Bytes(path.payload.0 * u64::from(packets)));
                self.tell(Event::PathMeasured(key));
            }
            (Step::Block { blocked, .. }, _) => self.block(key, blocked),
            (Step::Amplification { limited, .. }, _) => {
                self.world.set_path(key, |path| path.amplification_limited = limited);
                self.tell(Event::PathMeasured(key));
            }
            _ => {}
        }
    }

    fn edit_tree(&mut self, step: Step) {
        let node = |index: u8| NodeId(u64::from(index % 16));
        let parent = |index: u8| if index.is_multiple_of(4) { NodeId::ROOT } else { node(index) };
        let mut attached = None;
        let edit = match step {
            Step::Insert { parent: above, weight, exclusive } => PriorityEdit::Insert {
                node: node(above.wrapping_mul(7)),
                parent: parent(above),
                weight,
                exclusive,
            },
            Step::Move { node: moved, parent: above, weight, exclusive } => {
                PriorityEdit::Move { node: node(moved), parent: parent(above), weight, exclusive }
            }
            Step::Remove { node: gone } => PriorityEdit::Remove { node: node(gone) },
            Step::Attach { node: speaker, stream } => {
                let Some(key) = self.stream_key(stream) else { return };
                // HTTP names nodes by small numbers here, and attaches a stream once.
                let has_place = (0..16).map(NodeId).any(|id| self.speaker(id) == Some(key));
                let slot = self.world.priorities.key(node(speaker));
                if slot.is_none() || has_place || self.speaker(node(speaker)).is_some() {
                    return;
                }
                attached = Some(key);
                PriorityEdit::Attach { node: node(speaker), stream: key.id }
            }
            _ => return,
        };
        self.edit_priorities(&edit, attached);
    }

    /// An edit of HTTP: the container, then the views of streams, then the policies.
    fn edit_priorities(&mut self, edit: &PriorityEdit, stream: Option<StreamKey>) {
        let priorities = &mut self.world.priorities;
        let Ok(edits) = priorities.apply(edit, stream) else { return };
        let touched = edits.iter().filter_map(|edit| priorities.touched(edit));
        let touched: BTreeSet<StreamKey> = stream.into_iter().chain(touched).collect();
        let mut changed = Vec::new();
        for key in touched {
            let Some(view) = self.world.streams.get(key) else { continue };
            let (before, after) = (view.priority, priorities.complete(key, view.priority));
            if before != after {
                self.world.streams.set_priority(key, after);
                changed.push(key);
            }
        }
        for edit in edits {
            self.tell(Event::Tree(edit));
        }
        for key in changed {
            self.tell(Event::Reprioritised(key));
            self.tell_edges(Some(key));
        }
    }

    fn speaker(&self, node: NodeId) -> Option<StreamKey> {
        let priorities = &self.world.priorities;
        priorities.node(priorities.key(node)?)?.stream
    }

    /// The socket of a path takes nothing, or takes datagrams again.
    fn block(&mut self, key: PathKey, blocked: bool) {
        if self.world.paths.get(key).is_none_or(|path| path.blocked == blocked) {
            return;
        }
        self.world.set_path(key, |path| path.blocked = blocked);
        self.tell(if blocked { Event::PathBlocked(key) } else { Event::PathUnblocked(key) });
    }

    /// Everything heals, the streams end, and all must be delivered.
    fn settle(&mut self) {
        for link in self.links.iter_mut().flatten() {
            link.silent = false;
            link.to_lose = 0;
        }
        if self.world.paths.by_id(PathId(0)).is_none() {
            self.add_path(Duration::from_millis(30));
        }
        let paths: Vec<PathKey> = self.world.paths.iter().map(|path| path.key).collect();
        for path in paths {
            self.world.set_path(path, |path| {
                path.cwnd = path.cwnd.max(Bytes(path.payload.0 * 2));
                path.amplification_limited = false;
            });
            self.tell(Event::PathMeasured(path));
            self.block(path, false);
        }
        self.world.conn.credit += Bytes(1 << 40);
        let streams: Vec<StreamKey> = self.world.streams.keys().collect();
        for stream in streams {
            self.serve(stream, Step::Finish { stream: 0 });
            self.world.streams.grant(stream, quipu_base::Offset(1 << 40));
            self.world.recount();
            self.tell_edges(Some(stream));
        }
        let mut timers = 0;
        while self.world.streams.keys().next().is_some() {
            timers += 1;
            if timers > FINAL_TIMERS || !self.step() {
                let left = self.world.streams.iter().count();
                self.fault(format!("{left} streams did not end within {timers} timers"));
                return;
            }
        }
        self.report.ended_at = self.world.now;
        self.send(None);
        let planned: Bytes =
            self.world.paths.iter().map(|path| self.joint.committed(path.key)).sum();
        if !planned.is_zero() {
            self.fault(format!("{planned} planned although every stream ended"));
        }
        self.check_books();
    }
}
