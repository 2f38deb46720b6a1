//! One simulation at a time, which goes from question to question.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use generator::{Generator, Gn};
use quipu_lab::batch::Runner;
use quipu_lab::plan::{Cell, Plan};
use quipu_lab::run::RunError;
use quipu_record::RunRecord;

use super::exchange::{Exchange, Rest};
use crate::policy::session::Session;

/// Words of the stack of a simulation: 2 MiB, of which what is never touched costs nothing.
const STACK_WORDS: usize = 2 * 1024 * 1024 / size_of::<usize>();

/// How a simulation stands.
pub(crate) enum Course {
    /// None was started.
    Idle,
    /// It waits for an answer.
    Asking(Generator<'static, (), Rest>),
    /// It is over.
    Ended(Box<Result<Vec<RunRecord>, RunError>>),
}

/// A place for simulations of one plan, one after the other.
pub(crate) struct Simulation {
    plan: Arc<Plan>,
    stop: Arc<AtomicBool>,
    session: Arc<Session>,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) course: Course,
}

impl Simulation {
    /// A place for simulations of `plan`, whose policies of Python report to `session`.
    pub(crate) fn new(plan: &Plan, exchange: Arc<Exchange>, session: Arc<Session>) -> Simulation {
        // Each can be stopped by itself.
        let stop = Arc::new(AtomicBool::new(false));
        let plan = Arc::new(Plan { stop: Arc::clone(&stop), ..plan.clone() });
        Simulation { plan, stop, session, exchange, course: Course::Idle }
    }

    /// Starts a run, in place of the one that is under way, and goes on to its first question.
    pub(crate) fn start(&mut self, cell: Cell) {
        self.cancel();
        self.stop.store(false, Ordering::Relaxed);
        self.exchange.begin();
        let plan = Arc::clone(&self.plan);
        let run = Gn::new_opt(STACK_WORDS, move || {
            let records = Runner::new(&plan).without_bounds().run_session(cell);
            Rest::Ended(Box::new(records))
        });
        self.course = Course::Asking(run);
        self.resume();
    }

    /// Answers the question, and goes on to the next. Nothing is done if there is none.
    pub(crate) fn step(&mut self, answer: impl Iterator<Item = f32>) {
        if matches!(self.course, Course::Asking(_)) {
            self.exchange.lock().answer.iter_mut().zip(answer).for_each(|(to, from)| *to = from);
            self.resume();
        }
    }

    /// Ends the run that is under way.
    pub(crate) fn cancel(&mut self) {
        self.exchange.lock().is_cancelled = true;
        self.stop.store(true, Ordering::Relaxed);
        while matches!(self.course, Course::Asking(_)) {
            self.resume();
        }
        self.course = Course::Idle;
    }

    fn resume(&mut self) {
        let Course::Asking(run) = &mut self.course else { return };
        let rest = self.exchange.enter(|| self.session.enter(|| run.resume()));
        match rest {
            Some(Rest::Asked) => {}
            Some(Rest::Ended(records)) => self.course = Course::Ended(records),
            // Nothing comes of a coroutine that is over, which is not resumed.
            None => self.course = Course::Idle,
        }
    }

    /// See [`Simulations::state`](super::Simulations).
    pub(crate) fn standing(&self) -> [f64; super::STANDING] {
        let shared = self.exchange.lock();
        let mut standing = [0.0; super::STANDING];
        standing[1] = shared.now.as_nanos() as f64 / 1e9;
        standing[2] = shared.acked as f64;
        standing[3] = shared.lost as f64;
        match &self.course {
            Course::Ended(ended) => match ended.as_ref() {
                Ok(records) => {
                    standing[0] = 1.0;
                    let last = records.iter().map(|record| record.ended_at.as_nanos()).max();
                    standing[1] = last.unwrap_or(0) as f64 / 1e9;
                    if let Some(first) = records.first() {
                        standing[4] = first.page_time.as_secs_f64();
                        standing[5] = first.critical_time.as_secs_f64();
                        let flows = first.traffic.flows.iter();
                        standing[6] = flows.map(|flow| flow.bytes.0 as f64).sum();
                    }
                }
                Err(error) => {
                    standing[0] = 2.0;
                    if let RunError::Unfinished { at, .. } = error {
                        standing[1] = at.as_nanos() as f64 / 1e9;
                    }
                }
            },
            Course::Idle | Course::Asking(_) => {}
        }
        standing
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.cancel();
    }
}
