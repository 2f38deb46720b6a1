//! Links cut by scripts that a seed gives: see [`script`]. All bytes arrive, as they were sent; both
//! links carry data; and data goes on by the other link when one is cut, by the cut one when it is back.
//!
//! **How long a stall may be.** While one link is down and the other is up, the receiving application
//! waits no longer for its next bytes, over all streams, than three round trips and one probe timeout
//! together, as the sender's connection measured both just before the cut, on the path where each is
//! longest. Added to that: the time in the stall that the host was late, and 10 ms. Threads on each
//! processor measure how late: they sleep some milliseconds at a time and send a datagram over a link
//! of their own, since under load the kernel may hold packets for longer than it holds threads. A
//! stall is counted from the last bytes before it, those before the cut included, until data is moved
//! by the link again or the script is over.
//!
//! **Used again** means that 40,000 bytes came by the link within a second after both hosts list it as up,
//! the client's with a route: the kernel itself may tell of a carrier a second late.
//!
//! `QUIPU_CUTS=0..100 cargo test --release -p quipu-tokio --test namespaces cuts -- --nocapture` runs the
//! scripts of these seeds and tells of each. Losses fail it always; times that are exceeded are told, and
//! fail it if `QUIPU_CUTS_TIMED` is set, which is for a host that has nothing else to do.

mod heartbeat;
pub(crate) mod run;
pub(crate) mod script;
mod traffic;
pub(crate) mod world;

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use run::Stall;
use script::Script;

use crate::network::may_make;
use crate::process::{Ended, in_namespace};

/// Seeds, such as `0..100`, instead of [`FEW`].
const SEEDS: &str = "QUIPU_CUTS";

/// Set if times that are exceeded are failures.
const TIMED: &str = "QUIPU_CUTS_TIMED";

/// The seed of the script that the process is to run.
const SEED: &str = "QUIPU_CUTS_SEED";

/// What is run each time: together they have a silent cut, one that the kernel tells of, a lost carrier and a
/// removed device.
const FEW: Range<u64> = 0..2;

/// Scripts at a time: they sleep most of the time.
const AT_A_TIME: usize = 3;

/// How the process of a script begins its lines: for readers; the largest part that a stall took of its
/// limit; the longest time, in milliseconds, until a link that was back was used.
const TOLD: &str = "told: ";
const LONGEST: &str = "longest: ";
const LATEST: &str = "latest: ";

/// One script takes some seconds.
const LIMIT: Duration = Duration::from_secs(60);

fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(SEEDS) else { return FEW };
    let number = |text: &str| text.parse().ok();
    let parsed = text.split_once("..").and_then(|(from, to)| Some(number(from)?..number(to)?));
    assert!(parsed.is_some(), "{SEEDS} is {text:?}, expected seeds such as 0..100");
    parsed.unwrap()
}

#[test]
fn links_cut_by_a_seed_lose_nothing_and_stall_briefly() {
    if let Err(reason) = may_make() {
        eprintln!("skipped: this user may not make network namespaces: {reason}");
        return;
    }
    let seeds = seeds();
    let next = AtomicU64::new(seeds.start);
    let results = Mutex::new(Results::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    let environment = [(SEED, seed.to_string())];
                    let ended = in_namespace("cuts::one_script", &environment, LIMIT);
                    results.lock().unwrap().add(seed, &ended);
                }
            });
        }
    });
    let Results { scripts, longest, latest, failed } = results.into_inner().unwrap();
    eprintln!("{scripts} scripts, {} failed", failed.len());
    eprintln!("longest stall: {:.0} % of its limit, of seed {}", longest.0 * 100.0, longest.1);
    eprintln!("latest use of a link that came back: {:.0} ms, of seed {}", latest.0, latest.1);
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What came of the scripts so far; numbers with the seeds whose they are.
#[derive(Default)]
struct Results {
    scripts: u64,
    longest: (f64, u64),
    latest: (f64, u64),
    failed: Vec<String>,
}

impl Results {
    fn add(&mut self, seed: u64, Ended { success, said }: &Ended) {
        let script = Script::new(seed);
        self.scripts += 1;
        eprintln!("seed {seed}: {script}");
        for line in said.lines() {
            let told = |start: &str| line.strip_prefix(start);
            if let Some(part) = told(LONGEST).and_then(|text| text.parse().ok()) {
                self.longest = if part > self.longest.0 { (part, seed) } else { self.longest };
            } else if let Some(millis) = told(LATEST).and_then(|text| text.parse().ok()) {
                self.latest = if millis > self.latest.0 { (millis, seed) } else { self.latest };
            } else if let Some(text) = told(TOLD) {
                eprintln!("    {text}");
            }
        }
        if !success {
            self.failed.push(format!("seed {seed}: {script}\n{said}"));
        }
    }
}

#[test]
#[ignore = "run by the test above, in a namespace"]
fn one_script() {
    let Ok(seed) = std::env::var(SEED) else { return };
    let report = run::run(seed.parse().unwrap());
    // The harness has left its line open.
    println!();
    let again = report.stalls.iter().filter_map(|stall| stall.again);
    let parts = report.stalls.iter().map(Stall::part);
    println!("{LONGEST}{}", parts.fold(0.0, f64::max));
    println!("{LATEST}{}", again.max().unwrap_or_default().as_secs_f64() * 1e3);
    for stall in &report.stalls {
        println!("{TOLD}{stall}");
    }
    println!("{TOLD}{} bytes", report.bytes);
    for fault in &report.faults {
        println!("{TOLD}FAULT {fault}");
    }
    for delay in &report.delays {
        println!("{TOLD}LATE {delay}");
    }
    assert!(report.faults.is_empty(), "{:?}", report.faults);
    let in_time = report.delays.is_empty() || std::env::var(TIMED).is_err();
    assert!(in_time, "{:?}", report.delays);
}
