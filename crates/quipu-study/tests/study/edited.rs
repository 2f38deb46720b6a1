//! What is kept of earlier runs is used as long as the program would make it again, and no longer.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_lab::policies::Registry;
use quipu_lab::policy::registry::{Entry, Layer};
use quipu_lab::program::{BuiltFrom, Program};
use quipu_scenario::Document;
use quipu_study::reproduce::{self, Effort, Job};
use quipu_study::sweep::{Place, Sweep, Todo};

const SCENARIO: &str = r#"
pages = ["framework-google"]
networks = ["wifi+lte"]
runs = 2

[policies]
stream = ["rr"]
path = ["minrtt", "mine"]
baselines = false
"#;
const SWEEP: &str = "[sweep]\n\"transport.initial_window\" = [10]\n";
const EXPERIMENT: &str = r#"
[experiment]
id = "edited"
paper = "quipu"
title = "made up"

[[experiment.rules]]
name = "mine"
claim = "the same"
metric = "page"
of = "rr + mine"
to = "rr + minrtt"
ratio = "> 0"
"#;

const POLICIES: [(&str, &str, u128); 4] =
    [("ack", "own", 1), ("congestion", "newreno", 2), ("path", "minrtt", 3), ("stream", "rr", 4)];
const BUILT_FROM: BuiltFrom =
    BuiltFrom { commit: "c", profile: "p", sources: Some(1), policies: &POLICIES };

/// The built-in policies, and one more that does what `like` does.
fn registry(like: &str) -> Registry {
    let mut registry = Registry::builtin();
    let like = registry.get(Layer::Path, like).unwrap().clone();
    registry.add(Entry { name: "mine", ..like }).unwrap();
    registry
}

fn program(built_from: BuiltFrom, executable: u128) -> Arc<Program> {
    let program = Program::new(built_from, &registry("single")).unwrap();
    Arc::new(program.with_executable(executable))
}

/// How many runs are made of the sweep, and its tables.
fn sweep(folder: &Path, registry: &Registry, program: &Arc<Program>) -> (usize, String) {
    let document = Document::new(format!("{SCENARIO}\n{SWEEP}"), "a.toml");
    let sweep = Sweep::read(&document, registry).unwrap().unwrap().made_by(program);
    let out = folder.to_owned();
    let place = Place { out, from: Vec::new(), force: false, jobs: Some(1), shard: None };
    let mut todo = Todo::new(sweep, place).unwrap();
    let runs = todo.runs();
    todo.run(&Arc::new(AtomicBool::new(false)), &|| {}).unwrap();
    todo.write().unwrap();
    (runs, fs::read_to_string(folder.join("runs.csv")).unwrap())
}

#[test]
fn an_edited_policy_of_ones_own_is_run_again_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let (before, after) = (program(BUILT_FROM, 1), program(BUILT_FROM, 2));
    let (runs, first) = sweep(out, &registry("minrtt"), &before);
    assert_eq!(runs, 4);
    assert_eq!(sweep(out, &registry("minrtt"), &before), (0, first.clone()), "nothing is edited");

    let (runs, second) = sweep(out, &registry("single"), &after);
    assert_eq!(runs, 2, "the built-in one is as it was");
    assert_ne!(second, first);
    let fresh = tempfile::tempdir().unwrap();
    assert_eq!(sweep(fresh.path(), &registry("single"), &after), (4, second));
    // What it was before is kept still.
    assert_eq!(sweep(out, &registry("minrtt"), &before), (0, first));
}

#[test]
fn an_edited_policy_that_is_built_in_is_run_again_and_so_is_all_after_an_edit_of_the_rest() {
    const EDITED: [(&str, &str, u128); 4] =
        [POLICIES[0], POLICIES[1], ("path", "minrtt", 9), POLICIES[3]];
    let folder = tempfile::tempdir().unwrap();
    let registry = registry("single");
    let runs = |built_from| sweep(folder.path(), &registry, &program(built_from, 1)).0;
    assert_eq!(runs(BUILT_FROM), 4);
    assert_eq!(runs(BuiltFrom { commit: "d-dirty", profile: "q", ..BUILT_FROM }), 0);
    assert_eq!(runs(BuiltFrom { policies: &EDITED, ..BUILT_FROM }), 2);
    assert_eq!(runs(BuiltFrom { sources: Some(2), ..BUILT_FROM }), 4);
}

#[test]
fn experiments_are_run_again_if_one_of_their_policies_is_edited() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("edited.toml");
    fs::write(&file, format!("{SCENARIO}\n{EXPERIMENT}")).unwrap();
    let out = folder.path().join("results");
    let runs_with = |like: &str, executable, deals| {
        let place = reproduce::Place { out: out.clone(), force: false, jobs: Some(1), deals };
        let (case, origin) = reproduce::load(&file).unwrap().remove(0);
        let program = program(BUILT_FROM, executable);
        let job = Job::new(case, &origin, Effort::WHOLE, &registry(like), &program, None).unwrap();
        let todo = reproduce::Todo::new(vec![job], &place).unwrap();
        let runs = todo.runs();
        reproduce::reproduce(todo, &place, &Arc::new(AtomicBool::new(false)), &|_| {}).unwrap();
        (runs, fs::read_to_string(out.join("edited/runs.csv")).unwrap())
    };
    let runs = |like: &str, executable| runs_with(like, executable, 0);
    let first = runs("minrtt", 1);
    assert_eq!(first.0, 4);
    assert_eq!(runs("minrtt", 1), (0, first.1.clone()), "nothing is edited");
    // Deals need the runs; what was judged with them is kept for who asks for none.
    assert_eq!(runs_with("minrtt", 1, 3), first);
    assert_eq!(runs_with("minrtt", 1, 3).0, 0);
    assert_eq!(runs("minrtt", 1).0, 0);
    let second = runs("single", 2);
    assert_eq!(second.0, 4);
    assert_ne!(second.1, first.1);
    let verdicts = fs::read_to_string(out.join("edited/verdicts.json")).unwrap();
    for line in ["\"commit\": \"c\"", "\"program\": \"executable:", "\"profile\": \"p\""] {
        assert!(verdicts.contains(line), "{line}");
    }
}
