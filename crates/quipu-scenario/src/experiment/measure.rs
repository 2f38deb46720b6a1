//! What a rule looks at: a number that each run gives.

mod stat;

use std::fmt;

use quipu_base::Duration;
use quipu_record::Scope;
use quipu_web::page::ObjectKind;
use serde::{Deserialize, Deserializer, de};

use crate::choice::Direction;
use crate::form::text::{NAME, PATH_NAME};
use crate::form::{Kind, Shorthand, Texted, read_only, table, table_or_short};
use crate::units::Unit;
use quipu_record::suggestion;
use quipu_record::threshold::Dimension;

pub(super) use stat::OVER;
pub use stat::Stat;

/// What is measured: an entry of the registry of metrics.
pub use quipu_record::Metric;

/// A column of the time series, as far as rules may look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Congestion window.
    Cwnd,
    /// Bytes in flight.
    InFlight,
    /// Pace of packets.
    PacingRate,
    /// Last sample of the delivery rate.
    DeliveryRate,
    /// The controller's estimate.
    Bandwidth,
    /// Smoothed round trip.
    Srtt,
    /// Last round trip.
    LatestRtt,
    /// Least round trip.
    MinRtt,
    /// Queue towards the client.
    QueueDown,
    /// Queue towards the server.
    QueueUp,
    /// Sent so far.
    BytesSent,
    /// Acknowledged so far.
    BytesAcked,
    /// Lost so far.
    BytesLost,
    /// Part of the connection's bytes, or of all connections'.
    Share,
}

const COLUMNS: [(&str, Column, Dimension); 14] = [
    ("cwnd", Column::Cwnd, Dimension::Size),
    ("in_flight", Column::InFlight, Dimension::Size),
    ("pacing_rate", Column::PacingRate, Dimension::Rate),
    ("delivery_rate", Column::DeliveryRate, Dimension::Rate),
    ("bandwidth", Column::Bandwidth, Dimension::Rate),
    ("srtt", Column::Srtt, Dimension::Time),
    ("latest_rtt", Column::LatestRtt, Dimension::Time),
    ("min_rtt", Column::MinRtt, Dimension::Time),
    ("queue_down", Column::QueueDown, Dimension::Size),
    ("queue_up", Column::QueueUp, Dimension::Size),
    ("bytes_sent", Column::BytesSent, Dimension::Size),
    ("bytes_acked", Column::BytesAcked, Dimension::Size),
    ("bytes_lost", Column::BytesLost, Dimension::Size),
    ("share", Column::Share, Dimension::Plain),
];

/// The quantities of the model, by the names that rules have for them.
pub const DRAWN: [&str; 5] = ["main-size", "mains", "embedded-size", "embedded", "reading-time"];

/// A path or a flow, by name or by position.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Named {
    /// Position, from 0.
    Index(u32),
    /// Name.
    Name(String),
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Named::Index(index) => f.pad(&index.to_string()),
            Named::Name(name) => f.pad(name),
        }
    }
}

impl Texted for Named {}

table! {
    /// What a rule looks at. [reproduce.md](reproduce.md#metrics) tells which of these each metric has.
    struct MeasureForm as "Metric" {
        /// What is measured.
        name: String [one of || Metric::NAMES.to_vec()],
        /// One number out of several of a run: objects, samples or times of a state.
        stat: Option<Stat> => "as the metric",
        /// Whether objects, or times of a stream, of all runs count together, instead of one number for each
        /// run.
        pooled: bool = false,
        /// Only objects of this kind.
        kind: Option<ObjectKind> => "all",
        /// Only objects whose address this matches; `*` stands for anything.
        url: Option<String> [text NAME] => "all",
        /// Only the object at this position of the page.
        index: Option<u32> => "all",
        /// Only the object that is the N-th of them to be complete, from 1.
        rank: Option<u32> [1..] => "all",
        /// Only this raw stream, or objects on it.
        stream: Option<u32> => "all",
        /// This flow, by name or position.
        flow: Option<Named> [text PATH_NAME] => "the first",
        /// This path, by name or position.
        path: Option<Named> [text PATH_NAME] => "as the metric",
        /// The policy whose order of objects is the other one, by the label that tables show.
        against: Option<String> [text NAME] => "none",
        /// This direction.
        direction: Option<Direction> => "`down`",
        /// Samples from this time of the run on.
        from: Duration => "0",
        /// Samples before this time.
        until: Option<Duration> => "the end",
        /// Samples in this state of the congestion controller.
        state: Option<String> [text NAME] => "any",
        /// A column, or one divided by another, such as `srtt/min_rtt`.
        column: Option<String> [text NAME] => "none",
    }
}

