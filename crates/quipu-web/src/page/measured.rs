//! What was measured of recorded loads.

use quipu_base::Duration;

use super::PageError;
use super::build::Prepared;
use super::hold::Holding;
use super::select::choose;
use crate::har::{Har, HarNetwork};

/// A load of a file, and what was measured of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredLoad {
    /// Its name, as [`ReadOptions::load`](super::ReadOptions::load) takes it.
    pub name: String,
    /// Over which network it was recorded, where the file says so.
    pub network: Option<HarNetwork>,
    /// From the start of the first request to the end of the last response that the load event waited for.
    pub page_time: Duration,
    /// From there to the load event, which comes after scripts that were run.
    pub on_load: Option<Duration>,
}

/// All loads of a HAR file, in its order.
///
/// # Errors
/// If the file cannot be read, or a load has no request over HTTP.
pub fn measured(file: &[u8]) -> Result<Vec<MeasuredLoad>, PageError> {
    let har = Har::parse(file)?;
    let loads = 1..=choose(&har, None)?.loads;
    loads.map(|number| measured_load(&har, number)).collect()
}

fn measured_load(har: &Har, number: usize) -> Result<MeasuredLoad, PageError> {
    let name = number.to_string();
    let Prepared { load, main, .. } = Prepared::new(choose(har, Some(&name))?)?;
    let mut holding = Holding::new(load.on_load, &load.drafts[main]);
    let held = load.drafts.iter().filter(|draft| holding.not_held(draft).is_none());
    let page_time = held.map(|draft| draft.end).max().unwrap_or_default();
    let network = load.page.and_then(|page| page.network.clone());
    Ok(MeasuredLoad { name, network, page_time, on_load: load.on_load })
}
