//! Rows of a path alone: they are runs over a network of that path, handshake included, to the byte.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{Batch, run_all, run_session};
use quipu_lab::detail::{Options, replay};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::results::write;
use quipu_record::{Output, RunRecord, TrafficRecord};
use quipu_scenario::{Network, Scenario, find_network};

fn plan(text: &str) -> Plan {
    Plan::new(Scenario::from_toml(text, "alone.toml").unwrap()).unwrap()
}

/// The plan of the same scenario with a network of one path in place of its own.
fn over(whole: &Plan, network: Network) -> Plan {
    Plan::new(Scenario { networks: vec![network], ..whole.scenario.clone() }).unwrap()
}

/// The position of the row called `label` on the first network.
fn row(plan: &Plan, label: &str) -> usize {
    plan.networks[0].policies.iter().position(|row| row.label == label).unwrap()
}

/// The runs of a row on the first network; its paths have the position 0.
fn runs(plan: &Plan, policy: usize) -> Vec<Vec<RunRecord>> {
    let cells = plan.cells().filter(|cell| cell.policy == policy);
    let mut runs: Vec<Vec<RunRecord>> =
        cells.map(|cell| run_session(plan, cell).unwrap()).collect();
    for record in runs.iter_mut().flatten() {
        record.paths.iter_mut().for_each(|path| path.path = 0);
        let TrafficRecord { flows, links, .. } = &mut record.traffic;
        links.iter_mut().for_each(|link| link.path = 0);
        flows.iter_mut().flat_map(|flow| &mut flow.paths).for_each(|path| path.path = 0);
    }
    runs
}

/// Checks each path alone of the scenario `text` against a network of that path.
fn check(text: &str) {
    let whole = plan(text);
    let network = &whole.networks[0].network;
    for (position, path) in network.paths.iter().enumerate() {
        let one = over(&whole, network.alone(position).unwrap());
        let policy = row(&whole, &format!("{} alone", path.name));
        let alone = runs(&whole, policy);
        assert!(alone == runs(&one, 0), "{} of {text}", path.name);
        let bounded = |record: &RunRecord| record.page_time >= record.page_bound.tight;
        assert!(alone.iter().flatten().all(bounded), "the bound is that of the path");
    }
}

#[test]
fn one_path_rows_equal_the_network_of_that_path() {
    // Clean, with losses, with jitter and bursts of loss, with asymmetric links, over the radio, and as
    // recorded: in groups of one recording, and of two of unlike lengths.
    for network in [
        "wifi+lte",
        "wifi+lte-lossy",
        "framework-medium-netem",
        "dsl+lte",
        "framework-scene-high",
        "us-drive-08",
        "wifi-weak+lte-recorded",
    ] {
        check(&format!("runs = 2\npages = [\"sitespeed\"]\nnetworks = [\"{network}\"]\n"));
    }
}

#[test]
fn so_they_do_over_shared_links_with_clients_origins_and_traffic() {
    check(
        r#"
        runs = 2
        pages = ["sitespeed", "pries"]
        origins = "recorded"
        clients = { count = 2, spread = "50ms" }
        session = 2
        host_jitter = "200us"
        [policies]
        stream = ["srpt", "rr"]
        congestion = "cubic"
        [[networks]]
        name = "shared"
        links = [
            { name = "other", down = { rate = "80mbit", delay = "1ms", loss = "2%" } },
            { name = "backbone", down = { rate = "40mbit", delay = "5ms", loss = "0.5%", queue = "fq-codel" } },
        ]
        paths = [
            { name = "wifi", down = { rate = "20mbit", delay = "10ms", loss = "1%" }, via = ["other"] },
            { name = "lte", down = { rate = "12mbit", delay = "20ms", jitter = "2ms" }, via = ["backbone", "other"] },
            { name = "home", bottleneck = "lte", access = { rate = "15mbit", delay = "2ms", loss = "1%" } },
        ]
        [[flows]]
        name = "everywhere"
        stop = "2s"
        "#,
    );
}

