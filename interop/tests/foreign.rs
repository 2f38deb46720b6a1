//! Foreign engines against themselves: proof that nodes, links and application do their part.

mod common;

use common::{MEGABYTES, MakeNode, mbit, noq, path, quinn, run};
use quipu_base::{Instant, Seed};
use quipu_link::Outage;
use quipu_testkit::{Plan, Scenario};

#[test]
fn quinn_downloads_from_quinn_at_the_rate_of_the_link() {
    let scenario = Scenario::new(Plan::download(10 * MEGABYTES), vec![path(20, 20)]);
    let outcome = run("quinn", &scenario, &quinn, &quinn);
    assert!((17.0..19.5).contains(&mbit(&outcome)), "{}", outcome.goodput);
}

#[test]
fn quinn_downloads_from_quinn_with_one_percent_loss() {
    let paths = vec![path(20, 20).with_loss(0.01)];
    let scenario = Scenario::new(Plan::download(10 * MEGABYTES), paths);
    let outcome = run("quinn, 1 % loss", &scenario, &quinn, &quinn);
    // NewReno's sqrt(3/2p) packets of 1,200 B per 40 ms round trip are 2.9 Mbit/s.
    assert!((1.5..6.0).contains(&mbit(&outcome)), "{}", outcome.goodput);
    assert!(outcome.links[0].1.dropped_by_loss.datagrams > 50);
}

#[test]
fn quinn_exchanges_both_ways_at_once() {
    let scenario = Scenario::new(Plan::both_ways(5 * MEGABYTES), vec![path(20, 20)]);
    let outcome = run("quinn, both ways", &scenario, &quinn, &quinn);
    assert!(mbit(&outcome) > 25.0, "{}", outcome.goodput);
}

#[test]
fn noq_downloads_from_noq_over_two_paths() {
    let one = Scenario::new(Plan::download(10 * MEGABYTES), vec![path(20, 20)]);
    let two = Scenario { paths: vec![path(20, 20), path(20, 10)], ..one.clone() };
    let alone = run("noq, one path", &one, &noq, &noq);
    let both = run("noq, two paths", &two, &noq, &noq);
    assert_eq!(both.client_paths, 2);
    assert!(mbit(&both) > 1.5 * mbit(&alone), "{} and {}", both.goodput, alone.goodput);
}

#[test]
fn noq_survives_loss_on_both_of_two_paths() {
    let paths = vec![path(20, 20).with_loss(0.01), path(20, 10).with_loss(0.01)];
    let scenario = Scenario::new(Plan::both_ways(2 * MEGABYTES), paths);
    let outcome = run("noq, two paths, 1 % loss", &scenario, &noq, &noq);
    assert_eq!(outcome.client_paths, 2);
}

#[test]
fn noq_finishes_on_the_other_path_when_one_is_cut_for_good() {
    let cut = path(20, 10).with_outage(Outage::for_good(Instant::from_nanos(1_000_000_000)));
    let scenario = Scenario::new(Plan::download(10 * MEGABYTES), vec![path(20, 20), cut]);
    let outcome = run("noq, path 1 cut", &scenario, &noq, &noq);
    assert!(outcome.links[1].1.dropped_by_outage.datagrams > 0);
}

#[test]
fn quinn_and_noq_understand_each_other_on_one_path() {
    let scenario = Scenario::new(Plan::both_ways(2 * MEGABYTES), vec![path(20, 20)]);
    run("quinn client, noq server", &scenario, &quinn, &noq);
    run("noq client, quinn server", &scenario, &noq, &quinn);
}

#[test]
fn a_seed_gives_the_same_datagrams_at_the_same_times() {
    let paths = vec![path(20, 20).with_loss(0.01)];
    for (name, engine) in [("quinn", &quinn as MakeNode<'_>), ("noq", &noq)] {
        let scenario = Scenario::new(Plan::download(MEGABYTES), paths.clone());
        let trace = run(name, &scenario, engine, engine).trace;
        assert_eq!(run(name, &scenario, engine, engine).trace, trace, "{name}");
        let other = Scenario { seed: Seed::new(2), ..scenario };
        assert_ne!(run(name, &other, engine, engine).trace, trace, "{name}");
    }
}
