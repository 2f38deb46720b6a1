//! Packets and loads per CPU second of whole page loads: the framework paper's YouTube page on
//! `wifi+lte`, and a large one.
//!
//! A packet counts once per delivery to an endpoint; the time is user and system CPU of one
//! thread; bodies are carried and compared. `cargo bench -p quipu-lab --bench pages`; a word as argument
//! picks cases by name.

use quipu_lab::batch::Runner;
use quipu_lab::plan::{Cell, Plan};
use quipu_scenario::{Scenario, Tls};
use rustix::time::{ClockId, clock_gettime};

/// As in the `quipu` command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a case is measured; the median counts.
const ROUNDS: usize = 7;
/// Loads in one measurement.
const LOADS: u32 = 200;

/// User and system CPU time of this thread in seconds, exact to the kernel's clock.
fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn measure(name: &str, page: &str, stream: &str, tls: Tls) {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if !wanted.is_empty() && !wanted.iter().any(|word| name.contains(word.as_str())) {
        return;
    }
    let mut scenario =
        Scenario { pages: vec![page.to_owned()], runs: LOADS, ..Scenario::default() };
    scenario.policies.stream = vec![stream.to_owned()];
    scenario.policies.baselines = false;
    scenario.transport.tls = tls;
    let plan = Plan::new(scenario).expect("a valid scenario");
    let runner = Runner::new(&plan);
    // `cargo bench` says so; `cargo test` does not, and takes one round.
    let rounds = if std::env::args().any(|word| word == "--bench") { ROUNDS } else { 1 };
    let mut times: Vec<(f64, u64)> = (0..rounds)
        .map(|_| {
            let before = cpu_seconds();
            let packets: u64 = (0..LOADS)
                .map(|number| {
                    let cell = Cell { page: 0, network: 0, policy: 0, run: number };
                    let records = runner.run_session(cell).expect("the page arrives");
                    records[0].paths.iter().map(|path| path.datagrams_received).sum::<u64>()
                })
                .sum();
            (cpu_seconds() - before, packets)
        })
        .collect();
    times.sort_by(|a, b| f64::total_cmp(&a.0, &b.0));
    let (seconds, packets) = times[rounds / 2];
    println!(
        "{name:<34} {:>9.0} packets and {:>6.1} loads per CPU second",
        packets as f64 / seconds,
        f64::from(LOADS) / seconds,
    );
}

fn main() {
    measure("framework-youtube, rr, null TLS", "framework-youtube", "rr", Tls::Null);
    measure("framework-youtube, wrr, null TLS", "framework-youtube", "wrr", Tls::Null);
    measure("framework-youtube, dwrr, null TLS", "framework-youtube", "dwrr", Tls::Null);
    measure("framework-youtube, wrr, rustls", "framework-youtube", "wrr", Tls::Rustls);
    measure("cnn, wrr, null TLS", "cnn", "wrr", Tls::Null);
}
