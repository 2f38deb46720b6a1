//! Links as a scenario writes them, one direction each.

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{Duplicate, LinkConfig, Outage, QueueLimit, RateStep, Reorder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::loss::LossSpec;
use super::nearest::suggestion;
use super::units::{Human, Share, Unit, UnitError, human};

/// One direction of a path, complete.
///
/// ```
/// use quipu_lab::scenario::PathSpec;
///
/// let file: PathSpec = toml::from_str(
///     r#"
///     name = "radio"
///     down = { rate = "2mbit", delay = "20ms", mark = "30p", steps = [
///         { at = "20s", rate = "4mbit" },
///         { at = "45s", rate = "1mbit" },
///     ] }
///     "#,
/// )?;
/// let option: PathSpec =
///     "name=radio,rate=2mbit,delay=20ms,mark=30p,steps=20s:4mbit+45s:1mbit".parse()?;
/// assert_eq!(file, option);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSpec {
    /// Bits per second, above zero.
    #[serde(with = "human")]
    pub rate: Rate,
    /// When the rate changes, in order of time. Default never.
    pub steps: Vec<StepSpec>,
    /// One-way propagation delay.
    #[serde(with = "human")]
    pub delay: Duration,
    /// Each datagram takes `delay ± jitter`; not above `delay`. Default 0.
    #[serde(with = "human")]
    pub jitter: Duration,
    /// How far each datagram's jitter follows that of the one before, from 0% to below 100%; see
    /// [`LinkConfig::jitter_correlation`]. Default 0.
    #[serde(with = "human")]
    pub jitter_correlation: Share,
    /// Whether jitter may let a datagram overtake another. Default no.
    pub jitter_reorders: bool,
    /// Which datagrams are lost: a share of them, such as `1.5%`, or a model, such as
    /// `bursts 1.5% 50%`; see [`LossSpec`]. Default none.
    #[serde(with = "human")]
    pub loss: LossSpec,
    /// Drop-tail queue. Default: `max(2 × rate × round trip, 50 packets)`, where the round trip
    /// is twice the delay of all links on the way, and the rate that before the first step.
    #[serde(with = "human")]
    pub queue: QueueLimit,
    /// Datagrams that are ECN-capable and find more than this in the queue are marked. Default
    /// never.
    #[serde(with = "human")]
    pub mark: Option<QueueLimit>,
    /// Share of datagrams that is late, and by how much. Default none.
    pub reorder: ReorderSpec,
    /// Share of datagrams that arrives twice, and the time between. Default none.
    pub duplicate: DuplicateSpec,
    /// When the link is down. Default never.
    pub outages: Vec<OutageSpec>,
}

/// A change of the rate, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// First instant of the rate.
    #[serde(with = "human")]
    pub at: Duration,
    /// Bits per second from then on. `None`, written `0`: nothing moves until the next step, of
    /// which there must be one.
    #[serde(with = "human")]
    pub rate: Option<Rate>,
}

/// A share of the datagrams is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderSpec {
    /// The share.
    #[serde(with = "human")]
    pub share: Share,
    /// The further delay.
    #[serde(with = "human")]
    pub extra: Duration,
}

/// A share of the datagrams arrives twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplicateSpec {
    /// The share.
    #[serde(with = "human")]
    pub share: Share,
    /// Time to the copy.
    #[serde(with = "human")]
    pub after: Duration,
}

/// A time in which a link is down, counted from the start of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutageSpec {
    /// First instant at which it is down.
    #[serde(with = "human")]
    pub from: Duration,
    /// First instant at which it is up again, or `never`.
    #[serde(with = "human")]
    pub until: Option<Duration>,
}

/// One direction as written, where everything may be left out.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PartialLink {
    rate: Option<Human<Rate>>,
    steps: Option<Vec<StepSpec>>,
    delay: Option<Human<Duration>>,
    jitter: Option<Human<Duration>>,
    jitter_correlation: Option<Human<Share>>,
    jitter_reorders: Option<bool>,
    loss: Option<Human<LossSpec>>,
    queue: Option<Human<QueueLimit>>,
    mark: Option<Human<Option<QueueLimit>>>,
    reorder: Option<ReorderSpec>,
    duplicate: Option<DuplicateSpec>,
    outages: Option<Vec<OutageSpec>>,
}

