//! What was measured of recorded loads.

use quipu_base::Duration;

use super::PageError;
use super::build::Prepared;
use super::hold::Holding;
use super::select::{asked, choose};
use crate::har::{Har, HarNetwork};
use crate::trace::Activity;

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

/// Whether `activity` is of the first load of a HAR file: it has requests of that.
pub(crate) fn is_of_first_load(har: &Har, activity: &Activity) -> Result<bool, PageError> {
    let load = choose(har, None)?;
    let recorded = load.drafts.iter().map(|draft| (draft.url, asked(draft)));
    Ok(activity.shift_to(recorded).is_some())
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
