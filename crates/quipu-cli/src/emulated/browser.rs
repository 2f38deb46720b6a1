//! Loads that Chromium makes.

use std::net::SocketAddr;

use quipu_lab::base::{Duration as Span, Instant};
use quipu_lab::observed::{self, Observed};
use quipu_lab::plan::{Cell, Plan};
use quipu_record::RunRecord;
use quipu_recorder::{Exchange, Options, Progress, RecordError};
use quipu_scenario::BrowserStack;
use quipu_serve::Replay;

use super::measured::Counted;
use crate::failure::Failure;
use crate::page_loads::FAILED_STATUS;

/// How long nothing must arrive after the load event; our choice. What the page waits for is there before that event.
const SETTLE: Span = Span::from_millis(300);

/// What makes a program's TCP connections those of Multipath TCP: <https://github.com/multipath-tcp/mptcpd>.
const MPTCP_LAUNCHER: [&str; 2] = ["mptcpize", "run"];

/// The server of a load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Served<'a> {
    pub(super) address: SocketAddr,
    /// What Chromium knows it by.
    pub(super) key: &'a str,
}

/// Loads the page of `cell` in the network of this thread. What has to be done right before it is `begin`.
///
/// # Errors
/// If there is no browser, a response fails, the page is not there in time, or the user wants to stop.
pub(super) fn load(
    (plan, cell): (&Plan, Cell),
    stack: BrowserStack,
    served: Served<'_>,
    interfaces: &[String],
    begin: impl FnOnce() -> Result<(), Failure>,
) -> Result<RunRecord, Failure> {
    let page = plan.page(cell).map_err(Failure::run)?;
    let replay = Replay::new(&page.page);
    let options = options(plan, stack, served, &replay)?;
    let mut begin = Some(begin);
    let mut begun = Ok(());
    let mut counted = None;
    let outcome = quipu_recorder::record(&options, &plan.stop, &mut |progress| {
        if matches!(progress, Progress::Navigates)
            && let Some(begin) = begin.take()
        {
            counted = Some(Counted::before(interfaces));
            begun = begin();
        }
    });
    begun?;
    outcome.ended.map_err(|error| match error {
        RecordError::Interrupted => Failure::Interrupted,
        error => Failure::run(error),
    })?;
    let exchanges: Vec<Exchange<'_>> =
        outcome.loads.iter().flat_map(quipu_recorder::Load::exchanges).collect();
    let mut record = record(plan, cell, &exchanges)?;
    record.paths = counted.map(Counted::after).unwrap_or_default();
    Ok(record)
}

/// How Chromium is started.
fn options(
    plan: &Plan,
    stack: BrowserStack,
    served: Served<'_>,
    replay: &Replay,
) -> Result<Options, Failure> {
    let mut options = Options::new(&replay.start()).map_err(Failure::usage)?;
    options.hosts = vec![("*".to_owned(), served.address.to_string())];
    options.settle = SETTLE;
    options.timeout = plan.scenario.time_limit;
    options.traced = false;
    options.arguments.push(format!("--ignore-certificate-errors-spki-list={}", served.key));
    match stack.kernel {
        None => {
            options.arguments.push("--enable-quic".to_owned());
            let origins = replay.origins().join(",");
            options.arguments.push(format!("--origin-to-force-quic-on={origins}"));
        }
        Some(kernel) => {
            options.arguments.push("--disable-quic".to_owned());
            options.arguments.extend(kernel.is_http1().then(|| "--disable-http2".to_owned()));
            if kernel.is_multipath() {
                options.launcher = MPTCP_LAUNCHER.map(str::to_owned).to_vec();
            }
        }
    }
    Ok(options)
}

/// The record of what Chromium told.
fn record(plan: &Plan, cell: Cell, exchanges: &[Exchange<'_>]) -> Result<RunRecord, Failure> {
    let page = plan.page(cell).map_err(Failure::run)?;
    let mut observed = Vec::new();
    for exchange in exchanges {
        if !page.page.objects().iter().any(|object| object.url == exchange.url) {
            // Of the browser's own, such as an icon.
            continue;
        }
        let failed = |why: &str| Failure::Run(format!("chromium: {}: {why}", exchange.url));
        if let Some(error) = exchange.error {
            return Err(failed(error));
        }
        if exchange.status >= FAILED_STATUS {
            return Err(failed(&format!("status {}", exchange.status)));
        }
        // What was cut by the end of the load is nothing that it waits for.
        let Some((answered, finished)) = exchange.answered.zip(exchange.finished) else { continue };
        if exchange.is_from_cache {
            continue;
        }
        let at = |since: Span| Instant::ZERO + since;
        observed.push(Observed {
            url: exchange.url.to_owned(),
            requested_at: at(exchange.asked),
            head_at: at(answered),
            arrivals: exchange.arrivals.iter().map(|&(since, bytes)| (at(since), bytes)).collect(),
            completed_at: at(finished),
        });
    }
    let missing = |url: String| {
        let limit = plan.scenario.time_limit;
        Failure::Run(format!("chromium did not ask for {url}, or it was not there after {limit}"))
    };
    let mut record = observed::record_of(page, &plan.scenario, &observed).map_err(missing)?;
    record.connect_time = exchanges.iter().find_map(|it| it.connect).unwrap_or_default();
    Ok(record)
}
