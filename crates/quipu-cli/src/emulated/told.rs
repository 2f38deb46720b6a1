//! What the emulator says of each load, beside the results.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use quipu_emu::Report;
use quipu_lab::plan::{Cell, Plan};
use serde_json::{Value, json};

use super::Emulator;
use crate::failure::Failure;

/// The file.
const FILE: &str = "emulation.jsonl";

/// What the emulator says of a load.
#[derive(Debug)]
pub(super) struct Told(Value);

impl Told {
    /// Of the load of `cell`, which was made for the `attempt`-th time.
    pub(super) fn new(plan: &Plan, cell: Cell, attempt: u32, report: Report) -> Told {
        let network = &plan.networks[cell.network];
        Told(json!({
            "page": plan.page_name(cell.page),
            "network": network.network.name,
            "policy": network.policies[cell.policy].label,
            "run": cell.run,
            "attempt": attempt,
            "report": report,
        }))
    }
}

impl Emulator {
    /// Forgets what it says of the loads so far.
    pub(crate) fn forget(&self) {
        drop(self.told());
    }

    /// Appends what the emulator says of the loads since the last call to its file in `folder`, a line for each.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let lines: String =
            self.told().into_iter().map(|Told(value)| format!("{value}\n")).collect();
        let file = OpenOptions::new().create(true).append(true).open(folder.join(FILE));
        let written = file.and_then(|mut file| file.write_all(lines.as_bytes()));
        written.map_err(|error| Failure::Run(format!("{FILE}: {error}")))
    }
}
