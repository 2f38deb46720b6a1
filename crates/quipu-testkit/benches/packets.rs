//! Packets per CPU second of whole transfers in the simulator.
//!
//! A packet counts once per delivery to an endpoint, both directions; the time is user and system
//! CPU of one thread. Bodies are zeros that nobody hashes, so that only the engine and the simulator
//! are measured. The scenario is bulk: one flow, 10 Mbit/s, 10 ms round trip, 10 simulated seconds;
//! the same with two paths; and the same for 100 and 1,000 simulated seconds and at 100 Mbit/s to
//! 10 Gbit/s, where the cost per packet shall stay flat; and windows of 1 to 100 MB, of which the
//! largest shall cost at most 1.3 times as much per packet as the least. There the acknowledgements
//! take the whole round trip: what is in flight is kept by the engine that sent it, and not by the
//! simulated link, whose memory is measured by the last case.
//!
//! `cargo bench -p quipu-testkit --bench packets` prints one line per case; a word as argument picks
//! cases by name, a number sets how often each runs.

use std::process::ExitCode;

use quipu_base::{Bytes, Duration, Rate, Role};
use quipu_link::{LinkConfig, QueueLimit};
use quipu_testkit::{Identity, NodeConfig, Plan, QuicNode, Scenario, Tls};
use rustix::time::{ClockId, clock_gettime};

/// How often a case runs; the median counts.
const ROUNDS: usize = 7;
/// The same for a case of more than half a million packets.
const FEW_ROUNDS: usize = 3;
/// Bytes of the longest case that is run as a test.
const MOST_TESTED: u64 = 50_000_000;

struct Case {
    name: &'static str,
    paths: Vec<LinkConfig>,
    /// The way back of the first path, if it differs.
    up: Option<LinkConfig>,
    bytes: u64,
    tls: Tls,
    /// Bytes that may be on their way.
    window: Bytes,
}

/// Not what limits at 10 Gbit/s and 10 ms.
const AMPLE: Bytes = Bytes(64 << 20);

fn path(mbit: u64, one_way_millis: u64) -> LinkConfig {
    LinkConfig::new(Rate::from_mbit_per_sec(mbit), Duration::from_millis(one_way_millis))
}

fn cases() -> Vec<Case> {
    let null = || Tls::Null { chain: 3000 };
    let identity = Identity::generate().expect("the system has randomness");
    vec![
        Case {
            name: "bulk null",
            paths: vec![path(10, 5)],
            up: None,
            bytes: 12_000_000,
            tls: null(),
            window: AMPLE,
        },
        Case {
            name: "bulk null 100M 1%",
            paths: vec![path(100, 5).with_loss(0.01)],
            up: None,
            bytes: 12_000_000,
            tls: null(),
            window: AMPLE,
        },
        Case {
            name: "bulk null two paths",
            paths: vec![path(10, 5), path(10, 10)],
            up: None,
            bytes: 24_000_000,
            tls: null(),
            window: AMPLE,
        },
        Case {
            name: "bulk rustls",
            paths: vec![path(10, 5)],
            up: None,
            bytes: 12_000_000,
            tls: Tls::Rustls(identity),
            window: AMPLE,
        },
        // The same rate for longer, and higher rates: what a link carries in that many seconds.
        scale("scale 10M 100 s", 10, 100),
        scale("scale 10M 1000 s", 10, 1_000),
        scale("scale 100M 10 s", 100, 10),
        scale("scale 1G 10 s", 1_000, 10),
        scale("scale 10G 2 s", 10_000, 2),
        // The same bytes with more or fewer of them on their way.
        window("window 1M", 1_000_000),
        window("window 10M", 10_000_000),
        window("window 100M", 100_000_000),
        // The same with all of it on a link of 10 Gbit/s.
        Case {
            paths: vec![path(10_000, 100).with_queue(NEVER_FULL)],
            up: Some(path(10_000, 0)),
            ..window("on the link 100M", 100_000_000)
        },
    ]
}

