//! How far a sweep is: `status.json`.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::shard::Shard;
use quipu_lab::plan::World;
use quipu_record::{FileError, Provenance, write_whole};

/// The file.
pub(super) const STATUS: &str = "status.json";

/// Whether a folder has all of its sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Every run was made and is in the tables.
    Complete,
    /// Some runs are missing; the tables have what there is.
    Incomplete,
    /// Runs are being made, or were when the program was killed; the tables are older, or not there.
    Running,
}

/// How far a sweep is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The program.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// In which world runs are made, such as `simulated`.
    #[serde(default)]
    pub world: String,
    /// Whether all is there.
    pub state: State,
    /// Points.
    pub points: usize,
    /// Runs of all points.
    pub planned: usize,
    /// Runs that ended well and are kept.
    pub done: usize,
    /// Runs that failed, as they always will.
    pub failed: usize,
    /// Runs that are missing.
    pub missing: usize,
    /// The part that was made last, such as `1/4`; `null` if it was all.
    pub shard: Option<String>,
}

impl Status {
    /// Of a sweep with so many runs.
    pub(super) fn new(
        (provenance, world): (Provenance, World),
        points: usize,
        planned: usize,
        shard: Option<Shard>,
    ) -> Status {
        Status {
            provenance,
            world: world.name().to_owned(),
            state: State::Running,
            points,
            planned,
            done: 0,
            failed: 0,
            missing: planned,
            shard: shard.map(|shard| shard.to_string()),
        }
    }

    /// The same with what there is.
    #[must_use]
    pub(super) fn with(self, state: State, done: usize, failed: usize) -> Status {
        let missing = self.planned.saturating_sub(done + failed);
        Status { state, done, failed, missing, ..self }
    }

    /// As it is in the file.
    pub fn to_json(&self) -> String {
        // Texts and numbers can always be written.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
    /// Writes it into the folder `out`, which is made if it is missing.
    pub(super) fn write(&self, out: &Path) -> Result<(), FileError> {
        let failed = |file: String| move |source| FileError::Write { file, source };
        fs::create_dir_all(out).map_err(failed(out.display().to_string()))?;
        write_whole(&out.join(STATUS), self.to_json()).map_err(failed(STATUS.to_owned()))
    }
}
