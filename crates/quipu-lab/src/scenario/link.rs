//! Links as a scenario writes them: one direction, both directions of a path, a network of paths.

use std::str::FromStr;

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{Duplicate, LinkConfig, Outage, QueueLimit, Reorder};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::nearest::suggestion;
use super::units::{Human, Share, Unit, UnitError, human};

/// One direction of a path, complete.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSpec {
    /// Bits per second, above zero.
    #[serde(with = "human")]
    pub rate: Rate,
    /// One-way propagation delay.
    #[serde(with = "human")]
    pub delay: Duration,
    /// Each datagram takes `delay ± jitter`; not above `delay`. Default 0.
    #[serde(with = "human")]
    pub jitter: Duration,
    /// Whether jitter may let a datagram overtake another. Default no.
    pub jitter_reorders: bool,
    /// Chance that a datagram is lost. Default 0.
    #[serde(with = "human")]
    pub loss: Share,
    /// Drop-tail queue. Default: `max(2 × rate × round trip, 50 packets)`.
    #[serde(with = "human")]
    pub queue: QueueLimit,
    /// Share of datagrams that is late, and by how much. Default none.
    pub reorder: ReorderSpec,
    /// Share of datagrams that arrives twice, and the time between. Default none.
    pub duplicate: DuplicateSpec,
    /// When the link is down. Default never.
    pub outages: Vec<OutageSpec>,
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
struct PartialLink {
    rate: Option<Human<Rate>>,
    delay: Option<Human<Duration>>,
    jitter: Option<Human<Duration>>,
    jitter_reorders: Option<bool>,
    loss: Option<Human<Share>>,
    queue: Option<Human<QueueLimit>>,
    reorder: Option<ReorderSpec>,
    duplicate: Option<DuplicateSpec>,
    outages: Option<Vec<OutageSpec>>,
}

/// Both directions of one path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PathInput")]
pub struct PathSpec {
    /// What it is called in tables, such as `wifi`.
    pub name: String,
    /// From the server to the client.
    pub down: LinkSpec,
    /// From the client to the server. What is not given is the downlink's.
    pub up: LinkSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathInput {
    name: String,
    down: PartialLink,
    #[serde(default)]
    up: PartialLink,
}

/// The paths between client and server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// What it is called, such as `wifi+lte`.
    pub name: String,
    /// One line on what it stands for and where it comes from.
    #[serde(default)]
    pub about: String,
    /// The paths; path 0 carries the handshake.
    pub paths: Vec<PathSpec>,
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
        field: &'static str,
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
    fn complete(self) -> Result<LinkSpec, LinkError> {
        let missing = |field, expected| LinkError::Missing { field, expected };
        Ok(LinkSpec {
            rate: self.rate.ok_or_else(|| missing("rate", Rate::EXPECTED))?.0,
            delay: self.delay.ok_or_else(|| missing("delay", Duration::EXPECTED))?.0,
            jitter: self.jitter.map_or(Duration::ZERO, |jitter| jitter.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(false),
            loss: self.loss.map_or(Share::ZERO, |loss| loss.0),
            queue: self.queue.map_or_else(QueueLimit::default, |queue| queue.0),
            reorder: self.reorder.unwrap_or_default(),
            duplicate: self.duplicate.unwrap_or_default(),
            outages: self.outages.unwrap_or_default(),
        })
    }

    fn over(self, base: &LinkSpec) -> LinkSpec {
        LinkSpec {
            rate: self.rate.map_or(base.rate, |rate| rate.0),
            delay: self.delay.map_or(base.delay, |delay| delay.0),
            jitter: self.jitter.map_or(base.jitter, |jitter| jitter.0),
            jitter_reorders: self.jitter_reorders.unwrap_or(base.jitter_reorders),
            loss: self.loss.map_or(base.loss, |loss| loss.0),
            queue: self.queue.map_or(base.queue, |queue| queue.0),
            reorder: self.reorder.unwrap_or(base.reorder),
            duplicate: self.duplicate.unwrap_or(base.duplicate),
            outages: self.outages.unwrap_or_else(|| base.outages.clone()),
        }
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), LinkError> {
        let twice = || LinkError::Twice { field: field.to_owned() };
        match field {
            "rate" => put(&mut self.rate, field, value),
            "delay" => put(&mut self.delay, field, value),
            "jitter" => put(&mut self.jitter, field, value),
            "loss" => put(&mut self.loss, field, value),
            "queue" => put(&mut self.queue, field, value),
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
                known: "name, rate, delay, jitter, loss, queue, reorder, duplicate, outage, \
                        each also as up.FIELD",
                suggestion: suggestion(field, FIELDS),
            }),
        }
    }
}

