//! Links as they are written, where everything may be left out.

use quipu_base::{Duration, Rate};
use quipu_link::QueueLimit;
use serde::Deserialize;

use super::choice::{Direction, TraceEnd};
use super::link::{DuplicateSpec, LinkError, LinkSpec, OutageSpec, ReorderSpec};
use super::loss::LossSpec;
use super::queue::QueueSpec;
use super::recorded::{TraceSpec, TraceStart};
use super::steps::StepSpec;
use super::units::{Human, Share, Unit};
use quipu_record::suggestion;

/// One direction as written, where everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PartialLink {
    rate: Option<Human<Rate>>,
    trace: Option<Human<TraceSpec>>,
    column: Option<String>,
    steps: Option<Vec<StepSpec>>,
    delay: Option<Human<Duration>>,
    delay_trace: Option<Human<TraceSpec>>,
    jitter: Option<Human<Duration>>,
    jitter_correlation: Option<Human<Share>>,
    jitter_reorders: Option<bool>,
    loss: Option<Human<LossSpec>>,
    loss_trace: Option<Human<TraceSpec>>,
    from: Option<Human<TraceStart>>,
    at_end: Option<TraceEnd>,
    queue: Option<Human<QueueSpec>>,
    mark: Option<Human<Option<QueueLimit>>>,
    reorder: Option<ReorderSpec>,
    duplicate: Option<DuplicateSpec>,
    outages: Option<Vec<OutageSpec>>,
}

