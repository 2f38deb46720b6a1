//! Every policy with every other that it goes together with: `quipu compare --stream all --path all`.

use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{run_all, run_session};
use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_lab::policy::Layer;
use quipu_scenario::{Network, PathSpec, Priorities, Scenario};

fn network(name: &str, paths: &[&str]) -> Network {
    let paths: Vec<PathSpec> = paths.iter().map(|fields| fields.parse().unwrap()).collect();
    Network { name: name.to_owned(), ..Network::from_links(paths) }
}

fn networks() -> Vec<Network> {
    vec![
        network("clean", &["rate=55mbit,delay=15ms", "rate=30mbit,delay=10ms"]),
        network("lossy", &["rate=55mbit,delay=15ms,loss=2%", "rate=30mbit,delay=10ms,loss=2%"]),
        network("dying", &["rate=20mbit,delay=15ms", "rate=10mbit,delay=10ms,outage=150ms"]),
        network(
            "three",
            &["rate=4mbit,delay=25ms", "rate=2mbit,delay=15ms", "rate=10mbit,delay=50ms"],
        ),
        network(
            "eight",
            &[
                "rate=3mbit,delay=5ms",
                "rate=6mbit,delay=10ms",
                "rate=9mbit,delay=15ms",
                "rate=12mbit,delay=20ms",
                "rate=15mbit,delay=25ms",
                "rate=18mbit,delay=30ms",
                "rate=21mbit,delay=35ms",
                "rate=24mbit,delay=40ms",
            ],
        ),
    ]
}

/// Loads the page with all pairs and all joint policies over all networks.
fn load_everything(change: impl FnOnce(&mut Scenario)) {
    let all = || vec!["all".to_owned()];
    let mut scenario = Scenario {
        pages: vec!["sitespeed".to_owned()],
        browser: "firefox".to_owned(),
        runs: 1,
        networks: networks(),
        ..Scenario::default()
    };
    (scenario.policies.stream, scenario.policies.path) = (all(), all());
    // A path that dies loads nothing alone.
    scenario.policies.baselines = false;
    change(&mut scenario);
    let plan = Plan::new(scenario).unwrap();
    let registry = Registry::builtin();
    let count = |layer| registry.of(layer).count();
    let least = count(Layer::Stream) * count(Layer::Path) + count(Layer::Joint);
    for network in &plan.networks {
        assert!(network.policies.len() >= least, "{} rows", network.policies.len());
    }
    let batch = run_all(&plan, None, &AtomicBool::new(false), &|_| {}, &run_session).unwrap();
    assert_eq!(batch.summary.failures, []);
    for row in &batch.summary.rows {
        let at_fault = (row.refused, row.overridden);
        assert_eq!(at_fault, (0, 0), "{} over {}", row.policy, row.network);
    }
}

#[test]
fn every_legal_combination_loads_a_page_whatever_the_paths_do() {
    load_everything(|_| {});
}

#[test]
fn so_it_does_by_urgencies_and_with_acknowledgements_on_the_least_delay() {
    load_everything(|scenario| {
        scenario.priorities = Priorities::Urgency;
        scenario.policies.ack = "min-owd".to_owned();
    });
}
