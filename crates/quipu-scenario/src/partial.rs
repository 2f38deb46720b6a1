//! Links as they are written, where everything may be left out.

use quipu_base::Duration;
use quipu_record::suggestion;
use serde::{Deserialize, Deserializer, Serializer};

use super::choice::{Direction, TraceEnd};
use super::error::LinkError;
use super::form::{FieldType, Kind};
use super::link::{DuplicateSpec, LinkSpec, OutageSpec, PartialLink, ReorderSpec};
use super::loss::LossSpec;
use super::steps::StepSpec;
use super::units::{Share, Unit};

/// A link in the direction from the client, where everything may be left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PartialUplink(pub(super) PartialLink);

impl FieldType for PartialUplink {
    fn kind() -> Kind {
        Kind::Table(LinkSpec::uplink())
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        PartialLink::deserialize(input).map(PartialUplink)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        self.0.to_output(output)
    }
}

/// The link, as `down` and `access` have it.
impl TryFrom<PartialLink> for LinkSpec {
    type Error = LinkError;

    fn try_from(link: PartialLink) -> Result<Self, LinkError> {
        link.complete("")
    }
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
        if self.delay.is_none() && self.delay_trace.is_none() {
            return Err(missing("delay", Duration::EXPECTED));
        }
        Ok(self.or(&LinkSpec::default()).with_defaults())
    }

    /// The uplink, which is like `base` in all that is not given. A rate takes the place of a trace
    /// and the other way round, and so do a delay or a loss and their traces.
    pub(super) fn over(self, base: &LinkSpec) -> LinkSpec {
        let mut rest = base.clone();
        if self.rate.is_some() {
            rest.trace = None;
        }
        if self.rate.is_some() || self.trace.is_some() {
            rest.column = None;
            rest.time_column = None;
        }
        if self.trace.is_some() && base.trace.is_none() {
            rest.rate = None;
            // Those of a rate that is replaced go with it.
            rest.steps.clear();
        }
        if self.delay.is_some() {
            rest.delay_trace = None;
        }
        if self.delay_trace.is_some() {
            rest.delay = Duration::ZERO;
        }
        if self.loss.is_some() {
            rest.loss_trace = None;
        }
        if self.loss_trace.is_some() {
            rest.loss = LossSpec::NONE;
        }
        let (from, at_end) = (self.from, self.at_end);
        let link = self.or(&rest);
        // How recordings are played is told of those that are there.
        let link = if link.is_recorded() { link } else { LinkSpec { from, at_end, ..link } };
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
            "column" => put(&mut self.column, field, value),
            "time_column" => put(&mut self.time_column, field, value),
            "rtt_column" => put(&mut self.rtt_column, field, value),
            "delay_column" => put(&mut self.delay_column, field, value),
            "loss_column" => put(&mut self.loss_column, field, value),
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
            "mtu" => put(&mut self.mtu, field, value),
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
                known: "name, bottleneck, rate, trace, column, time_column, steps, delay, \
                        delay_trace, rtt_column, delay_column, jitter, jitter_correlation, loss, \
                        loss_trace, loss_column, from, at_end, queue, mark, mtu, reorder, \
                        duplicate, outage; of links each also as up.FIELD and access.FIELD",
                suggestion: suggestion(field, FIELDS),
            }),
        }
    }
}

const FIELDS: [&str; 24] = [
    "name",
    "bottleneck",
    "rate",
    "trace",
    "column",
    "time_column",
    "steps",
    "delay",
    "delay_trace",
    "rtt_column",
    "delay_column",
    "jitter",
    "jitter_correlation",
    "loss",
    "loss_trace",
    "loss_column",
    "from",
    "at_end",
    "queue",
    "mark",
    "mtu",
    "reorder",
    "duplicate",
    "outage",
];

fn read<T: Unit>(field: &str, value: &str) -> Result<T, LinkError> {
    T::read(value).map_err(|source| LinkError::Value { field: field.to_owned(), source })
}

fn put<T: Unit>(slot: &mut Option<T>, field: &str, value: &str) -> Result<(), LinkError> {
    match slot.replace(read(field, value)?) {
        None => Ok(()),
        Some(_) => Err(LinkError::Twice { field: field.to_owned() }),
    }
}

/// `2%+5ms`: a share and the time that goes with it.
fn share_and_time(field: &str, value: &str) -> Result<(Share, Duration), LinkError> {
    let (share, time) = value.split_once('+').unwrap_or((value, "0ms"));
    Ok((read(field, share)?, read(field, time)?))
}
