//! Policies that are watched while a real engine asks and tells them.
//!
//! A [`Watch`] wraps the policies of every connection that it makes. The wrapper asks every
//! question twice, checks every answer against the view and every event against what was told
//! before, and keeps a number that stands for the sequence of decisions. What goes against the
//! rules of the seam becomes a finding, be it the policy's fault or the engine's.
//!
//! Beside them run the same policies before the mock engine's bookkeeping: a *shadow* that is told
//! the same events and asked the same questions, but sees what the mock makes of the events. It
//! must decide the same.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::{Bytes, Instant, Seed, StreamId};
use quipu_policy::conformance::Audit;
use quipu_policy::registry::{Built, SpecError};
use quipu_policy::{
    Ask, BuildContext, Decision, Event, Joint, Layer, Notes, Pair, PathKey, Policies, PolicySpec,
    Registry, View,
};
use quipu_quic::endpoint::PolicyFactory;

mod answers;
mod books;
mod mirror;

use books::Books;
use mirror::{Deaf, Mirror};

/// Findings kept of one connection end; further ones are only counted.
const MAX_FINDINGS: usize = 16;

/// Watches the policies of all connections that it makes.
#[derive(Clone)]
pub struct Watch {
    spec: Arc<PolicySpec>,
    deaf: Option<Deaf>,
    ends: Arc<Mutex<Vec<Log>>>,
}

/// What was seen of one connection end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// What went against the rules.
    pub findings: Vec<String>,
    /// Findings beyond those that were kept.
    pub more_findings: usize,
    /// Stands for the sequence of decisions that were carried out, with their times.
    pub hash: u64,
    /// Decisions carried out.
    pub decisions: u64,
    /// Frames that were copies, as policies decided.
    pub copies: u64,
    /// Waits answered.
    pub waits: u64,
    /// Stretches of bytes that were pending again.
    pub requeued: u64,
    /// Times that a path was suspected.
    pub suspicions: u64,
    /// Bytes planned for some path and not yet sent.
    pub committed: Bytes,
    /// True if the policies were told that everything came to rest, and nothing since.
    pub at_rest: bool,
    /// Streams whose end was not told.
    pub open_streams: usize,
}

type Log = Arc<Mutex<State>>;

struct State {
    account: Account,
    books: Books,
    audit: Option<Audit>,
    mirror: Mirror,
    /// Bytes placed by stream, copies excepted.
    placed: BTreeMap<StreamId, i128>,
}

impl Watch {
    /// Watches policies chosen by text, such as `stream=wrr path=ecf:beta=0.5`.
    ///
    /// # Errors
    /// If the text is no choice of policies.
    pub fn new(text: &str) -> Result<Self, SpecError> {
        let spec = Arc::new(PolicySpec::parse(&Registry::builtin(), text)?);
        Ok(Watch { spec, deaf: None, ends: Arc::default() })
    }

