//! Runs random operation scripts by seed, and prints those that break a rule, shrunken.
//!
//! `cargo run --release -p quipu-testkit --example scripts -- --seeds 0..100000` runs a hundred
//! thousand of them; without options it runs some dozens.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quipu_testkit::forge::Allocated;
use quipu_testkit::trial::Trial;

/// Without options.
const FEW: Range<u64> = 0..60;
/// A line of progress after so many scripts.
const PROGRESS: u64 = 1_000;

/// It stops after so many that break a rule.
const MOST_FAILURES: usize = 10;

fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

/// The range behind `--seeds`, or the one seed behind `--seed`.
fn seeds() -> Range<u64> {
    let words: Vec<String> = std::env::args().collect();
    let behind = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1).cloned()
    };
    if let Some(seed) = behind("--seed").and_then(|word| word.parse().ok()) {
        return seed..seed + 1;
    }
    let range = behind("--seeds").and_then(|word| {
        let (from, to) = word.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    range.unwrap_or(FEW)
}

fn main() -> ExitCode {
    let seeds = seeds();
    let (next, done) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let (stop, failures) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    // What a script panics with is told with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if let Err(broken) = Trial::of_seed(seed).try_run_metered(counted) {
                        println!("seed {seed}: {broken}");
                        if let Ok(mut failures) = failures.lock() {
                            failures.push((seed, broken));
                            stop.store(failures.len() >= MOST_FAILURES, Ordering::Relaxed);
                        }
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    if done.is_multiple_of(PROGRESS) {
                        println!("{done} scripts");
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    for (seed, broken) in &failures {
        println!("seed {seed}, shrunken:");
        let shrunken = Trial::of_seed(*seed).shrunken(broken);
        let again = shrunken.try_run_metered(counted).err();
        println!("{again:?}\n{shrunken:?}");
    }
    println!("{} scripts, {} broken", done.into_inner(), failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
