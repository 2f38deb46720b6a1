//! `quipu perf`.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use quipu_lab::base::Rate;
use quipu_lab::run::logs::QlogFolder;
use quipu_lab::table::{Align, Grid, bytes};
use quipu_scenario::units::Unit;
use quipu_tokio::identity::{Secret, ServerIdentity};
use quipu_tokio::perf::{
    ALPN, Amount, DatagramError, DatagramLoad, Direction, Load, Outcome, Progress, measure,
    measure_datagrams, serve,
};
use quipu_tokio::tokio::runtime::Runtime;
use quipu_tokio::tokio::time::{sleep, timeout};
use quipu_tokio::{
    Connection, Endpoint, EndpointConfig, PathInfo, SendDatagramError, ServerConfig, TokenConfig,
    Via, tokio,
};
use serde_json::{Value, json};

use crate::args::{IdentityOptions, PerfClientOptions, PerfServerOptions, Ways};
use crate::events;
use crate::failure::Failure;
use crate::live::{self, Target};
use crate::logs;
use crate::own::Own;
use crate::stop;
use crate::terminal::{Format, json as to_json};

/// How long a client waits for its further uplinks to become paths. Our choice.
const PATHS_WITHIN: Duration = Duration::from_secs(1);

/// How often the progress is shown.
const EVERY: Duration = Duration::from_secs(1);

/// How long both ends have to hear that a connection is over. Our choice.
const FAREWELL: quipu_lab::base::Duration = quipu_lab::base::Duration::from_secs(1);

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
        let _ = timeout(Duration::from_nanos(FAREWELL.as_nanos()), all_idle).await;
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
    events::follow(&options.events)?;
    let (amount, rate) = (amount(options)?, datagram_rate(options)?);
    let target = Target::of(&options.server, &options.trust, &options.policies, own.registry)?;
    let logs = logs::of_sockets(&options.logs, "quipu perf client")?;
    let runtime = live::runtime()?;
    let measured = runtime.block_on(async {
        let mut builder = Endpoint::client();
        if let Some(logs) = &logs {
            builder = builder.record(logs.recorders());
        }
        for via in &options.via {
            // Every text names something.
            let Ok(via) = via.parse::<Via>();
            builder = builder.via(via);
        }
        let endpoint = builder.bind().map_err(|error| live::bind_failure("--via", &error))?;
        let connection = target.connect(&endpoint).await;
        let connection = connection.map_err(|error| target.failure(&error))?;
        wait_for_paths(&endpoint, &connection).await;
        let mut results = Vec::new();
        for &(direction, name) in directions(options.direction) {
            let mut live = Live::new(name, direction, &connection.paths());
            let told = |progress: Progress| live.show(direction, &progress);
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
        }
        connection.close(0, b"done");
        endpoint.wait_idle_for(FAREWELL).await;
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

/// Waits until each uplink of the server's family is a path, or for a second.
async fn wait_for_paths(endpoint: &Endpoint, connection: &Connection) {
    let Some(route) = connection.route() else { return };
    let family = |uplink: &&quipu_tokio::Uplink| uplink.address.is_ipv4() == route.remote.is_ipv4();
    let wanted = endpoint.uplinks().iter().filter(family).count();
    let mut waited = Duration::ZERO;
    while usable(connection) < wanted && waited < PATHS_WITHIN {
        let step = Duration::from_millis(10);
        sleep(step).await;
        waited += step;
    }
    let found = usable(connection);
    if found < wanted {
        eprintln!("{found} of {wanted} uplinks reach the server so far");
    }
}

fn usable(connection: &Connection) -> usize {
    let usable = quipu_lab::policy::PathState::Usable;
    connection.paths().iter().filter(|path| path.state == usable).count()
}

/// UDP payload that went over a path in a direction.
fn carried(direction: Direction, path: &PathInfo) -> u64 {
    match direction {
        Direction::Down => path.sample.counters.bytes_received,
        Direction::Up => path.sample.counters.bytes_sent,
    }
}

/// What is printed while a measurement goes on, if standard error is a terminal.
struct Live {
    name: &'static str,
    shown: bool,
    at: Duration,
    bytes: u64,
    paths: BTreeMap<u32, u64>,
}

impl Live {
    /// `paths`: as they are when the measurement begins.
    fn new(name: &'static str, direction: Direction, paths: &[PathInfo]) -> Self {
        let shown = std::io::stderr().is_terminal();
        let paths = paths.iter().map(|path| (path.id.0, carried(direction, path)));
        Live { name, shown, at: Duration::ZERO, bytes: 0, paths: paths.collect() }
    }

    fn show(&mut self, direction: Direction, progress: &Progress) {
        if self.shown {
            eprintln!("{}", self.line(direction, progress));
        }
    }

    /// What changed since the line before, for all paths and for each.
    fn line(&mut self, direction: Direction, progress: &Progress) -> String {
        let seconds = (progress.elapsed - self.at).as_secs_f64();
        let all = rate(progress.bytes - self.bytes, seconds);
        let time = progress.elapsed.as_secs_f64();
        let mut line = format!("{time:6.1} s  {}  {all:>12}", self.name);
        for path in &progress.paths {
            let now = carried(direction, path);
            let before = self.paths.insert(path.id.0, now);
            let local = local_name(path);
            let part = rate(now - before.unwrap_or(0), seconds);
            line += &format!("   {local} {part}");
            if let Some(srtt) = path.sample.srtt {
                line += &format!(", {:.1} ms", srtt.as_secs_f64() * 1e3);
            }
        }
        (self.at, self.bytes) = (progress.elapsed, progress.bytes);
        line
    }
}

fn local_name(path: &PathInfo) -> String {
    match &path.interface {
        Some(name) => name.clone(),
        None => path.route.local.ip().to_string(),
    }
}

/// Bits per second, with the prefix that fits.
fn rate(bytes: u64, seconds: f64) -> String {
    let bits = bytes as f64 * 8.0 / seconds.max(1e-9);
    match bits {
        1e9.. => format!("{:.2} Gbit/s", bits / 1e9),
        1e6.. => format!("{:.1} Mbit/s", bits / 1e6),
        _ => format!("{:.1} kbit/s", bits / 1e3),
    }
}

/// A path at the end of a measurement, and what it carried meanwhile.
struct Carried<'o> {
    path: &'o PathInfo,
    bytes: u64,
    /// Packets declared lost that this end sent.
    lost: u64,
}

fn carried_by_paths(direction: Direction, outcome: &Outcome) -> impl Iterator<Item = Carried<'_>> {
    outcome.after.iter().map(move |path| {
        let before = outcome.before.iter().find(|before| before.id == path.id);
        let bytes = before.map_or(0, |before| carried(direction, before));
        let lost = before.map_or(0, |before| before.sample.counters.packets_lost);
        Carried {
            path,
            bytes: carried(direction, path) - bytes,
            lost: path.sample.counters.packets_lost - lost,
        }
    })
}