const FIELDS: [&str; 9] =
    ["name", "rate", "delay", "jitter", "loss", "queue", "reorder", "duplicate", "outage"];

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

impl LinkSpec {
    /// The link that the simulator makes of it, with `overhead` bytes of headers per datagram.
    pub fn config(&self, overhead: Bytes) -> LinkConfig {
        let at = |time: Duration| Instant::ZERO + time;
        LinkConfig {
            rate: Some(self.rate),
            delay: self.delay,
            jitter: self.jitter,
            jitter_reorders: self.jitter_reorders,
            loss: self.loss.as_f64(),
            queue: self.queue,
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

    /// True if chance decides anything on this link.
    pub fn is_random(&self) -> bool {
        let certain = |share: Share| share.is_zero() || share == Share::from_thousandths(1_000);
        !self.jitter.is_zero()
            || !certain(self.loss)
            || !certain(self.reorder.share)
            || !certain(self.duplicate.share)
    }

    fn validate(&self) -> Result<(), LinkError> {
        // The overhead plays no part in what is valid.
        self.config(Bytes::ZERO).validate().map_err(|error| LinkError::Invalid(error.to_string()))
    }
}

impl TryFrom<PathInput> for PathSpec {
    type Error = LinkError;

    fn try_from(input: PathInput) -> Result<Self, LinkError> {
        let down = input.down.complete()?;
        let up = input.up.over(&down);
        Ok(PathSpec { name: input.name, down, up })
    }
}

impl FromStr for PathSpec {
    type Err = LinkError;

    /// Reads `rate=30mbit,delay=10ms,loss=1.5%`; fields of the uplink begin with `up.`.
    fn from_str(text: &str) -> Result<Self, LinkError> {
        let mut input = PathInput {
            name: String::new(),
            down: PartialLink::default(),
            up: PartialLink::default(),
        };
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (field, value) = part
                .split_once('=')
                .ok_or_else(|| LinkError::NotAssigned { part: part.to_owned() })?;
            match field.trim().split_once('.') {
                Some(("up", field)) => input.up.set(field, value)?,
                Some(("down", field)) => input.down.set(field, value)?,
                _ if field.trim() == "name" => input.name = value.trim().to_owned(),
                _ => input.down.set(field.trim(), value)?,
            }
        }
        PathSpec::try_from(input)
    }
}

impl PathSpec {
    /// Checks both directions.
    ///
    /// # Errors
    /// The first value that makes no link.
    pub fn validate(&self) -> Result<(), LinkError> {
        for (direction, link) in [("down", &self.down), ("up", &self.up)] {
            link.validate().map_err(|error| LinkError::Invalid(format!("{direction}: {error}")))?;
        }
        Ok(())
    }

