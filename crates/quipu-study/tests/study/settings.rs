//! What a paper leaves open is swept: each claim in each combination is what it is where that combination is the
//! scenario itself.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use quipu_lab::policies::Registry;
use quipu_record::verdict::{Judged, Outcome, Verdict};
use quipu_study::reproduce::{self, Effort, Job, Place, Todo, choose};

/// The claim fails with the window and queue of the scenario, and holds with a window of 64 packets.
const CLAIM: &str = r#"
pages = ["framework-amazon"]
networks = ["wifi+lte"]
runs = 2

[policies]
stream = ["rr", "wrr"]
path = ["minrtt", "single:id=1"]
baselines = false

[transport]
initial_window = WINDOW

[experiment]
id = "open"
paper = "quipu"
title = "made up"
settings_runs = 2

[[experiment.rules]]
name = "fast"
claim = "the page takes less than one and a half second"
reported = "1.4 s"
paper = "1.4s"
metric = "page"
value = "< 1.5s"
of = "rr + single:id=1"
expect = "fails"
because = "the window is too small"

[[experiment.rules]]
name = "never"
claim = "WRR is ten times as fast"
metric = "page"
of = "wrr + single:id=1"
to = "rr + single:id=1"
ratio = "< 0.1"
expect = "fails"
because = "no order is"

[[experiment.rules]]
name = "order"
claim = "objects end in the order in which they do over both paths"
metric = { name = "order", against = "wrr + minrtt" }
of = "wrr + single:id=1"
value = "= 1"
expect = "fails"
because = "two paths are another order"

[[experiment.rules]]
name = "control"
claim = "anything"
kind = "control"
metric = "page"
of = "rr + minrtt"
to = "wrr + minrtt"
ratio = "> 0"

[[experiment.untestable]]
claim = "the server's processor is idle"
because = "there is no processor"
"#;

const SETTINGS: &str = r#"
[[experiment.settings]]
name = "window"
about = "not told"
values = [{ name = "10" }, { name = "64", set = { "transport.initial_window" = 64 } }]

[[experiment.settings]]
name = "queue"
values = [{ name = "own" }, { name = "long", set = { "networks.*.paths.*.down.queue" = "1000p" } }]
"#;

fn judged(folder: &Path, text: &str, effort: Effort) -> Judged {
    let file = folder.join("open.toml");
    fs::write(&file, text).unwrap();
    let (case, origin) = choose(&[file.display().to_string()]).unwrap().remove(0);
    let job = Job::new(case, &origin, effort, &Registry::builtin(), &Arc::default(), None).unwrap();
    let place = Place { out: folder.join("out"), force: true, jobs: Some(2), deals: 0 };
    let todo = Todo::new(vec![job], &place).unwrap();
    let cancelled = Arc::new(AtomicBool::new(false));
    reproduce::reproduce(todo, &place, &cancelled, &|_| {}).unwrap().remove(0)
}

#[test]
fn every_combination_has_the_number_that_it_has_as_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let text = CLAIM.replace("WINDOW", "10");
    let own = judged(folder, &format!("{text}\n{SETTINGS}"), Effort::WHOLE);
    assert!(own.failures.is_empty(), "{:?}", own.failures);
    let table = fs::read_to_string(folder.join("out/open/settings.csv")).unwrap();
    let mut rows = csv::Reader::from_reader(table.as_bytes());
    let rows: Vec<Vec<String>> =
        rows.records().map(|row| row.unwrap().iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows.len(), 12, "three claims in four combinations: {table}");

    // The same with the other window as the scenario's own.
    let wide = judged(folder, &CLAIM.replace("WINDOW", "64"), Effort::WHOLE);
    let number = |rule: &str, window: &str, queue: &str| -> f64 {
        let found = rows.iter().find(|row| row[0] == rule && row[1] == window && row[2] == queue);
        found.unwrap()[3].parse().unwrap()
    };
    for (index, rule) in ["fast", "never", "order"].into_iter().enumerate() {
        for (window, judged) in [("10", &own), ("64", &wide)] {
            let (there, alone) = (number(rule, window, "own"), judged.rules[index].deciding);
            assert!((there - alone.unwrap()).abs() < there * 1e-12, "{rule}: {there} {alone:?}");
        }
    }

    let fast = &own.rules[0];
    assert_eq!(fast.verdict, Verdict::Fails, "{}", fast.here);
    let agreement = fast.agreement.as_ref().unwrap();
    assert_eq!((agreement.holds, agreement.of), (2, 4), "{table}");
    assert_eq!(fast.outcome(), Some(Outcome::Depends));
    assert_eq!(agreement.decided_by().unwrap().setting, "window");
    assert_eq!(agreement.moved_most_by().unwrap().setting, "window");
    let turns: Vec<bool> = agreement.effects[0].values.iter().map(|value| value.turns).collect();
    assert_eq!(turns, [false, true]);
    assert_eq!(own.rules[1].outcome(), Some(Outcome::Not));
    assert_eq!((own.rules[3].outcome(), own.rules[3].agreement.as_ref()), (None, None));
    assert_eq!(own.untestable.len(), 1);
    assert_eq!(own.settings[0].values, ["10", "64"]);
    // Nothing but what claims look at was run in combinations: 4 policies twice, and 3 in 3 combinations twice.
    assert_eq!(own.runs, 4 * 2 + 3 * 3 * 2);
}

#[test]
fn quick_runs_change_one_setting_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = CLAIM.replace("WINDOW", "10");
    let quick = judged(folder.path(), &format!("{text}\n{SETTINGS}"), Effort::QUICK);
    assert_eq!(quick.rules[0].agreement.as_ref().unwrap().of, 3);
}

#[test]
fn without_settings_and_with_a_limit_of_runs_the_scenario_alone_is_judged_by_few_runs() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("{}\n{SETTINGS}", CLAIM.replace("WINDOW", "10"));
    let effort = Effort { runs: Some(1), settings: false, ..Effort::WHOLE };
    let alone = judged(folder.path(), &text, effort);
    assert!(alone.rules[0].agreement.is_none() && alone.quick);
    let other = tempfile::tempdir().unwrap();
    let whole = judged(other.path(), &text, Effort::WHOLE);
    assert!(alone.runs < whole.runs && !whole.quick, "{} of {}", alone.runs, whole.runs);
    assert_ne!(alone.fingerprint, whole.fingerprint);
}
