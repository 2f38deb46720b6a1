//! The bounds of a plan's runs: each worked out once where it is the same for several.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quipu_base::Instant;

use super::{Level, Links, PageBound, Situation, windows_are_known};
use crate::plan::{Cell, Plan};
use quipu_record::{Bounds, RunRecord};
use quipu_scenario::{Network, Origins, Stack};

/// Loads that are remembered; beyond them each is worked out anew.
const MOST: usize = 10_000;

/// Bounds that were worked out for one plan, and the links of each of its networks.
#[derive(Debug, Default)]
pub(crate) struct Store {
    /// Of what each row of each network runs over, where that is the same in every run.
    links: OnceLock<BTreeMap<Over, Option<Links>>>,
    known: Mutex<BTreeMap<Key, Arc<Known>>>,
}

/// A network, and the position of the path that is taken for all of it, if one is.
type Over = (usize, Option<usize>);

/// What the bounds of a load depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    page: usize,
    /// Run, client and visit, where each has a page or a network of its own.
    drawn: Option<(u32, u32, u32)>,
    over: Over,
    first: bool,
    /// When the page was asked for, where that makes a difference.
    start: Option<Instant>,
}

/// Both bounds of a load.
#[derive(Debug)]
struct Known {
    fluid: PageBound,
    tight: PageBound,
}

impl Store {
    /// Sets the bounds of `records`, the pages of the run of `cell`. A record without a page has none, and none has
    /// that of another stack than Quipu's, whose packets and windows are others.
    pub(crate) fn complete(&self, plan: &Plan, cell: Cell, records: &mut [RunRecord]) {
        if plan.networks[cell.network].policies[cell.policy].stack != Stack::Quipu {
            return;
        }
        for record in records {
            let Some(known) = self.of(plan, cell, record) else { continue };
            let both = |fluid, tight| Bounds { fluid, tight };
            let Known { fluid, tight } = &*known;
            record.page_bound = both(fluid.page_time, tight.page_time);
            record.critical_bound = both(fluid.critical_time, tight.critical_time);
            // Those that the load does not wait for may be missing.
            for object in &mut record.objects {
                let of = |bound: &PageBound| {
                    let index = usize::try_from(object.object).ok()?;
                    bound.objects.get(index).copied()
                };
                object.bound = both(of(fluid).unwrap_or_default(), of(tight).unwrap_or_default());
            }
        }
    }

    fn of(&self, plan: &Plan, cell: Cell, record: &RunRecord) -> Option<Arc<Known>> {
        let scenario = &plan.scenario;
        let made = |network: &Network| Links::new(network, scenario).ok();
        let network = plan.run_network(cell).network.for_run(scenario.run_seed(cell.run));
        let same_network = matches!(network, Cow::Borrowed(_));
        let all = self.links.get_or_init(|| links_of(plan));
        let over = over(plan, cell);
        let links = match network {
            Cow::Borrowed(_) => Cow::Borrowed(all.get(&over)?.as_ref()?),
            Cow::Owned(network) => Cow::Owned(made(&network)?),
        };
        let object = record.objects.first()?;
        // What is known of a load must not depend on which client asks first.
        let start = match links.vary() {
            true => object.completed_at - object.since_page_start,
            false => Instant::ZERO,
        };
        let (page, same) =
            plan.pages.get(cell.page)?.page_of(cell.run, record.client, record.visit).ok()?;
        let first = record.visit == 0;
        let key = Key {
            page: cell.page,
            drawn: (!same || !same_network).then_some((cell.run, record.client, record.visit)),
            over,
            first,
            start: links.vary().then_some(start),
        };
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return Some(Arc::clone(known));
        }
        // One bound for all rows over the same paths, so that they stand beside each other.
        let windows = windows_are_known(plan, cell);
        // With several connections there are as many windows as nobody counts here.
        let windows = windows && scenario.origins == Origins::One;
        let situation = Situation { scenario, page: &page, start, first, windows };
        let [fluid, tight] =
            [Level::Fluid, Level::Tight].map(|level| links.bound(level, &situation));
        let known = Arc::new(Known { fluid, tight });
        let mut all = lock();
        if all.len() < MOST {
            all.insert(key, Arc::clone(&known));
        }
        Some(known)
    }
}

/// What the run of `cell` goes over.
fn over(plan: &Plan, cell: Cell) -> Over {
    let row = &plan.networks[cell.network].policies[cell.policy];
    (cell.network, row.alone.as_ref().map(|path| path.position))
}

/// The links of all that the rows of `plan` go over.
fn links_of(plan: &Plan) -> BTreeMap<Over, Option<Links>> {
    let mut all = BTreeMap::new();
    for (network, planned) in plan.networks.iter().enumerate() {
        for policy in 0..planned.policies.len() {
            let cell = Cell { page: 0, network, policy, run: 0 };
            let made = || Links::new(&plan.run_network(cell).network, &plan.scenario).ok();
            all.entry(over(plan, cell)).or_insert_with(made);
        }
    }
    all
}
