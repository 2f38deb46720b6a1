//! What the emulator says of each load, beside the results.

use std::fs;
use std::path::Path;

use quipu_emu::Report;
use quipu_lab::plan::{Cell, Plan};
use quipu_record::write_whole;
use serde_json::{Value, json};

use super::Emulator;
use crate::failure::Failure;

/// The file.
const FILE: &str = "emulation.json";

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
    /// Writes what the emulator says of each load so far into `folder`, behind what an earlier call wrote.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let file = folder.join(FILE);
        let before = fs::read_to_string(&file).ok();
        let before = before.and_then(|text| serde_json::from_str::<Vec<Value>>(&text).ok());
        let mut all = before.unwrap_or_default();
        all.extend(self.told().into_iter().map(|Told(value)| value));
        let text = serde_json::to_string_pretty(&all).map_err(Failure::run)?;
        write_whole(&file, text + "\n").map_err(|error| Failure::Run(format!("{FILE}: {error}")))
    }
}
