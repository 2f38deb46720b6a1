//! Transfers of a megabyte end in time although paths fail.

use quipu_base::Role::{self, Client, Server};
use quipu_base::{Duration, Instant, Seed};
use quipu_policy::Registry;
use quipu_policy::registry::Layer;
use quipu_testkit::trial::Direction::{self, Both, Down, Up};
use quipu_testkit::trial::Op::{self, Advance, Finish, Open, Outage, Write};
use quipu_testkit::trial::{PathSetup, Trial};
use rand_core::Rng;

const MEGABYTE: u32 = 1_000_000;

/// Who sends a megabyte.
const SENDERS: [&[Role]; 3] = [&[Client], &[Server], &[Client, Server]];

/// 20 Mbit/s and 20 ms of round trip: a megabyte takes 0.4 s alone, and a little more with slow
/// start.
const PATH: PathSetup = PathSetup::new(20, 10);

/// The handshake and the validation of the second path are over by then, in ms.
const BEGIN: u64 = 100;

/// The client opens the second path when it hears that the handshake is confirmed, in ms.
const SECOND_PATH: u64 = 45;

/// A megabyte each way over one path takes 518 ms; a probe timeout of at most 65 ms notices a
/// path that went dark.
const OVER_ONE_PATH: u64 = 600;

/// Outages first, told from the begin of the handshake; then each sender sends a megabyte.
fn transfer(paths: &[PathSetup], senders: &[Role], outages: &[Op]) -> Trial {
    let mut ops = outages.to_vec();
    ops.push(Advance(BEGIN));
    for &sender in senders {
        ops.extend([Open(sender, true), Write(sender, 0, MEGABYTE), Finish(sender, 0)]);
    }
    Trial { begin: 0, ..Trial::new(paths.to_vec()).with_ops(ops) }
}

/// How long the transfer took; `None` if the connection was lost or never was.
fn time_of(trial: &Trial) -> Option<Duration> {
    let report = trial.run();
    assert!(report.is_ok(), "{report:?}: {trial:?}");
    let done_at = report.ok()?.done_at?;
    let time = done_at - (Instant::ZERO + Duration::from_millis(BEGIN));
    (!time.is_zero()).then_some(time)
}

fn assert_within(trial: &Trial, millis: u64) {
    let time = time_of(trial);
    assert!(
        time.is_some_and(|time| time <= Duration::from_millis(millis)),
        "{time:?}, expected {millis} ms: {trial:?}"
    );
}

#[test]
fn a_direction_that_goes_dark_costs_little_more_than_its_path() {
    for senders in SENDERS {
        for victim in [0, 1] {
            for direction in [Up, Down, Both] {
                for at in [BEGIN + 20, BEGIN + 150] {
                    let outage = [Outage(victim, direction, at, None)];
                    assert_within(&transfer(&[PATH, PATH], senders, &outage), OVER_ONE_PATH);
                }
            }
        }
    }
}

#[test]
fn a_path_that_flaps_beside_a_sound_one_does_no_harm() {
    let flaps = |link: usize, direction: Direction| {
        (0..20).map(move |nth| Outage(link, direction, BEGIN + nth * 600, Some(300)))
    };
    for senders in SENDERS {
        for victim in [0, 1] {
            for direction in [Up, Down, Both] {
                let outages: Vec<Op> = flaps(victim, direction).collect();
                assert_within(&transfer(&[PATH, PATH], senders, &outages), OVER_ONE_PATH);
            }
        }
        let both: Vec<Op> = flaps(0, Both).chain(flaps(1, Both)).collect();
        assert_within(&transfer(&[PATH, PATH], senders, &both), 6000);
        let only: Vec<Op> = flaps(0, Both).collect();
        assert_within(&transfer(&[PATH], senders, &only), 6000);
    }
}

#[test]
fn a_cut_at_any_instant_leaves_the_other_path_working() {
    let mut random = Seed::new(11).stream("cuts", 0);
    let mut instants: Vec<u64> = (0..20).map(|_| random.next_u64() % 400).collect();
    // The first flights, one by one, and the validation of the second path.
    instants.extend((0..BEGIN).step_by(5));
    for senders in SENDERS {
        for &at in &instants {
            for victim in [0, 1] {
                let trial = transfer(&[PATH, PATH], senders, &[Outage(victim, Both, at, None)]);
                match time_of(&trial) {
                    Some(time) => {
                        assert!(
                            time <= Duration::from_millis(OVER_ONE_PATH),
                            "{time:?}: {trial:?}"
                        );
                    }
                    // Without a second path there is nothing to live on.
                    None => {
                        assert!(victim == 0 && at < SECOND_PATH, "{trial:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn all_paths_dead_for_three_seconds_delay_by_twice_that_at_most() {
    for senders in SENDERS {
        for at in [BEGIN + 20, BEGIN + 150] {
            let outages = [0, 1].map(|link| Outage(link, Both, at, Some(3000)));
            assert_within(&transfer(&[PATH, PATH], senders, &outages), 6000);
        }
    }
}

#[test]
fn loss_disorder_and_failures_at_once_are_survived() {
    let rough = PathSetup { loss: 100, disorder: true, ..PATH };
    for senders in SENDERS {
        assert_within(&transfer(&[rough, rough], senders, &[]), 6000);
        for direction in [Up, Down, Both] {
            let outage = [Outage(1, direction, BEGIN + 150, None)];
            assert_within(&transfer(&[rough, rough], senders, &outage), 12_000);
        }
        let outages = [0, 1].map(|link| Outage(link, Both, BEGIN + 150, Some(3000)));
        assert_within(&transfer(&[rough, rough], senders, &outages), 12_000);
    }
}

#[test]
fn every_path_policy_survives_a_path_that_goes_dark() {
    let registry = Registry::builtin();
    for layer in [Layer::Path, Layer::Joint, Layer::Reinject] {
        for entry in registry.of(layer) {
            for victim in [0, 1] {
                for direction in [Up, Down, Both] {
                    let outage = [Outage(victim, direction, BEGIN + 150, None)];
                    let trial = transfer(&[PATH, PATH], &[Client, Server], &outage);
                    let policies = format!("{layer}={}", entry.name);
                    let policies = [policies.clone(), policies];
                    assert_within(&Trial { policies, ..trial }, 1000);
                }
            }
        }
    }
}
