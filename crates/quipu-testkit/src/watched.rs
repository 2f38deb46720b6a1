//! Policies that are watched while a real engine asks and tells them.
//!
//! A [`Watch`] wraps the policies of every connection that it makes. The wrapper asks every
//! question twice, checks every answer against the view and every event against what was told
//! before, and keeps a number that stands for the sequence of decisions. What goes against the
//! rules of the seam becomes a finding, be it the policy's fault or the engine's.

use std::collections::BTreeMap;
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

use books::Books;

/// Findings kept of one connection end; further ones are only counted.
const MAX_FINDINGS: usize = 16;

/// Watches the policies of all connections that it makes.
#[derive(Clone)]
pub struct Watch {
    spec: Arc<PolicySpec>,
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
        Ok(Watch { spec, ends: Arc::default() })
    }

    /// Makes the watched policies of each connection end.
    pub fn policies(&self) -> PolicyFactory {
        let watch = self.clone();
        Arc::new(move || watch.build())
    }

    /// What was seen of each connection end, in the order in which their policies were made.
    pub fn accounts(&self) -> Vec<Account> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        ends.iter().map(|log| lock(log).closed()).collect()
    }

    fn build(&self) -> Policies {
        let context = BuildContext::new(Seed::new(1));
        let mut policies = self.spec.build(&context).expect("a choice was built when read");
        let built: Vec<Built> = self
            .spec
            .parts()
            .map(|part| part.build(&mut context.clone()).expect("it was built above"))
            .collect();
        let declares_copies = built.iter().any(|part| part.reinject.is_some());
        let audit = self.with_audit(&mut policies, built);
        let log = Arc::new(Mutex::new(State {
            account: Account::default(),
            books: Books::new(declares_copies),
            audit,
            placed: BTreeMap::new(),
        }));
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&log));
        let inner = policies.joint;
        policies.joint = Box::new(Watched { inner, log, last: None });
        policies
    }

    /// Puts the pair of stream and path policy together again with books of what the stream policy
    /// is charged; `None` for policies that are no such pair, or that make copies.
    fn with_audit(&self, policies: &mut Policies, built: Vec<Built>) -> Option<Audit> {
        let (mut stream, mut path, mut pack) = (None, None, None);
        for part in built {
            if part.reinject.is_some() {
                return None;
            }
            pack = pack.or(part.pack);
            stream = stream.or(part.stream);
            path = path.or(part.path);
        }
        self.spec.part(Layer::Stream)?;
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
        let Some(audit) = &self.audit else { return account };
        let faults = audit.faults();
        account.findings.extend(faults.into_iter().map(|what| format!("stream policy {what}")));
        let (mut charged, mut placed) = (audit.charged(), self.placed.clone());
        charged.retain(|_, bytes| *bytes != 0);
        placed.retain(|_, bytes| *bytes != 0);
        if account.committed.is_zero() && charged != placed {
            account.findings.push(format!("charged {charged:?}, sent {placed:?}"));
        }
        account
    }
}

fn lock(log: &Log) -> MutexGuard<'_, State> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The policy between the engine and the one that decides.
struct Watched {
    inner: Box<dyn Joint>,
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
        if let Some((at, question, answer)) = self.last
            && (at, question) == (view.now, ask)
            && answer != again
        {
            state.find(view.now, format!("{answer:?} became {again:?} though nothing was told"));
        }
        self.last = Some((view.now, ask, again));
        state.account.waits += u64::from(matches!(again, Decision::Wait { .. }));
        let wrong = state.books.on_question(ask, view);
        let illegal = state.books.on_answer(ask, again, view);
        for what in wrong.into_iter().chain(illegal) {
            state.find(view.now, format!("{ask:?}, {again:?}: {what}"));
        }
        again
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.inner.on_event(event, view);
        let planned = self.planned(view);
        let mut state = lock(&self.log);
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
            Event::Drained => findings.extend(state.books.check_plans(planned, view)),
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
        if self.inner.control_path(view) != path {
            lock(&self.log).find(view.now, "two answers for the control path".to_owned());
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
