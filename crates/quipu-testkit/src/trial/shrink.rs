//! The smallest trial that still fails.

use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::forge::{Meter, unmetered};

use super::{PathSetup, Report, Rule, Trial, Violation};

/// Why a trial failed: the rule that was broken, or a panic.
#[derive(Clone, Debug, PartialEq)]
pub enum Broken {
    /// A rule.
    Rule(Violation),
    /// The code panicked, with these words.
    Panic(String),
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Broken::Rule(violation) => violation.fmt(f),
            Broken::Panic(words) => write!(f, "panicked: {words}"),
        }
    }
}

impl Broken {
    /// True if both are of one kind.
    fn is_like(&self, other: &Broken) -> bool {
        match (self, other) {
            (Broken::Rule(one), Broken::Rule(other)) => {
                discriminant::<Rule>(&one.rule) == discriminant::<Rule>(&other.rule)
            }
            (Broken::Panic(_), Broken::Panic(_)) => true,
            _ => false,
        }
    }
}

impl Trial {
    /// Runs the trial; a panic is a failure too.
    ///
    /// # Errors
    /// What went wrong.
    pub fn try_run(&self) -> Result<Report, Broken> {
        self.try_run_metered(unmetered)
    }

    /// The same, which measures the memory of what is dropped.
    ///
    /// # Errors
    /// What went wrong.
    pub fn try_run_metered(&self, meter: Meter) -> Result<Report, Broken> {
        match catch_unwind(AssertUnwindSafe(|| self.run_metered(meter))) {
            Ok(Ok(report)) => Ok(report),
            Ok(Err(violation)) => Err(Broken::Rule(violation)),
            Err(payload) => {
                let words = payload
                    .downcast_ref::<String>()
                    .cloned()
                    .or_else(|| payload.downcast_ref::<&str>().map(|words| (*words).to_owned()));
                Err(Broken::Panic(words.unwrap_or_default()))
            }
        }
    }

    /// The smallest trial found that fails as this one does.
    pub fn shrunken(&self, broken: &Broken) -> Trial {
        let fails = |trial: &Trial| trial.try_run().is_err_and(|found| found.is_like(broken));
        let mut smallest = self.clone();
        loop {
            let before = smallest.clone();
            for candidate in smallest.settings() {
                if candidate != smallest && fails(&candidate) {
                    smallest = candidate;
                }
            }
            let mut part = smallest.ops.len();
            while part > 0 {
                let mut at = 0;
                while at < smallest.ops.len() {
                    let mut candidate = smallest.clone();
                    candidate.ops.drain(at..(at + part).min(smallest.ops.len()));
                    if fails(&candidate) {
                        smallest = candidate;
                    } else {
                        at += part;
                    }
                }
                part /= 2;
            }
            if smallest == before {
                return smallest;
            }
        }
    }

    /// The same with one setting each at its default, and with simpler paths.
    fn settings(&self) -> Vec<Trial> {
        let plain = Trial::new(self.paths.clone());
        let mut all = vec![
            Trial { stream_window: plain.stream_window, ..self.clone() },
            Trial { connection_window: plain.connection_window, ..self.clone() },
            Trial { max_streams: plain.max_streams, ..self.clone() },
            Trial { policies: plain.policies, ..self.clone() },
            Trial { batch: plain.batch, ..self.clone() },
            Trial { begin: plain.begin, ..self.clone() },
            Trial { drops: plain.drops, ..self.clone() },
            Trial { early: plain.early, ..self.clone() },
        ];
        if self.paths.len() > 1 {
            let paths = self.paths[..self.paths.len() - 1].to_vec();
            all.push(Trial { paths, ..self.clone() });
        }
        for at in 0..self.paths.len() {
            let path = self.paths[at];
            for simpler in [
                PathSetup { loss: 0, ..path },
                PathSetup { disorder: false, ..path },
                PathSetup { up: 0, ..path },
            ] {
                let mut candidate = self.clone();
                candidate.paths[at] = simpler;
                all.push(candidate);
            }
        }
        all
    }
}
