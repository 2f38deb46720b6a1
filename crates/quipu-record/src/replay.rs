//! Running a load again: results keep the times of every object, but not every packet of every run.
//!
//! Whoever shows results asks for it by these traits; whoever knows runs answers.

use std::path::Path;

use quipu_base::Duration;

use crate::detail::Detail;

/// Where results are from.
#[derive(Clone, Copy, Debug)]
pub struct ResultFolder<'a> {
    /// The folder.
    pub path: &'a Path,
    /// What messages call it; empty if it is the only one.
    pub label: &'a str,
    /// Of a sweep, the fields of one point with their values.
    pub fields: &'a [(String, String)],
}

/// A load in the results of a folder.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlace<'a> {
    /// The page; empty if there is none.
    pub page: &'a str,
    /// The network.
    pub network: &'a str,
    /// The policy.
    pub policy: &'a str,
    /// Number of the run.
    pub run: u64,
    /// Number of the page in the session.
    pub visit: u64,
    /// Number of the client.
    pub client: u64,
    /// The page time that the results have, if they have one.
    pub page_time: Option<Duration>,
}

/// What can run the loads of results again.
pub trait Replays {
    /// The loads of `folder`.
    ///
    /// # Errors
    /// Why they cannot be run, in words.
    fn open(&self, folder: &ResultFolder<'_>) -> Result<Box<dyn Replay + '_>, String>;
}

/// What can run the loads of one folder again.
pub trait Replay {
    /// Runs `load` again, and makes sure that it is the one of the results.
    ///
    /// # Errors
    /// Why it cannot be shown, in words.
    fn replay(&self, load: &LoadPlace<'_>) -> Result<Detail, String>;
}
