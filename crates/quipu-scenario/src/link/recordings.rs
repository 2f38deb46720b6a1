//! The recordings that a link follows: their columns, their starts, and what they say of the link.

use quipu_base::{Duration, Rate};
use quipu_link::{Column, Columns, Loss, Timeline};

use super::LinkSpec;
use crate::choice::Direction;
use crate::error::LinkError;
use crate::loss::LossSpec;
use crate::recorded::{TraceSpec, TraceStart};
use crate::units::Unit;

/// Puts `column` where none is, if any of the recordings is a table with columns.
fn fill<'a>(
    slot: &mut Option<Column>,
    column: &Option<Column>,
    mut traces: impl Iterator<Item = &'a TraceSpec>,
) {
    if slot.is_none() && traces.any(TraceSpec::has_columns) {
        slot.clone_from(column);
    }
}

impl LinkSpec {
    /// True if it follows any recording.
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.delay_trace.is_some() || self.loss_trace.is_some()
    }

    /// What the columns of its recordings are called.
    pub(super) fn columns(&self) -> Columns {
        Columns {
            time: self.time_column.clone(),
            rate: self.column.clone(),
            up: None,
            rtt: self.rtt_column.clone(),
            delay: self.delay_column.clone(),
            loss: self.loss_column.clone(),
        }
    }

    /// Names the columns of its recordings in CSV files: those that it has no name for yet.
    pub(crate) fn name_columns(&mut self, columns: &Columns, direction: Direction) {
        let own = match direction {
            Direction::Down => &columns.rate,
            Direction::Up => columns.up.as_ref().map_or(&columns.rate, |_| &columns.up),
        };
        fill(&mut self.column, own, self.trace.iter());
        let all = [&self.trace, &self.delay_trace, &self.loss_trace];
        fill(&mut self.time_column, &columns.time, all.into_iter().flatten());
        let pings = [&self.delay_trace, &self.loss_trace];
        fill(&mut self.rtt_column, &columns.rtt, pings.into_iter().flatten());
        fill(&mut self.delay_column, &columns.delay, self.delay_trace.iter());
        fill(&mut self.loss_column, &columns.loss, self.loss_trace.iter());
    }

    /// With what holds of recordings unless it is told.
    pub(crate) fn with_defaults(mut self) -> Self {
        if self.is_recorded() {
            self.from.get_or_insert_default();
            self.at_end.get_or_insert_default();
        }
        self
    }

    /// The same link in the other direction, as far as its recordings tell both.
    #[must_use]
    pub fn toward(mut self, direction: Direction) -> Self {
        let traces = [&mut self.trace, &mut self.delay_trace, &mut self.loss_trace];
        for trace in traces {
            *trace = trace.take().map(|trace| trace.toward(direction));
        }
        self
    }

    /// The recordings that it follows; first that of the rate, if there is one.
    pub(crate) fn traces_mut(&mut self) -> impl Iterator<Item = &mut TraceSpec> {
        let traces = [&mut self.trace, &mut self.delay_trace, &mut self.loss_trace];
        traces.into_iter().flatten()
    }

    /// The group of the recordings whose start is to be drawn, and how long the first of them is.
    pub(crate) fn draws_from(&self) -> Option<(String, Duration)> {
        if self.from != Some(TraceStart::Random) {
            return None;
        }
        let columns = &self.columns();
        // What cannot be read is an error of `validate`.
        let trace = self.trace.as_ref().map(|trace| {
            (trace.group(), trace.rates(columns).map_or(Duration::ZERO, |read| read.length()))
        });
        let delays = || {
            let trace = self.delay_trace.as_ref()?;
            Some((
                trace.group(),
                trace.delays(columns).map_or(Duration::ZERO, |read| read.length()),
            ))
        };
        let losses = || {
            let trace = self.loss_trace.as_ref()?;
            Some((
                trace.group(),
                trace.losses(columns).map_or(Duration::ZERO, |read| read.length()),
            ))
        };
        trace.or_else(delays).or_else(losses)
    }

    /// The delay that counts for round trips: without jitter, before the first step, and of a
    /// recording the median.
    pub fn usual_delay(&self) -> Duration {
        let recorded =
            self.delay_trace.as_ref().and_then(|trace| trace.delays(&self.columns()).ok());
        self.delay + recorded.map_or(Duration::ZERO, |pings| pings.median())
    }

    /// The rate before the first step, or the mean rate of the recording; `None` if that cannot be
    /// read.
    pub fn usual_rate(&self) -> Option<Rate> {
        let recorded = self
            .trace
            .as_ref()
            .and_then(|trace| trace.rates(&self.columns()).ok().map(|rates| rates.mean_rate()));
        self.rate.or(recorded)
    }

    /// How long the recording of its rates is, if it has one that can be read.
    pub fn recorded_length(&self) -> Option<Duration> {
        let trace = self.trace.as_ref()?;
        trace.rates(&self.columns()).ok().map(|rates| rates.length())
    }

    /// The losses of its recording over time, if it has one that can be read.
    pub fn recorded_losses(&self) -> Option<Timeline<Loss>> {
        self.loss_trace.as_ref()?.losses(&self.columns()).ok()
    }

    /// The recordings that it follows, each with its field.
    pub fn recordings(&self) -> impl Iterator<Item = (&'static str, &TraceSpec)> {
        let traces =
            [("rate", &self.trace), ("delay", &self.delay_trace), ("loss", &self.loss_trace)];
        traces.into_iter().filter_map(|(what, trace)| Some((what, trace.as_ref()?)))
    }

    pub(super) fn validate_traces(&self) -> Result<(), LinkError> {
        let refused = |field: &str, value: String, expected: &str| {
            let (field, expected) = (field.to_owned(), expected.to_owned());
            Err(LinkError::Field { field, value, expected })
        };
        if let (Some(rate), Some(_)) = (self.rate, &self.trace) {
            return refused("rate", rate.print(), "none beside a trace");
        }
        let pings = self.delay_trace.is_some() || self.loss_trace.is_some();
        for (field, column, is_used, expected) in [
            ("column", &self.column, self.trace.is_some(), "none without a trace"),
            ("time_column", &self.time_column, self.is_recorded(), "none without a recording"),
            ("rtt_column", &self.rtt_column, pings, "none without a delay_trace or a loss_trace"),
            (
                "delay_column",
                &self.delay_column,
                self.delay_trace.is_some(),
                "none without a delay_trace",
            ),
            (
                "loss_column",
                &self.loss_column,
                self.loss_trace.is_some(),
                "none without a loss_trace",
            ),
        ] {
            if let (Some(column), false) = (column, is_used) {
                return refused(field, column.to_string(), expected);
            }
        }
        if let (Some(column), Some(_)) = (&self.delay_column, &self.rtt_column) {
            return refused("delay_column", column.to_string(), "none beside an rtt_column");
        }
        if !self.is_recorded() {
            let expected = "none without a trace, a delay_trace or a loss_trace";
            if let Some(from) = self.from {
                return refused("from", from.print(), expected);
            }
            if let Some(at_end) = self.at_end {
                return refused("at_end", at_end.to_string(), expected);
            }
            return Ok(());
        }
        if let (loss, Some(_)) = (self.loss, &self.loss_trace)
            && loss != LossSpec::NONE
        {
            return refused("loss", loss.print(), "none beside a loss_trace");
        }
        let columns = &self.columns();
        let rates = self.trace.as_ref().map(|trace| trace.rates(columns)).transpose()?;
        let delays = self.delay_trace.as_ref().map(|trace| trace.delays(columns)).transpose()?;
        let losses = self.loss_trace.as_ref().map(|trace| trace.losses(columns)).transpose()?;
        // That of the rates is what a run is over with; the others begin again or hold beside it.
        let length = rates
            .map(|rates| rates.length())
            .or_else(|| delays.map(|delays| delays.length()))
            .or_else(|| losses.map(|losses| losses.length()))
            .unwrap_or_default();
        match self.from {
            Some(TraceStart::At(from)) if from >= length => {
                let expected = format!("less than {}, the length of the recording", length.print());
                refused("from", from.print(), &expected)
            }
            _ => Ok(()),
        }
    }
}
