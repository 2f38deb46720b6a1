//! `quipu compare --live`: every load over real uplinks, one after the other.

use quipu_lab::batch::Batch;
use quipu_lab::results::{failure, summary};
use quipu_scenario::Network;
use quipu_tokio::{Endpoint, tokio};

use super::order;
use crate::args::{BatchOptions, CompareOptions};
use crate::failure::Failure;
use crate::own::Own;
use crate::page_loads::{self, Client, Server, ways};
use crate::scenario::Given;
use crate::{batch, live, logs, progress, scenario, stop};

/// What says so on the command line.
const OPTION: &str = "--live";

/// Compares policies over the uplinks to the server at `url`.
pub(super) fn run(
    options: &CompareOptions,
    url: &str,
    mut given: Given,
    own: &Own<'_>,
) -> Result<(), Failure> {
    let server = Server::of(url, &options.live.uplinks)?;
    let has_pages = !options.scenario.page.is_empty() || options.scenario.scenario.is_some();
    page_loads::refuse(!has_pages, "--page", "the page that the server has", OPTION)?;
    page_loads::over_h3(&mut given, options.scenario.http.as_deref(), OPTION)?;
    given.set("transport.tls", OPTION, Some("rustls"))?;
    page_loads::refuse(given.scenario.has_traffic(), "flows", "pages alone", OPTION)?;
    page_loads::refuse(given.scenario.clients.count > 1, "clients", "one", OPTION)?;
    page_loads::check(&given.scenario, OPTION)?;
    let BatchOptions { out, force, .. } = &options.batch;
    let output = scenario::prepare_output(&given.scenario, out.as_deref(), *force)?;
    let logs = logs::of_real_time(&options.batch.logs, "quipu compare")?;
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
        let client = Client {
            server,
            registry: own.registry,
            control,
            addresses,
            vias,
            ways,
            logs: logs.as_ref(),
            plan: &plan,
            setup: None,
        };
        let batch = tokio::select! {
            ready = client.prepare() => { ready?; all(&client).await }
            () = live::asked_to_stop(&plan.stop) => return Err(Failure::Interrupted),
        };
        client.control.wait_idle_for(live::FAREWELL).await;
        drop(client);
        Ok((batch, plan))
    })?;
    drop(runtime);
    let logged = logs.map_or(Ok(()), |logs| logs.finish().map(drop).map_err(Failure::run));
    batch::conclude(&plan, &batch, output, logged, (&options.batch, order(options)), own)
}

/// Makes all loads in their order, until they are done or the user wants to stop.
async fn all(client: &Client<'_>) -> Batch {
    let cells = client.plan.interleaved();
    let bar = progress::bar(cells.len() as u64);
    let (mut finished, mut failed) = (Vec::new(), Vec::new());
    for cell in cells {
        let record = tokio::select! {
            record = client.load(cell, || Ok(())) => record,
            () = live::asked_to_stop(&client.plan.stop) => break,
        };
        match record {
            Ok(record) => finished.push((cell, record)),
            Err(error) => failed.push((cell, error.reason())),
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    // In the order of the plan.
    finished.sort_by_key(|(cell, _)| *cell);
    failed.sort_by_key(|(cell, _)| *cell);
    let failures = failed.into_iter().map(|(cell, reason)| failure(client.plan, cell, reason));
    let summary = summary(client.plan, &finished, failures.collect());
    Batch { finished, summary }
}
