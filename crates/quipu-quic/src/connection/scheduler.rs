//! The policies at work: asking, telling, and the watch over bad answers.

use quipu_base::Instant;
use quipu_policy::{
    AckPolicy, AckRoute, Ask, Checked, ControllerFactory, Decision, Event, Joint, Notes, PathKey,
    Policies, Priorities, Quality, Referee, Refusal, ResendRules, StreamKey, View,
};

use super::Connection;
use crate::path::PathTable;
use crate::stream::Streams;

/// What a view is built from.
pub(crate) struct Shared {
    pub(crate) paths: PathTable,
    pub(crate) streams: Streams,
    pub(crate) priorities: Priorities,
}

impl Shared {
    pub(crate) fn view(&self, now: Instant) -> View<'_> {
        View {
            now,
            conn: self.streams.conn_view(),
            paths: &self.paths.views,
            streams: &self.streams,
            sent: &self.paths,
            priorities: &self.priorities,
        }
    }
}

/// How the policies did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerCounters {
    /// Questions asked.
    pub asked: u64,
    /// Answers refused.
    pub refused: u64,
    /// Times that the engine chose itself after refusals.
    pub overridden: u64,
    /// Waits granted.
    pub waits: u64,
    /// Changes of path between one data packet and the next.
    pub path_switches: u64,
}

/// The policies of a connection.
pub(crate) struct Scheduler {
    joint: Box<dyn Joint>,
    ack: Box<dyn AckPolicy>,
    pub(crate) controllers: ControllerFactory,
    pub(crate) resend: ResendRules,
    notes: Notes,
    pub(crate) counters: SchedulerCounters,
    referee: Referee,
    /// Something was told since the last `Drained`.
    news: bool,
    last_path: Option<PathKey>,
}

impl Scheduler {
    /// `noted`: the policies keep the candidates that they weigh.
    pub(crate) fn new(policies: Policies, noted: bool) -> Self {
        Scheduler {
            joint: policies.joint,
            ack: policies.ack,
            controllers: policies.controllers,
            resend: policies.resend,
            notes: if noted { Notes::on() } else { Notes::off() },
            counters: SchedulerCounters::default(),
            referee: Referee::new(),
            news: false,
            last_path: None,
        }
    }

    /// Tells both policies what happened.
    pub(crate) fn tell(&mut self, now: Instant, shared: &Shared, event: Event<'_>) {
        let view = shared.view(now);
        self.joint.on_event(&event, &view);
        self.ack.on_event(&event, &view);
        self.news = true;
    }

    /// Tells only the joint policy: events of single frames and packets.
    pub(crate) fn tell_joint(&mut self, now: Instant, shared: &Shared, event: Event<'_>) {
        self.joint.on_event(&event, &shared.view(now));
        self.news = true;
    }

    /// Tells only the acknowledgement policy.
    pub(crate) fn tell_ack_policy(&mut self, now: Instant, shared: &Shared, event: Event<'_>) {
        self.ack.on_event(&event, &shared.view(now));
    }

    pub(crate) fn decide(&mut self, now: Instant, shared: &Shared, ask: Ask) -> Decision {
        self.counters.asked += 1;
        self.notes.clear();
        self.joint.decide(ask, &shared.view(now), &mut self.notes)
    }

