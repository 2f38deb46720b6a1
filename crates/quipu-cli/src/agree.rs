//! `quipu agree`: the same loads over emulated links and in the simulator.

mod exchanges;

use std::sync::atomic::Ordering;

use quipu_lab::batch::{Batch, run_all, run_session};
use quipu_lab::plan::Plan;
use quipu_lab::results;
use quipu_record::{Output, write_whole};
use quipu_scenario::{HostSpec, Hosts};
use quipu_study::agree::{Agreement, Difference, Nearest, Order, Variant, causes, differences};

use crate::args::{AgreeOptions, ScenarioOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::{self, Given};
use crate::terminal::{Format, json};
use crate::world::{self, Emulator};
use crate::{batch, page_loads, stop};

/// The file with the comparison, beside the folders of worlds.
const FILE: &str = "agreement.json";

/// The folder of emulated runs.
const EMULATED: &str = "emulated";

/// What `--host` says for the costs of this host.
const HERE: &str = "here";

pub(crate) fn run(options: &AgreeOptions, own: &Own<'_>) -> Result<(), Failure> {
    let asked = options.scenario.host.as_deref().unwrap_or(HERE);
    let named = if asked == HERE { None } else { Some(costs_of(asked)?) };
    let given = given(options)?;
    world::check(&given.scenario, &own.stacks)?;
    page_loads::check_simulated(&given.scenario)?;
    let output = scenario::prepare_output(&given.scenario, options.out.as_deref(), options.force)?;
    let emulator = Emulator::new(options.priority, None)?;
    let plan = given.clone().told_plan(own)?;
    let emulated = plan.clone().emulated(world::as_maker(&emulator));
    stop::on_request(&plan.stop)?;
    emulator.start(&emulated)?;
    let costs = match named {
        Some(costs) => costs,
        None => {
            let http = &plan.scenario.http;
            exchanges::added(costs_of_this_host()?, http, &emulator, &plan.stop, own)?
        }
    };
    let real = batch::with_progress(&emulated, Default::default(), None, &plan.stop, None)?;
    // What is there is compared, also after Ctrl-C.
    let stopped = plan.stop.swap(false, Ordering::Relaxed);
    let mut simulated = Vec::new();
    for variant in Variant::ALL {
        let mut given = given.clone();
        let host = variant.of(costs);
        given.scenario.host = Hosts { client: host, server: host };
        let plan = given.plan(own)?;
        let made = run_all(&plan, None, &plan.stop, &|_| {}, &run_session);
        simulated.push((variant, plan, made.map_err(Failure::run)?));
    }
    let worlds: Vec<_> = simulated.iter().map(|(.., batch)| batch.finished.clone()).collect();
    let agreement = Agreement::new(&emulated, &real.finished, &worlds);
    if let Some(output) = output {
        let simulated = simulated.iter().filter(|(variant, ..)| *variant <= Variant::Whole);
        write(output, (&emulated, &real, &emulator), simulated, &agreement)?;
    }
    drop(emulator);
    match options.format.format {
        Format::Table => print(&agreement, &emulated, own)?,
        Format::Json => crate::print(&json(&agreement))?,
        Format::Csv => own.terminal.print_grid(&differences(&agreement), Format::Csv)?,
    }
    if stopped {
        return Err(Failure::Interrupted);
    }
    match real.summary.failures.len() {
        0 if options.check && !agreement.is_whole() => {
            Err(Failure::Run("the worlds differ by more than they may".to_owned()))
        }
        0 => Ok(()),
        failures => {
            let first = real.summary.failures.first().map_or("", |failure| &failure.reason);
            let planned = real.summary.runs_planned;
            Err(Failure::Run(format!("{failures} of {planned} emulated runs failed: {first}")))
        }
    }
}

/// The costs that `text` says.
fn costs_of(text: &str) -> Result<HostSpec, Failure> {
    text.parse().map_err(|reason| Failure::Usage(format!("--host: {reason}; or {HERE}")))
}

/// The costs of this host, which are measured.
fn costs_of_this_host() -> Result<HostSpec, Failure> {
    eprintln!("measuring what this host costs, for ten seconds");
    #[cfg(target_os = "linux")]
    let measured = quipu_tokio::HostCosts::measure().map_err(Failure::run)?.field();
    // There are no emulated links to compare with.
    #[cfg(not(target_os = "linux"))]
    let measured = "measured".to_owned();
    eprintln!("host = \"{measured}\"");
    costs_of(&measured)
}

fn given(options: &AgreeOptions) -> Result<Given, Failure> {
    let asked = ScenarioOptions { host: None, ..options.scenario.clone() };
    let mut given = scenario::build(&asked)?;
    given.compare(&options.compared)?;
    as_emulated(&mut given)?;
    Ok(given)
}

/// Both worlds have real TLS, and no rows but those of policies.
fn as_emulated(given: &mut Given) -> Result<(), Failure> {
    given.scenario.policies.baselines = false;
    given.set("transport.tls", "quipu agree", Some("rustls"))
}

/// Writes the results of both worlds, each into a folder of its own, and what differs.
fn write<'a>(
    output: Output,
    (plan, batch, emulator): (&Plan, &Batch, &Emulator),
    simulated: impl Iterator<Item = &'a (Variant, Plan, Batch)>,
    agreement: &Agreement,
) -> Result<(), Failure> {
    let folder = output.folder().to_owned();
    let into = |name: &str, plan: &Plan, batch: &Batch| {
        let output = Output::prepare(&folder.join(name), true).map_err(Failure::run)?;
        results::write(output, plan, &batch.finished, &batch.summary).map_err(Failure::run)
    };
    into(EMULATED, plan, batch)?;
    emulator.write(&folder.join(EMULATED))?;
    for (variant, plan, batch) in simulated {
        into(variant.name(), plan, batch)?;
    }
    let file = folder.join(FILE);
    let failed = |error| Failure::Run(format!("cannot write {}: {error}", file.display()));
    write_whole(&file, json(agreement)).map_err(failed)?;
    output.publish().map_err(Failure::run)
}

