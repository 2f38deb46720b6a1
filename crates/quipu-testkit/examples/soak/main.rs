//! A soak: clients on loopback that come, go, roam and are attacked, while a server serves them.
//!
//! `cargo run --release -p quipu-testkit --example soak -- --time 30m --connections 1000` holds a server to
//! this: every honest transfer goes on and arrives unchanged; once all clients have ended, no connection is
//! left and memory is where it was; with connections that do nothing, no time is spent. Without options it
//! stops after some seconds, which tells of stalls and not of leaks. `--seed N` draws other clients.
//!
//! Memory is compared with that after a warm-up of the same shape, of a tenth of the time unless `--warm-up`
//! says how long. What is compared are the bytes in use. The resident ones are told beside them: allocators
//! keep what a load once needed, until each thread calls them again. Everything is in one process: what
//! leaks at a client is found as well.

mod device;
mod noise;
mod process;
mod relay;
mod server;
mod strangers;
mod world;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cap::Cap;
use mimalloc::MiMalloc;
use quipu_base::Seed;
use quipu_policy::Registry;
use quipu_quic::endpoint::ClientConfig;
use quipu_tokio::identity::pinned;
use quipu_tokio::tokio;
use quipu_tokio::tokio::task::JoinSet;
use quipu_tokio::tokio::time::{Instant, sleep, timeout, timeout_at};
use quipu_tokio::{Endpoint, policies};

use device::Device;
use noise::Noise;
use world::{ALPN, Counts, Failure, NAME, World, transport};

/// Connections of an honest client.
const PER_CLIENT: usize = 5;

/// Memory in use may have grown by that at the end, in percent.
const GROWTH: usize = 5;

/// A soak of that time tells of leaks: before, tables still grow.
const LONG: Duration = Duration::from_secs(300);

/// How often it is told how far it is.
const REPORT: Duration = Duration::from_secs(60);

/// A processor may be busy for so much of the time that nothing is done, in percent.
const BUSY: u128 = 2;

/// That of the `quipu` command, with a count of the bytes in use.
#[global_allocator]
static ALLOCATOR: Cap<MiMalloc> = Cap::new(MiMalloc, usize::MAX);

/// Tasks that panicked.
static PANICS: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        tell(info);
    }));
    match Options::read().and_then(|options| run(&options)) {
        Ok(faults) if faults.is_empty() => {
            println!("passed");
            ExitCode::SUCCESS
        }
        Ok(faults) => {
            for fault in faults {
                println!("FAILED: {fault}");
            }
            ExitCode::FAILURE
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    time: Duration,
    warm_up: Option<Duration>,
    connections: usize,
    seed: u64,
}

impl Options {
    fn read() -> Result<Self, Failure> {
        let time = Duration::from_secs(5);
        let mut options = Options { time, warm_up: None, connections: 40, seed: 1 };
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| format!("{word}: expected a value"))?;
            let wrong = |expected| format!("{word} {value}: expected {expected}");
            match word.as_str() {
                "--time" => {
                    options.time = duration(&value).ok_or_else(|| wrong("such as 90s or 30m"))?;
                }
                "--warm-up" => {
                    let time = duration(&value).ok_or_else(|| wrong("such as 90s or 3m"))?;
                    options.warm_up = Some(time);
                }
                "--connections" => {
                    options.connections = value.parse().map_err(|_| wrong("a number"))?;
                }
                "--seed" => options.seed = value.parse().map_err(|_| wrong("a number"))?,
                _ => return Err(wrong("--time, --warm-up, --connections or --seed").into()),
            }
        }
        Ok(options)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => return None,
    };
    Some(Duration::from_secs(number.parse::<u64>().ok()? * seconds))
}

fn run(options: &Options) -> Result<Vec<String>, Failure> {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build()?;
    runtime.block_on(soak(options))
}

async fn soak(options: &Options) -> Result<Vec<String>, Failure> {
    let seed = Seed::new(options.seed);
    let is_long = options.time >= LONG;
    let idle = Duration::from_secs(if is_long { 16 } else { 8 });
    let noise = Arc::new(Noise::new(seed));
    let (server, address, pin) = server::listen(&noise, idle)?;
    let (ticks, leaving, counts) = (AtomicU64::new(0), AtomicU64::new(0), Counts::default());
    let world = Arc::new(World { seed, server: address, pin, noise, idle, ticks, leaving, counts });
    tokio::spawn(tick(Arc::clone(&world)));
    let mut faults = Vec::new();

    if is_long {
        let warm_up = options.warm_up.unwrap_or(options.time / 10);
        load(&world, &server, 0, options.connections, warm_up).await;
    }
    let (before, files) = (ALLOCATOR.allocated(), process::descriptors());
    println!("before the load: {}", held(&server));
    load(&world, &server, 1, options.connections, options.time).await;
    println!("after the load: {}", held(&server));

    let left = server.stats().connections;
    if left > 0 {
        faults.push(format!("{left} connections are left"));
    }
    let leaving = world.leaving.load(Ordering::Relaxed);
    if leaving > 0 {
        faults.push(format!("{leaving} clients never end"));
    }
    let after = ALLOCATOR.allocated();
    println!("{after} bytes are in use, and {before} were before the load");
    if is_long && after > before + before * GROWTH / 100 {
        faults.push(format!("memory in use grew from {before} to {after} bytes"));
    }
    if let (Some(before), Some(after)) = (files, process::descriptors())
        && after > before
    {
        faults.push(format!("{before} files were open, and {after} are"));
    }
    faults.extend(report(&world.counts));
    faults.extend(rest(&world, &server, options).await?);
    let panics = PANICS.load(Ordering::Relaxed);
    if panics > 0 {
        faults.push(format!("{panics} tasks panicked"));
    }
    Ok(faults)
}

