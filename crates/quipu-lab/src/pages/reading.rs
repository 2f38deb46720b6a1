//! How recordings are read.

use quipu_scenario::{Compute, Scenario};
use quipu_web::page::{self, ReadOptions};

/// What a scenario says about the recordings of its pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    compute: Compute,
    /// Computing takes so many times as long.
    scale: f64,
}

impl Reading {
    /// As `scenario` says.
    pub fn of(scenario: &Scenario) -> Reading {
        Reading { compute: scenario.compute, scale: scenario.compute_scale }
    }

    pub(super) fn options(self) -> ReadOptions {
        let compute = match self.compute {
            Compute::AsRecorded => page::Compute::AsRecorded,
            Compute::Low => page::Compute::Low,
            Compute::Likely => page::Compute::Likely,
            Compute::High => page::Compute::High,
        };
        ReadOptions { compute, ..ReadOptions::default() }
    }

    /// What tells it from all others.
    pub(crate) fn key(self) -> (String, u64) {
        (self.compute.to_string(), self.scale.to_bits())
    }

    pub(super) fn scale(self) -> f64 {
        self.scale
    }
}
