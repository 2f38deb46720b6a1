use std::collections::BTreeMap;

use std::sync::Mutex;

use crate::table::{Order, Screen, compare};
use quipu_base::{Bytes, Duration, Instant};
use rand::Rng;

use super::*;
use crate::run::RunError;
use quipu_record::{Bounds, End, Metric, ObjectRecord, Output, PathRecord};
use quipu_scenario::{Scenario, Series};

fn plan(runs: u32) -> Plan {
    let scenario = Scenario { runs, pages: vec!["sitespeed".to_owned()], ..Scenario::default() };
    Plan::new(scenario).unwrap()
}

fn page(plan: &Plan) -> crate::pages::RunPage {
    plan.page(Cell { page: 0, network: 0, policy: 0, run: 0 }).unwrap()
}

/// A run without a network: times from the seed, the policy and the object's size.
fn made_up(plan: &Plan, cell: Cell) -> Result<Vec<RunRecord>, String> {
    let mut random = plan.scenario.run_seed(cell.run).stream("made-up", 0);
    let noise = u64::from(random.next_u32() % 1_000_000);
    let time = |millis: u64| {
        Duration::from_nanos(millis * 1_000_000 + noise + 10_000_000 * cell.policy as u64)
    };
    let objects = (0..)
        .zip(plan.page(cell).unwrap().page.objects())
        .map(|(object, spec)| ObjectRecord {
            object,
            connection: 0,
            body: spec.response_bytes,
            held: spec.holds_load(),
            pushed: false,
            stream: None,
            requested_at: Instant::ZERO,
            first_byte_at: Instant::ZERO + time(30),
            completed_at: Instant::ZERO + time(40),
            since_page_start: time(40),
            since_request: time(40),
            bound: Bounds { fluid: Duration::from_millis(20), tight: Duration::from_millis(25) },
        })
        .collect();
    let path = |end, path, bytes| PathRecord {
        connection: 0,
        end,
        path,
        packets_sent: bytes / 1_350,
        datagrams_received: bytes / 1_350,
        bytes_sent: Bytes(bytes),
        bytes_resent: Bytes(0),
        bytes_copies: Bytes(0),
        packets_lost: 0,
        bytes_lost: Bytes(0),
        loss_detection: Duration::ZERO,
        bytes_spurious: Bytes(0),
    };
    Ok(vec![RunRecord {
        connect_time: time(20),
        page_time: time(100),
        object_index: time(50),
        byte_index: time(60),
        critical_time: time(40),
        page_bound: Bounds { fluid: Duration::from_millis(50), tight: Duration::from_millis(80) },
        critical_bound: Bounds { fluid: Duration::ZERO, tight: Duration::from_millis(30) },
        path_switches: 7,
        ended_at: Instant::ZERO + time(120),
        objects,
        paths: vec![path(End::Server, 0, 600_000), path(End::Server, 1, 400_000)],
        ..RunRecord::default()
    }])
}

fn batch(plan: &Plan, jobs: usize) -> Batch {
    run_all(plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &made_up).unwrap()
}

fn files(plan: &Plan, batch: &Batch) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("result");
    let output = Output::prepare(&target, false).unwrap();
    crate::results::write(output, plan, &batch.finished, &batch.summary).unwrap();
    // Nothing but the result is left beside it.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    read_files(&target)
}

fn read_files(folder: &std::path::Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let plan = plan(5);
    let one = files(&plan, &batch(&plan, 1));
    assert_eq!(one, files(&plan, &batch(&plan, 4)));
    let names: Vec<&str> = one.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["networks.csv", "objects.csv", "paths.csv", "runs.csv", "scenario.toml", "summary.json"]
    );
    let lines = |name: &str| {
        let (_, bytes) = one.iter().find(|(known, _)| known == name).unwrap();
        bytes.iter().filter(|byte| **byte == b'\n').count()
    };
    // Five policies and two single paths, five runs each, and a header.
    assert_eq!(lines("runs.csv"), 36);
    assert_eq!(lines("objects.csv"), 1 + 35 * page(&plan).page.objects().len());
    assert_eq!(lines("paths.csv"), 71);
    assert_eq!(lines("networks.csv"), 3);
}

