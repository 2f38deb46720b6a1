//! Reports of folders that the lab writes, and of folders that are not as they should be.
#![expect(clippy::unwrap_used, reason = "tests")]

mod damaged;
mod figures;
mod folders;
mod kinds;
mod large;
mod outline;
mod pair;
mod specs;
mod waterfall;