impl PartialLink {
    /// The link, where fields without default must be there; they are named behind `prefix`.
    pub(super) fn complete(self, prefix: &str) -> Result<LinkSpec, LinkError> {
        let missing = |field: &str, expected| {
            let field = format!("{prefix}{field}");
            LinkError::Missing { field, expected }
        };
        if self.rate.is_none() && self.trace.is_none() {
            let expected = "a rate such as 30mbit, or the name or file of a recording of one";
            return Err(missing("rate or trace", expected));
        }
        let delay = match (self.delay, &self.delay_trace) {
            (Some(delay), _) => delay.0,
            (None, Some(_)) => Duration::ZERO,
            (None, None) => return Err(missing("delay", Duration::EXPECTED)),
        };
        let given = |trace: Option<Human<TraceSpec>>| trace.map(|trace| trace.0);
        Ok(LinkSpec {
            rate: self.rate.map(|rate| rate.0),
            trace: given(self.trace),
            column: self.column,
            steps: self.steps.unwrap_or_default(),
            delay,
            delay_trace: given(self.delay_trace),
            jitter: self.jitter.map_or(Duration::ZERO, |jitter| jitter.0),
            jitter_correlation: self.jitter_correlation.map_or(Share::ZERO, |share| share.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(false),
            loss: self.loss.map_or(LossSpec::NONE, |loss| loss.0),
            loss_trace: given(self.loss_trace),
            from: self.from.map(|from| from.0),
            at_end: self.at_end,
            queue: self.queue.map_or_else(QueueSpec::default, |queue| queue.0),
            mark: self.mark.and_then(|mark| mark.0),
            reorder: self.reorder.unwrap_or_default(),
            duplicate: self.duplicate.unwrap_or_default(),
            outages: self.outages.unwrap_or_default(),
        }
        .with_defaults())
    }

    /// The uplink, which is like `base` in all that is not given. A rate takes the place of a trace
    /// and the other way round, and so do a delay or a loss and their traces.
    pub(super) fn over(self, base: &LinkSpec) -> LinkSpec {
        let given = |trace: Option<Human<TraceSpec>>| trace.map(|trace| trace.0);
        let of_base =
            |replaced: bool, trace: &Option<TraceSpec>| trace.clone().filter(|_| !replaced);
        let (rate, trace) = (self.rate.map(|rate| rate.0), given(self.trace));
        let (delay, loss) = (self.delay.map(|delay| delay.0), self.loss.map(|loss| loss.0));
        let (delay_trace, loss_trace) = (given(self.delay_trace), given(self.loss_trace));
        let replaces = trace.is_some() && base.trace.is_none();
        let (from, at_end) = (self.from.map(|from| from.0), self.at_end);
        let has_rates = rate.is_some() || trace.is_some();
        let link = LinkSpec {
            rate: rate.or(base.rate.filter(|_| !replaces)),
            column: self.column.or_else(|| base.column.clone().filter(|_| !has_rates)),
            trace: trace.or_else(|| of_base(rate.is_some(), &base.trace)),
            // Those of a rate that is replaced go with it.
            steps: self
                .steps
                .unwrap_or_else(|| if replaces { Vec::new() } else { base.steps.clone() }),
            delay: delay.unwrap_or(if delay_trace.is_some() { Duration::ZERO } else { base.delay }),
            delay_trace: delay_trace.or_else(|| of_base(delay.is_some(), &base.delay_trace)),
            jitter: self.jitter.map_or(base.jitter, |jitter| jitter.0),
            jitter_correlation: self
                .jitter_correlation
                .map_or(base.jitter_correlation, |share| share.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(base.jitter_reorders),
            loss: loss.unwrap_or(if loss_trace.is_some() { LossSpec::NONE } else { base.loss }),
            loss_trace: loss_trace.or_else(|| of_base(loss.is_some(), &base.loss_trace)),
            from,
            at_end,
            queue: self.queue.map_or(base.queue, |queue| queue.0),
            mark: self.mark.map_or(base.mark, |mark| mark.0),
            reorder: self.reorder.unwrap_or(base.reorder),
            duplicate: self.duplicate.unwrap_or(base.duplicate),
            outages: self.outages.unwrap_or_else(|| base.outages.clone()),
        };
        // How recordings are played is told of those that are there.
        let link = match link.is_recorded() {
            true => LinkSpec { from: from.or(base.from), at_end: at_end.or(base.at_end), ..link },
            false => link,
        };
        link.with_defaults().toward(Direction::Up)
    }

    /// Sets a field from its text form.
    pub(super) fn set(&mut self, field: &str, value: &str) -> Result<(), LinkError> {
        let twice = || LinkError::Twice { field: field.to_owned() };
        match field {
            "rate" => put(&mut self.rate, field, value),
            "trace" => put(&mut self.trace, field, value),
            "delay" => put(&mut self.delay, field, value),
            "delay_trace" => put(&mut self.delay_trace, field, value),
            "loss_trace" => put(&mut self.loss_trace, field, value),
            "from" => put(&mut self.from, field, value),
            "column" => {
                let old = self.column.replace(value.trim().to_owned());
                old.map_or(Ok(()), |_| Err(twice()))
            }
            "at_end" => {
                let end: TraceEnd = value
                    .trim()
                    .parse()
                    .map_err(|error: super::ScenarioError| LinkError::Invalid(error.to_string()))?;
                self.at_end.replace(end).map_or(Ok(()), |_| Err(twice()))
            }
            "jitter" => put(&mut self.jitter, field, value),
            "jitter_correlation" => put(&mut self.jitter_correlation, field, value),
            "loss" => put(&mut self.loss, field, value),
            "queue" => put(&mut self.queue, field, value),
            "mark" => put(&mut self.mark, field, value),
            "steps" => {
                let steps = value.split('+').map(|step| StepSpec::read(field, step));
                let old = self.steps.replace(steps.collect::<Result<_, _>>()?);
                old.map_or(Ok(()), |_| Err(twice()))
            }
            "reorder" => {
                let (share, extra) = share_and_time(field, value)?;
                let old = self.reorder.replace(ReorderSpec { share, extra });
                old.map_or(Ok(()), |_| Err(twice()))
            }
            "duplicate" => {
                let (share, after) = share_and_time(field, value)?;
                let old = self.duplicate.replace(DuplicateSpec { share, after });
                old.map_or(Ok(()), |_| Err(twice()))
            }
            // The one field that may be there several times.
            "outage" => {
                let (from, until) = value.split_once("..").unwrap_or((value, "never"));
                let outage = OutageSpec {
                    from: read(field, from)?,
                    until: read(field, if until.is_empty() { "never" } else { until })?,
                };
                self.outages.get_or_insert_default().push(outage);
                Ok(())
            }
            _ => Err(LinkError::UnknownField {
                field: field.to_owned(),
                known: "name, bottleneck, rate, trace, column, steps, delay, delay_trace, jitter, \
                        jitter_correlation, loss, loss_trace, from, at_end, queue, mark, reorder, \
                        duplicate, outage; of links each also as up.FIELD and access.FIELD",
                suggestion: suggestion(field, FIELDS),
            }),
        }
    }
}

const FIELDS: [&str; 19] = [
    "name",
    "bottleneck",
    "rate",
    "trace",
    "column",
    "steps",
    "delay",
    "delay_trace",
    "jitter",
    "jitter_correlation",
    "loss",
    "loss_trace",
    "from",
    "at_end",
    "queue",
    "mark",
    "reorder",
    "duplicate",
    "outage",
];

fn read<T: Unit>(field: &str, value: &str) -> Result<T, LinkError> {
    T::read(value).map_err(|source| LinkError::Value { field: field.to_owned(), source })
}

fn put<T: Unit>(slot: &mut Option<Human<T>>, field: &str, value: &str) -> Result<(), LinkError> {
    match slot.replace(Human(read(field, value)?)) {
        None => Ok(()),
        Some(_) => Err(LinkError::Twice { field: field.to_owned() }),
    }
}

/// `2%+5ms`: a share and the time that goes with it.
fn share_and_time(field: &str, value: &str) -> Result<(Share, Duration), LinkError> {
    let (share, time) = value.split_once('+').unwrap_or((value, "0ms"));
    Ok((read(field, share)?, read(field, time)?))
}
