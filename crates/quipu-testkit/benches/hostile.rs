//! What hostile datagrams cost their receiver, each of a kind: opening it, applying its frames, what
//! the application does with them, and everything that is sent in answer.
//!
//! `cargo bench -p quipu-testkit --bench hostile` measures each kind, or those whose name holds the
//! argument, and prints the ten that cost most: the mean of a datagram of that kind, and the dearest
//! of them. No datagram shall cost more than 50 µs. Each datagram counts with the least time of several runs, so that other work of the machine
//! does not count. Null TLS: without what cryptography costs, which is the same for any datagram.
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::cell::Cell;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use quipu_testkit::forge::{
    Allocated,
    catalogue::{Entry, catalogue},
};

/// Runs of each kind, of which the least times count.
const RUNS: usize = 15;
/// The aim.
const AIM: Duration = Duration::from_micros(50);

thread_local! {
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Adds the time of a piece of work to what was spent.
fn timed(work: &mut dyn FnMut()) -> Allocated {
    let begin = Instant::now();
    work();
    SPENT.set(SPENT.get() + begin.elapsed());
    Allocated::default()
}

/// What each datagram of a connection cost.
fn costs(entry: &Entry) -> Vec<Duration> {
    let mut forge = entry.victim(timed);
    let mut costs = Vec::new();
    for nth in 0..entry.count {
        let datagram = entry.next(&mut forge, nth);
        let Some((arrival, mut bytes)) = forge.seal(&datagram) else { break };
        SPENT.set(Duration::ZERO);
        forge.deliver(arrival, &mut bytes);
        costs.push(SPENT.get());
    }
    costs
}

/// The least cost of each datagram over several runs.
fn least(entry: &Entry, runs: usize) -> Vec<Duration> {
    let mut least = costs(entry);
    for _ in 1..runs {
        for (least, cost) in least.iter_mut().zip(costs(entry)) {
            *least = cost.min(*least);
        }
    }
    least
}

fn main() {
    // `cargo bench` says so; `cargo test` does not.
    let measured = std::env::args().any(|word| word == "--bench");
    let mut entries = catalogue();
    if let Some(word) = std::env::args().skip(1).find(|word| !word.starts_with('-')) {
        entries.retain(|entry| entry.name.contains(&word));
    }
    if measured {
        let mut criterion = Criterion::default()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(300))
            .configure_from_args();
        let mut group = criterion.benchmark_group("hostile");
        group.throughput(Throughput::Elements(1));
        for entry in &entries {
            group.bench_function(entry.name, |bencher| {
                bencher.iter_custom(|iterations| {
                    let (mut spent, mut count) = (Duration::ZERO, 0);
                    while count < iterations {
                        let costs = costs(entry);
                        count += costs.len().max(1) as u64;
                        spent += costs.iter().sum::<Duration>();
                    }
                    spent.mul_f64(iterations as f64 / count as f64)
                });
            });
        }
        group.finish();
    }
    let runs = if measured { RUNS } else { 1 };
    let mut worst: Vec<_> = entries
        .iter()
        .map(|entry| {
            let costs = least(entry, runs);
            let mean = costs.iter().sum::<Duration>() / costs.len().max(1) as u32;
            let most = costs.iter().max().copied().unwrap_or_default();
            (most, mean, entry.name)
        })
        .collect();
    worst.sort_unstable();
    println!("{:<50} {:>12} {:>12}", "the dearest kinds of datagrams", "mean", "dearest");
    for (most, mean, name) in worst.iter().rev().take(10) {
        let [mean, most] = [mean, most].map(|time| format!("{:.1} µs", time.as_secs_f64() * 1e6));
        println!("{name:<50} {mean:>12} {most:>12}");
    }
    let above = worst.iter().filter(|(most, ..)| *most > AIM).count();
    println!("{above} of {} kinds cost more than {} µs", worst.len(), AIM.as_micros());
}
