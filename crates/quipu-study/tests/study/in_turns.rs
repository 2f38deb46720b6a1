//! Runs that another than the simulator makes.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use quipu_lab::batch::run_session;
use quipu_lab::plan::{Cell, MakeError, Maker, Plan};
use quipu_lab::policies::Registry;
use quipu_record::RunRecord;
use quipu_scenario::Document;
use quipu_study::sweep::{Place, State, Sweep, Todo};

const FILE: &str = r#"
pages = ["sitespeed"]
runs = 3
policies = { stream = ["rr", "fifo"], path = ["minrtt"], baselines = false }

[sweep]
"transport.initial_window" = [10, 32]
"#;

/// Makes simulated runs, of which the one that it is asked for at `failing` fails.
#[derive(Debug)]
struct Busy {
    failing: Option<usize>,
    asked: Mutex<Vec<u32>>,
}

impl Maker for Busy {
    fn make(&self, plan: &Plan, cell: Cell) -> Result<Vec<RunRecord>, MakeError> {
        let mut asked = self.asked.lock().unwrap();
        asked.push(cell.run);
        if self.failing == Some(asked.len() - 1) {
            return Err(MakeError("void".to_owned()));
        }
        let simulated = Plan { maker: None, ..plan.clone() };
        run_session(&simulated, cell).map_err(|error| MakeError(error.to_string()))
    }
}

/// The numbers of the runs that were asked for, what failed, and how the sweep stands.
fn sweep(folder: &Path, failing: Option<usize>) -> (Vec<u32>, Vec<String>, State) {
    let maker = Arc::new(Busy { failing, asked: Mutex::default() });
    let document = Document::new(FILE, "a.toml");
    let sweep = Sweep::read(&document, &Registry::builtin()).unwrap().unwrap();
    let sweep = sweep.emulated(&(Arc::clone(&maker) as Arc<dyn Maker>));
    let place =
        Place { out: folder.to_owned(), from: Vec::new(), force: false, jobs: None, shard: None };
    let mut todo = Todo::new(sweep, place).unwrap();
    todo.run(&Arc::new(AtomicBool::new(false)), &|| {}).unwrap();
    let asked = maker.asked.lock().unwrap().clone();
    (asked, todo.again().to_vec(), todo.status().state)
}

#[test]
fn runs_in_real_time_are_made_number_by_number_and_again_if_they_failed() {
    let folder = tempfile::tempdir().unwrap();
    let (asked, failed, state) = sweep(folder.path(), Some(5));
    assert_eq!(asked, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]);
    assert_eq!(state, State::Incomplete);
    assert!(failed.len() == 1 && failed[0].ends_with(", run 1: void"), "{failed:?}");
    assert_eq!(sweep(folder.path(), None), (vec![1], Vec::new(), State::Complete));
    assert_eq!(sweep(folder.path(), None), (Vec::new(), Vec::new(), State::Complete));
}
