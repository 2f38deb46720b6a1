//! Simulations that stop at every question to an agent: what the environments of Gymnasium are made of.
//!
//! - [`exchange`]: question, answer, and the coroutine in between.
//! - [`paths`], [`order`]: the policies that ask.
//! - [`entries`]: their name.
//! - [`expert`]: decisions of policies that are there, as data to learn from.
//! - [`simulation`]: one simulation at a time, from its start to its end.
//!
//! Not here: rewards, spaces, episodes (`python/quipu/envs.py`).

mod entries;
mod exchange;
mod expert;
mod order;
mod paths;
mod simulation;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use quipu_base::{Duration, Role};
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::RunError;
use quipu_learned::observation;
use quipu_record::End;
use quipu_scenario::Direction;

use crate::error;
use crate::policy::registry;
use crate::policy::session::Session;
use crate::scenario::{document, plan_with};
use exchange::{Act, Exchange};
use simulation::{Course, Simulation};

pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Simulations>()?;
    module.add_function(wrap_pyfunction!(expert::expert_decisions, module)?)
}

/// How many numbers tell how a simulation stands.
const STANDING: usize = 7;

/// Simulations of one scenario, which go from question to question.
#[pyclass(module = "quipu._quipu")]
pub(crate) struct Simulations {
    plan: Plan,
    act: Act,
    session: Arc<Session>,
    /// Each in a lock, which is never contended: coroutines cannot be looked at from two threads.
    slots: Vec<Mutex<Simulation>>,
}

#[pymethods]
impl Simulations {
    /// `count` simulations of `scenario`, in which `agent` stands for who is asked: for `act`, one of `path`, `weights`,
    /// `order` and `window`, the second and the last each `interval_ns`.
    #[new]
    #[pyo3(signature = (scenario, act, interval_ns, count, *, file=None))]
    fn new(
        scenario: &str,
        act: &str,
        interval_ns: u64,
        count: usize,
        file: Option<PathBuf>,
    ) -> PyResult<Simulations> {
        let known = Act::ALL.map(Act::name);
        let act = Act::ALL.into_iter().find(|known| known.name() == act).ok_or_else(|| {
            PyValueError::new_err(format!("act: {act}: expected one of {}", known.join(", ")))
        })?;
        if interval_ns == 0 {
            return Err(PyValueError::new_err("interval: 0: expected more than no time"));
        }
        let session = Session::new();
        let plan = planned(scenario, file.as_deref(), &session)?;
        let interval = Duration::from_nanos(interval_ns);
        let slots = (0..count)
            .map(|_| Simulation::new(&plan, Exchange::new(act, interval), Arc::clone(&session)))
            .map(Mutex::new);
        Ok(Simulations { slots: slots.collect(), plan, act, session })
    }