#[test]
fn the_scenario_of_a_result_is_complete() {
    let plan = plan(2);
    let files = files(&plan, &batch(&plan, 1));
    let text = String::from_utf8(files[4].1.clone()).unwrap();
    assert_eq!(Scenario::from_toml(&text, "scenario.toml").unwrap(), plan.scenario);
    let summary: serde_json::Value = serde_json::from_slice(&files[5].1).unwrap();
    assert_eq!(summary["world"], "simulated");
    assert_eq!(summary["seed"], 1);
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["version"], crate::program::VERSION);
    assert!(summary["commit"].is_string());
}

#[test]
fn rows_are_compared_with_the_first_by_pairs() {
    let plan = plan(10);
    let summary = batch(&plan, 2).summary;
    assert_eq!(summary.rows.len(), 7);
    let page_time = |row: usize| summary.rows[row].metric(Metric::PageTime).unwrap();
    assert_eq!(page_time(0).ratio, None);
    let ratio = page_time(1).ratio.unwrap();
    assert!((1.09..1.1).contains(&ratio), "{ratio}");
    assert!(page_time(1).ratio_low.unwrap() <= ratio && ratio <= page_time(1).ratio_high.unwrap());
    assert_eq!(summary.rows[0].shares[0].per_mille, 600);
    assert_eq!(summary.rows[0].shares[1].name, "lte");
    let alone =
        |row: usize| (summary.rows[row].policy.as_str(), summary.rows[row].alone.as_deref());
    assert_eq!(alone(5), ("wifi alone", Some("wifi")));
    assert_eq!(alone(0), ("rr + minrtt", None));
    assert!(summary.faster_alone.is_empty(), "both are slower here");
}

#[test]
fn a_run_that_is_stopped_ends_at_once_and_is_no_failure() {
    let text = "pages = []\nnetworks = [\"wifi+lte\"]\nruns = 2\nduration = \"3600s\"\n\
                [policies]\nstream = [\"rr\"]\npath = [\"minrtt\"]\nbaselines = false\n\
                [[flows]]\nname = \"one\"\n";
    let plan = Plan::new(Scenario::from_toml(text, "long.toml").unwrap()).unwrap();
    // As Ctrl-C does, once the first is under way; without it this takes minutes.
    let run = |plan: &Plan, cell| {
        plan.stop.store(true, Ordering::Relaxed);
        let ended = run_session(plan, cell);
        let is_stopped = |error: &RunError| error.to_string().starts_with("stopped at ");
        assert!(ended.as_ref().is_err_and(is_stopped), "{ended:?}");
        ended
    };
    let batch = run_all(&plan, Some(1), &plan.stop, &|_| {}, &run).unwrap();
    assert!(batch.finished.is_empty() && batch.summary.failures.is_empty());
    assert_eq!(batch.summary.runs_planned, 2);
}

#[test]
fn a_cancelled_batch_keeps_what_is_finished_and_says_so() {
    let plan = plan(10);
    let cancelled = AtomicBool::new(false);
    let stop_after = |done: usize| cancelled.store(done >= 12, Ordering::Relaxed);
    let batch = run_all(&plan, Some(1), &cancelled, &stop_after, &made_up).unwrap();
    assert_eq!(batch.finished.len(), 12);
    assert!(!batch.summary.complete);
    assert_eq!(batch.summary.runs_planned, 70);
    assert_eq!(batch.summary.rows[1].runs, 2);
    assert_eq!(batch.summary.rows[2].metric(Metric::PageTime), None);
    files(&plan, &batch);
}

#[test]
fn a_run_that_fails_is_told_and_the_others_go_on() {
    let plan = plan(3);
    let seen = Mutex::new(0);
    let run = |plan: &Plan, cell: Cell| {
        if cell.policy == 1 && cell.run == 2 {
            Err("no route".to_owned())
        } else {
            made_up(plan, cell)
        }
    };
    let progress = |_: usize| *seen.lock().unwrap() += 1;
    let batch = run_all(&plan, Some(2), &AtomicBool::new(false), &progress, &run).unwrap();
    assert_eq!(*seen.lock().unwrap(), 21);
    assert_eq!(batch.finished.len(), 20);
    assert!(!batch.summary.complete);
    assert_eq!(batch.summary.failures[0].policy, "fifo + minrtt");
    assert_eq!(batch.summary.failures[0].reason, "no route");
}

