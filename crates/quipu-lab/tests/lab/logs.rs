//! Logs of sweeps: the same bytes on any number of threads, and no other results.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use quipu_lab::batch::{Runner, run_all};
use quipu_lab::plan::Plan;
use quipu_lab::run::Instruments;
use quipu_lab::run::logs::{Form, Logs};
use quipu_record::RunRecord;
use quipu_scenario::Scenario;

fn plan() -> Plan {
    let mut scenario = Scenario::default();
    for (field, value) in [
        ("pages", "sitespeed"),
        ("runs", "2"),
        ("policies.stream", "rr,dwrr"),
        ("policies.path", "minrtt"),
    ] {
        scenario = scenario.with_field(field, value).unwrap();
    }
    scenario.policies.baselines = false;
    Plan::new(scenario).unwrap()
}

/// All files below `folder`, by their path in it.
fn files(folder: &Path, prefix: &str, into: &mut BTreeMap<String, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files(&entry.path(), &format!("{name}/"), into);
        } else {
            into.insert(name, fs::read(entry.path()).unwrap());
        }
    }
}

/// The records and the files of a sweep; `logs`: form and runs that are logged.
fn batch(
    jobs: usize,
    logs: Option<(Form, Option<u32>)>,
) -> (Vec<RunRecord>, BTreeMap<String, Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan();
    let logs = logs.map(|(form, runs)| Logs::of_many(folder.path(), form, runs).unwrap());
    let expected = logs.as_ref().map_or(0, |logs| logs.files(&plan));
    let instruments = Instruments::default().with_logs(logs.clone());
    let runner = Runner::with_instruments(&plan, instruments);
    let run = |_: &Plan, cell| runner.run_session(cell);
    let batch = run_all(&plan, Some(jobs), &AtomicBool::new(false), &|_| {}, &run).unwrap();
    assert!(batch.summary.failures.is_empty());
    let mut found = BTreeMap::new();
    files(folder.path(), "", &mut found);
    assert_eq!(found.len(), expected);
    if let Some(logs) = logs {
        assert_eq!(logs.finish().unwrap().len(), expected);
    }
    (batch.finished.into_iter().map(|(_, record)| record).collect(), found)
}

#[test]
fn logs_depend_on_no_number_of_threads_and_change_no_result() {
    for form in [Form::Current, Form::Version03] {
        let (records, one) = batch(1, Some((form, None)));
        let (_, three) = batch(3, Some((form, None)));
        assert!(one == three, "the bytes are the same");
        assert_eq!(records, batch(2, None).0);
        let of = |run: &str| one.keys().filter(|name| name.contains(run)).count();
        let halves = (of(",_run_0/"), of(",_run_1/"));
        assert_eq!(halves, (one.len() / 2, one.len() / 2), "{:?}", one.keys());
    }
}

#[test]
fn only_the_first_runs_are_logged_if_so_asked() {
    let (_, some) = batch(2, Some((Form::Current, Some(1))));
    let (_, all) = batch(2, Some((Form::Current, None)));
    assert_eq!((some.len(), all.len()), (4, 8));
    assert!(some.iter().all(|(name, bytes)| all.get(name) == Some(bytes)));
}
