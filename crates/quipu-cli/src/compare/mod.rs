//! `quipu compare`; `live` is over real uplinks.

mod live;

use quipu_lab::table::Order;

use crate::args::{CompareOptions, ScenarioOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, page_loads, scenario, world};

pub(crate) fn run(options: &CompareOptions, own: &Own<'_>) -> Result<(), Failure> {
    let emulated = options.world.emulated()?;
    if let Some(url) = &options.live.live {
        return live::run(options, url, given(options)?, own);
    }
    if let Some(priority) = emulated {
        let ScenarioOptions { tls, host, .. } = &options.scenario;
        world::refuse_simulated([
            (tls.is_some(), "--tls", "none"),
            (host.is_some(), "--host", "none, as hosts are real,"),
        ])?;
        let how = (&options.batch, order(options));
        return world::run_emulated(given(options)?, how, priority, own);
    }
    let given = given(options)?;
    page_loads::check_simulated(&given.scenario)?;
    let plans = given.plans(own, options.batch.range)?;
    batch::run(&plans, &options.batch, order(options), own)
}

fn given(options: &CompareOptions) -> Result<Given, Failure> {
    let mut given = scenario::build(&options.scenario)?;
    given.compare(&options.compared)?;
    given.set("stack", "--stack", options.stack.as_deref())?;
    given.scenario.policies.baselines &= !options.no_baselines;
    Ok(given)
}

fn order(options: &CompareOptions) -> Order {
    Order { sort: options.sort, top: options.top.map(usize::from) }
}
