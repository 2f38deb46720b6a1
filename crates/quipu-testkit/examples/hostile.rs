//! Sends authentic packets of a hostile peer to our engine, millions of them, and holds it to its
//! bounds: no panic, no deadline that stands, no more memory or amplification than allowed.
//!
//! `cargo run --release -p quipu-testkit --example hostile -- --packets 10000000` counts to ten
//! million; without options it stops after some thousands. A seed that fails is printed; `--seed N`
//! runs that connection alone.

use std::process::ExitCode;

use quipu_base::Seed;
use quipu_testkit::forge::{Allocated, Bounds, Hostility};

/// Moves of a connection at most.
const MOVES: u64 = 3_000;
/// Without options.
const FEW_PACKETS: u64 = 20_000;

fn counted(work: &mut dyn FnMut()) -> Allocated {
    let info = allocation_counter::measure(work);
    Allocated { held: info.bytes_current, peak: info.bytes_max, count: info.count_total }
}

/// Packets that a connection was sent, and the most memory that it held; or what went wrong.
fn attack(seed: u64) -> Result<(u64, i64), String> {
    let (mut hostility, mut draw) = Hostility::of_seed(Seed::new(seed), counted);
    for step in 0..MOVES {
        hostility.step(&mut draw);
        let checked = Bounds::default().check(hostility.forge());
        checked.map_err(|breach| format!("move {step}: {breach}"))?;
        if hostility.is_over() {
            break;
        }
    }
    if option("--seed").is_some() {
        println!("{:?}, {:?}", hostility.forge().closed(), hostility.forge().work());
    }
    Ok((hostility.packets(), hostility.forge().work().peak))
}

/// The number behind an option.
fn option(name: &str) -> Option<u64> {
    let words: Vec<String> = std::env::args().collect();
    let at = words.iter().position(|word| word == name)?;
    words.get(at + 1)?.parse().ok()
}

fn main() -> ExitCode {
    let wanted = option("--packets").unwrap_or(FEW_PACKETS);
    let only = option("--seed");
    let (mut packets, mut connections, mut most, mut told) = (0, 0, 0, 0);
    let mut seed = only.unwrap_or(option("--from").unwrap_or(0));
    while packets < wanted {
        // A panic is told with its seed.
        let result = std::panic::catch_unwind(|| attack(seed));
        match result.unwrap_or_else(|_| Err("panicked".to_owned())) {
            Ok((sent, peak)) => {
                packets += sent;
                most = most.max(peak);
            }
            Err(breach) => {
                println!("seed {seed}: {breach}");
                return ExitCode::FAILURE;
            }
        }
        connections += 1;
        if packets / 1_000_000 > told {
            told = packets / 1_000_000;
            println!("{packets} packets on {connections} connections, at most {most} bytes held");
        }
        if only.is_some() {
            break;
        }
        seed += 1;
    }
    println!("{packets} authentic packets on {connections} connections, at most {most} bytes held");
    ExitCode::SUCCESS
}
