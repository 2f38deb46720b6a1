//! Many random scripts on a choice of policies.

use quipu_base::Seed;

use super::engine::Subject;
use super::run::check;
use super::script::Script;
use crate::registry::{BuildContext, PolicySpec, SpecError};

/// Paths that scripts begin with.
const PATHS: [u8; 4] = [1, 2, 3, 8];
/// Steps of a script.
const STEPS: usize = 60;
/// Faults that are kept; our choice: who reads them mends the first.
const MOST_FAULTS: usize = 10;

/// What random scripts said of a choice of policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Scripts that were run.
    pub scripts: u32,
    /// Answers that were carried out, rests included.
    pub decisions: u64,
    /// Answers that the engine refused, and decisions that it took itself: 0 for a sound policy.
    pub refused: u64,
    /// What went against the rules of the seam, the first few; empty for a sound policy.
    pub faults: Vec<String>,
}

impl Verdict {
    /// True if nothing went against the rules.
    pub fn is_sound(&self) -> bool {
        self.refused == 0 && self.faults.is_empty()
    }
}

/// Holds a choice of policies to the rules of the seam, in `scripts` random scripts on 1, 2, 3 and 8
/// paths, each run four times. Stops early once there are faults enough. The same scripts each time.
///
/// # Errors
/// If the policies cannot be built.
pub fn stands(spec: &PolicySpec, scripts: u32) -> Result<Verdict, SpecError> {
    let context = BuildContext::new(Seed::new(1));
    let copies = spec.build(&context)?.copies;
    let mut verdict = Verdict::default();
    for number in 0..scripts {
        let paths = PATHS[number as usize % PATHS.len()];
        let script = Script::random(Seed::new(u64::from(number)), paths, STEPS);
        let subject = || {
            let policies = spec.build(&context).expect("it was built a moment ago");
            Subject { joint: policies.joint, audit: None, copies }
        };
        let report = check(&subject, &script);
        verdict.scripts += 1;
        verdict.decisions += report.decisions.len() as u64;
        verdict.refused += u64::from(report.refused) + u64::from(report.overridden);
        let room = MOST_FAULTS - verdict.faults.len();
        let faults = report.faults.iter().take(room);
        verdict
            .faults
            .extend(faults.map(|fault| format!("script {number}, {paths} paths: {fault}")));
        if verdict.faults.len() == MOST_FAULTS {
            break;
        }
    }
    Ok(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{FirstCome, Manner, run};
    use crate::joint::Pair;
    use crate::key::PathKey;
    use crate::path::{Choice, MinRtt, Parcel, PathPolicy};
    use crate::registry::{Built, Confidence, Entry, Layer, Registry};
    use crate::reinject::ResendRules;
    use crate::seam::decision::Notes;
    use crate::seam::view::View;
    use crate::stream::Pack;

    /// Names the first path, open or not.
    struct Stubborn;

    impl PathPolicy for Stubborn {
        fn select(&mut self, _: &Parcel<'_>, view: &View<'_>, _: &mut Notes) -> Choice {
            view.paths.iter().next().map_or(Choice::None, |path| Choice::Now(path.key))
        }
    }

    /// Asks for a PING on the first path whenever it is asked.
    struct Prober;

    impl PathPolicy for Prober {
        fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
            MinRtt::default().select(parcel, view, notes)
        }

        fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
            view.paths.iter().next().map(|path| path.key)
        }
    }

    #[test]
    fn a_policy_that_probes_for_ever_ends_with_counted_refusals() {
        let backlog = Script { paths: 2, credit: 10_000_000, backlog: 300_000, steps: Vec::new() };
        let subject = || {
            let stream = Box::new(FirstCome::default());
            let joint = Pair::new(stream, Box::new(Prober), ResendRules::RANK, Pack::One);
            Subject { joint: Box::new(joint), audit: None, copies: false }
        };
        let report = run(&subject, &backlog, Manner { batch: 40, twice: false });
        let refused = |fault: &String| {
            fault.contains("MustNotProbe")
                || fault.contains("PathClosed")
                || fault.contains("decide")
        };
        assert!(report.faults.iter().all(refused), "{:?}", report.faults);
        assert!(report.refused > 100 && report.overridden > 100, "{}", report.refused);
        assert!(report.probes < report.packets / 2, "{} probes", report.probes);
    }

    #[test]
    fn a_sound_policy_stands_and_a_stubborn_one_is_found_out() {
        let mut registry = Registry::builtin();
        let entry = registry.get(Layer::Path, "minrtt").cloned().unwrap();
        let stubborn = Entry {
            name: "stubborn",
            params: Vec::new(),
            build: &|_, _| Ok(Built::path(Stubborn)),
            confidence: Confidence::Low,
            ..entry
        };
        registry.add(stubborn).unwrap();
        let verdict = |text| stands(&PolicySpec::parse(&registry, text).unwrap(), 40).unwrap();
        let sound = verdict("path=minrtt");
        assert!(sound.is_sound(), "{sound:?}");
        assert_eq!(sound.scripts, 40);
        assert!(sound.decisions > 1_000);
        let unsound = verdict("path=stubborn");
        assert!(unsound.refused > 0 && !unsound.faults.is_empty(), "{unsound:?}");
        assert!(unsound.faults[0].starts_with("script 0, 1 paths: ") || unsound.scripts > 1);
    }
}
