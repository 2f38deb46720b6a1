//! `quipu load --live`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_lab::base::Duration as Span;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::table::{self, WaterfallOptions};
use quipu_live::{Difference, Loaded};
use quipu_tokio::{Endpoint, PathInfo, tokio};

use crate::args::{LivePolicies, LoadOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::page_loads::{self, Server};
use crate::scenario::Given;
use crate::values::local_name;
use crate::{live, logs, stop};

/// Objects that differ from the recording and are named; our choice.
const NAMED: usize = 5;

/// What says so on the command line.
const OPTION: &str = "--live";

/// Loads the page of `given` from the server at `url`.
pub(super) fn run(
    options: &LoadOptions,
    url: &str,
    mut given: Given,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let server = Server::of(url, &options.live.uplinks)?;
    page_loads::over_h3(&mut given, options.scenario.http.as_deref(), OPTION)?;
    let plan = given.told_plan(own)?;
    page_loads::check(&plan.scenario, OPTION)?;
    let config = server.config(policies(options).factory(own.registry)?)?;
    let logs = logs::of_real_time(&options.logs, "quipu load")?;
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let runtime = live::runtime()?;
    let loaded = runtime.block_on(async {
        let mut builder = Endpoint::client();
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        let endpoint = live::bind(builder, &options.live.uplinks.via)?;
        let load = async {
            let addresses = server.addresses().await?;
            server.load(&endpoint, &config, &addresses, (&plan, CELL)).await
        };
        let loaded = tokio::select! {
            loaded = load => loaded,
            () = live::asked_to_stop(&stopped) => Err(Failure::Interrupted),
        };
        endpoint.wait_idle_for(live::FAREWELL).await;
        loaded
    });
    drop(runtime);
    if let Some(logs) = &logs {
        logs.finish().map(drop).map_err(Failure::run)?;
    }
    let text = text(&plan, server.authority(), &loaded?, own, options.rows)?;
    crate::print(&text)
}

/// The policies of this end.
fn policies(options: &LoadOptions) -> LivePolicies {
    LivePolicies {
        stream: options.stream.clone(),
        path: options.path.clone(),
        joint: options.joint.clone(),
        congestion: options.scenario.congestion.clone(),
        ack: options.scenario.ack.clone(),
    }
}

/// The only load of the plan.
const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

/// What is printed.
fn text(
    plan: &Plan,
    server: &str,
    loaded: &Loaded,
    own: &Own<'_>,
    rows: usize,
) -> Result<String, Failure> {
    let screen = own.terminal.screen;
    let page = plan.page(CELL).map_err(Failure::run)?;
    let (name, browser) = (plan.page_name(0), plan.browser.name());
    let mut text = format!("{name} from {server} over real uplinks (live), as {browser}\n");
    text.push_str(&table::load_times(&loaded.record));
    text.push_str(&received(&loaded.paths));
    if !loaded.differences.is_empty() {
        text.push_str(&differences(plan, &loaded.differences)?);
    }
    let mut text = screen.fold(&text);
    text.push('\n');
    let options = WaterfallOptions { screen, rows };
    text.push_str(&table::waterfall(&page, &loaded.record, &BTreeMap::new(), &[], options));
    Ok(text)
}

/// What each path brought.
fn received(paths: &[PathInfo]) -> String {
    let all: u64 = paths.iter().map(|path| path.sample.counters.bytes_received).sum();
    let share = |path: &PathInfo| {
        let counters = path.sample.counters;
        let name = local_name(path);
        let percent = 100.0 * counters.bytes_received as f64 / all.max(1) as f64;
        let bytes = table::bytes(counters.bytes_received);
        let srtt = path.sample.srtt.map_or(Span::ZERO, |srtt| srtt);
        format!("{name} {bytes} ({percent:.0} %, round trip {})", table::time(srtt))
    };
    let shares: Vec<String> = paths.iter().map(share).collect();
    format!("received: {}\n", shares.join("; "))
}

/// What the server answered unlike the recording.
fn differences(plan: &Plan, differences: &[Difference]) -> Result<String, Failure> {
    let page = plan.page(CELL).map_err(Failure::run)?.page;
    let named = differences.iter().take(NAMED).map(|difference| {
        let url = page.object(difference.object).map_or("", |object| &object.url);
        let Difference { status, received, recorded, .. } = difference;
        let (received, recorded) = (table::bytes(received.0), table::bytes(recorded.0));
        let name: String = url.chars().filter(|sign| !sign.is_control()).take(80).collect();
        format!("  {name}: status {status}, {received} in place of {recorded}\n")
    });
    let named: String = named.collect();
    let more = match differences.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("  … and {more} more\n"),
    };
    let head = match differences.len() {
        1 => "1 object differs".to_owned(),
        count => format!("{count} objects differ"),
    };
    Ok(format!("{head} from the recording:\n{named}{more}"))
}
