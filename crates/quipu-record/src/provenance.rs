//! Which program made a file.

use serde::{Deserialize, Serialize};

/// What files say of the program that made them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// Version of Quipu.
    pub version: String,
    /// Commit of Quipu, with `-dirty` if the tree differed from it, or `unknown`.
    pub commit: String,
    /// Which program: the hash of Quipu's sources, as `sources:0123…`, where none but its own policies are
    /// run; else that of the executable, as `executable:0123…`.
    #[serde(default)]
    pub program: String,
    /// The profile with which it was built, such as `dist, opt-level 3, thin LTO`.
    #[serde(default)]
    pub profile: String,
}
