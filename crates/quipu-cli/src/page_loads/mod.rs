//! Loads of pages over sockets: what loads over real uplinks and over emulated links have in common.
//!
//! [`Server`] is a server that has a page, and [`Client`] asks it for policies before it loads; [`Setup`] is what both
//! ends are set to where a scenario says it; [`ways`] are the uplinks.

mod asked;
mod client;
mod setup;
mod versions;
mod ways;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::Authority;
use quipu_lab::base::Instant;
use quipu_lab::loading::Loading;
use quipu_lab::plan::{Cell, Plan};
use quipu_live::{Clock, Difference, Loaded};
use quipu_scenario::{HttpVersion, Origins, Scenario, Start, Transport};
use quipu_tokio::http3::ErrorCode;
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{ClientConfig, Connection, Endpoint, TransportConfig, tokio};

use crate::args::UplinkOptions;
use crate::failure::Failure;
use crate::fetch;
use crate::live::{self, Factory};
use crate::scenario::Given;
use crate::waiting::wait_for_paths;
pub(crate) use client::Client;
pub(crate) use setup::Setup;
pub(crate) use ways::ways;

/// What asks for emulated links on the command line.
pub(crate) const EMULATED: &str = "--world emulated";

/// How long a handshake may take. Our choice.
pub(crate) const CONNECT_WITHIN: Duration = Duration::from_secs(30);

/// The first status that says that there is no such object.
pub(crate) const FAILED_STATUS: u16 = 400;

/// A server that has a page, and how it is known.
pub(crate) struct Server<'a> {
    url: Uri,
    options: &'a UplinkOptions,
}