    /// The names of the numbers of a question, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        if self.act == Act::Order { order::names() } else { observation::names() }
    }

    /// How many numbers a question has, how many flags say what is allowed, how many numbers answer it, and the greatest
    /// number of a question.
    #[getter]
    fn shape(&self) -> (usize, usize, usize, f32) {
        let (numbers, allowed, answer) = self.act.shape();
        (numbers, allowed, answer, observation::GREATEST)
    }

    /// The names of the pages, in order; none if there are flows alone.
    #[getter]
    fn pages(&self) -> Vec<String> {
        self.plan.pages.iter().map(|page| page.note.name.clone()).collect()
    }

    /// The names of the networks, in order.
    #[getter]
    fn networks(&self) -> Vec<String> {
        self.plan.networks.iter().map(|network| network.network.name.clone()).collect()
    }

    /// Starts the run number `run` of a page and a network, by their places, in `slot`, and goes on to the first question.
    fn start(&mut self, slot: usize, page: usize, network: usize, run: u32) -> PyResult<()> {
        check_place(&self.plan, page, network)?;
        let cell = Cell { page, network, policy: 0, run };
        self.slot(slot)?.start(cell);
        self.checked()
    }

    /// Answers the questions of the simulations in `slots`, all if it is `None`, by float32 numbers in `answers`, which has
    /// those of all slots, and goes on to the next ones.
    #[pyo3(signature = (answers, slots=None))]
    fn step(&mut self, answers: &[u8], slots: Option<Vec<usize>>) -> PyResult<()> {
        let (.., each) = self.act.shape();
        let expected = self.slots.len() * each * 4;
        if answers.len() != expected {
            let given = answers.len();
            return Err(PyValueError::new_err(format!(
                "{given} bytes of answers; expected {expected}"
            )));
        }
        let step = |slot: usize, simulation: &mut Simulation| {
            simulation.step(answers[slot * each * 4..].chunks_exact(4).take(each).map(|bytes| {
                let mut number = [0; 4];
                number.copy_from_slice(bytes);
                f32::from_ne_bytes(number)
            }));
        };
        match slots {
            None => each_of(&mut self.slots).enumerate().for_each(|(slot, one)| step(slot, one)),
            Some(slots) => {
                for slot in slots {
                    step(slot, self.slot(slot)?);
                }
            }
        }
        self.checked()
    }

    /// Whether the simulation in `slot` waits for an answer.
    fn asks(&mut self, slot: usize) -> PyResult<bool> {
        Ok(matches!(self.slot(slot)?.course, Course::Asking(_)))
    }

    /// How all simulations stand: float32 numbers of the questions, a byte for each flag of what is allowed, and seven
    /// float64 numbers each: 0 if it asks, 1 if it has ended, 2 if its time was up; seconds since its start; bytes that
    /// were acknowledged and lost; page and critical time in seconds and bytes that flows delivered, once it has ended.
    fn state<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let (numbers, allowed, _) = self.act.shape();
        let count = self.slots.len();
        let of_numbers = PyBytes::new_with(py, count * numbers * 4, |bytes| {
            for (slot, bytes) in each_of(&mut self.slots).zip(bytes.chunks_exact_mut(numbers * 4)) {
                let shared = slot.exchange.lock();
                for (number, bytes) in shared.numbers.iter().zip(bytes.chunks_exact_mut(4)) {
                    bytes.copy_from_slice(&number.to_ne_bytes());
                }
            }
            Ok(())
        })?;
        let of_allowed = PyBytes::new_with(py, count * allowed, |bytes| {
            for (slot, bytes) in each_of(&mut self.slots).zip(bytes.chunks_exact_mut(allowed)) {
                let shared = slot.exchange.lock();
                shared.allowed.iter().zip(bytes).for_each(|(flag, byte)| *byte = u8::from(*flag));
            }
            Ok(())
        })?;
        let standing = PyBytes::new_with(py, count * STANDING * 8, |bytes| {
            for (slot, bytes) in each_of(&mut self.slots).zip(bytes.chunks_exact_mut(STANDING * 8))
            {
                for (number, bytes) in slot.standing().iter().zip(bytes.chunks_exact_mut(8)) {
                    bytes.copy_from_slice(&number.to_ne_bytes());
                }
            }
            Ok(())
        })?;
        Ok((of_numbers, of_allowed, standing))
    }

    /// Ends all simulations that are under way.
    fn close(&mut self) {
        each_of(&mut self.slots).for_each(Simulation::cancel);
    }

    fn __repr__(&self) -> String {
        format!("<Simulations: {} of {}>", self.slots.len(), self.act.name())
    }
}

impl Simulations {
    fn slot(&mut self, slot: usize) -> PyResult<&mut Simulation> {
        let count = self.slots.len();
        each_of(&mut self.slots).nth(slot).ok_or_else(|| {
            PyIndexError::new_err(format!("slot {slot}: expected less than {count}"))
        })
    }

    /// Raises what a policy of Python raised, or why a run failed that did not just take too long.
    fn checked(&mut self) -> PyResult<()> {
        if let Some(raised) = self.session.take() {
            return Err(raised);
        }
        let failed = each_of(&mut self.slots).find_map(|slot| match &slot.course {
            Course::Ended(ended) => ended.as_ref().as_ref().err(),
            _ => None,
        });
        match failed {
            Some(RunError::Unfinished { .. }) | None => Ok(()),
            Some(error) => Err(error::run(error)),
        }
    }
}

/// The plan of `scenario`, in which `agent` stands for who is asked or watched.
fn planned(scenario: &str, file: Option<&Path>, session: &Arc<Session>) -> PyResult<Plan> {
    let document = document(scenario, file);
    let parsed = document.scenario().map_err(error::scenario)?;
    let sender = match (parsed.has_pages(), parsed.flows.first()) {
        (false, Some(flow)) => match flow.direction {
            Direction::Up => End::Client,
            Direction::Down => End::Server,
        },
        _ => parsed.sender(),
    };
    let role = if sender == End::Client { Role::Client } else { Role::Server };
    let mut known = registry::current();
    entries::add_to(&mut known.registry, role).map_err(error::scenario)?;
    let plan = plan_with(parsed, &document.into(), session, &known)?;
    if let Some(network) = plan.networks.iter().find(|network| network.policies.len() != 1) {
        let count = network.policies.len();
        return Err(error::scenario(format!(
            "policies: {count} choices; expected one, in which `{}` stands for the agent",
            entries::NAME
        )));
    }
    Ok(plan)
}

fn check_place(plan: &Plan, page: usize, network: usize) -> PyResult<()> {
    let (pages, networks) = (plan.page_count(), plan.networks.len());
    if page >= pages || network >= networks {
        return Err(PyIndexError::new_err(format!(
            "page {page}, network {network}: expected less than {pages} and {networks}"
        )));
    }
    Ok(())
}

/// The simulations of all slots.
fn each_of(slots: &mut [Mutex<Simulation>]) -> impl Iterator<Item = &mut Simulation> {
    slots.iter_mut().map(|slot| slot.get_mut().unwrap_or_else(PoisonError::into_inner))
}