    /// One line such as `wifi 55mbit 15ms`.
    pub fn summary(&self) -> String {
        let link = |link: &LinkSpec| {
            let mut text = format!("{} {}", link.rate.print(), link.delay.print());
            if !link.jitter.is_zero() {
                text.push_str(&format!(" ±{}", link.jitter.print()));
            }
            if !link.loss.is_zero() {
                text.push_str(&format!(" loss {}", link.loss.print()));
            }
            text
        };
        let mut text = format!("{} {}", self.name, link(&self.down));
        if self.up != self.down {
            text.push_str(&format!(" (up {})", link(&self.up)));
        }
        text
    }
}

impl Network {
    /// The network that `--link` options describe; paths without a name are called `path0`, …
    pub fn from_links(mut paths: Vec<PathSpec>) -> Network {
        for (index, path) in paths.iter_mut().enumerate() {
            if path.name.is_empty() {
                path.name = format!("path{index}");
            }
        }
        let name = paths.iter().map(|path| path.down.rate.print()).collect::<Vec<_>>().join("+");
        Network { name, about: "from the command line".to_owned(), paths }
    }

    /// True if chance decides anything on any link.
    pub fn is_random(&self) -> bool {
        self.paths.iter().any(|path| path.down.is_random() || path.up.is_random())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        text.parse::<PathSpec>().unwrap_err().to_string()
    }

    #[test]
    fn a_link_option_gives_both_directions() {
        let path: PathSpec =
            "name=lte,rate=30mbit,delay=10ms,loss=1.5%,up.rate=5mbit".parse().unwrap();
        assert_eq!(path.down.rate, Rate::from_mbit_per_sec(30));
        assert_eq!(path.up.rate, Rate::from_mbit_per_sec(5));
        assert_eq!(path.up.delay, Duration::from_millis(10));
        assert_eq!(path.up.loss, path.down.loss);
        assert_eq!(path.summary(), "lte 30mbit 10ms loss 1.5% (up 5mbit 10ms loss 1.5%)");
    }

    #[test]
    fn all_parts_of_a_link_reach_its_configuration() {
        let text = "rate=10mbit,delay=20ms,jitter=2ms,queue=1bdp,reorder=2%+5ms,duplicate=1%,\
                    outage=1s..2s,outage=5s";
        let config = text.parse::<PathSpec>().unwrap().down.config(Bytes(28));
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.jitter, Duration::from_millis(2));
        assert_eq!(config.queue, QueueLimit::bandwidth_delay(1.0));
        assert_eq!(config.reorder.unwrap().extra, Duration::from_millis(5));
        assert_eq!(config.duplicate.unwrap().share, 0.01);
        assert_eq!(config.outages.len(), 2);
        assert_eq!(config.outages[1].until, None);
    }

    #[test]
    fn bad_links_are_refused_by_field_and_value() {
        assert!(refused("rate=-3mbit,delay=10ms").starts_with("rate is `-3mbit`: expected a rate"));
        assert!(refused("rate=NaN,delay=10ms").contains("`NaN`"));
        assert!(refused("rate=3mbit,delay=10ms,loss=101%").starts_with("loss is `101%`"));
        assert!(refused("rate=3mbit,dlay=10ms").ends_with("did you mean `delay`?"));
        assert!(refused("rate=3mbit,rate=4mbit,delay=1ms").ends_with("given twice"));
        assert!(refused("rate=3mbit").starts_with("delay is missing"));
        assert!(refused("30mbit").contains("expected field=value"));
        let path: PathSpec = "rate=3mbit,delay=1ms,jitter=2ms".parse().unwrap();
        let error = path.validate().unwrap_err().to_string();
        assert!(error.starts_with("down: link: jitter is 2.000 ms"), "{error}");
    }

    #[test]
    fn an_uplink_in_a_file_overrides_only_what_it_names() {
        let text = "name = \"dsl\"\ndown = { rate = \"16mbit\", delay = \"12ms\" }\n\
                    up = { rate = \"1mbit\" }";
        let path: PathSpec = toml::from_str(text).unwrap();
        assert_eq!(path.up.delay, path.down.delay);
        let again: PathSpec = toml::from_str(&toml::to_string(&path).unwrap()).unwrap();
        assert_eq!(again, path);
        let unknown = toml::from_str::<PathSpec>(&text.replace("delay", "dealy"));
        assert!(unknown.unwrap_err().to_string().contains("unknown field `dealy`"));
    }
}