#[test]
fn a_folder_with_content_is_refused_and_forced_only_for_our_files() {
    let plan = plan(1);
    let batch = batch(&plan, 1);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("result");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("notes.txt"), "mine").unwrap();
    let error = Output::prepare(&target, false).unwrap_err().to_string();
    assert!(error.ends_with("is not empty; --force replaces the results in it"), "{error}");
    let output = Output::prepare(&target, true).unwrap();
    crate::results::write(output, &plan, &batch.finished, &batch.summary).unwrap();
    assert_eq!(std::fs::read(target.join("notes.txt")).unwrap(), b"mine");
    assert!(target.join("summary.json").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The result of `plan` with its time series, from `jobs` threads; every run numbered `fails` fails.
fn sampled(plan: &Plan, jobs: usize, fails: Option<u32>) -> Vec<(String, Vec<u8>)> {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("result");
    let output = Output::prepare(&target, false).unwrap();
    let runner = Runner::new(plan);
    let run = |_: &Plan, cell: Cell| match runner.run_into(Some(&output), cell) {
        Ok(record) if fails != Some(cell.run) => Ok(record),
        Ok(_) => Err("made to".to_owned()),
        Err(error) => Err(error.to_string()),
    };
    let batch = run_all(plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &run).unwrap();
    crate::results::write(output, plan, &batch.finished, &batch.summary).unwrap();
    read_files(&target)
}

#[test]
fn time_series_are_in_the_order_of_the_runs_whichever_ends_first() {
    let mut scenario = plan(3).scenario;
    scenario.series = Series::Every(Duration::from_millis(10));
    let plan = Plan::new(scenario).unwrap();
    let all = sampled(&plan, 1, None);
    assert_eq!(all, sampled(&plan, 4, None));
    let (name, bytes) = all.iter().find(|(name, _)| name == "series.csv").unwrap();
    assert_eq!((all.len(), name.as_str()), (7, "series.csv"));
    let text = String::from_utf8(bytes.clone()).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    assert!(header.starts_with("page,network,policy,run,flow,end,path,time_ns,state,cwnd_bytes,"));
    let columns = header.split(',').count();
    assert!(rows.lines().all(|row| row.split(',').count() == columns));
    let mut runs: Vec<String> =
        rows.lines().map(|row| row.split(',').take(4).collect::<Vec<_>>().join(",")).collect();
    runs.dedup();
    let expected: Vec<String> = plan
        .cells()
        .map(|cell| {
            let policy = &plan.networks[0].policies[cell.policy].label;
            format!("sitespeed,wifi+lte,{policy},{}", cell.run)
        })
        .collect();
    assert_eq!(runs, expected);
    // Tables hold the same runs.
    let without = sampled(&plan, 2, Some(1));
    let text = String::from_utf8(without[5].1.clone()).unwrap();
    let left = text.lines().filter(|row| row.split(',').nth(3) != Some("1"));
    assert_eq!((without[5].0.as_str(), left.count()), ("series.csv", text.lines().count()));
}

#[test]
fn a_new_result_takes_the_series_of_an_old_one_away() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("result");
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("series.csv"), "old").unwrap();
    let plan = plan(1);
    let batch = batch(&plan, 1);
    let output = Output::prepare(&target, true).unwrap();
    crate::results::write(output, &plan, &batch.finished, &batch.summary).unwrap();
    assert_eq!(read_files(&target).len(), 6);
}

#[test]
fn an_output_never_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    drop(Output::prepare(&folder.path().join("result"), false).unwrap());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert!(Output::prepare(&file, true).unwrap_err().to_string().contains("is a file"));
}

#[test]
fn the_comparison_reads_as_a_table() {
    let plan = plan(10);
    let mut summary = batch(&plan, 2).summary;
    summary.rows[1].refused = 3;
    insta::assert_snapshot!(compare(&plan, &summary, Order::default(), Screen::ANY));
}

#[test]
fn a_load_reads_as_a_waterfall() {
    let plan = plan(1);
    let mut record = batch(&plan, 1).finished.remove(0).1;
    for (index, object) in (0..).zip(&mut record.objects) {
        object.requested_at = Instant::ZERO + Duration::from_millis(20 + index * 7);
        object.first_byte_at = object.requested_at + Duration::from_millis(30);
        object.completed_at = object.first_byte_at + Duration::from_millis(index * 4);
        object.held = index != 3;
    }
    let options = crate::table::WaterfallOptions { screen: Screen::ANY, rows: 8 };
    insta::assert_snapshot!(crate::table::waterfall(
        &page(&plan),
        &record,
        &BTreeMap::new(),
        &[],
        options
    ));
}
