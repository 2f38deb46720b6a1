//! `quipu fetch`.
//!
//! `plan` is what the options ask for, `connections` has one for each origin, `transfer` fetches one URL, `resume`
//! goes on with what an earlier fetch kept, `output` is where it goes, `path_bars` shows what each path brings meanwhile,
//! and `results` is what is printed in the end; `error` has the exit codes.

mod connections;
mod error;
mod output;
mod path_bars;
mod plan;
mod results;
mod resume;
mod transfer;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use http::Uri;
use indicatif::{MultiProgress, ProgressDrawTarget};
use quipu_tokio::tokio::sync::Semaphore;
use quipu_tokio::tokio::task::JoinSet;
use quipu_tokio::tokio::time::timeout;
use quipu_tokio::{Endpoint, tokio};

use self::connections::Connections;
use self::error::FetchError;
use self::plan::Plan;
use self::transfer::{Fetched, Transfer};
use crate::args::FetchOptions;
use crate::events;
use crate::failure::Failure;
use crate::live;
use crate::logs;
use crate::own::Own;
use crate::stop;

/// Fetches what the options name.
pub(crate) fn run(options: &FetchOptions, own: &Own<'_>) -> Result<(), Failure> {
    let has_events = events::follow(&options.events)?;
    let plan = Plan::of(options)?;
    let config = connections::config(options, own)?;
    let logs = logs::of_sockets(&options.logs, "quipu fetch")?;
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let runtime = live::runtime()?;
    let outcome = runtime.block_on(async {
        let mut builder = Endpoint::client();
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        let endpoint = live::bind(builder, &options.via)?;
        let limit = Duration::from_secs(options.connect_timeout);
        let connections = Arc::new(Connections::new(endpoint.clone(), config, options.http, limit));
        let bars = MultiProgress::new();
        if options.quiet || has_events {
            bars.set_draw_target(ProgressDrawTarget::hidden());
        }
        let begun = now();
        let all = fetch_all(&plan, &connections, &bars, (begun, options.max_time));
        let results = tokio::select! {
            results = all => results,
            never = path_bars::show(&bars, &connections) => match never {},
            () = live::asked_to_stop(&stopped) => return Err(Failure::Interrupted),
        };
        // Bars that are not over are of what failed.
        let _ = bars.clear();
        let paths = connections.paths();
        connections.close();
        endpoint.wait_idle_for(live::FAREWELL).await;
        Ok::<_, Failure>((results, paths))
    });
    // One that is blocked, such as by a pager that reads no more, is not waited for.
    runtime.shutdown_timeout(SHUTDOWN);
    if let Some(logs) = &logs {
        logs.finish().map(drop).map_err(Failure::run)?;
    }
    let (results, paths) = outcome?;
    results::print(options, &results, &paths)
}

/// How long tasks have to drop their files in the end. Our choice.
const SHUTDOWN: Duration = Duration::from_secs(1);

/// A URL of HTTP/3, or what is wrong with it.
pub(crate) fn parse_url(url: &str) -> Result<Uri, String> {
    plan::parse(url).map_err(|error| error.to_string())
}

/// What became of each URL.
type Results = Vec<(String, Result<Fetched, FetchError>)>;

/// Fetches all targets, a number of them at a time; none takes more than `max_time` seconds.
async fn fetch_all(
    plan: &Plan,
    connections: &Arc<Connections>,
    bars: &MultiProgress,
    (begun, max_time): (Instant, Option<u64>),
) -> Results {
    let places = Arc::new(Semaphore::new(usize::from(plan.parallel)));
    let mut running = JoinSet::new();
    for (index, target) in plan.targets.iter().enumerate() {
        let transfer = Transfer {
            target: target.clone(),
            request: Arc::clone(&plan.request),
            connections: Arc::clone(connections),
            bars: bars.clone(),
            begun,
        };
        let places = Arc::clone(&places);
        running.spawn(async move {
            let run = async {
                // It is closed by nobody.
                let _place = places.acquire_owned().await;
                transfer.run().await
            };
            let result = match max_time {
                None => run.await,
                Some(seconds) => timeout(Duration::from_secs(seconds), run)
                    .await
                    .unwrap_or_else(|_| Err(FetchError::late(seconds))),
            };
            (index, result)
        });
    }
    let lost = Err(FetchError::new(FetchError::RECEIVE, "the transfer ended before its time"));
    let mut results: Results =
        plan.targets.iter().map(|target| (target.url.clone(), lost.clone())).collect();
    while let Some(done) = running.join_next().await {
        // One that panicked stays lost.
        if let Ok((index, result)) = done
            && let Some(place) = results.get_mut(index)
        {
            place.1 = result;
        }
    }
    results
}

/// The time.
#[expect(clippy::disallowed_methods, reason = "how long fetching takes is told")]
fn now() -> Instant {
    Instant::now()
}
