//! `quipu compare`; `live` is over real uplinks.

mod asked;
mod live;
mod ways;

use quipu_lab::table::Order;

use crate::args::CompareOptions;
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::{batch, scenario};

pub(crate) fn run(options: &CompareOptions, own: &Own<'_>) -> Result<(), Failure> {
    if let Some(url) = &options.live.live {
        return live::run(options, url, given(options)?, own);
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
