//! `quipu compare --live`: every load over real uplinks, one after the other.

use std::net::SocketAddr;
use std::time::Duration;

use quipu_lab::batch::Batch;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::policies::Registry;
use quipu_lab::policy::PolicySpec;
use quipu_lab::results::{failure, summary};
use quipu_lab::run::logs::QlogFolder;
use quipu_lab::table::Order;
use quipu_live::Loaded;
use quipu_record::RunRecord;
use quipu_scenario::Network;
use quipu_tokio::http3::{ErrorCode, Http3Client};
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{Endpoint, policies, tokio};

use super::asked;
use super::ways::{Way, ways};
use crate::args::{CompareOptions, LiveLogOptions, LivePolicies};
use crate::failure::Failure;
use crate::own::Own;
use crate::page_loads::{self, Server};
use crate::scenario::{self, Given};
use crate::{batch, live, logs, progress, stop};

/// How long the server has to answer what it is asked before a load. Our choice.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);

/// The first status that says that there is no such object.
const FAILED_STATUS: u16 = 400;

/// Compares policies over the uplinks to the server at `url`.
pub(super) fn run(
    options: &CompareOptions,
    url: &str,
    mut given: Given,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let server = Server::of(url, &options.live.uplinks)?;
    let has_pages = !options.scenario.page.is_empty() || options.scenario.scenario.is_some();
    page_loads::refuse(!has_pages, "--page", "the page that the server has")?;
    page_loads::over_h3(&mut given, options.scenario.http.as_deref())?;
    given.set("transport.tls", "--live", Some("rustls"))?;
    page_loads::refuse(given.scenario.has_traffic(), "flows", "pages alone")?;
    page_loads::refuse(given.scenario.clients.count > 1, "clients", "one")?;
    page_loads::check(&given.scenario)?;
    let output = scenario::prepare_output(
        &given.scenario,
        options.batch.out.as_deref(),
        options.batch.force,
    )?;
    let logs = logs::of_sockets(
        &LiveLogOptions {
            qlog: options.batch.logs.qlog.clone(),
            qlog_version: options.batch.logs.qlog_version.clone(),
        },
        "quipu compare",
    )?;
    let runtime = live::runtime()?;
    let (batch, plan) = runtime.block_on(async {
        let vias = &options.live.uplinks.via;
        let control = live::bind(Endpoint::client(), vias)?;
        let (ways, addresses) = ways(control.uplinks(), vias, server.addresses().await?);
        let names = ways.iter().map(|way| way.name.clone());
        given.scenario.networks =
            vec![Network::real(format!("https://{}", server.authority()), names)];
        let plan = given.told_plan(own)?;
        stop::on_request(&plan.stop)?;
        let comparison = Comparison {
            server,
            registry: own.registry,
            control,
            addresses,
            vias,
            ways,
            logs: logs.as_ref(),
            plan: &plan,
        };
        let batch = tokio::select! {
            ready = comparison.prepare() => { ready?; comparison.run().await }
            () = live::asked_to_stop(&plan.stop) => return Err(Failure::Interrupted),
        };
        comparison.control.wait_idle_for(live::FAREWELL).await;
        drop(comparison);
        Ok((batch, plan))
    })?;
    drop(runtime);
    let logged = logs.as_ref().map_or(Ok(()), |logs| logs.finish().map(drop).map_err(Failure::run));
    let order = Order { sort: options.sort, top: options.top.map(usize::from) };
    batch::conclude(&plan, &batch, output, logged, (&options.batch, order), own)
}

/// A comparison under way.
struct Comparison<'a> {
    server: Server<'a>,
    registry: &'a Registry,
    /// What the server is asked over; each load has an endpoint of its own.
    control: Endpoint,
    addresses: Vec<SocketAddr>,
    vias: &'a [String],
    ways: Vec<Way>,
    logs: Option<&'a QlogFolder>,
    plan: &'a Plan,
}