/// Prints the tables, what does not agree, and orders that differ.
fn print(agreement: &Agreement, plan: &Plan, own: &Own<'_>) -> Result<(), Failure> {
    let screen = own.terminal.screen;
    let runs = plan.scenario.runs;
    let mut text = format!("emulated and simulated loads in ms, {runs} pairs by seed of links\n\n");
    text.push_str(&differences(agreement).on(screen));
    text.push('\n');
    text.push_str(&screen.fold(
        "page times of emulated loads against those with ideal hosts, the handshake's part of it, and what each kind of \
         cost of hosts adds to simulated ones, in ms\n",
    ));
    text.push('\n');
    text.push_str(&causes(agreement).on(screen));
    text.push('\n');
    text.push_str(&screen.fold(&conclusions(agreement)));
    crate::print(&text)
}

/// What agrees, and what does not.
fn conclusions(agreement: &Agreement) -> String {
    let Agreement { differences, orders, .. } = agreement;
    let beyond: Vec<&Difference> = differences.iter().filter(|it| !it.agrees()).collect();
    let turned: Vec<&Order> = orders.iter().filter(|it| !it.agrees()).collect();
    let (all, agree) = (differences.len(), differences.len() - beyond.len());
    let mut text = format!(
        "{agree} of {all} medians agree: page times within 2 %, critical times within 5 %\n"
    );
    for it in beyond {
        let Difference { network, page, policy, metric, .. } = it;
        let name = metric.name();
        text.push_str(&format!("  not {name} of {page} over {network} with {policy}"));
        if let Some(Nearest { wake, simulated, difference }) = it.nearest {
            let says = if it.agrees_nearest() {
                "the simulator's"
            } else {
                "the nearest is the simulator's"
            };
            let (wake, time) = (wake as f64 / 1e6, simulated as f64 / 1e6);
            let percent = difference * 100.0;
            text.push_str(&format!(
                ": {says} with hosts that take {wake} ms to wake, {time:.1} ms ({percent:+.1} %)"
            ));
        }
        if !it.agrees_nearest() {
            text.push_str(&format!("; {} of {} simulated loads are alike", it.alike, it.loads));
        }
        text.push('\n');
    }
    let (known, same) = (orders.len(), orders.len() - turned.len());
    text.push_str(&format!(
        "{same} of {known} pairs of policies that the simulator separates have the same order\n"
    ));
    for order in turned {
        let Order {
            page, network, metric, faster, slower, simulated, emulated, with_costs, ..
        } = order;
        let name = metric.name();
        text.push_str(&format!(
            "  not {name} of {page} over {network}: {faster} takes {simulated:.3} of {slower} in the simulator, \
             {with_costs:.3} with costs, {emulated:.3} emulated"
        ));
        match order.turns_at {
            Some(wake) => {
                let wake = wake as f64 / 1e6;
                text.push_str(&format!(
                    "; simulated, too, with hosts that take {wake} ms to wake\n"
                ));
            }
            None => text.push('\n'),
        }
    }
    text
}
