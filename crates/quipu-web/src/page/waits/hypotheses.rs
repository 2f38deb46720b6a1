//! What an object may have waited for, by the rules of browsers.
//!
//! The scanner of a browser finds what a document names as its bytes arrive, so that most objects wait for these bytes alone.
//! Beyond that:
//!
//! - a script that blocks the parser, and an inline one, runs when the style sheets and blocking scripts before it are there;
//! - a deferred script runs when the document and all that blocks its parser are there;
//! - fonts, images of style sheets and images that layout chooses wait for all that blocks rendering;
//! - what a script asks for may have waited for the answer to an earlier request of the same script, whom Chrome names for
//!   both; the answer may be a script, as loaders of modules have it.
//!
//! Where nobody is named, the latest-ended script, style sheet or answer may have asked; and where all of that leaves a
//! delay that is too long for computing, although somebody is named.

use std::collections::BTreeMap;

use quipu_base::Bytes;

use super::phases::{Phases, SLACK};
use crate::page::initiator::Edge;
use crate::page::select::Draft;
use crate::page::{Blocking, Discovery, ObjectKind};

/// Explanations by other requests that are tried for an object, the latest-ended first.
const TRIED: usize = 4;

/// Scripts that are looked at from one that asks upwards: a loader of modules asks in the name of a module.
const CALLERS: usize = 3;

/// Others that an object waits for at most, the latest-ended of all that rules name: a bound, our choice.
const MOST_WAITS: usize = 32;

/// What is known of a draft before its waits are.
#[derive(Clone, Copy, Debug)]
pub(in crate::page) struct Known {
    pub(in crate::page) discovery: Discovery,
    pub(in crate::page) blocking: Blocking,
    pub(in crate::page) late: bool,
}

/// What an object may have waited for.
#[derive(Clone, Debug)]
pub(super) struct Hypothesis {
    pub(super) discovery: Discovery,
    pub(super) waits_for: Vec<usize>,
    /// Unexplained delay counts so many times as much: rules come before coincidences.
    pub(super) doubt: f64,
    /// The recording itself says so.
    pub(super) named: bool,
}

/// The rules, for one recording.
pub(super) struct Rules<'a, 'b> {
    drafts: &'a [Draft<'b>],
    known: &'a [Known],
    main: usize,
    /// What blocks the parser or rendering of the main document, with its place there, in order.
    blocking: Vec<(Bytes, usize)>,
    /// Of these, what the first layout waits for.
    layout: Vec<usize>,
    /// By their end: whatever may ask for others.
    askers: Vec<usize>,
    /// Answers to requests of scripts, by who asked, in order of their end.
    answers: BTreeMap<usize, Vec<usize>>,
    /// What each script that asks for something had waited for when it first did.
    runs: BTreeMap<usize, Vec<usize>>,
}