impl Comparison<'_> {
    /// Asks the server for the policies of all rows, so that what it refuses is known before the first load.
    async fn prepare(&self) -> Result<(), Failure> {
        let mut specs: Vec<&PolicySpec> = Vec::new();
        for row in self.plan.rows() {
            if !specs.contains(&&row.spec) {
                specs.push(&row.spec);
            }
        }
        self.ask(&specs).await.map(drop)
    }

    /// The ports at which the server has the policies of `specs`.
    async fn ask(&self, specs: &[&PolicySpec]) -> Result<Vec<u16>, Failure> {
        let config = self.server.config(LivePolicies::NONE.factory(self.registry)?)?;
        let connection = self.server.connect(&self.control, &config, &self.addresses).await?;
        let client = Http3Client::new(connection.clone(), Default::default());
        let client = client.map_err(Failure::run)?;
        let authority = self.server.authority();
        let asking = async {
            let mut ports = Vec::with_capacity(specs.len());
            for spec in specs {
                ports.push(asked::port(&client, authority, spec).await?);
            }
            Ok(ports)
        };
        let late = || {
            let seconds = ANSWERS_WITHIN.as_secs();
            Failure::Run(format!("{authority} says nothing of its policies within {seconds} s"))
        };
        let ports = timeout(ANSWERS_WITHIN, asking).await.unwrap_or_else(|_| Err(late()));
        connection.close(ErrorCode::NO_ERROR.0, b"");
        ports
    }

    /// Makes all loads in their order, until they are done or the user wants to stop.
    async fn run(&self) -> Batch {
        let cells = self.plan.interleaved();
        let bar = progress::bar(cells.len() as u64);
        let (mut finished, mut failed) = (Vec::new(), Vec::new());
        for cell in cells {
            let record = tokio::select! {
                record = self.load(cell) => record,
                () = live::asked_to_stop(&self.plan.stop) => break,
            };
            match record {
                Ok(record) => finished.push((cell, record)),
                Err(error) => failed.push((cell, error.reason())),
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        finished.sort_by_key(|(cell, _): &(Cell, RunRecord)| *cell);
        failed.sort_by_key(|(cell, _)| *cell);
        let failures = failed.into_iter().map(|(cell, reason)| failure(self.plan, cell, reason));
        let summary = summary(self.plan, &finished, failures.collect());
        Batch { finished, summary }
    }

    /// The load of `cell`, over a connection of its own.
    async fn load(&self, cell: Cell) -> Result<RunRecord, Failure> {
        let row = &self.plan.networks[cell.network].policies[cell.policy];
        let alone = row.alone.as_ref().and_then(|alone| self.ways.get(alone.position));
        // Asked each time, as the server closes endpoints that are idle.
        let port = self.ask(&[&row.spec]).await?.first().copied().unwrap_or_default();
        let addresses: Vec<SocketAddr> =
            self.addresses.iter().map(|at| SocketAddr::new(at.ip(), port)).collect();
        let factory = policies(self.registry, &row.spec.to_string()).map_err(Failure::run)?;
        let config = self.server.config(factory)?;
        let mut builder = Endpoint::client();
        if let Some(logs) = self.logs {
            builder = builder.record(logs.recorders());
        }
        let only = alone.map(|way| vec![way.name.clone()]);
        let endpoint = live::bind(builder, only.as_deref().unwrap_or(self.vias))?;
        let loaded = self.server.load(&endpoint, &config, &addresses, (self.plan, cell)).await;
        endpoint.wait_idle_for(live::FAREWELL).await;
        self.record(cell, loaded?)
    }

    /// What is kept of a load: its paths at the places that they have among all uplinks.
    fn record(&self, cell: Cell, loaded: Loaded) -> Result<RunRecord, Failure> {
        let Loaded { mut record, differences, paths, .. } = loaded;
        let missing = differences.iter().find(|difference| difference.status >= FAILED_STATUS);
        if let Some(missing) = missing {
            let page = self.plan.page(cell).map_err(Failure::run)?.page;
            let url = page.object(missing.object).map_or("", |object| &object.url);
            let status = missing.status;
            return Err(Failure::Run(format!("{url}: status {status}; is another page served?")));
        }
        for (counted, path) in record.paths.iter_mut().zip(&paths) {
            let position = self.ways.iter().position(|way| way.has(path));
            if let Some(position) = position.and_then(|position| u32::try_from(position).ok()) {
                counted.path = position;
            }
        }
        Ok(record)
    }
}
