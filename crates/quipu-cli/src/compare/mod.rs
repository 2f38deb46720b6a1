//! `quipu compare`; `live` is over real uplinks.

mod asked;
mod client;
#[cfg(target_os = "linux")]
mod emulated;
mod live;
mod ways;

use quipu_lab::batch::Batch;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::results::{failure, summary};
use quipu_lab::table::Order;
use quipu_record::RunRecord;

use crate::args::{CompareOptions, WorldChoice as Choice};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, scenario};

pub(crate) fn run(options: &CompareOptions, own: &Own<'_>) -> Result<(), Failure> {
    if let Some(url) = &options.live.live {
        return live::run(options, url, given(options)?, own);
    }
    if options.world == Choice::Emulated {
        #[cfg(target_os = "linux")]
        return emulated::run(options, given(options)?, own);
        #[cfg(not(target_os = "linux"))]
        return Err(Failure::Usage("links are emulated on Linux alone".to_owned()));
    }
    let plans = given(options)?.plans(own, options.batch.range)?;
    let order = Order { sort: options.sort, top: options.top.map(usize::from) };
    batch::run(&plans, &options.batch, order, own)
}

fn given(options: &CompareOptions) -> Result<Given, Failure> {
    let mut given = scenario::build(&options.scenario)?;
    let fields = [
        ("runs", "--runs", &options.runs),
        ("policies.stream", "--stream", &options.stream),
        ("policies.path", "--path", &options.path),
        ("policies.joint", "--joint", &options.joint),
    ];
    for (field, option, value) in fields {
        given.set(field, option, value.as_deref())?;
    }
    given.scenario.policies.baselines &= !options.no_baselines;
    Ok(given)
}

/// What came of all loads, in the order of the plan.
fn batch_of(
    plan: &Plan,
    mut finished: Vec<(Cell, RunRecord)>,
    mut failed: Vec<(Cell, String)>,
) -> Batch {
    finished.sort_by_key(|(cell, _)| *cell);
    failed.sort_by_key(|(cell, _)| *cell);
    let failures = failed.into_iter().map(|(cell, reason)| failure(plan, cell, reason));
    let summary = summary(plan, &finished, failures.collect());
    Batch { finished, summary }
}
