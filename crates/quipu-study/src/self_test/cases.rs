//! One page, all its recordings, all its replays.

use quipu_web::page::Compute;

use super::world::{Inferred, Recording, Times, Truth};
use super::{SelfTest, SelfTestError};

/// What is compared: names of the metrics of a case, in its order.
pub const METRICS: [&str; 3] = ["page time", "critical time", "object index"];

/// What recordings tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Knowledge {
    /// Who asked for what, as Chrome knows it.
    Initiators,
    /// Times and sizes alone.
    Times,
}

/// How pages are inferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inference {
    /// Every wait of the recording is kept as it is.
    AsRecorded,
    /// The network is taken out.
    TakenOut,
}

/// One page, recorded at some rates and loaded again at another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Number of the page.
    pub page: u64,
    /// Rates of its recordings, Mbit/s: one or two.
    pub recorded: Vec<u64>,
    /// Rate of the load, Mbit/s.
    pub replayed: u64,
    /// What the recordings tell.
    pub knowledge: Knowledge,
    /// How the page was inferred.
    pub inference: Inference,
    /// What the true page takes, in ns, by metric.
    pub truth: Times,
    /// What the inferred page takes.
    pub likely: Times,
    /// What it takes at least and at most, where a range is known.
    pub range: Option<(Times, Times)>,
}

/// All cases of the page with number `index`.
pub(super) fn of_page(test: &SelfTest, index: u64) -> Result<Vec<Case>, SelfTestError> {
    let page = Truth::drawn(test.seed, index)?;
    let truths = loads(test, |rate| page.load(rate))?;
    let mut cases = Vec::new();
    for knowledge in [Knowledge::Initiators, Knowledge::Times] {
        let mut recordings = Vec::new();
        for &rate in &test.recorded_at {
            recordings.push((rate, page.record(rate, knowledge == Knowledge::Initiators)?));
        }
        let mut add = |recorded: Vec<u64>, recording: &Recording| -> Result<(), SelfTestError> {
            let kind = Kind { page: index, recorded, knowledge };
            cases.extend(kind.cases(test, recording, &truths)?);
            Ok(())
        };
        for (at, (rate, recording)) in recordings.iter().enumerate() {
            add(vec![*rate], recording)?;
            for (slower, other) in &recordings[..at] {
                add(vec![*slower, *rate], &Recording::joined(&[other, recording])?)?;
            }
        }
    }
    Ok(cases)
}

/// Cases of one page with the same recordings.
struct Kind {
    page: u64,
    recorded: Vec<u64>,
    knowledge: Knowledge,
}

impl Kind {
    fn cases(
        &self,
        test: &SelfTest,
        recording: &Recording,
        truths: &[Times],
    ) -> Result<Vec<Case>, SelfTestError> {
        let replay = |compute: Compute| {
            let inferred: Inferred = recording.infer(compute)?;
            loads(test, |rate| inferred.load(rate))
        };
        let [low, likely, high] =
            [replay(Compute::Low)?, replay(Compute::Likely)?, replay(Compute::High)?];
        // It knows of one recording only.
        let kept = match self.recorded.len() {
            1 => Some(replay(Compute::AsRecorded)?),
            _ => None,
        };
        let mut cases = Vec::new();
        for (at, &replayed) in test.replayed_at.iter().enumerate() {
            let case = Case {
                page: self.page,
                recorded: self.recorded.clone(),
                replayed,
                knowledge: self.knowledge,
                inference: Inference::TakenOut,
                truth: truths[at],
                likely: likely[at],
                range: Some((low[at], high[at])),
            };
            if let Some(kept) = &kept {
                cases.push(Case {
                    inference: Inference::AsRecorded,
                    likely: kept[at],
                    range: None,
                    ..case.clone()
                });
            }
            cases.push(case);
        }
        Ok(cases)
    }
}

fn loads(
    test: &SelfTest,
    load: impl Fn(u64) -> Result<Times, SelfTestError>,
) -> Result<Vec<Times>, SelfTestError> {
    test.replayed_at.iter().map(|&rate| load(rate)).collect()
}
