//! Runs of a plan one by one, with the bounds of what they load.

use crate::bound;
use crate::plan::{Cell, Plan};
use crate::results::{part_of, place};
use crate::run::{Instruments, RunError, SeriesSink, measure};
use quipu_base::Instant;
use quipu_record::{FileError, Output, RunRecord};
use thiserror::Error;

/// Makes runs of a plan, from any number of threads; those that are not simulated are made one after the other.
///
/// What no run can beat is worked out beside each, once where it is the same for several.
#[derive(Debug)]
pub struct Runner<'a> {
    plan: &'a Plan,
    instruments: Instruments,
    /// `None` if nobody asks for bounds.
    bounds: Option<bound::Store>,
}

/// A run whose results go into an [`Output`] failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WrittenRunError {
    /// The run itself.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Its file.
    #[error(transparent)]
    File(#[from] FileError),
}

impl<'a> Runner<'a> {
    /// Makes runs of `plan`.
    pub fn new(plan: &'a Plan) -> Runner<'a> {
        Runner::with_instruments(plan, Instruments::default())
    }

    /// The same, looked at by `instruments`, which change no result.
    pub fn with_instruments(plan: &'a Plan, instruments: Instruments) -> Runner<'a> {
        Runner { plan, instruments, bounds: Some(bound::Store::default()) }
    }

    /// The same without bounds, which no record has then.
    #[must_use]
    pub fn without_bounds(self) -> Runner<'a> {
        Runner { bounds: None, ..self }
    }

    /// Runs `cell`: a record for each client and each page of its session, in their order, of which the
    /// first has the traffic; one without a page if there are flows only.
    ///
    /// # Errors
    /// If an end cannot be set up, a page does not arrive whole within the scenario's time limit, a flow
    /// fails, or [`Plan::stop`] is set.
    pub fn run_session(&self, cell: Cell) -> Result<Vec<RunRecord>, RunError> {
        self.run_with(cell, None)
    }

    /// The same, with its time series handed to `rows` if the scenario asks for one. The records are the
    /// same with any series and without.
    ///
    /// # Errors
    /// As [`Runner::run_session`], and if `rows` refuses one.
    pub fn run_sampled(
        &self,
        cell: Cell,
        rows: &mut SeriesSink<'_>,
    ) -> Result<Vec<RunRecord>, RunError> {
        self.run_with(cell, Some(rows))
    }

    /// The same. The time series, if the scenario asks for one, goes into `output` as it grows, if
    /// there is one; all else when `output` is written.
    ///
    /// # Errors
    /// As [`Runner::run_session`], and if the time series cannot be written.
    pub fn run_into(
        &self,
        output: Option<&Output>,
        cell: Cell,
    ) -> Result<Vec<RunRecord>, WrittenRunError> {
        let output = output.filter(|_| self.plan.scenario.series.every().is_some());
        let Some(output) = output else { return Ok(self.run_session(cell)?) };
        let mut part = output.series_part(&part_of(cell), place(self.plan, cell))?;
        let records = self.run_sampled(cell, &mut |row| part.write(row))?;
        part.finish().map_err(RunError::Series)?;
        Ok(records)
    }

    fn run_with(
        &self,
        cell: Cell,
        rows: Option<&mut SeriesSink<'_>>,
    ) -> Result<Vec<RunRecord>, RunError> {
        let mut records = match &self.plan.maker {
            Some(maker) => maker.make(self.plan, cell)?,
            None => measure(self.plan, cell, &self.instruments, rows)?,
        };
        if let Some(bounds) = &self.bounds {
            bounds.complete(self.plan, cell, &mut records);
        }
        Ok(records)
    }
}

/// Runs `cell` of `plan`, and tells of its first page: the only one, unless it is a session of
/// several or there are several clients. For more than a few runs of a plan there is [`Runner`].
///
/// # Errors
/// As [`Runner::run_session`].
pub fn run(plan: &Plan, cell: Cell) -> Result<RunRecord, RunError> {
    let first = run_session(plan, cell)?.into_iter().next();
    first.ok_or(RunError::Unfinished { at: Instant::ZERO, open: 0, objects: 0 })
}

/// Runs `cell` of `plan` as [`Runner::run_session`] does.
///
/// # Errors
/// As there.
pub fn run_session(plan: &Plan, cell: Cell) -> Result<Vec<RunRecord>, RunError> {
    Runner::new(plan).run_session(cell)
}

/// Runs `cell` of `plan` as [`Runner::run_sampled`] does.
///
/// # Errors
/// As there.
pub fn run_sampled(
    plan: &Plan,
    cell: Cell,
    rows: &mut SeriesSink<'_>,
) -> Result<Vec<RunRecord>, RunError> {
    Runner::new(plan).run_sampled(cell, rows)
}