impl<'a> Server<'a> {
    /// # Errors
    /// If the URL is none.
    pub(crate) fn of(url: &str, options: &'a UplinkOptions) -> Result<Server<'a>, Failure> {
        let wrong = |error| Failure::Usage(format!("--live {url}: {error}"));
        Ok(Server { url: fetch::parse_url(url).map_err(wrong)?, options })
    }

    /// Host and port, as the URL has them.
    pub(crate) fn authority(&self) -> &str {
        self.url.authority().map_or("", |authority| authority.as_str())
    }

    /// The host, without the brackets of an IPv6 address.
    fn host(&self) -> &str {
        let host = self.url.host().unwrap_or_default();
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    fn port(&self) -> u16 {
        self.url.port_u16().unwrap_or(443)
    }

    /// What a client of it needs: nothing that it remembers of earlier connections.
    ///
    /// # Errors
    /// If the options of certificates are wrong.
    pub(crate) fn config(&self, policies: Factory) -> Result<ClientConfig, Failure> {
        self.config_with(policies, live::transport(), HttpVersion::H3)
    }

    /// The same with other settings of the transport, which carries `version`.
    ///
    /// # Errors
    /// As [`Server::config`].
    pub(crate) fn config_with(
        &self,
        policies: Factory,
        transport: Arc<TransportConfig>,
        version: HttpVersion,
    ) -> Result<ClientConfig, Failure> {
        let UplinkOptions { pin, ca, .. } = self.options;
        let (ca, alpn) = (ca.as_deref().map(Path::new), versions::alpn(version));
        let tls = live::tls_or_host(pin.as_deref(), ca, alpn)?;
        Ok(ClientConfig::new(Arc::new(tls), transport, policies))
    }

    /// Its addresses.
    ///
    /// # Errors
    /// If the host has none.
    pub(crate) async fn addresses(&self) -> Result<Vec<SocketAddr>, Failure> {
        let host = self.host();
        let found = tokio::net::lookup_host((host, self.port())).await;
        let failed = |error| Failure::Run(format!("--live: {host} has no address: {error}"));
        Ok(found.map_err(failed)?.collect())
    }

    /// Connects to the first of `addresses` that answers.
    ///
    /// # Errors
    /// If none does within the time that a handshake may take.
    pub(crate) async fn connect(
        &self,
        endpoint: &Endpoint,
        config: &ClientConfig,
        addresses: &[SocketAddr],
    ) -> Result<Connection, Failure> {
        let host = self.host();
        let connecting = live::connect_first(endpoint, config, addresses.iter().copied(), host);
        match timeout(CONNECT_WITHIN, connecting).await {
            Ok(connection) => connection.map_err(Failure::run),
            Err(_) => {
                let port = addresses.first().map_or(self.port(), SocketAddr::port);
                let seconds = CONNECT_WITHIN.as_secs();
                Err(Failure::Run(format!("no connection to {host}:{port} after {seconds} s")))
            }
        }
    }

    /// Connects, and loads the page of `cell`.
    ///
    /// # Errors
    /// If there is no connection, a response fails, or the page is not there in time.
    pub(crate) async fn load(
        &self,
        endpoint: &Endpoint,
        config: &ClientConfig,
        addresses: &[SocketAddr],
        (plan, cell): (&Plan, Cell),
    ) -> Result<Loaded, Failure> {
        let (loading, clock) = started(plan, cell)?;
        let connection = self.connect(endpoint, config, addresses).await?;
        let connected = clock.now();
        let client = versions::client(connection.clone(), (plan, cell)).map_err(Failure::run)?;
        let limit = plan.scenario.time_limit;
        let start = plan.scenario.transport.start;
        let paths = async {
            if start != Start::Cold {
                wait_for_paths(endpoint, &connection).await;
            }
            Ok(())
        };
        let at = self.url.authority();
        let ready = async { tokio::try_join!(paths, warm_up(&client, at, plan)).map(drop) };
        let end = clock.now() + limit;
        tokio::select! {
            ready = ready => ready?,
            () = clock.sleep_until(Some(end)) => {
                return Err(Failure::Run(format!("start: not {start} after {limit}")));
            }
        }
        let loaded = quipu_live::load(client, loading, &plan.browser, clock, limit).await;
        connection.close(ErrorCode::NO_ERROR.0, b"");
        let mut loaded = loaded.map_err(Failure::run)?;
        loaded.record.connect_time = connected - Instant::ZERO;
        Ok(loaded)
    }
}

/// Warms a connection to the server at `at` up, if the scenario says so.
///
/// # Errors
/// If the server does not have what does it.
pub(crate) async fn warm_up(
    client: &quipu_live::Client,
    at: Option<&Authority>,
    plan: &Plan,
) -> Result<(), Failure> {
    let (Start::Warm(objects), Some(at)) = (plan.scenario.transport.start, at) else {
        return Ok(());
    };
    let place = (at, quipu_serve::warm_up::PATH);
    quipu_live::warm_up(client.clone(), &plan.browser, place, objects).await.map_err(Failure::run)
}

/// The load of `cell`, and its clock, which starts now. It has begun if the first request opens the connection.
///
/// # Errors
/// If its page cannot be had.
pub(crate) fn started(plan: &Plan, cell: Cell) -> Result<(Loading, Clock), Failure> {
    let page = plan.page(cell).map_err(Failure::run)?;
    let mut loading = Loading::new(page, &plan.scenario);
    let clock = Clock::start();
    if plan.scenario.transport.start == Start::Cold {
        loading.begin(clock.now());
    }
    Ok((loading, clock))
}

/// Checks that the server had all objects of the page of `cell`.
///
/// # Errors
/// If it had not: the page is another one.
pub(crate) fn check_statuses(
    (plan, cell): (&Plan, Cell),
    differences: &[Difference],
) -> Result<(), Failure> {
    let missing = differences.iter().find(|difference| difference.status >= FAILED_STATUS);
    let Some(missing) = missing else { return Ok(()) };
    let page = plan.page(cell).map_err(Failure::run)?.page;
    let url = page.object(missing.object).map_or("", |object| &object.url);
    let status = missing.status;
    Err(Failure::Run(format!("{url}: status {status}; is another page served?")))
}

/// Sets what `option`, such as `--live`, means: HTTP/3, which is all that `http` may ask for.
///
/// # Errors
/// If it asks for another version.
pub(crate) fn over_h3(given: &mut Given, http: Option<&str>, option: &str) -> Result<(), Failure> {
    match http {
        None => given.set("http", option, Some("h3")),
        Some("h3") => Ok(()),
        Some(version) => {
            Err(Failure::Usage(format!("--http {version}: expected h3 with {option}")))
        }
    }
}

/// Checks that a scenario asks for nothing that only a simulated load can be, nor for another transport.
///
/// # Errors
/// If it does.
pub(crate) fn check(scenario: &Scenario, option: &str) -> Result<(), Failure> {
    let Transport { start, tls, .. } = scenario.transport.clone();
    let usual = Transport { start, tls, ..Transport::default() };
    refuse(scenario.transport != usual, "transport", "no field but start set", option)?;
    check_simulated(scenario)?;
    let versions = &scenario.http;
    refuse(versions.iter().any(|version| version != HttpVersion::H3), "http", "h3", option)?;
    let is_warm = matches!(scenario.transport.start, Start::Warm(_));
    refuse(is_warm, "start", "cold or paths-ready", option)?;
    check_load(scenario, option)
}

/// Checks that a scenario asks for nothing that only loads over emulated links can be.
///
/// # Errors
/// If it does.
pub(crate) fn check_simulated(scenario: &Scenario) -> Result<(), Failure> {
    match scenario.stack.first_other() {
        None => Ok(()),
        Some(stack) => Err(Failure::Usage(format!(
            "stack {stack}: expected quipu, or {EMULATED}: other stacks run over emulated links alone"
        ))),
    }
}

/// Checks that a scenario asks for nothing that only a simulated load can be.
///
/// # Errors
/// If it does.
pub(crate) fn check_load(scenario: &Scenario, option: &str) -> Result<(), Failure> {
    let is_other = |version| !matches!(version, HttpVersion::H2 | HttpVersion::H3);
    refuse(scenario.http.iter().any(is_other), "http", "h2 or h3", option)?;
    refuse(scenario.session > 1, "session", "a single page", option)?;
    refuse(scenario.origins == Origins::Recorded, "origins", "one connection", option)
}

/// Fails if a field is wrong.
pub(crate) fn refuse(
    is_wrong: bool,
    field: &str,
    expected: &str,
    option: &str,
) -> Result<(), Failure> {
    let message = || format!("{field}: expected {expected} with {option}");
    if is_wrong { Err(Failure::Usage(message())) } else { Ok(()) }
}