async fn tick(world: Arc<World>) {
    loop {
        sleep(world::TICK).await;
        world.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Prints what happened, and returns what may not.
fn report(counts: &Counts) -> Vec<String> {
    let all = counts.all();
    for (name, number) in &all {
        println!("{name:>18} {number}");
    }
    let pause = counts.longest_pause.load(Ordering::Relaxed);
    println!("{:>18} {:?}", "longest pause", world::TICK * pause as u32);
    let is_fault = |name| ["stalls", "broken", "corrupt", "failed_handshakes"].contains(&name);
    let faults = all.into_iter().filter(|(name, number)| is_fault(*name) && *number > 0);
    faults.map(|(name, number)| format!("{name}: {number}")).collect()
}

/// Clients live for that time, and end.
async fn load(
    world: &Arc<World>,
    server: &Endpoint,
    round: u64,
    connections: usize,
    lasts: Duration,
) {
    let ends = Instant::now() + lasts;
    let mut running = JoinSet::new();
    let honest = connections.div_ceil(PER_CLIENT);
    for number in 0..honest + honest.div_ceil(10) {
        let hostile = number >= honest;
        let connections = if hostile { 1 } else { PER_CLIENT };
        let device = Device { number: number as u64 + 1, connections, hostile };
        running.spawn(device.live(Arc::clone(world), round, ends));
    }
    let strangers = tokio::spawn(strangers::flood(Arc::clone(world)));
    let mut next_report = Instant::now() + REPORT;
    loop {
        match timeout_at(next_report, running.join_next()).await {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(_) => {
                next_report += REPORT;
                println!("{}", held(server));
            }
        }
    }
    strangers.abort();
    // Those who were cut, and strangers, are forgotten by then.
    let _ = timeout(2 * world.idle + Duration::from_secs(10), empty(world, server)).await;
    sleep(Duration::from_secs(1)).await;
}

/// Until neither the server nor a client has a connection.
async fn empty(world: &World, server: &Endpoint) {
    while server.stats().connections > 0 || world.leaving.load(Ordering::Relaxed) > 0 {
        sleep(Duration::from_millis(50)).await;
    }
}

/// Connections that do nothing cost nothing.
async fn rest(
    world: &Arc<World>,
    server: &Endpoint,
    options: &Options,
) -> Result<Option<String>, Failure> {
    let client = Endpoint::client().bind()?;
    let tls = Arc::new(pinned(world.pin, &[ALPN])?);
    let policies = policies(&Registry::builtin(), "")?;
    let config = ClientConfig::new(tls, transport(Duration::from_secs(60), false), policies);
    let mut held = Vec::new();
    for _ in 0..options.connections.min(250) {
        held.push(client.connect(&config, world.server, NAME).await?);
    }
    sleep(Duration::from_secs(1)).await;
    let (cpu, woken) = (process::cpu(), server.stats().wakeups + client.stats().wakeups);
    let lasts = Duration::from_secs(if options.time >= LONG { 10 } else { 1 });
    sleep(lasts).await;
    let woken = server.stats().wakeups + client.stats().wakeups - woken;
    let (Some(cpu), Some(after)) = (cpu, process::cpu()) else { return Ok(None) };
    let spent = after - cpu;
    println!(
        "{} idle connections for {lasts:?}: {spent:?} on processors, {woken} wake-ups",
        held.len()
    );
    let allowed = lasts.as_millis() * BUSY / 100 + 10;
    let busy = spent.as_millis() > allowed;
    Ok(busy.then(|| format!("{spent:?} were spent on idle connections in {lasts:?}")))
}

/// What the server and this process hold.
fn held(server: &Endpoint) -> String {
    let resident = process::resident().unwrap_or_default() as f64 / f64::from(1 << 20);
    let stats = server.stats();
    format!(
        "{} connections, {:.1} MiB in use, {resident:.1} MiB resident, {} files, {:?} on processors",
        stats.connections,
        ALLOCATOR.allocated() as f64 / f64::from(1 << 20),
        process::descriptors().unwrap_or_default(),
        process::cpu().unwrap_or_default()
    )
}