/// What a rule looks at: what a file says of it, with all defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// What is measured.
    pub metric: Metric,
    /// One number out of several of a run.
    pub stat: Stat,
    /// Whether objects, or times of a stream, of all runs count together.
    pub pooled: bool,
    /// The kind of the objects that count; all if none.
    pub kind: Option<ObjectKind>,
    /// What addresses of objects must match; `*` stands for anything.
    pub url: Option<String>,
    /// Position in the page of the one object that counts.
    pub index: Option<u32>,
    /// Which of them counts, by the order of their completion, from 1; all if none.
    pub rank: Option<u32>,
    /// The raw stream.
    pub stream: Option<u32>,
    /// The flow.
    pub flow: Option<Named>,
    /// The path.
    pub path: Option<Named>,
    /// Label of the policy whose order of objects is compared with.
    pub against: Option<String>,
    /// The direction of links and flows.
    pub direction: Direction,
    /// When samples begin to count.
    pub from: Duration,
    /// When they stop, if before the end of the run.
    pub until: Option<Duration>,
    /// State of the congestion controller in which samples count; any if none.
    pub state: Option<String>,
    /// A column, and the one it is divided by.
    pub column: Option<(Column, Option<Column>)>,
    /// A quantity of the model of drawn pages: position in the list of drawn quantities.
    pub drawn: Option<usize>,
}

read_only! {
    Measure: Kind::Either(vec![
        Kind::Words(complete()),
        Kind::Table(MeasureForm::table()),
    ]),
    Named: Kind::Text(&PATH_NAME),
    ObjectKind: Kind::Words(ObjectKind::ALL.iter().map(|kind| kind.name()).collect()),
}

/// Names of the quantities that need nothing beside their name.
fn complete() -> Vec<&'static str> {
    let needs_nothing = |metric: &&Metric| Measure::plain(**metric).check(false, false).is_ok();
    Metric::ALL.iter().filter(needs_nothing).map(|metric| metric.name()).collect()
}

impl Measure {
    /// A metric without choices of its own.
    pub fn plain(metric: Metric) -> Measure {
        Measure {
            metric,
            stat: match metric {
                Metric::Series => Stat::Percentile(50),
                Metric::State => Stat::First,
                _ => Stat::Mean,
            },
            pooled: false,
            kind: None,
            url: None,
            index: None,
            rank: None,
            stream: None,
            flow: None,
            path: None,
            against: None,
            direction: Direction::Down,
            from: Duration::ZERO,
            until: None,
            state: None,
            column: None,
            drawn: None,
        }
    }

    /// What its numbers count.
    pub fn dimension(&self) -> Dimension {
        match (self.metric, self.stat) {
            (Metric::State, Stat::Count | Stat::Part) => Dimension::Plain,
            (Metric::State, _) => Dimension::Time,
            (Metric::Series, Stat::Rate) => Dimension::Rate,
            (Metric::Series, Stat::Part | Stat::Count) => Dimension::Plain,
            (Metric::Series, _) => match self.column {
                Some((column, None)) => column.dimension(),
                _ => Dimension::Plain,
            },
            (Metric::Object, Stat::Count) => Dimension::Plain,
            (metric, _) => metric.dimension(),
        }
    }