/// A description of a link that makes none.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A value is no amount of its kind.
    #[error("{field} is {source}")]
    Value {
        /// The field.
        field: String,
        /// What is wrong with the value.
        source: UnitError,
    },
    /// There is no such field.
    #[error("no field `{field}`; expected {known}{suggestion}")]
    UnknownField {
        /// The field.
        field: String,
        /// The fields there are.
        known: &'static str,
        /// The nearest one, as text; may be empty.
        suggestion: String,
    },
    /// A part is not of the form `field=value`.
    #[error("`{part}`: expected field=value, such as rate=30mbit")]
    NotAssigned {
        /// The part.
        part: String,
    },
    /// A field without default is missing.
    #[error("{field} is missing; expected {expected}")]
    Missing {
        /// The field.
        field: String,
        /// What it looks like.
        expected: &'static str,
    },
    /// A field is there twice.
    #[error("{field} is given twice")]
    Twice {
        /// The field.
        field: String,
    },
    /// Values that make no link together.
    #[error("{0}")]
    Invalid(String),
}

impl PartialLink {
    /// The link, where fields without default must be there; they are named behind `prefix`.
    pub(super) fn complete(self, prefix: &str) -> Result<LinkSpec, LinkError> {
        let missing = |field: &str, expected| {
            let field = format!("{prefix}{field}");
            LinkError::Missing { field, expected }
        };
        Ok(LinkSpec {
            rate: self.rate.ok_or_else(|| missing("rate", Rate::EXPECTED))?.0,
            steps: self.steps.unwrap_or_default(),
            delay: self.delay.ok_or_else(|| missing("delay", Duration::EXPECTED))?.0,
            jitter: self.jitter.map_or(Duration::ZERO, |jitter| jitter.0),
            jitter_correlation: self.jitter_correlation.map_or(Share::ZERO, |share| share.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(false),
            loss: self.loss.map_or(LossSpec::NONE, |loss| loss.0),
            queue: self.queue.map_or_else(QueueLimit::default, |queue| queue.0),
            mark: self.mark.and_then(|mark| mark.0),
            reorder: self.reorder.unwrap_or_default(),
            duplicate: self.duplicate.unwrap_or_default(),
            outages: self.outages.unwrap_or_default(),
        })
    }

    /// The link like `base` in all that is not given.
    pub(super) fn over(self, base: &LinkSpec) -> LinkSpec {
        LinkSpec {
            rate: self.rate.map_or(base.rate, |rate| rate.0),
            steps: self.steps.unwrap_or_else(|| base.steps.clone()),
            delay: self.delay.map_or(base.delay, |delay| delay.0),
            jitter: self.jitter.map_or(base.jitter, |jitter| jitter.0),
            jitter_correlation: self
                .jitter_correlation
                .map_or(base.jitter_correlation, |share| share.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(base.jitter_reorders),
            loss: self.loss.map_or(base.loss, |loss| loss.0),
            queue: self.queue.map_or(base.queue, |queue| queue.0),
            mark: self.mark.map_or(base.mark, |mark| mark.0),
            reorder: self.reorder.unwrap_or(base.reorder),
            duplicate: self.duplicate.unwrap_or(base.duplicate),
            outages: self.outages.unwrap_or_else(|| base.outages.clone()),
        }
    }

    /// Sets a field from its text form.
    pub(super) fn set(&mut self, field: &str, value: &str) -> Result<(), LinkError> {
        let twice = || LinkError::Twice { field: field.to_owned() };
        match field {
            "rate" => put(&mut self.rate, field, value),
            "delay" => put(&mut self.delay, field, value),
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
                known: "name, bottleneck, rate, steps, delay, jitter, jitter_correlation, loss, \
                        queue, mark, reorder, duplicate, outage; of links each also as up.FIELD and access.FIELD",
                suggestion: suggestion(field, FIELDS),
            }),
        }
    }
}