/// 96 % of what a link of `mbit` carries in `seconds`; with null TLS.
fn scale(name: &'static str, mbit: u64, seconds: u64) -> Case {
    let bytes = mbit * 125_000 * seconds / 100 * 96;
    let tls = Tls::Null { chain: 3000 };
    Case { name, paths: vec![path(mbit, 5)], up: None, bytes, tls, window: AMPLE }
}

/// Mbit/s at which a datagram takes 12 ns.
const NEVER_BUSY: u64 = 1_000_000;

/// No queue of a link is full before the largest window is on its way: nothing is lost.
const NEVER_FULL: QueueLimit = QueueLimit::Bytes(Bytes(200 << 20));

/// A round trip of 100 ms, and a link on which nothing waits, however much a window lets go at once; thirty
/// windows, so that memory is used again and again.
fn window(name: &'static str, window: u64) -> Case {
    let tls = Tls::Null { chain: 3000 };
    let (paths, up) = (vec![path(NEVER_BUSY, 0)], Some(path(NEVER_BUSY, 100)));
    let bytes = (30 * window).max(600_000_000);
    Case { name, paths, up, bytes, tls, window: Bytes(window) }
}

/// User and system CPU time of this thread in seconds, exact to the kernel's clock.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn run(case: &Case) -> (u64, f64, f64) {
    let mut scenario = Scenario::new(Plan::download(case.bytes).unchecked(), case.paths.clone());
    scenario.up = case.up.iter().map(|link| (0, link.clone())).collect();
    scenario.limit = Duration::from_secs(3_600);
    let node = |role| {
        let mut config = NodeConfig::new(&scenario, role, case.tls.clone());
        config.transport.stream_window = case.window;
        config.transport.connection_window = case.window;
        config.transport.send_buffer = case.window + Bytes(16 << 20);
        config.transport.max_unsent = Bytes::MAX;
        Box::new(QuicNode::new(config).unwatched())
    };
    let (client, server) = (node(Role::Client), node(Role::Server));
    let before = cpu_seconds();
    let outcome = scenario.run(client, server).expect("the transfer ends");
    let seconds = cpu_seconds() - before;
    let packets =
        outcome.links.iter().map(|(up, down)| up.delivered.datagrams + down.delivered.datagrams);
    (packets.sum(), seconds, outcome.finished_at.as_nanos() as f64 / 1e9)
}

fn main() -> ExitCode {
    // `cargo bench` says so; `cargo test` does not.
    let measured = std::env::args().any(|word| word == "--bench");
    let words = || std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let rounds: Option<usize> = words().find_map(|word| word.parse().ok());
    let wanted: Vec<String> = words().filter(|word| word.parse::<usize>().is_err()).collect();
    for case in cases() {
        if !wanted.is_empty() && !wanted.iter().any(|word| case.name.contains(word.as_str())) {
            continue;
        }
        let mut rates: Vec<f64> = Vec::new();
        let mut last = (0, 0.0, 0.0);
        let usual = match case.bytes {
            // Run as a test, each case of no great length runs once.
            _ if !measured && case.bytes > MOST_TESTED => continue,
            _ if !measured => 1,
            bytes if bytes > 1 << 29 => FEW_ROUNDS,
            _ => ROUNDS,
        };
        let rounds = rounds.unwrap_or(usual);
        for _ in 0..rounds {
            last = run(&case);
            rates.push(last.0 as f64 / last.1);
        }
        rates.sort_by(f64::total_cmp);
        let median = rates[rates.len() / 2];
        println!(
            "{:<22} {:>9.0} packets per CPU second ({} packets in {:.1} simulated seconds, \
             {:.0} ns each, {:.2} CPU ms per simulated second)",
            case.name,
            median,
            last.0,
            last.2,
            1e9 / median,
            last.0 as f64 / median * 1e3 / last.2,
        );
    }
    ExitCode::SUCCESS
}