    /// The mock misses the events that `deaf` names: to show that a mistake is found.
    #[must_use]
    pub fn with_deaf_mock(self, deaf: fn(&Event<'_>) -> bool) -> Self {
        Watch { deaf: Some(deaf), ..self }
    }

    /// Makes the watched policies of each connection end.
    pub fn policies(&self) -> PolicyFactory {
        let watch = self.clone();
        Arc::new(move || watch.build())
    }

    /// Other policies for an end that has some, chosen by text; the watch goes on. `end` counts the
    /// ends in the order in which their first policies were made.
    ///
    /// # Errors
    /// If the text is no choice of policies.
    ///
    /// # Panics
    /// If there is no such end.
    pub fn replace(&self, end: usize, text: &str) -> Result<Policies, SpecError> {
        let spec = PolicySpec::parse(&Registry::builtin(), text)?;
        let log = Arc::clone(&self.ends()[end]);
        let Made { policies, shadow, audit, declares_copies } = Made::new(&spec);
        let mut state = lock(&log);
        let findings = state.stream_policy_findings();
        state.account.findings.extend(findings);
        state.books = Books::taking_over(declares_copies);
        state.audit = audit;
        state.placed.clear();
        state.mirror.take_over(policies.resend.requeue_after_pto);
        drop(state);
        Ok(watched(policies, shadow, log))
    }

    /// What was seen of each connection end, in the order in which their policies were made.
    pub fn accounts(&self) -> Vec<Account> {
        self.ends().iter().map(|log| lock(log).closed()).collect()
    }

    /// The first finding of any end so far, without what is known only at the end.
    pub fn first_finding(&self) -> Option<String> {
        self.ends().iter().find_map(|log| lock(log).account.findings.first().cloned())
    }

    fn build(&self) -> Policies {
        let Made { policies, shadow, audit, declares_copies } = Made::new(&self.spec);
        let log = Arc::new(Mutex::new(State {
            account: Account::default(),
            books: Books::new(declares_copies),
            audit,
            mirror: Mirror::new(policies.resend.requeue_after_pto, self.deaf),
            placed: BTreeMap::new(),
        }));
        self.ends().push(Arc::clone(&log));
        watched(policies, shadow, log)
    }

    fn ends(&self) -> MutexGuard<'_, Vec<Log>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Policies for an end, and what watches them.
struct Made {
    policies: Policies,
    shadow: Box<dyn Joint>,
    audit: Option<Audit>,
    declares_copies: bool,
}

impl Made {
    fn new(spec: &PolicySpec) -> Self {
        let context = BuildContext::new(Seed::new(1));
        let build = || spec.build(&context).expect("a choice was built when read");
        let mut policies = build();
        let built: Vec<Built> = spec
            .parts()
            .map(|part| part.build(&mut context.clone()).expect("it was built above"))
            .collect();
        let declares_copies = built.iter().any(|part| part.reinject.is_some());
        let audit = Self::with_audit(spec, &mut policies, built);
        Made { policies, shadow: build().joint, audit, declares_copies }
    }

    /// Puts the pair of stream and path policy together again with books of what the stream policy
    /// is charged; `None` for policies that are no such pair, or that make copies.
    fn with_audit(spec: &PolicySpec, policies: &mut Policies, built: Vec<Built>) -> Option<Audit> {
        let (mut stream, mut path, mut pack) = (None, None, None);
        for part in built {
            if part.reinject.is_some() {
                return None;
            }
            pack = pack.or(part.pack);
            stream = stream.or(part.stream);
            path = path.or(part.path);
        }
        spec.part(Layer::Stream)?;
        let audit = Audit::default();
        let pack = pack.unwrap_or_default();
        let pair = Pair::new(audit.watch(stream?), path?, policies.resend, pack);
        policies.joint = Box::new(pair);
        Some(audit)
    }
}

impl State {
    fn find(&mut self, now: Instant, what: String) {
        if self.account.findings.len() < MAX_FINDINGS {
            self.account.findings.push(format!("at {now}: {what}"));
        } else {
            self.account.more_findings += 1;
        }
    }

    fn word(&mut self, word: u64) {
        let mixed = (self.account.hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.account.hash = mixed ^ mixed >> 29;
    }

    /// The account with what is known only at the end.
    fn closed(&self) -> Account {
        let mut account = self.account.clone();
        account.open_streams = self.books.open_streams();
        account.findings.extend(self.stream_policy_findings());
        account
    }

    /// What the stream policy did wrong, if it is watched.
    fn stream_policy_findings(&self) -> Vec<String> {
        let Some(audit) = &self.audit else { return Vec::new() };
        let faults = audit.faults().into_iter();
        let mut findings: Vec<String> =
            faults.map(|what| format!("stream policy {what}")).collect();
        let (mut charged, mut placed) = (audit.charged(), self.placed.clone());
        charged.retain(|_, bytes| *bytes != 0);
        placed.retain(|_, bytes| *bytes != 0);
        if self.account.committed.is_zero() && charged != placed {
            findings.push(format!("charged {charged:?}, sent {placed:?}"));
        }
        findings
    }

    fn find_in_mirror(&mut self, now: Instant, asked_or_told: &dyn Debug) {
        for what in self.mirror.take_findings() {
            self.find(now, format!("the mock, at {asked_or_told:?}: {what}"));
        }
    }
}

/// Puts the watch between the engine and the policies.
fn watched(policies: Policies, shadow: Box<dyn Joint>, log: Log) -> Policies {
    let inner = policies.joint;
    Policies { joint: Box::new(Watched { inner, shadow, log, last: None }), ..policies }
}

fn lock(log: &Log) -> MutexGuard<'_, State> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The policy between the engine and the one that decides.
struct Watched {
    inner: Box<dyn Joint>,
    /// The same policies before the mock.
    shadow: Box<dyn Joint>,
    log: Log,
    /// The last answer and when it was given, if nothing was told since.
    last: Option<(Instant, Ask, Decision)>,
}

impl Watched {
    fn planned(&self, view: &View<'_>) -> Bytes {
        view.paths.iter().map(|path| self.inner.committed(path.key)).sum()
    }
}

impl Joint for Watched {
    fn decide(&mut self, ask: Ask, view: &View<'_>, notes: &mut Notes) -> Decision {
        let decision = self.inner.decide(ask, view, notes);
        let again = self.inner.decide(ask, view, notes);
        let mut state = lock(&self.log);
        if again != decision {
            state.find(view.now, format!("asked {ask:?} twice: {decision:?}, then {again:?}"));
        }
        let (mirrored, is_new) = state.mirror.view(view, &mut *self.shadow);
        // As often as the others: a question may make a plan.
        self.shadow.decide(ask, &mirrored, &mut Notes::off());
        let shadow = self.shadow.decide(ask, &mirrored, &mut Notes::off());
        if let Some((at, question, answer)) = self.last
            && (at, question, is_new) == (view.now, ask, false)
            && answer != again
        {
            state.find(view.now, format!("{answer:?} became {again:?} though nothing changed"));
        }
        self.last = Some((view.now, ask, again));
        if shadow != again {
            let what = format!("{ask:?}: {again:?}, before the mock decides {shadow:?}");
            state.find(view.now, what);
        }
        state.find_in_mirror(view.now, &ask);
        state.account.waits += u64::from(matches!(again, Decision::Wait { .. }));
        let wrong = state.books.on_question(ask, view);
        let illegal = state.books.on_answer(ask, again, view);
        for what in wrong.map(str::to_owned).into_iter().chain(illegal) {
            state.find(view.now, format!("{ask:?}, {again:?}: {what}"));
        }
        again
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.inner.on_event(event, view);
        let planned = self.planned(view);
        let mut state = lock(&self.log);
        state.mirror.on_event(event, view, &mut *self.shadow);
        state.find_in_mirror(view.now, event);
        let wrong = state.books.on_event(event, view);
        let mut findings: Vec<String> =
            wrong.into_iter().map(|what| format!("{event:?}: {what}")).collect();
        state.account.committed = planned;
        state.account.at_rest = matches!(event, Event::Drained);
        match *event {
            Event::Placed { path, piece } => {
                if piece.kind == quipu_policy::Kind::Copy {
                    state.account.copies += 1;
                } else {
                    *state.placed.entry(piece.stream.id).or_default() +=
                        i128::from(piece.span.len().0);
                }
                state.account.decisions += 1;
                state.word(view.now.as_nanos());
                state.word(u64::from(path.id.0) << 2 | piece.kind as u64);
                state.word(piece.stream.id.0);
                state.word(piece.span.start.0);
                state.word(piece.span.end.0);
            }
            Event::Sent(packet) if packet.pieces.is_empty() => {
                if let Some((_, _, Decision::Probe { path })) = self.last {
                    state.account.decisions += 1;
                    state.word(view.now.as_nanos());
                    state.word(u64::from(path.id.0) | 1 << 40);
                }
            }
            Event::Requeued { .. } => state.account.requeued += 1,
            Event::PathSuspect(_) => state.account.suspicions += 1,
            Event::Drained => {
                findings.extend(state.books.check_plans(planned, view));
                findings.extend(state.mirror.difference(view));
                let plans = |joint: &dyn Joint| {
                    let committed = view.paths.iter().map(|path| joint.committed(path.key));
                    (committed.collect::<Vec<_>>(), joint.wake_at(), joint.has_copies())
                };
                let (own, shadow) = (plans(&*self.inner), plans(&*self.shadow));
                if own != shadow {
                    findings.push(format!("plans {own:?}, before the mock {shadow:?}"));
                }
            }
            _ => {}
        }
        self.last = None;
        for what in findings {
            state.find(view.now, what);
        }
    }

    fn has_copies(&self) -> bool {
        self.inner.has_copies()
    }

    fn control_path(&mut self, view: &View<'_>) -> Option<PathKey> {
        let path = self.inner.control_path(view);
        let mut state = lock(&self.log);
        if self.inner.control_path(view) != path {
            state.find(view.now, "two answers for the control path".to_owned());
        }
        let (mirrored, is_new) = state.mirror.view(view, &mut *self.shadow);
        if is_new {
            self.last = None;
        }
        if self.shadow.control_path(&mirrored) != path {
            state.find(view.now, "another control path before the mock".to_owned());
        }
        path
    }

    fn wake_at(&self) -> Option<Instant> {
        self.inner.wake_at()
    }

    fn committed(&self, path: PathKey) -> Bytes {
        self.inner.committed(path)
    }
}