const FIELDS: [&str; 13] = [
    "name",
    "bottleneck",
    "rate",
    "steps",
    "delay",
    "jitter",
    "jitter_correlation",
    "loss",
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

impl StepSpec {
    /// Reads `20s:4mbit`.
    fn read(field: &str, text: &str) -> Result<StepSpec, LinkError> {
        let Some((at, rate)) = text.split_once(':') else {
            let expected = "an instant and a rate, such as 20s:4mbit";
            return Err(LinkError::Value {
                field: field.to_owned(),
                source: UnitError { text: text.to_owned(), expected },
            });
        };
        Ok(StepSpec { at: read(field, at)?, rate: read(field, rate)? })
    }

    /// As [`StepSpec::read`] reads it.
    fn print(&self) -> String {
        format!("{}:{}", self.at.print(), self.rate.print())
    }
}

/// `2%+5ms`: a share and the time that goes with it.
fn share_and_time(field: &str, value: &str) -> Result<(Share, Duration), LinkError> {
    let (share, time) = value.split_once('+').unwrap_or((value, "0ms"));
    Ok((read(field, share)?, read(field, time)?))
}

/// The limit with the round trip that counts, if it tells none itself.
fn over(limit: QueueLimit, round_trip: Duration) -> QueueLimit {
    match limit {
        QueueLimit::BandwidthDelay { multiple, round_trip: None, at_least } => {
            QueueLimit::BandwidthDelay { multiple, round_trip: Some(round_trip), at_least }
        }
        limit => limit,
    }
}

impl LinkSpec {
    /// The link that the simulator makes of it, with `overhead` bytes of headers per datagram, if
    /// it is all that lies between two hosts. If not, see [`LinkSpec::config_on`].
    pub fn config(&self, overhead: Bytes) -> LinkConfig {
        self.config_on(overhead, self.delay.saturating_mul(2))
    }

    /// The same as one link of several in a row: a queue or a mark that is told in
    /// bandwidth-delay products, as the default queue is, has those of `round_trip`, which is that
    /// of all of them together.
    pub fn config_on(&self, overhead: Bytes, round_trip: Duration) -> LinkConfig {
        let at = |time: Duration| Instant::ZERO + time;
        LinkConfig {
            rate: Some(self.rate),
            steps: self
                .steps
                .iter()
                .map(|step| RateStep { at: at(step.at), rate: step.rate.unwrap_or(Rate::ZERO) })
                .collect(),
            trace: None,
            delay: self.delay,
            jitter: self.jitter,
            jitter_correlation: self.jitter_correlation.as_f64(),
            jitter_reorders: self.jitter_reorders,
            loss: self.loss.config(),
            queue: over(self.queue, round_trip),
            mark: self.mark.map(|threshold| over(threshold, round_trip)),
            reorder: (!self.reorder.share.is_zero())
                .then(|| Reorder { share: self.reorder.share.as_f64(), extra: self.reorder.extra }),
            duplicate: (!self.duplicate.share.is_zero()).then(|| Duplicate {
                share: self.duplicate.share.as_f64(),
                after: self.duplicate.after,
            }),
            outages: self
                .outages
                .iter()
                .map(|outage| Outage { from: at(outage.from), until: outage.until.map(at) })
                .collect(),
            overhead,
        }
    }

    /// Bytes that its rate lets through between two instants, headers included. Outages count as if
    /// there were none.
    pub(crate) fn capacity(&self, from: Instant, until: Instant) -> Bytes {
        let steps = self.steps.iter().map(|step| (Instant::ZERO + step.at, step.rate));
        let ends = steps.clone().map(|(at, _)| at).chain([Instant::FAR_FUTURE]);
        let rates = std::iter::once((Instant::ZERO, Some(self.rate))).chain(steps);
        rates
            .zip(ends)
            .map(|((begins_at, rate), ends_at)| {
                let time = ends_at.min(until) - begins_at.max(from);
                rate.map_or(Bytes::ZERO, |rate| rate.bytes_in(time))
            })
            .sum()
    }

    /// True if chance decides anything on this link.
    pub fn is_random(&self) -> bool {
        let certain = |share: Share| share.is_zero() || share.is_whole();
        !self.jitter.is_zero()
            || self.loss.is_random()
            || !certain(self.reorder.share)
            || !certain(self.duplicate.share)
    }

    /// One line such as `55mbit 15ms loss 1%`.
    pub(super) fn summary(&self) -> String {
        /// As many are told one by one.
        const FEW_STEPS: usize = 3;
        let mut text = format!("{} {}", self.rate.print(), self.delay.print());
        match self.steps.len() {
            0 => {}
            1..=FEW_STEPS => {
                let steps: Vec<_> = self.steps.iter().map(StepSpec::print).collect();
                text.push_str(&format!(" steps {}", steps.join("+")));
            }
            many => text.push_str(&format!(" {many} steps")),
        }
        if !self.jitter.is_zero() {
            text.push_str(&format!(" ±{}", self.jitter.print()));
            if !self.jitter_correlation.is_zero() {
                text.push_str(&format!(" correlation {}", self.jitter_correlation.print()));
            }
        }
        if self.loss != LossSpec::NONE {
            text.push_str(&format!(" loss {}", self.loss.print()));
        }
        if self.mark.is_some() {
            text.push_str(&format!(" mark {}", self.mark.print()));
        }
        text
    }

    /// Checks the values.
    pub(super) fn validate(&self) -> Result<(), LinkError> {
        // The overhead plays no part in what is valid.
        self.config(Bytes::ZERO).validate().map_err(|error| LinkError::Invalid(error.to_string()))
    }
}
