//! Runs that others make: parts of a sweep that are given out, and folders of finished runs that come back.
//!
//! The one who gives out calls [`Todo::begin`], [`Todo::merge`] for each folder that comes, [`Todo::settle`], and
//! [`Todo::write`]. Whoever makes a part leaves out what is kept already ([`Todo::kept`], [`Todo::leave_out`]).

use std::collections::BTreeSet;
use std::path::Path;

use super::shard::Shard;
use super::todo::{STORE, SweepError, Todo};

impl Todo {
    /// Keeps the runs of this sweep that are missing here and finished in `folder`, also if its sweep was killed, and
    /// returns how many these are.
    ///
    /// # Errors
    /// If a store cannot be read or written.
    pub fn merge(&mut self, folder: &Path) -> Result<usize, SweepError> {
        let missing: BTreeSet<u128> = self.tasks.iter().map(|task| task.key).collect();
        let taken = self.store.take_all(&folder.join(STORE), |key| missing.contains(&key))?;
        let taken: BTreeSet<u128> = taken.into_iter().collect();
        self.tasks.retain(|task| !taken.contains(&task.key));
        Ok(taken.len())
    }

    /// How many runs of the part `shard` are missing.
    pub fn missing_of(&self, shard: Shard) -> usize {
        self.tasks.iter().filter(|task| shard.has(task.key)).count()
    }

    /// The keys of the runs of the part `shard` that are kept.
    pub fn kept(&self, shard: Shard) -> BTreeSet<u128> {
        let missing = self.tasks.iter().map(|task| task.key).filter(|key| shard.has(*key));
        let missing: BTreeSet<u128> = missing.collect();
        let keys = self.keys.iter().flatten().copied();
        keys.filter(|key| shard.has(*key) && !missing.contains(key)).collect()
    }

    /// Does not make the runs with these keys, which are kept elsewhere. They go on counting as missing.
    pub fn leave_out(&mut self, keys: &BTreeSet<u128>) {
        self.tasks.retain(|task| !keys.contains(&task.key));
    }
}