fn grid(results: &[(Direction, &'static str, Outcome)]) -> Grid {
    let mut columns = vec![
        ("way", Align::Left),
        ("path", Align::Left),
        ("bytes", Align::Right),
        ("time", Align::Right),
        ("rate", Align::Right),
        ("rtt", Align::Right),
        ("lost", Align::Right),
    ];
    if results.iter().any(|(.., outcome)| outcome.datagrams.is_some()) {
        let of_datagrams = ["datagrams", "late", "jitter"];
        columns.extend(of_datagrams.map(|title| (title, Align::Right)));
    }
    let mut grid = Grid::new(columns).optional([(3, 0), (6, 2), (8, 1)]);
    let millis = |seconds: f64| format!("{:.2} ms", seconds * 1e3);
    for (direction, name, outcome) in results {
        let seconds = outcome.elapsed.as_secs_f64();
        let time = format!("{seconds:.2} s");
        let (all, rates) = (bytes(outcome.bytes), rate(outcome.bytes, seconds));
        let mut row = vec![(*name).to_owned(), "all".to_owned(), all, time, rates];
        if let Some(flow) = &outcome.datagrams {
            let received = &flow.received;
            let lost = flow.lost();
            let share = 100.0 * lost as f64 / flow.sent.max(1) as f64;
            row.extend([
                String::new(),
                format!("{lost} ({share:.1}%)"),
                flow.sent.to_string(),
                received.reordered.to_string(),
                millis(received.jitter.as_secs_f64()),
            ]);
        }
        grid.row(row);
        for Carried { path, bytes: carried, lost } in carried_by_paths(*direction, outcome) {
            let srtt = path.sample.srtt.map(|srtt| millis(srtt.as_secs_f64()));
            // Whoever receives does not know what was lost.
            let lost = (*direction == Direction::Up).then(|| lost.to_string());
            grid.row([
                (*name).to_owned(),
                local_name(path),
                bytes(carried),
                String::new(),
                rate(carried, seconds),
                srtt.unwrap_or_default(),
                lost.unwrap_or_default(),
            ]);
        }
    }
    grid
}

fn json_of(direction: Direction, outcome: &Outcome) -> Value {
    let seconds = outcome.elapsed.as_secs_f64();
    let paths = carried_by_paths(direction, outcome).map(|Carried { path, bytes, lost }| {
        json!({
            "id": path.id.0,
            "local": path.route.local.to_string(),
            "remote": path.route.remote.to_string(),
            "interface": path.interface,
            "udp_bytes": bytes,
            "bits_per_second": bytes as f64 * 8.0 / seconds.max(1e-9),
            "srtt_ms": path.sample.srtt.map(|srtt| srtt.as_secs_f64() * 1e3),
            "packets_lost": (direction == Direction::Up).then_some(lost),
            "datagram_size": path.sample.datagram_size,
        })
    });
    let mut value = json!({
        "bytes": outcome.bytes,
        "seconds": seconds,
        "bits_per_second": outcome.goodput(),
        "paths": paths.collect::<Vec<_>>(),
    });
    if let Some(flow) = &outcome.datagrams {
        value["datagrams"] = json!({
            "sent": flow.sent,
            "received": flow.received.datagrams,
            "lost": flow.lost(),
            "reordered": flow.received.reordered,
            "jitter_ms": flow.received.jitter.as_secs_f64() * 1e3,
        });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_the_prefix_that_fits() {
        assert_eq!(rate(0, 1.0), "0.0 kbit/s");
        assert_eq!(rate(125_000, 1.0), "1.0 Mbit/s");
        assert_eq!(rate(312_500_000, 2.0), "1.25 Gbit/s");
    }
}
