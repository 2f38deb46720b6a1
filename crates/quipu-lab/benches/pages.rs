//! Packets per CPU second of whole page loads: the framework paper's YouTube page on `wifi+lte`.
//!
//! A packet counts once per delivery to an endpoint; the time is user and system CPU of one
//! thread; bodies are carried and hashed. `cargo bench -p quipu-lab --bench pages`.

use quipu_lab::batch::Runner;
use quipu_lab::plan::{Cell, Plan};
use quipu_scenario::{Scenario, Tls};

/// How often a case is measured; the median counts.
const ROUNDS: usize = 7;
/// Loads in one measurement: many, as the kernel's count moves in steps of milliseconds.
const LOADS: u32 = 200;

/// CPU time of this process in seconds, from the kernel's own count.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos: f64 =
        stat.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0.0);
    nanos / 1e9
}

fn measure(name: &str, page: &str, stream: &str, tls: Tls) {
    let mut scenario =
        Scenario { pages: vec![page.to_owned()], runs: LOADS, ..Scenario::default() };
    scenario.policies.stream = vec![stream.to_owned()];
    scenario.policies.baselines = false;
    scenario.transport.tls = tls;
    let plan = Plan::new(scenario).expect("a valid scenario");
    let runner = Runner::new(&plan);
    // `cargo bench` says so; `cargo test` does not, and takes one round.
    let rounds = if std::env::args().any(|word| word == "--bench") { ROUNDS } else { 1 };
    let mut rates: Vec<f64> = (0..rounds)
        .map(|_| {
            let before = cpu_seconds();
            let packets: u64 = (0..LOADS)
                .map(|number| {
                    let cell = Cell { page: 0, network: 0, policy: 0, run: number };
                    let records = runner.run_session(cell).expect("the page arrives");
                    records[0].paths.iter().map(|path| path.datagrams_received).sum::<u64>()
                })
                .sum();
            packets as f64 / (cpu_seconds() - before)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    println!("{name:<40} {:>9.0} packets per CPU second", rates[rounds / 2]);
}

fn main() {
    measure("framework-youtube, rr, null TLS", "framework-youtube", "rr", Tls::Null);
    measure("framework-youtube, wrr, null TLS", "framework-youtube", "wrr", Tls::Null);
    measure("framework-youtube, dwrr, null TLS", "framework-youtube", "dwrr", Tls::Null);
    measure("framework-youtube, wrr, rustls", "framework-youtube", "wrr", Tls::Rustls);
    measure("cnn, wrr, null TLS", "cnn", "wrr", Tls::Null);
}