impl<'a, 'b> Rules<'a, 'b> {
    pub(super) fn new(
        drafts: &'a [Draft<'b>],
        known: &'a [Known],
        phases: &Phases,
        main: usize,
    ) -> Rules<'a, 'b> {
        let mut blocking: Vec<(Bytes, usize)> = (0..drafts.len())
            .filter(|&at| known[at].blocking.is_critical())
            .filter_map(|at| Some((place_in(known, at, main)?, at)))
            .collect();
        blocking.sort_unstable();
        let layout = blocking.iter().map(|&(_, at)| at).filter(|&at| !known[at].late).collect();
        let mut askers: Vec<usize> =
            (0..drafts.len()).filter(|&at| may_ask(drafts[at].kind)).collect();
        askers.sort_by_key(|&at| (phases.all[at].end, at));
        let mut answers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &at in &askers {
            if matches!(drafts[at].kind, ObjectKind::Xhr | ObjectKind::Fetch | ObjectKind::Script)
                && drafts[at].named.by_script
                && let Some(by) = drafts[at].parent
            {
                answers.entry(by).or_default().push(at);
            }
        }
        let mut rules =
            Rules { drafts, known, main, blocking, layout, askers, answers, runs: BTreeMap::new() };
        rules.runs = rules.runs(phases);
        rules
    }

    /// What explains the start of a draft, the plainest first: what the recording names, without anything else.
    pub(super) fn of(&self, phases: &Phases, child: usize) -> Vec<Hypothesis> {
        let known = self.known[child];
        let plain = Hypothesis {
            discovery: known.discovery,
            waits_for: Vec::new(),
            doubt: 1.0,
            named: true,
        };
        let (Some(parent), Edge::Initiator { by_script, .. }) =
            (self.drafts[child].parent, self.drafts[child].edge)
        else {
            return match self.drafts[child].edge {
                Edge::Arriving | Edge::Ended => self.unnamed(phases, child, plain),
                _ => vec![plain],
            };
        };
        let with = |waits_for: Vec<usize>| Hypothesis { waits_for, ..plain.clone() };
        let mut found = vec![plain.clone()];
        match known.discovery {
            Discovery::ParserOffset { offset, .. } if parent == self.main => {
                found.push(with(self.before(phases, offset)));
                found.push(with(self.layout.clone()));
                if by_script {
                    found.push(with(self.parsed(phases)));
                    self.answers_to(phases, parent, child, &mut found);
                }
            }
            Discovery::AfterCompletion { .. } if parent == self.main => {
                found.push(with(self.before(phases, Bytes::MAX)));
                self.answers_to(phases, parent, child, &mut found);
            }
            Discovery::AfterCompletion { .. } => match self.drafts[parent].kind {
                ObjectKind::Stylesheet => found.push(with(self.layout.clone())),
                _ => {
                    if let Some(run) = self.runs.get(&parent) {
                        found.push(with(run.clone()));
                    }
                    self.answers_to(phases, parent, child, &mut found);
                }
            },
            _ => {}
        }
        found
    }

    /// The answers to other requests of the one who asked for `child`, and of the scripts that asked for that one.
    fn answers_to(
        &self,
        phases: &Phases,
        parent: usize,
        child: usize,
        found: &mut Vec<Hypothesis>,
    ) {
        let mut asker = Some(parent);
        for _ in 0..CALLERS {
            let Some(at) = asker else { return };
            self.answers_to_one(phases, at, child, found);
            asker = self.drafts[at].parent.filter(|_| self.drafts[at].named.by_script);
        }
    }

    fn answers_to_one(
        &self,
        phases: &Phases,
        parent: usize,
        child: usize,
        found: &mut Vec<Hypothesis>,
    ) {
        let Some(answers) = self.answers.get(&parent) else { return };
        let start = phases.all[child].start;
        let ended = answers.partition_point(|&at| phases.all[at].end <= start + SLACK);
        for &answer in answers[..ended].iter().rev().take(TRIED) {
            if answer != child {
                let discovery = after(answer);
                found.push(Hypothesis {
                    discovery,
                    waits_for: Vec::new(),
                    doubt: 1.5,
                    named: false,
                });
            }
        }
    }

    /// What may explain a draft whose initiator nobody names.
    fn unnamed(&self, phases: &Phases, child: usize, plain: Hypothesis) -> Vec<Hypothesis> {
        let (start, kind) = (phases.all[child].start, self.drafts[child].kind);
        let main = phases.all[self.main];
        let mut found = vec![plain];
        let parsed = !matches!(kind, ObjectKind::Font | ObjectKind::Xhr | ObjectKind::Fetch);
        if parsed && start >= main.first_byte && start <= main.end + SLACK {
            let whole = self.drafts[self.main].sizes.body;
            let offset = phases.arrived(self.main, start, whole);
            let parent = super::super::discovery::id_of(self.main);
            let discovery = Discovery::ParserOffset { parent, offset };
            return vec![Hypothesis { discovery, waits_for: Vec::new(), doubt: 1.0, named: false }];
        }
        let ended = self.askers.partition_point(|&at| phases.all[at].end <= start + SLACK);
        let fits = |at: &&usize| {
            **at != child
                && match self.drafts[**at].kind {
                    ObjectKind::Stylesheet => {
                        matches!(
                            kind,
                            ObjectKind::Font | ObjectKind::Image | ObjectKind::Stylesheet
                        )
                    }
                    _ => kind != ObjectKind::Font,
                }
        };
        for &asker in self.askers[..ended].iter().rev().filter(fits).take(TRIED) {
            let discovery = after(asker);
            if self.drafts[asker].kind == ObjectKind::Stylesheet {
                found.push(Hypothesis {
                    discovery,
                    waits_for: self.layout.clone(),
                    doubt: 1.0,
                    named: false,
                });
            }
            found.push(Hypothesis { discovery, waits_for: Vec::new(), doubt: 1.0, named: false });
        }
        if start >= main.end {
            let waits_for = self.before(phases, Bytes::MAX);
            found.push(Hypothesis {
                discovery: after(self.main),
                waits_for,
                doubt: 1.0,
                named: false,
            });
        }
        found
    }

    /// Whatever may have asked for `child` by a way that nobody names, such as a message between frames or an event.
    pub(super) fn strangers(&self, phases: &Phases, child: usize) -> Vec<Hypothesis> {
        let start = phases.all[child].start;
        let ended = self.askers.partition_point(|&at| phases.all[at].end <= start + SLACK);
        let latest = self.askers[..ended].iter().rev().filter(|&&at| at != child).take(TRIED);
        let stranger = |&asker: &usize| Hypothesis {
            discovery: after(asker),
            waits_for: Vec::new(),
            doubt: 4.0,
            named: false,
        };
        latest.map(stranger).collect()
    }

    /// What the parser of the main document waits for before it comes to `offset`.
    fn before(&self, phases: &Phases, offset: Bytes) -> Vec<usize> {
        let ends = self.blocking.partition_point(|(at, _)| *at < offset);
        Self::latest(phases, self.blocking[..ends].iter().map(|&(_, at)| at).collect())
    }

    /// What must be there before the main document is parsed to its end.
    fn parsed(&self, phases: &Phases) -> Vec<usize> {
        let mut all = self.before(phases, Bytes::MAX);
        all.push(self.main);
        all
    }

    fn latest(phases: &Phases, mut waits: Vec<usize>) -> Vec<usize> {
        if waits.len() > MOST_WAITS {
            waits.sort_by_key(|&at| phases.all[at].end);
            waits.drain(..waits.len() - MOST_WAITS);
        }
        waits
    }

    /// What each script that asks for others had waited for, as the first request of it tells.
    fn runs(&self, phases: &Phases) -> BTreeMap<usize, Vec<usize>> {
        let mut first: BTreeMap<usize, usize> = BTreeMap::new();
        for (child, draft) in self.drafts.iter().enumerate() {
            if let (Some(parent), Edge::Initiator { .. }) = (draft.parent, draft.edge)
                && self.drafts[parent].kind == ObjectKind::Script
            {
                // Drafts are in the order of their start.
                first.entry(parent).or_insert(child);
            }
        }
        let run = |(script, child): (usize, usize)| {
            let place = place_in(self.known, script, self.main)?;
            let start = phases.all[child].start;
            let waits = match self.known[script].blocking {
                Blocking::Parser => self.before(phases, place),
                _ => self.parsed(phases),
            };
            let all_there = waits.iter().all(|&at| phases.all[at].end <= start + SLACK);
            (all_there && !waits.is_empty()).then_some((script, waits))
        };
        first.into_iter().filter_map(run).collect()
    }
}

fn after(parent: usize) -> Discovery {
    Discovery::AfterCompletion { parent: super::super::discovery::id_of(parent) }
}

/// True for what may ask for other objects.
fn may_ask(kind: ObjectKind) -> bool {
    use ObjectKind::{Document, Fetch, Script, Stylesheet, Xhr};
    matches!(kind, Document | Fetch | Script | Stylesheet | Xhr)
}

/// Where a draft stands in the main document, if its parser finds it.
fn place_in(known: &[Known], at: usize, main: usize) -> Option<Bytes> {
    match known[at].discovery {
        Discovery::ParserOffset { parent, offset } if parent.index() == main => Some(offset),
        _ => None,
    }
}