/// The links of a path are those that its network has, whoever writes it down.
#[test]
fn the_network_of_a_path_can_be_written_by_hand() {
    let whole = plan("runs = 3\npages = [\"sitespeed\"]\nnetworks = [\"wifi+lte\"]\n");
    for name in ["wifi", "lte"] {
        let one = over(&whole, find_network(name).unwrap());
        let policy = row(&whole, &format!("{name} alone"));
        assert_eq!(runs(&whole, policy), runs(&one, 0), "{name}");
    }
    let text = r#"
        pages = ["sitespeed"]
        runs = 2
        [[networks]]
        name = "dumbbell"
        paths = [
            { name = "near", down = { rate = "4mbit", delay = "2ms", loss = "1%" } },
            { name = "far", bottleneck = "near", access = { rate = "10mbit", delay = "45ms" } },
        ]
    "#;
    let far = r#"
        name = "any"
        paths = [{ name = "any", down = { rate = "4mbit", delay = "2ms", loss = "1%" },
                   access = { rate = "10mbit", delay = "45ms" } }]
    "#;
    let whole = plan(text);
    let one = over(&whole, toml::from_str(far).unwrap());
    assert_eq!(runs(&whole, row(&whole, "far alone")), runs(&one, 0));
}

/// A policy that uses one path of two is another thing: the handshake may go over the other one.
#[test]
fn a_policy_of_one_path_is_no_path_alone() {
    let text = "pages = [\"sitespeed\"]\nnetworks = [\"wifi+lte\"]\nruns = 1\n\
                [policies]\nstream = [\"rr\"]\npath = [\"single:id=1\"]\n";
    let plan = plan(text);
    let labels: Vec<&str> = plan.rows().map(|row| row.label.as_str()).collect();
    assert_eq!(labels, ["rr + single:id=1", "wifi alone", "lte alone"]);
    let cell = |policy| Cell { page: 0, network: 0, policy, run: 0 };
    let paths = |policy: usize| -> BTreeSet<u32> {
        let records = run_session(&plan, cell(policy)).unwrap();
        records.iter().flat_map(|record| &record.paths).map(|path| path.path).collect()
    };
    assert_eq!(paths(0), BTreeSet::from([0, 1]));
    assert_eq!(paths(1), BTreeSet::from([0]));
    assert_eq!(paths(2), BTreeSet::from([1]));
    let connect = |policy| run_session(&plan, cell(policy)).unwrap()[0].connect_time;
    assert!(connect(2) < connect(0), "the handshake goes over LTE, whose round trip is shorter");
}

/// The result files of all runs of `plan` in `folder`.
fn write_results(plan: &Plan, folder: &Path) -> Batch {
    let output = Output::prepare(folder, false).unwrap();
    let run = |plan: &Plan, cell| run_session(plan, cell);
    let batch = run_all(plan, None, &AtomicBool::new(false), &|_| {}, &run).unwrap();
    write(output, plan, &batch.finished, &batch.summary).unwrap();
    batch
}

/// The rows of `file` whose policy is `policy`, without the columns `without`.
fn rows_of(folder: &Path, file: &str, policy: &str, without: &[&str]) -> Vec<String> {
    let text = fs::read_to_string(folder.join(file)).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let at = titles.iter().position(|title| *title == "policy").unwrap();
    let kept = |row: Vec<&str>| -> String {
        let cells = titles.iter().zip(&row).filter(|(title, _)| !without.contains(title));
        cells.map(|(_, cell)| *cell).collect::<Vec<_>>().join(",")
    };
    lines.filter(|row| row[at] == policy).map(kept).collect()
}

#[test]
fn files_have_the_same_bytes_but_for_names_and_positions() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        runs = 2
        pages = ["sitespeed"]
        networks = ["wifi+lte-lossy"]
        [policies]
        stream = ["rr"]
        [[flows]]
        name = "over both"
        stop = "1s"
        [[flows]]
        name = "down"
        paths = ["wifi"]
        stop = "1s"
    "#;
    let whole = plan(text);
    let batch = write_results(&whole, &folder.path().join("whole"));
    assert!(batch.summary.failures.is_empty());
    let network = whole.networks[0].network.alone(0).unwrap();
    write_results(&over(&whole, network), &folder.path().join("wifi"));
    for file in ["runs", "objects", "paths", "flows", "flow_paths", "links"] {
        let rows = |folder: &Path, policy| {
            rows_of(folder, &format!("{file}.csv"), policy, &["network", "policy"])
        };
        let alone = rows(&folder.path().join("whole"), "wifi alone");
        assert_eq!(alone, rows(&folder.path().join("wifi"), "rr + minrtt"), "{file}");
        assert!(!alone.is_empty(), "{file}");
    }
    // LTE alone has only the part of the first flow that goes over it; its path is that of the network.
    let lte = |file| rows_of(&folder.path().join("whole"), file, "lte alone", &[]);
    let flows = lte("flows.csv");
    assert!(flows.len() == 2 && flows.iter().all(|row| row.contains(",0,over both,")), "{flows:?}");
    let named = |file| lte(file).iter().all(|row| row.contains(",1,lte,"));
    assert!(named("paths.csv") && named("flow_paths.csv") && named("links.csv"));
    let sharing = |policy: &str| {
        let found = batch.summary.sharing.iter().find(|it| it.policy == policy).unwrap();
        let links: Vec<&str> = found.links.iter().map(|link| link.name.as_str()).collect();
        (found.flows.len(), links)
    };
    assert_eq!(sharing("rr + minrtt"), (2, vec!["wifi", "wifi", "lte", "lte"]));
    assert_eq!(sharing("lte alone"), (1, vec!["lte", "lte"]));
    let table = quipu_lab::table::compare(
        &whole,
        &batch.summary,
        quipu_lab::table::Order::default(),
        quipu_lab::table::Screen::ANY,
    );
    let links = table.split("Links: % of capacity").nth(1).unwrap();
    let lte = links.lines().find(|line| line.starts_with("lte alone")).unwrap();
    assert_eq!(lte.split_whitespace().filter(|cell| *cell == "–").count(), 4, "{links}");
}

