//! Which hypothesis explains the start of each request.
//!
//! The one that leaves the least delay without explanation. That delay is computing or a timer. Beyond it nothing is known of
//! what was going on meanwhile: at least the time in which no request at all was open was not the network's, and at most all
//! time since the one who is named asked.

use quipu_base::{Bytes, Duration};

use super::hypotheses::{Hypothesis, Known, Rules};
use super::phases::{Phases, SLACK};
use crate::page::Discovery;
use crate::page::build::Compute;
use crate::page::discovery::MAX_DELAY;
use crate::page::select::Draft;

/// A place in a document is known to so much of the time in which the document arrived. Our choice.
const PLACE_ERROR: f64 = 0.1;

/// What was chosen for a draft.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) discovery: Discovery,
    pub(super) waits_for: Vec<usize>,
    pub(super) computing: Duration,
}

/// The choice for each draft.
pub(super) fn choose(
    drafts: &[Draft<'_>],
    known: &[Known],
    phases: &Phases,
    main: usize,
    compute: Compute,
) -> Vec<Chosen> {
    let rules = Rules::new(drafts, known, phases, main);
    let scale = Scale { drafts, phases };
    (0..drafts.len())
        .map(|child| {
            let hypotheses = rules.of(child);
            let best = match compute {
                Compute::High | Compute::AsRecorded => 0,
                Compute::Low | Compute::Likely => scale.best(child, &hypotheses),
            };
            let Hypothesis { discovery, waits_for, .. } = hypotheses[best].clone();
            let discovery = scale.moved(discovery, compute);
            let (since, left) = scale.left(child, &hypotheses[best]).unwrap_or_default();
            let start = phases.all[child].start;
            let computing = match compute {
                Compute::Low => phases.idle(since, start).min(left),
                _ => left,
            };
            Chosen { discovery, waits_for, computing: computing.min(MAX_DELAY) }
        })
        .collect()
}

/// Weighs hypotheses by one recording.
struct Scale<'a, 'b> {
    drafts: &'a [Draft<'b>],
    phases: &'a Phases,
}

impl Scale<'_, '_> {
    /// Position of the best of them. There is at least one.
    fn best(&self, child: usize, hypotheses: &[Hypothesis]) -> usize {
        let mut best = (0, f64::INFINITY);
        for (position, hypothesis) in hypotheses.iter().enumerate() {
            if let Some((_, left)) = self.left(child, hypothesis) {
                let weight = left.as_secs_f64() * hypothesis.doubt;
                if weight < best.1 {
                    best = (position, weight);
                }
            }
        }
        best.0
    }

    /// When all of a hypothesis was there, and the delay that it leaves without explanation; `None` if
    /// something of it was not there when `child` started.
    fn left(&self, child: usize, hypothesis: &Hypothesis) -> Option<(Duration, Duration)> {
        let start = self.phases.all[child].start;
        let (mut since, tolerance) = match hypothesis.discovery {
            Discovery::Root => return Some((start, Duration::ZERO)),
            Discovery::ParserOffset { parent, offset } => self.parsed(parent.index(), offset),
            Discovery::AfterCompletion { parent } => (self.phases.all[parent.index()].end, SLACK),
        };
        for &need in &hypothesis.waits_for {
            let phase = self.phases.all[need];
            if phase.end > start + SLACK || phase.start >= start || need == child {
                return None;
            }
            since = since.max(phase.end);
        }
        let left = start.saturating_sub(since);
        Some((since, if left <= tolerance { Duration::ZERO } else { left }))
    }

    /// The same place in a document, as early or as late as it may be.
    fn moved(&self, discovery: Discovery, compute: Compute) -> Discovery {
        let Discovery::ParserOffset { parent, offset } = discovery else { return discovery };
        let whole = self.drafts[parent.index()].sizes.body;
        let error = Bytes((whole.0 as f64 * PLACE_ERROR) as u64);
        let offset = match compute {
            // What comes with the head is not looked for in the body.
            _ if offset.is_zero() => offset,
            Compute::Low => offset.saturating_sub(error),
            Compute::High => (offset + error).min(whole),
            Compute::AsRecorded | Compute::Likely => offset,
        };
        Discovery::ParserOffset { parent, offset }
    }

    /// When the bytes up to a place in a document had arrived, and how exactly that is known.
    fn parsed(&self, document: usize, offset: Bytes) -> (Duration, Duration) {
        let whole = self.drafts[document].sizes.body;
        let phase = self.phases.all[document];
        let span = phase.end.saturating_sub(phase.first_byte).as_secs_f64();
        let tolerance = SLACK + Duration::from_secs_f64(span * PLACE_ERROR);
        (self.phases.arrival(document, offset, whole), tolerance)
    }
}
