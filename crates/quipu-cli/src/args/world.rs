//! In which world runs are made.

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// In which world loads are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorldChoice {
    // In virtual time.
    Simulated,
    // In real time, over emulated links.
    Emulated,
}

/// In which world runs are made.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct WorldOptions {
    /// In which world: in virtual time, or over links in real time by client and server (Linux)
    #[arg(long, value_name = "WORLD", default_value = "simulated")]
    pub(crate) world: WorldChoice,
    #[command(flatten)]
    pub(crate) priority: PriorityOption,
}

impl WorldOptions {
    /// The priority of what carries emulated packets; `None` if runs are simulated.
    ///
    /// # Errors
    /// If there is one for simulated runs.
    pub(crate) fn emulated(self) -> Result<Option<PriorityOption>, Failure> {
        match (self.world, self.priority.priority) {
            (WorldChoice::Emulated, _) => Ok(Some(self.priority)),
            (WorldChoice::Simulated, None) => Ok(None),
            (WorldChoice::Simulated, Some(priority)) => Err(Failure::Usage(format!(
                "--priority {priority}: expected none without --world emulated"
            ))),
        }
    }
}

/// How the thread that carries emulated packets is scheduled.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct PriorityOption {
    /// Real-time priority of what carries emulated packets, 1 to 99 [default: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
}