    /// True if it needs the samples of a time series.
    pub fn is_of_series(&self) -> bool {
        matches!(self.metric, Metric::Series | Metric::State)
    }

    fn read(input: MeasureForm) -> Result<Measure, String> {
        let Some(metric) = Metric::named(&input.name) else {
            let near = suggestion(&input.name, Metric::NAMES.iter().copied());
            let known = Metric::NAMES.join(", ");
            return Err(format!("unknown metric `{}`{near}; there are: {known}", input.name));
        };
        let name = metric.name();
        let mut problems = Vec::new();
        input.check_fields("", &mut problems);
        if let Some(problem) = problems.first() {
            return Err(format!("metric {name}: {problem}"));
        }
        let (column, drawn) = columns(metric, input.column.as_deref())?;
        let measure = Measure {
            stat: input.stat.unwrap_or(Measure::plain(metric).stat),
            pooled: input.pooled,
            kind: input.kind,
            url: input.url,
            index: input.index,
            rank: input.rank,
            stream: input.stream,
            flow: input.flow,
            path: input.path,
            against: input.against,
            direction: input.direction.unwrap_or_default(),
            from: input.from,
            until: input.until,
            state: input.state,
            column,
            drawn,
            ..Measure::plain(metric)
        };
        measure.check(input.stat.is_some(), input.direction.is_some())?;
        Ok(measure)
    }

    /// Checks that what is given belongs to the metric, and that what it needs is there.
    fn check(&self, has_stat: bool, has_direction: bool) -> Result<(), String> {
        let name = self.metric.name();
        let series = self.is_of_series();
        let scope = self.metric.entry().scope;
        let of_flow = matches!(scope, Scope::Flow(_) | Scope::FlowAmong);
        let object = matches!(scope, Scope::Object);
        let of_stream = matches!(scope, Scope::Stream);
        // A load has one time of a stream: only those of all runs have a median.
        let over_loads = of_stream && self.pooled;
        let of_path = matches!(scope, Scope::Path(_) | Scope::Link);
        let of_order = matches!(scope, Scope::Order);
        let has_direction_of = matches!(scope, Scope::Flows | Scope::Link);
        let time = self.from > Duration::ZERO || self.until.is_some();
        for (key, given, allowed) in [
            ("stat", has_stat, object || series || over_loads || self.metric == Metric::Drawn),
            ("pooled", self.pooled, (object && self.rank.is_none()) || of_stream),
            ("kind", self.kind.is_some(), object),
            ("url", self.url.is_some(), object),
            ("index", self.index.is_some(), object),
            ("rank", self.rank.is_some(), object),
            ("stream", self.stream.is_some(), object || of_stream),
            ("flow", self.flow.is_some(), of_flow || series),
            ("path", self.path.is_some(), of_path || series),
            ("against", self.against.is_some(), of_order),
            ("direction", has_direction, has_direction_of),
            ("from and until", time, series),
            ("state", self.state.is_some(), series),
            ("column", self.column.is_some(), self.metric == Metric::Series),
        ] {
            if given && !allowed {
                return Err(format!("metric {name} has no {key}"));
            }
        }
        for (key, missing) in [
            ("flow", of_flow && self.flow.is_none()),
            ("path", of_path && self.path.is_none()),
            ("stream", of_stream && self.stream.is_none()),
            ("against", of_order && self.against.is_none()),
            ("state", self.metric == Metric::State && self.state.is_none()),
            ("column", self.metric == Metric::Series && self.column.is_none()),
            ("column", self.metric == Metric::Drawn && self.drawn.is_none()),
        ] {
            if missing {
                return Err(format!("metric {name} needs {key}"));
            }
        }
        let fits = match self.stat {
            Stat::Period | Stat::Length => self.metric == Metric::State,
            Stat::Part => series,
            Stat::Rate => self.metric == Metric::Series,
            Stat::First | Stat::Count => object || series,
            Stat::Last => object || self.metric == Metric::Series,
            Stat::Deviation | Stat::LogMean | Stat::LogDeviation => self.metric == Metric::Drawn,
            Stat::Max => self.metric != Metric::State,
            Stat::Mean => true,
            Stat::Min | Stat::Percentile(_) => {
                ![Metric::Drawn, Metric::State].contains(&self.metric)
            }
        };
        // A state that nothing says more of tells when it began first.
        if !fits || (self.metric == Metric::State && self.stat == Stat::Mean) {
            return Err(format!("metric {name} has no stat {}", self.stat));
        }
        Ok(())
    }
}

