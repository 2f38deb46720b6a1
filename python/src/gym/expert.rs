//! Decisions of policies that are there, as data to learn from.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use quipu_base::{Bytes, Instant};
use quipu_lab::batch::Runner;
use quipu_lab::plan::{Cell, Plan};
use quipu_learned::observation::{self, Observation, PLACES};
use quipu_policy::path::eligible;
use quipu_policy::registry::Part;
use quipu_policy::{
    Choice, Event, Layer, Notes, Parcel, PathKey, PathPolicy, PathView, TakeBack, View,
};
use quipu_record::{Column, Form, Kind, RunRecord, TableFile, Value};

use super::planned;
use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::running::with_policies;

/// What an expert decided.
pub(super) struct Decided {
    now: Instant,
    observation: Observation,
    place: usize,
}

/// A path policy whose decisions are taken note of.
pub(super) struct Expert {
    pub(super) part: Part,
    decided: Mutex<Vec<Decided>>,
}

thread_local! {
    /// The expert of the run that goes on.
    static CURRENT: RefCell<Option<Arc<Expert>>> = const { RefCell::new(None) };
}

impl Expert {
    pub(super) fn current() -> Option<Arc<Expert>> {
        CURRENT.with_borrow(Clone::clone)
    }

    fn take(&self) -> Vec<Decided> {
        std::mem::take(&mut self.decided.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What decides as the expert does, and takes note of it where an agent would have been asked.
pub(super) struct Watched {
    inner: Box<dyn PathPolicy>,
    expert: Arc<Expert>,
    observation: Observation,
}

impl Watched {
    pub(super) fn new(inner: Box<dyn PathPolicy>, expert: Arc<Expert>) -> Watched {
        Watched { inner, expert, observation: Observation::default() }
    }
}

impl PathPolicy for Watched {
    fn select(&mut self, parcel: &Parcel<'_>, view: &View<'_>, notes: &mut Notes) -> Choice {
        let choice = self.inner.select(parcel, view, notes);
        let path = match choice {
            Choice::Now(path) | Choice::NowFromBack(path) | Choice::Later(path) => Some(path),
            Choice::Wait { on, .. } => on,
            Choice::None => None,
        };
        let place = view.paths.iter().take(PLACES).position(|other| Some(other.key) == path);
        if let Some(place) = place {
            self.observation.take(Some(parcel), view);
            let allowed = self.observation.allowed;
            let is_open = eligible(view.paths).any(|path| path.is_open(view.now));
            if is_open && allowed[place] && allowed.iter().filter(|allowed| **allowed).count() > 1 {
                let observation = self.observation.clone();
                let decided = Decided { now: view.now, observation, place };
                self.expert.decided.lock().unwrap_or_else(PoisonError::into_inner).push(decided);
            }
        }
        choice
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.inner.on_event(event, view);
    }

    fn fill(&mut self, path: PathKey, parcel: &Parcel<'_>, view: &View<'_>) -> bool {
        self.inner.fill(path, parcel, view)
    }

    fn commit_limit(&self, view: &View<'_>) -> Bytes {
        self.inner.commit_limit(view)
    }

    fn take_back(&mut self, view: &View<'_>) -> TakeBack {
        self.inner.take_back(view)
    }

    fn probe(&mut self, view: &View<'_>) -> Option<PathKey> {
        self.inner.probe(view)
    }

    fn rebinds(&self) -> bool {
        self.inner.rebinds()
    }

    // Each decision is to be seen.
    fn stays_on(&self, _path: &PathView) -> bool {
        false
    }
}

/// Writes the decisions of the path policy `expert` in runs of `scenario`, which `runs` names by the places of page and
/// network and the number of the run, into the Parquet file `out`, and returns how many there are.
#[pyfunction]
#[pyo3(signature = (scenario, expert, runs, out, *, file=None))]
pub(super) fn expert_decisions(
    py: Python<'_>,
    scenario: &str,
    expert: &str,
    runs: Vec<(usize, usize, u32)>,
    out: PathBuf,
    file: Option<PathBuf>,
) -> PyResult<usize> {
    let session = Session::new();
    let plan = planned(scenario, file.as_deref(), &session)?;
    let part = Part::read(&registry::current().registry, Layer::Path, expert);
    let part = part.map_err(|error| error::scenario(format!("expert: {error}")))?;
    let expert = Arc::new(Expert { part, decided: Mutex::new(Vec::new()) });
    for &(page, network, _) in &runs {
        super::check_place(&plan, page, network)?;
    }
    let (written, ended) = with_policies(py, &session, || {
        let work = || write(&plan, &expert, &runs, &out);
        // One of Python needs the interpreter for every packet.
        session.enter(|| if expert.part.is_builtin() { work() } else { Python::attach(|_| work()) })
    });
    ended?;
    written.map_err(|error| error::run(format!("{}: {error}", out.display())))
}

/// The columns beside the numbers of the observation.
fn columns() -> Vec<Column> {
    let before = [
        ("episode", Kind::Whole),
        ("page", Kind::Text),
        ("network", Kind::Text),
        ("run", Kind::Whole),
        ("page_time_ns", Kind::Whole),
        ("time_s", Kind::Number),
    ];
    let before = before.into_iter().map(|(name, kind)| Column::new(name, kind));
    let numbers = observation::names().into_iter().map(|name| Column::new(name, Kind::Number));
    let allowed =
        (0..PLACES).map(|place| Column::new(format!("path{place}.is_allowed"), Kind::Flag));
    let place = Column::new("place", Kind::Whole);
    before.chain(numbers).chain(allowed).chain([place]).collect()
}

fn write(
    plan: &Plan,
    expert: &Arc<Expert>,
    runs: &[(usize, usize, u32)],
    out: &Path,
) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    // It takes its name when it is whole.
    let mut partial = out.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let mut table = TableFile::create(&partial, Form::Parquet, &columns())?;
    let mut count = 0;
    for (episode, &(page, network, run)) in runs.iter().enumerate() {
        let cell = Cell { page, network, policy: 0, run };
        let before = CURRENT.replace(Some(Arc::clone(expert)));
        let records = Runner::new(plan).without_bounds().run_session(cell);
        CURRENT.set(before);
        let decided = expert.take();
        count += decided.len();
        let records = records?;
        rows(&mut table, plan, (episode, cell), records.first(), &decided)?;
    }
    table.finish()?;
    std::fs::rename(&partial, out)?;
    Ok(count)
}

fn rows(
    table: &mut TableFile,
    plan: &Plan,
    (episode, cell): (usize, Cell),
    record: Option<&RunRecord>,
    decided: &[Decided],
) -> std::io::Result<()> {
    let page = plan.pages.get(cell.page).map_or("", |page| page.note.name.as_str());
    let network = plan.networks[cell.network].network.name.as_str();
    for decision in decided {
        let lead = [
            Value::Whole(episode as u64),
            Value::Text(page),
            Value::Text(network),
            Value::Whole(cell.run.into()),
            record.map_or(Value::Nothing, |record| Value::Whole(record.page_time.as_nanos())),
            Value::Number(decision.now.as_nanos() as f64 / 1e9),
        ];
        let numbers =
            decision.observation.numbers.iter().map(|number| Value::Number(f64::from(*number)));
        let allowed = decision.observation.allowed.iter().map(|allowed| Value::Flag(*allowed));
        let place = Value::Whole(decision.place as u64);
        let rest: Vec<Value<'_>> = numbers.chain(allowed).chain([place]).collect();
        table.write(&lead, &rest)?;
    }
    Ok(())
}
