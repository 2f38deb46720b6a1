//! Sweeps whose parts others make.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use quipu_lab::plan::Plan;
use quipu_lab::policies::Registry;
use quipu_scenario::Document;
use quipu_study::sweep::{Place, Shard, State, Sweep, Todo};

const FILE: &str = r#"
pages = ["dojo-demo"]
runs = 4
policies = { stream = ["rr", "fifo"], path = ["minrtt"], baselines = false }

[sweep]
"transport.initial_window" = [10, 32]
"#;
const RUNS: usize = 16;

fn todo(folder: &Path, shard: Option<&str>) -> Todo {
    todo_on(folder, shard, None)
}

fn todo_on(folder: &Path, shard: Option<&str>, jobs: Option<usize>) -> Todo {
    let sweep = Sweep::read(&Document::new(FILE, "a.toml"), &Registry::builtin()).unwrap();
    let shard = shard.map(|shard| shard.parse::<Shard>().unwrap());
    let place = Place { out: folder.to_owned(), from: Vec::new(), force: false, jobs, shard };
    Todo::new(sweep.unwrap(), place).unwrap()
}

/// Makes all runs of `todo`, or at most so many.
fn make(todo: &mut Todo, most: usize) -> usize {
    let cancelled = Arc::new(AtomicBool::new(false));
    let made = AtomicUsize::new(0);
    let progress = || {
        if made.fetch_add(1, Ordering::Relaxed) + 1 >= most {
            cancelled.store(true, Ordering::Relaxed);
        }
    };
    todo.run(&cancelled, &progress).unwrap();
    made.into_inner()
}

/// The files of results by name; not the store.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.path().is_file());
    let read = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())
    };
    files.map(read).collect()
}

#[test]
fn parts_that_come_one_by_one_are_joined_to_the_same_files() {
    let folders = tempfile::tempdir().unwrap();
    let whole = folders.path().join("whole");
    let mut at_once = todo(&whole, None);
    assert_eq!(make(&mut at_once, usize::MAX), RUNS);
    at_once.write().unwrap();

    let joined = folders.path().join("joined");
    let mut gathering = todo(&joined, None);
    gathering.begin().unwrap();
    for shard in ["1/3", "2/3", "3/3"] {
        let part = folders.path().join(shard.replace('/', "-"));
        let missing = gathering.missing_of(shard.parse().unwrap());
        let made = make(&mut todo(&part, Some(shard)), usize::MAX);
        assert_eq!((made, gathering.merge(&part).unwrap()), (missing, missing));
        // What has come is not taken again.
        assert_eq!(gathering.merge(&part).unwrap(), 0);
    }
    assert_eq!(gathering.runs(), 0);
    gathering.settle().unwrap();
    gathering.write().unwrap();
    assert_eq!(gathering.status().state, State::Complete);
    assert_eq!(files(&joined), files(&whole));
}

#[test]
fn runs_of_a_part_that_was_stopped_count_and_are_not_made_again() {
    let folders = tempfile::tempdir().unwrap();
    let (joined, part) = (folders.path().join("joined"), folders.path().join("part"));
    let mut gathering = todo(&joined, None);
    gathering.begin().unwrap();
    let shard: Shard = "1/1".parse().unwrap();
    assert!(gathering.kept(shard).is_empty());
    let made = make(&mut todo(&part, Some("1/1")), 5);
    assert_eq!(gathering.merge(&part).unwrap(), made);

    let kept = gathering.kept(shard);
    assert_eq!(kept.len(), made);
    let mut again = todo(&folders.path().join("again"), Some("1/1"));
    again.leave_out(&kept);
    assert_eq!(again.runs(), RUNS - made);
    assert_eq!(make(&mut again, usize::MAX), RUNS - made);
    assert_eq!(gathering.merge(&folders.path().join("again")).unwrap(), RUNS - made);
    assert_eq!(gathering.runs(), 0);
}

#[test]
fn a_folder_without_runs_gives_none() {
    let folders = tempfile::tempdir().unwrap();
    let mut gathering = todo(&folders.path().join("joined"), None);
    gathering.begin().unwrap();
    assert_eq!(gathering.merge(&folders.path().join("none")).unwrap(), 0);
    assert_eq!(gathering.runs(), RUNS);
    gathering.settle().unwrap();
    gathering.write().unwrap();
    assert_eq!(gathering.status().state, State::Incomplete);
}

#[test]
fn what_does_not_count_is_not_kept_and_ends_the_runs() {
    let folders = tempfile::tempdir().unwrap();
    let mut todo = todo_on(folders.path(), None, Some(1));
    let asked = AtomicUsize::new(0);
    let within = |_: &Plan, run: &mut dyn FnMut()| {
        run();
        asked.fetch_add(1, Ordering::Relaxed) < 3
    };
    todo.run_within(&Arc::default(), &|| {}, &within).unwrap();
    assert_eq!((asked.into_inner(), todo.status().done), (4, 3));
}
