//! `quipu perf`.
//!
//! `meanwhile` shows how a measurement goes on, and `results`
//! what it gave.

mod meanwhile;
mod results;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_lab::base::Rate;
use quipu_lab::run::logs::QlogFolder;
use quipu_scenario::units::Unit;
use quipu_tokio::identity::{Secret, ServerIdentity};
use quipu_tokio::perf::{
    ALPN, Amount, DatagramError, DatagramLoad, Direction, Load, Progress, measure,
    measure_datagrams, serve,
};
use quipu_tokio::tokio::runtime::Runtime;
use quipu_tokio::tokio::time::{sleep, timeout};
use quipu_tokio::{
    Connection, Endpoint, EndpointConfig, SendDatagramError, ServerConfig, TokenConfig, tokio,
};
use serde_json::{Value, json};

use self::meanwhile::Live;
use self::results::{grid, json_of};
use crate::args::{IdentityOptions, PerfClientOptions, PerfServerOptions, Ways};
use crate::events;
use crate::failure::Failure;
use crate::live::{self, Target};
use crate::logs;
use crate::own::Own;
use crate::stop;
use crate::terminal::{Format, json as to_json};
use crate::waiting::wait_for_paths;

/// How often the progress is shown.
const EVERY: Duration = Duration::from_secs(1);

/// Runs a server until it is stopped.
pub(crate) fn server(options: &PerfServerOptions, own: &Own<'_>) -> Result<(), Failure> {
    events::follow(&options.events)?;
    let identity = identity(&options.identity)?;
    let pin = identity.pin();
    let tls = identity.tls(&[ALPN]).map_err(Failure::usage)?;
    let policies = options.policies.factory(own.registry)?;
    let tokens = TokenConfig::with_key(identity.token_key().map_err(Failure::run)?);
    let config = ServerConfig::new(Arc::new(tls), live::transport(), policies).with_tokens(tokens);
    let reset_key = Some(identity.reset_key().map_err(Failure::run)?);
    let shared = EndpointConfig { reset_key, ..EndpointConfig::default() };
    let logs = logs::of_sockets(&options.logs, "quipu perf server")?;
    let stopped = Arc::new(AtomicBool::new(false));
    stop::on_request(&stopped)?;
    let runtime = live::runtime()?;
    runtime.block_on(async {
        let mut builder = Endpoint::server(config).config(shared);
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        let everywhere = [([0; 16], 4433).into()];
        let given = if options.listen.is_empty() { &everywhere[..] } else { &options.listen };
        for address in given {
            builder = builder.listen(*address);
        }
        // Without shards, nobody else may have the port.
        let endpoints = match options.shards {
            1 => builder.bind().map(|endpoint| vec![endpoint]),
            count => builder.bind_shards(count),
        };
        let endpoints = endpoints.map_err(|error| live::bind_failure("--listen", &error))?;
        // They all have the same.
        let places = endpoints.first().map(Endpoint::local_addresses).unwrap_or_default();
        let places: Vec<String> = places.iter().map(ToString::to_string).collect();
        crate::print(&format!("listening on {}\npin {pin}\n", places.join(", ")))?;
        for endpoint in &endpoints {
            let serving = endpoint.clone();
            tokio::spawn(async move {
                serve(&serving, |client| match client.map(Connection::route) {
                    Ok(Some(route)) => eprintln!("{} connected", route.remote),
                    Ok(None) => {}
                    Err(error) => eprintln!("a client failed: {error}"),
                })
                .await;
            });
        }
        while !stopped.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(50)).await;
            // Those of connections that are over, lest their names become ever more.
            if let Some(Err(error)) = logs.as_ref().map(QlogFolder::finish) {
                eprintln!("warning: {error}");
            }
        }
        for endpoint in &endpoints {
            endpoint.close(0, b"the server ends");
        }
        let all_idle = async {
            for endpoint in &endpoints {
                endpoint.wait_idle().await;
            }
        };
        let _ = timeout(Duration::from_nanos(live::FAREWELL.as_nanos()), all_idle).await;
        Ok(())
    })?;
    finish(runtime, logs.as_ref())?;
    Err(Failure::Interrupted)
}

/// What clients know the server by: as the options say, else made for this run.
fn identity(options: &IdentityOptions) -> Result<ServerIdentity, Failure> {
    let IdentityOptions { identity, cert, key } = options;
    let made = match (identity, cert.as_ref().zip(key.as_ref())) {
        (None, None) => return ServerIdentity::generate(live::SERVER_NAME).map_err(Failure::run),
        (Some(folder), None) => ServerIdentity::kept_in(folder, live::SERVER_NAME),
        (None, Some((cert, key))) => ServerIdentity::read(cert, key),
        (Some(folder), Some((cert, key))) => ServerIdentity::read(cert, key)
            .and_then(|identity| Ok(identity.with_secret(Secret::kept_in(folder)?))),
    };
    made.map_err(Failure::usage)
}