#[test]
fn a_path_whose_links_carry_other_traffic_has_no_row() {
    let text = r#"
        pages = ["sitespeed"]
        runs = 1
        [[networks]]
        name = "dumbbell"
        paths = [
            { name = "near", down = { rate = "4mbit", delay = "2ms" } },
            { name = "far", bottleneck = "near", access = { rate = "10mbit", delay = "45ms" } },
            { name = "apart", down = { rate = "4mbit", delay = "2ms" } },
        ]
        [policies]
        stream = ["rr"]
        [[cross]]
        name = "noise"
        path = "near"
        rate = "1mbit"
    "#;
    let labels: Vec<String> = plan(text).rows().map(|row| row.label.clone()).collect();
    assert_eq!(labels, ["rr + minrtt", "near alone", "apart alone"]);
}

#[test]
fn one_load_in_full_names_the_path_as_the_network_does() {
    let plan = plan("pages = [\"sitespeed\"]\nnetworks = [\"wifi+lte\"]\nruns = 1\n");
    let cell = Cell { page: 0, network: 0, policy: row(&plan, "lte alone"), run: 0 };
    let detail = replay(&plan, cell, &Options::default()).unwrap();
    assert_eq!(detail.paths, ["wifi", "lte"]);
    let carried = detail.objects.iter().flat_map(|object| &object.carried);
    assert!(carried.clone().count() > 0 && carried.clone().all(|it| it.path == 1));
    let series: Vec<(u32, &str)> =
        detail.series[0].paths.iter().map(|path| (path.path, path.name.as_str())).collect();
    assert_eq!(series, [(1, "lte")]);
}

/// A page of some kilobytes ends before a second path helps, and the handshake of a connection over both
/// goes over the first path, whose round trip is longer here.
#[test]
fn the_table_says_where_a_path_alone_is_faster() {
    let folder = tempfile::tempdir().unwrap();
    let text = "runs = 3\npages = [\"sitespeed\", \"framework-youtube\"]\n\
                networks = [\"wifi+lte\", \"dsl+lte\"]\n[policies]\nstream = [\"rr\"]\n";
    let plan = plan(text);
    let summary = write_results(&plan, &folder.path().join("out")).summary;
    let [found] = &summary.faster_alone[..] else { panic!("{:?}", summary.faster_alone) };
    assert_eq!((found.page.as_str(), found.network.as_str()), ("sitespeed", "wifi+lte"));
    assert_eq!((found.path.as_str(), found.nearest.as_str()), ("lte", "rr + minrtt"));
    assert!(found.ratio_high.unwrap() < 1.0);
    let table = quipu_lab::table::compare(
        &plan,
        &summary,
        quipu_lab::table::Order::default(),
        quipu_lab::table::Screen::ANY,
    );
    let blocks: Vec<&str> = table.split("· simulated").collect();
    let told = blocks.iter().map(|block| block.matches("alone is faster than").count());
    assert_eq!(
        told.collect::<Vec<_>>(),
        [0, 1, 0, 0, 0],
        "under the table of its page and network"
    );
    assert!(blocks[1].contains(&format!("\n\n{found}\n")), "{}", blocks[1]);
    let json = fs::read_to_string(folder.path().join("out/summary.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["faster_alone"][0]["policy"], "lte alone");
    assert_eq!(json["rows"][2]["alone"], "lte");
    assert!(json["rows"][0].get("alone").is_none());
}