type Columns = (Option<(Column, Option<Column>)>, Option<usize>);

/// The columns that `text` names.
fn columns(metric: Metric, text: Option<&str>) -> Result<Columns, String> {
    let Some(text) = text else { return Ok((None, None)) };
    if metric == Metric::Drawn {
        let position = DRAWN.iter().position(|name| *name == text);
        let wrong = || format!("column `{text}`: expected one of {}", DRAWN.join(", "));
        return Ok((None, Some(position.ok_or_else(wrong)?)));
    }
    let column = |name: &str| {
        let found = COLUMNS.iter().find(|(known, ..)| *known == name.trim());
        found.map(|(_, column, _)| *column).ok_or_else(|| {
            let names = COLUMNS.iter().map(|(name, ..)| *name);
            let known: Vec<&str> = names.clone().collect();
            let near = suggestion(name, names);
            format!("unknown column `{name}`{near}; there are: {}", known.join(", "))
        })
    };
    Ok(match text.split_once('/') {
        None => (Some((column(text)?, None)), None),
        Some((above, below)) => (Some((column(above)?, Some(column(below)?))), None),
    })
}

impl Column {
    fn entry(self) -> Option<&'static (&'static str, Column, Dimension)> {
        COLUMNS.iter().find(|(_, column, _)| *column == self)
    }

    fn name(self) -> &'static str {
        self.entry().map_or("", |(name, ..)| name)
    }

    fn dimension(self) -> Dimension {
        self.entry().map_or(Dimension::Plain, |(.., dimension)| *dimension)
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut words = vec![self.metric.name().to_owned()];
        match self.column {
            Some((column, None)) => words.push(column.name().to_owned()),
            Some((above, Some(below))) => words.push(format!("{}/{}", above.name(), below.name())),
            None => {}
        }
        words.extend(self.drawn.and_then(|index| DRAWN.get(index)).map(|name| (*name).to_owned()));
        if self.stat != Measure::plain(self.metric).stat || self.pooled {
            words.push(self.stat.to_string());
        }
        if self.pooled {
            words.push("of all runs".to_owned());
        }
        words.extend(self.kind.map(|kind| kind.name().to_owned()));
        words.extend(self.url.clone());
        for (name, number) in [("object", self.index), ("rank", self.rank), ("stream", self.stream)]
        {
            words.extend(number.map(|number| format!("{name} {number}")));
        }
        words.extend(self.flow.as_ref().map(|flow| format!("of {flow}")));
        words.extend(self.path.as_ref().map(|path| format!("path {path}")));
        words.extend(self.against.as_ref().map(|policy| format!("against {policy}")));
        if self.direction == Direction::Up {
            words.push("up".to_owned());
        }
        words.extend(self.state.as_ref().map(|state| format!("in {state}")));
        if self.from > Duration::ZERO {
            words.push(format!("from {}", self.from.print()));
        }
        words.extend(self.until.map(|until| format!("until {}", until.print())));
        f.pad(&words.join(" "))
    }
}

impl Shorthand<String> for MeasureForm {
    const EXPECTED: &'static str = "a metric by name, or a table with `name`";

