//! Random moves of a hostile peer, by seed: a slice of what the example `hostile` runs for long.

use quipu_base::Seed;
use quipu_testkit::forge::{Bounds, Hostility};

use crate::counted;

/// Connections.
const SEEDS: u64 = 120;
/// Moves of a connection at most.
const MOVES: u64 = 1_000;

#[test]
fn random_moves_pass_no_bound() {
    let (mut packets, mut most) = (0, 0);
    for seed in 0..SEEDS {
        let (mut hostility, mut draw) = Hostility::of_seed(Seed::new(seed), counted);
        for step in 0..MOVES {
            hostility.step(&mut draw);
            let checked = Bounds::default().check(hostility.forge());
            checked.unwrap_or_else(|breach| panic!("seed {seed}, move {step}: {breach}"));
            if hostility.is_over() {
                break;
            }
        }
        packets += hostility.packets();
        most = most.max(hostility.forge().work().peak);
    }
    println!("{packets} authentic packets, at most {most} bytes held");
    assert!(packets > 20_000, "{packets} packets were sent");
}