    /// What an answer asks for, or why it is refused.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        shared: &Shared,
        ask: Ask,
        decision: Decision,
    ) -> Result<Checked, Refusal> {
        let checked = self.referee.check(ask, decision, &shared.view(now));
        let waits = matches!(decision, Decision::Wait { .. }) && checked.is_ok();
        self.counters.waits += u64::from(waits);
        checked
    }

    /// What the policies noted of the last question.
    pub(crate) fn notes(&self) -> &Notes {
        &self.notes
    }

    /// True if the policies were told something since they came to rest.
    pub(crate) fn has_news(&self) -> bool {
        self.news
    }

    pub(crate) fn has_copies(&self) -> bool {
        self.joint.has_copies()
    }

    pub(crate) fn control_path(&mut self, now: Instant, shared: &Shared) -> Option<PathKey> {
        self.joint.control_path(&shared.view(now))
    }

    pub(crate) fn ack_route(&mut self, now: Instant, shared: &Shared, data: PathKey) -> AckRoute {
        self.ack.route(data, &shared.view(now))
    }

    pub(crate) fn takes_sample(&self, data: PathKey, arrived_on: PathKey) -> bool {
        self.ack.takes_sample(data, arrived_on)
    }

    /// Return paths to ask of the peer, if there is something new to ask.
    pub(crate) fn advice(
        &mut self,
        now: Instant,
        shared: &Shared,
    ) -> Option<Vec<(PathKey, PathKey)>> {
        self.ack.advice(&shared.view(now))
    }

    /// Counts a refusal; true if the engine is to choose itself now.
    pub(crate) fn on_refused(&mut self, now: Instant, shared: &Shared, refusal: Refusal) -> bool {
        self.counters.refused += 1;
        self.tell_joint(now, shared, Event::Refused(refusal));
        self.referee.on_refused()
    }

    /// Sending begins, or goes on after a full outbox.
    pub(crate) fn start_drain(&mut self, now: Instant) {
        self.referee.start_drain(now);
    }

    /// A PING that the policy asked for left on `path`.
    pub(crate) fn on_probe(&mut self, path: PathKey) {
        self.referee.on_probe(path);
    }

    /// A data packet goes on `path`.
    pub(crate) fn on_data_packet(&mut self, path: PathKey) {
        if self.last_path.is_some_and(|last| last != path) {
            self.counters.path_switches += 1;
        }
        self.last_path = Some(path);
        self.referee.on_data_packet();
    }

    /// The send loop came to rest; the end of a send batch, told once.
    pub(crate) fn rest(&mut self, now: Instant, shared: &Shared) {
        self.referee.end_drain();
        if std::mem::take(&mut self.news) {
            self.tell(now, shared, Event::Drained);
            self.news = false;
        }
    }

    /// When a policy is to be woken.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let asked_for = Instant::earlier(self.joint.wake_at(), self.ack.wake_at());
        Instant::earlier(self.referee.wait_until(), asked_for)
    }

    /// Time has come: wakes the policies if they asked for it.
    pub(crate) fn handle_timeout(&mut self, now: Instant, shared: &Shared) {
        if self.wake_at().is_some_and(|at| at <= now) {
            self.referee.end_wait();
            self.tell(now, shared, Event::Woken);
        }
    }

    /// Puts other policies in place. What the new ones must know is told by the caller.
    pub(crate) fn replace(&mut self, policies: Policies) {
        self.joint = policies.joint;
        self.ack = policies.ack;
        self.controllers = policies.controllers;
        self.resend = policies.resend;
        self.referee = Referee::new();
    }
}

impl Connection {
    /// Tells the policies how well the application is served, as far as it knows: reinjection by
    /// need asks for it ([`Event::Quality`]).
    pub fn tell_quality(&mut self, now: Instant, quality: Quality) {
        self.rest.end();
        self.scheduler.tell(now, &self.shared, Event::Quality(quality));
    }

    /// Puts other policies in place; they are told all that is.
    pub fn set_policies(&mut self, now: Instant, policies: Policies) {
        self.scheduler.replace(policies);
        self.rest.end();
        let (scheduler, shared) = (&mut self.scheduler, &self.shared);
        for path in shared.paths.views.iter() {
            match path.state {
                quipu_policy::PathState::Usable => {
                    scheduler.tell(now, shared, Event::PathUp(path.key));
                }
                quipu_policy::PathState::Suspect => {
                    scheduler.tell(now, shared, Event::PathUp(path.key));
                    scheduler.tell(now, shared, Event::PathSuspect(path.key));
                }
                _ => {}
            }
        }
        let edits = shared.priorities.replay();
        let (attached, tree): (Vec<_>, Vec<_>) = edits
            .into_iter()
            .partition(|edit| matches!(edit, quipu_policy::TreeEdit::Attached { .. }));
        for edit in tree {
            scheduler.tell_joint(now, shared, Event::Tree(edit));
        }
        let keys: Vec<StreamKey> = shared.streams.views().map(|view| view.key).collect();
        for &key in &keys {
            scheduler.tell_joint(now, shared, Event::Opened(key));
        }
        for edit in attached {
            scheduler.tell_joint(now, shared, Event::Tree(edit));
        }
        for &key in &keys {
            let Some(view) = quipu_policy::StreamTable::get(&shared.streams, key) else {
                continue;
            };
            if view.size.is_some() {
                scheduler.tell_joint(now, shared, Event::Sized(key));
            }
            scheduler.tell_joint(now, shared, Event::Written(key));
            if view.is_ready() {
                scheduler.tell_joint(now, shared, Event::Ready(key));
            }
        }
        for data in shared.paths.iter().filter(|data| data.lives()) {
            // A padded close is in flight, but no packet of theirs.
            let sent = data.packets.sent.iter().filter(|record| record.ack_eliciting);
            for record in sent {
                scheduler.tell_joint(now, shared, Event::Sent(record.as_packet(data.key)));
            }
        }
    }
}