/// Ends the tasks of all connections, after which their logs are whole.
fn finish(runtime: Runtime, logs: Option<&QlogFolder>) -> Result<(), Failure> {
    drop(runtime);
    match logs {
        Some(logs) => logs.finish().map(drop).map_err(Failure::run),
        None => Ok(()),
    }
}

/// Measures a connection.
pub(crate) fn client(options: &PerfClientOptions, own: &Own<'_>) -> Result<(), Failure> {
    let has_events = events::follow(&options.events)?;
    let (amount, rate) = (amount(options)?, datagram_rate(options)?);
    let target = Target::of(&options.server, &options.trust, &options.policies, own.registry)?;
    let logs = logs::of_sockets(&options.logs, "quipu perf client")?;
    let runtime = live::runtime()?;
    let measured = runtime.block_on(async {
        let mut builder = Endpoint::client();
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        let endpoint = live::bind(builder, &options.via)?;
        let connection = target.connect(&endpoint).await;
        let connection = connection.map_err(|error| target.failure(&error))?;
        wait_for_paths(&endpoint, &connection).await;
        let mut results = Vec::new();
        for &(direction, name) in directions(options.direction) {
            let colour = own.terminal.screen.colour;
            let mut live = Live::new((direction, name), &connection.paths(), has_events, colour);
            let told = |progress: Progress| live.show(&progress);
            let outcome = match options.datagrams {
                None => {
                    let load = Load { direction, streams: options.streams, amount };
                    measure(&connection, &load, EVERY, told).await.map_err(Failure::run)
                }
                Some(size) => {
                    let load = DatagramLoad { direction, size, rate, amount };
                    let outcome = measure_datagrams(&connection, &load, EVERY, told).await;
                    outcome.map_err(|error| datagram_failure(&error))
                }
            };
            results.push((direction, name, outcome?));
            live.finish();
        }
        connection.close(0, b"done");
        endpoint.wait_idle_for(live::FAREWELL).await;
        Ok(results)
    });
    // A log of what failed is kept, too.
    let logged = finish(runtime, logs.as_ref());
    let results = measured?;
    logged?;
    if options.json || options.format.format == Format::Json {
        let results = results
            .iter()
            .map(|(direction, name, outcome)| (String::from(*name), json_of(*direction, outcome)));
        let about = [
            ("world", json!("live")),
            ("program", json!(own.program.describe())),
            ("server", json!(options.server)),
            ("streams", json!(options.datagrams.is_none().then_some(options.streams))),
            (
                "datagrams",
                json!(options.datagrams.map(|size| json!({
                    "size": size,
                    "bits_per_second": rate,
                }))),
            ),
            ("policies", json!(options.policies.chosen())),
        ];
        let about = about.map(|(name, value)| (name.to_owned(), value));
        let all: serde_json::Map<String, Value> = about.into_iter().chain(results).collect();
        return crate::print(&to_json(&all));
    }
    own.terminal.print_grid(&grid(&results), options.format.format)
}

fn amount(options: &PerfClientOptions) -> Result<Amount, Failure> {
    use quipu_lab::base::{Bytes, Duration as Time};
    let wrong = |option: &'static str| move |error| Failure::Usage(format!("{option}: {error}"));
    if let Some(text) = &options.bytes {
        let bytes = Bytes::read(text).map_err(wrong("--bytes"))?;
        return Ok(Amount::Bytes(bytes.0));
    }
    let time = options.time.as_deref().unwrap_or("10s");
    let time = Time::read(time).map_err(wrong("--time"))?;
    if time.is_zero() || time > Time::from_secs(24 * 3_600) {
        return Err(Failure::Usage("--time: expected more than 0 and at most a day".to_owned()));
    }
    Ok(Amount::Time(Duration::from_nanos(time.as_nanos())))
}

/// Bits per second of datagrams, if a rate is given.
fn datagram_rate(options: &PerfClientOptions) -> Result<Option<u64>, Failure> {
    let read = |text: &String| Rate::read(text).map(Rate::bits_per_sec);
    let rate = options.rate.as_ref().map(read).transpose();
    rate.map_err(|error| Failure::Usage(format!("--rate: {error}")))
}

fn datagram_failure(error: &DatagramError) -> Failure {
    match error {
        DatagramError::Send(SendDatagramError::TooLarge { .. })
        | DatagramError::NoneSent { .. } => Failure::Usage(format!("--datagrams: {error}")),
        error => Failure::run(error),
    }
}

fn directions(ways: Ways) -> &'static [(Direction, &'static str)] {
    const BOTH: [(Direction, &str); 2] = [(Direction::Down, "down"), (Direction::Up, "up")];
    match ways {
        Ways::Down => &BOTH[..1],
        Ways::Up => &BOTH[1..],
        Ways::Both => &BOTH,
    }
}