    fn from_short(name: String) -> Result<Self, String> {
        Ok(MeasureForm::least(name))
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let form = table_or_short::<MeasureForm, String, D>(deserializer)?;
        Measure::read(form).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Measure, String> {
        #[derive(Deserialize)]
        struct Holder {
            metric: Measure,
        }
        let holder = toml::from_str::<Holder>(&format!("metric = {text}"));
        holder.map(|holder| holder.metric).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn metrics_are_named_or_described() {
        assert_eq!(read("\"critical\"").unwrap(), Measure::plain(Metric::CriticalTime));
        for (text, shown, dimension) in [
            (
                "{ name = \"object\", kind = \"stylesheet\", stat = \"p95\", pooled = true }",
                "object p95 of all runs stylesheet",
                Dimension::Time,
            ),
            ("{ name = \"stream\", stream = 0 }", "stream stream 0", Dimension::Time),
            ("{ name = \"object\", rank = 26 }", "object rank 26", Dimension::Time),
            (
                "{ name = \"stream\", stream = 0, stat = \"p75\", pooled = true }",
                "stream p75 of all runs stream 0",
                Dimension::Time,
            ),
            ("{ name = \"share\", path = \"wifi\" }", "share path wifi", Dimension::Plain),
            ("{ name = \"goodput\", flow = 1 }", "goodput of 1", Dimension::Rate),
            (
                "{ name = \"loss-detection\", path = \"wifi\" }",
                "loss-detection path wifi",
                Dimension::Time,
            ),
            (
                "{ name = \"order\", against = \"wrr + minrtt\" }",
                "order against wrr + minrtt",
                Dimension::Plain,
            ),
            (
                "{ name = \"series\", column = \"srtt/min_rtt\", from = \"5s\", until = \"30s\" }",
                "series srtt/min_rtt from 5s until 30s",
                Dimension::Plain,
            ),
            (
                "{ name = \"series\", column = \"bytes_acked\", stat = \"rate\" }",
                "series bytes_acked rate",
                Dimension::Rate,
            ),
            (
                "{ name = \"state\", state = \"probe rtt\", stat = \"period\" }",
                "state period in probe rtt",
                Dimension::Time,
            ),
            (
                "{ name = \"drawn\", column = \"embedded\", stat = \"deviation\" }",
                "drawn embedded deviation",
                Dimension::Plain,
            ),
        ] {
            let metric = read(text).unwrap();
            assert_eq!((metric.to_string().as_str(), metric.dimension()), (shown, dimension));
        }
    }

    #[test]
    fn what_a_metric_does_not_have_or_lacks_is_told() {
        for (text, told) in [
            ("\"pag\"", "unknown metric `pag`; did you mean `page`?"),
            ("{ name = \"page\", flow = 1 }", "metric page has no flow"),
            ("{ name = \"goodput\" }", "metric goodput needs flow"),
            ("\"order\"", "metric order needs against"),
            ("{ name = \"page\", against = \"rr\" }", "metric page has no against"),
            ("\"loss-detection\"", "metric loss-detection needs path"),
            ("{ name = \"page\", stat = \"mean\" }", "metric page has no stat"),
            ("{ name = \"stream\", stream = 0, stat = \"p75\" }", "metric stream has no stat"),
            ("{ name = \"object\", stat = \"period\" }", "metric object has no stat period"),
            ("{ name = \"object\", stat = \"p101\" }", "`p101`: expected mean, median"),
            ("{ name = \"object\", rank = 0 }", "rank is 0; expected 1 or more"),
            ("{ name = \"page\", rank = 1 }", "metric page has no rank"),
            ("{ name = \"object\", rank = 1, pooled = true }", "metric object has no pooled"),
            ("{ name = \"series\" }", "metric series needs column"),
            ("{ name = \"series\", column = \"crwnd\" }", "did you mean `cwnd`?"),
            ("{ name = \"state\", state = \"x\", from = \"soon\" }", "expected a time"),
            ("{ name = \"object\", knd = \"x\" }", "unknown field `knd`"),
            ("3", "a metric by name"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
