//! In which world runs are made.

use quipu_scenario::{Network, Scenario};

/// In which world the runs of a plan are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum World {
    /// In virtual time, over modelled links.
    #[default]
    Simulated,
    /// In real time, over modelled links between real sockets.
    Emulated,
    /// In real time, over real uplinks.
    Live,
}

impl World {
    /// What results and tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            World::Simulated => "simulated",
            World::Emulated => "emulated",
            World::Live => "live",
        }
    }

    /// Whether the policies of a scenario meet chance on that network, so that several runs are several samples.
    pub fn is_random(self, scenario: &Scenario, network: &Network) -> bool {
        // Real time is never the same twice.
        self != World::Simulated || scenario.is_random(network)
    }
}
