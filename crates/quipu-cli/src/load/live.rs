//! `quipu load --live`.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::Uri;
use quipu_lab::base::Duration as Span;
use quipu_lab::loading::Loading;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::table::{self, WaterfallOptions};
use quipu_live::{Clock, Difference, Loaded};
use quipu_scenario::{HttpVersion, Origins, Start};
use quipu_tokio::http3::{ALPN, ErrorCode, Http3Client};
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{ClientConfig, Connection, Endpoint, PathInfo, tokio};

use crate::args::{LiveLoadOptions, LiveLogOptions, LivePolicies, LoadOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::scenario::Given;
use crate::values::local_name;
use crate::waiting::wait_for_paths;
use crate::{fetch, live, logs, stop};

/// How long a handshake may take. Our choice.
const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// Objects that differ from the recording and are named; our choice.
const NAMED: usize = 5;

/// Loads the page of `given` from the server at `url`.
pub(super) fn run(
    options: &LoadOptions,
    url: &str,
    mut given: Given,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let server: Uri =
        fetch::parse_url(url).map_err(|error| Failure::Usage(format!("--live {url}: {error}")))?;
    match &options.scenario.http {
        None => given.set("http", "--live", Some("h3"))?,
        Some(version) if version == "h3" => {}
        Some(version) => {
            let message = format!("--http {version}: expected h3 with --live");
            return Err(Failure::Usage(message));
        }
    }
    let plan = given.told_plan(own)?;
    let scenario = &plan.scenario;
    if scenario.http.has(HttpVersion::H2) || scenario.http.is_raw() {
        return Err(Failure::Usage("http: expected h3 with --live".to_owned()));
    }
    refuse(scenario.session > 1, "session", "a single page")?;
    refuse(scenario.origins == Origins::Recorded, "origins", "one connection")?;
    refuse(matches!(scenario.transport.start, Start::Warm(_)), "start", "cold or paths-ready")?;
    let config = config(options, own)?;
    let log_options = LiveLogOptions {
        qlog: options.logs.qlog.clone(),
        qlog_version: options.logs.qlog_version.clone(),
    };
    let logs = logs::of_sockets(&log_options, "quipu load")?;
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let runtime = live::runtime()?;
    let loaded = runtime.block_on(async {
        let mut builder = Endpoint::client();
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        let endpoint = live::bind(builder, &options.live.via)?;
        let loaded = tokio::select! {
            loaded = load(&endpoint, &config, &server, &plan) => loaded,
            () = live::asked_to_stop(&stopped) => Err(Failure::Interrupted),
        };
        endpoint.wait_idle_for(live::FAREWELL).await;
        loaded
    });
    drop(runtime);
    if let Some(logs) = &logs {
        logs.finish().map(drop).map_err(Failure::run)?;
    }
    let text = text(&plan, &server, &loaded?, own, options.rows)?;
    crate::print(&text)
}

fn refuse(is_wrong: bool, field: &str, expected: &str) -> Result<(), Failure> {
    let message = || format!("{field}: expected {expected} with --live");
    if is_wrong { Err(Failure::Usage(message())) } else { Ok(()) }
}

fn config(options: &LoadOptions, own: &Own<'_>) -> Result<ClientConfig, Failure> {
    let LiveLoadOptions { pin, ca, .. } = &options.live;
    let tls = live::tls_or_host(pin.as_deref(), ca.as_deref().map(Path::new), ALPN)?;
    let policies = LivePolicies {
        stream: options.stream.clone(),
        path: options.path.clone(),
        joint: options.joint.clone(),
        congestion: options.scenario.congestion.clone(),
        ack: options.scenario.ack.clone(),
    };
    Ok(ClientConfig::new(Arc::new(tls), live::transport(), policies.factory(own.registry)?))
}

/// Connects, and loads the page.
async fn load(
    endpoint: &Endpoint,
    config: &ClientConfig,
    server: &Uri,
    plan: &Plan,
) -> Result<Loaded, Failure> {
    let page = plan.page(CELL).map_err(Failure::run)?;
    let mut loading = Loading::new(page, &plan.scenario);
    let clock = Clock::start();
    if plan.scenario.transport.start == Start::Cold {
        // The first request opens the connection.
        loading.begin(clock.now());
    }
    let connection = connect(endpoint, config, server).await?;
    let connected = clock.now();
    if plan.scenario.transport.start != Start::Cold {
        wait_for_paths(endpoint, &connection).await;
    }
    let client = Http3Client::new(connection.clone(), Default::default()).map_err(Failure::run)?;
    let limit = plan.scenario.time_limit;
    let loaded = quipu_live::load(&client, loading, &plan.browser, clock, limit).await;
    connection.close(ErrorCode::NO_ERROR.0, b"");
    let mut loaded = loaded.map_err(Failure::run)?;
    loaded.record.connect_time = connected - quipu_lab::base::Instant::ZERO;
    Ok(loaded)
}

/// The only load of the plan.
const CELL: Cell = Cell { page: 0, network: 0, policy: 0, run: 0 };

async fn connect(
    endpoint: &Endpoint,
    config: &ClientConfig,
    server: &Uri,
) -> Result<Connection, Failure> {
    let host = server.host().unwrap_or_default();
    let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let port = server.port_u16().unwrap_or(443);
    let addresses = tokio::net::lookup_host((name, port)).await;
    let addresses = addresses
        .map_err(|error| Failure::Run(format!("--live: {host} has no address: {error}")))?;
    let connecting = live::connect_first(endpoint, config, addresses, name);
    match timeout(CONNECT_WITHIN, connecting).await {
        Ok(connection) => connection.map_err(Failure::run),
        Err(_) => {
            let seconds = CONNECT_WITHIN.as_secs();
            Err(Failure::Run(format!("no connection to {host}:{port} after {seconds} s")))
        }
    }
}

/// What is printed.
fn text(
    plan: &Plan,
    server: &Uri,
    loaded: &Loaded,
    own: &Own<'_>,
    rows: usize,
) -> Result<String, Failure> {
    let screen = own.terminal.screen;
    let server = server.authority().map(ToString::to_string).unwrap_or_default();
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
