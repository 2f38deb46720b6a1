//! Raw streams: objects written to QUIC streams, without HTTP.

use std::fmt;

use quipu_base::{Bytes, Duration};
use serde::{Deserialize, Deserializer, Serializer, de};

use super::choice::{Sender, WriteOrder};
use super::error::ScenarioError;
use super::form::pattern::{size, time};
use super::form::text::{read, unit};
use super::form::{
    Bounds, FieldType, Kind, Limit, Names, Numbers, Shorthand, Text, table, table_or_short,
};
use super::units::{Unit, human};

/// Raw streams that a scenario may have.
pub const MOST_RAW_STREAMS: usize = 1_000;
/// Objects that `raw.objects` may have.
pub const MOST_RAW_OBJECTS: usize = 100_000;

table! {
    /// What `http = "raw"` writes to which stream. It has no effect otherwise.
    pub struct Raw as "Raw" {
        /// The streams, opened in this order, each with a latency of its own for deadline policies such
        /// as `edf`, or `default`.
        ///
        /// Two, as in the ns-3 paper.
        pub streams: Vec<RawStream> [1..=MOST_RAW_STREAMS] = vec![RawStream::default(); 2],
        /// Sizes in ascending order, one fewer than streams. An object goes to the first stream if it
        /// is a document or smaller than the first size, to the second if smaller than the second size,
        /// and so on; to the last if it is no smaller than any.
        ///
        /// 12 kB, as in the ns-3 paper.
        pub split: Sizes = Sizes(vec![Bytes(12_000)]),
        /// Order of writing: as given, or shuffled at random in each run.
        pub order: WriteOrder = WriteOrder::Given,
        /// Which end writes; a single byte from the client requests the server to write.
        pub sender: Sender = Sender::Server,
        /// From one write to the next.
        ///
        /// Not 0: policies that go by the time of writing distinguish objects.
        pub gap: Duration [..=Duration::from_secs(1)] = Duration::from_micros(1),
        /// Sizes of objects by stream, instead of `pages` and `split`, such as
        /// `[["10kB", "2kB"], ["50kB"]]`; at most 100000 objects.
        pub objects: Vec<Sizes> [..=MOST_RAW_STREAMS] = Vec::new(),
    }
}

table! {
    /// A raw stream, where its latency alone is not enough.
    pub(crate) struct RawStreamTable as "Raw stream" {
        /// From writing to deadline.
        pub(crate) latency: Option<Latency> => "that of the policy",
    }
}

/// A raw stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawStream {
    /// From writing to deadline; `None`: what the policy has for streams without one.
    pub latency: Option<Duration>,
}

/// Several sizes: a list, or text such as `10kB+2kB`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sizes(pub Vec<Bytes>);

/// The longest latency of a stream.
const MOST_LATENCY: Duration = Duration::from_secs(3_600);
/// What stands for a stream without a latency of its own.
const NO_LATENCY: &str = "default";

impl Raw {
    /// Checks that fields go together.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        let invalid = |field: &str, value: &dyn fmt::Display, expected: &str| {
            Err(ScenarioError::invalid(format!("raw.{field}"), value, expected))
        };
        let streams = self.streams.len();
        if !self.split.0.is_sorted_by(|a, b| a < b) || self.split.0.contains(&Bytes::ZERO) {
            return invalid("split", &self.split, "sizes above zero in ascending order");
        }
        let objects: usize = self.objects.iter().map(|sizes| sizes.0.len()).sum();
        if self.objects.len() > streams {
            let expected = "at most as many lists as raw.streams has streams";
            return invalid("objects", &format!("{} lists", self.objects.len()), expected);
        }
        if objects > MOST_RAW_OBJECTS || (objects == 0 && !self.objects.is_empty()) {
            return invalid("objects", &format!("{objects} objects"), "1 to 100000 objects");
        }
        if objects == 0 && self.split.0.len() + 1 != streams {
            let found = format!("{} sizes for {streams} streams", self.split.0.len());
            return invalid("split", &found, "one size fewer than raw.streams has streams");
        }
        Ok(())
    }

    /// True if chance decides the order of writing.
    pub(super) fn is_random(&self) -> bool {
        self.order == WriteOrder::Random
    }
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let latencies: Vec<String> = self.streams.iter().map(RawStream::to_string).collect();
        let (count, order, sender) = (self.streams.len(), self.order, self.sender);
        write!(f, "{count} streams (latency {}), {order} order", latencies.join("/"))?;
        if sender == Sender::Client { write!(f, ", the {sender} sends") } else { Ok(()) }
    }
}

/// The latency of a raw stream as a file has it; `None`: what the policy has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Latency(Option<Duration>);

impl Unit for Latency {
    const EXPECTED: &'static str = "a latency such as 100ms, or default";

    fn parse(text: &str) -> Option<Self> {
        match text {
            NO_LATENCY => Some(Latency(None)),
            _ => Duration::parse(text).map(|latency| Latency(Some(latency))),
        }
    }

    fn print(&self) -> String {
        self.0.map_or_else(|| NO_LATENCY.to_owned(), |latency| latency.print())
    }
}

impl FieldType for Latency {
    fn kind() -> Kind {
        Limit::<Duration>::narrow(&Bounds::of(..=MOST_LATENCY), Kind::Text(&LATENCY))
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        human::deserialize(input)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        human::serialize(self, output)
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        if let Some(latency) = &self.0 {
            Bounds::of(..=MOST_LATENCY).check(latency, path, problems);
        }
    }
}

impl From<Latency> for RawStream {
    fn from(Latency(latency): Latency) -> Self {
        RawStream { latency }
    }
}

impl FieldType for RawStream {
    fn kind() -> Kind {
        Kind::Either(vec![Latency::kind(), Kind::Table(RawStreamTable::table())])
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let table = table_or_short::<RawStreamTable, Latency, D>(input)?;
        Ok(table.latency.map_or_else(RawStream::default, RawStream::from))
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        Latency(self.latency).to_output(output)
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        Latency(self.latency).check(path, problems);
    }
}

impl Shorthand<Latency> for RawStreamTable {
    const EXPECTED: &'static str = "a latency such as 100ms, { latency = \"100ms\" }, or default";

    fn from_short(latency: Latency) -> Result<Self, String> {
        Ok(RawStreamTable { latency: Some(latency) })
    }
}

impl FieldType for Sizes {
    fn kind() -> Kind {
        let list = Kind::List(Box::new(Bytes::kind()), 0, MOST_RAW_OBJECTS);
        Kind::Either(vec![Kind::Text(&SIZES), list])
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        Sizes::deserialize(input)
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_seq(self.0.iter().map(Unit::print))
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        Bounds::of(..=MOST_RAW_OBJECTS).check(&self.0, path, problems);
    }
}

impl fmt::Display for RawStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.latency {
            Some(latency) => f.pad(&latency.print()),
            None => f.pad(NO_LATENCY),
        }
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.0.iter().map(Unit::print).collect();
        f.pad(&sizes.join("+"))
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> de::Visitor<'de> for Reader {
            type Value = Sizes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("sizes such as [\"10kB\", \"2kB\"] or 10kB+2kB")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Sizes, E> {
                let parts = text.split('+').map(str::trim).filter(|part| !part.is_empty());
                let sizes: Result<Vec<Bytes>, _> = parts.map(Bytes::read).collect();
                sizes.map(Sizes).map_err(E::custom)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Sizes, A::Error> {
                let mut sizes = Vec::new();
                while let Some(text) = list.next_element::<String>()? {
                    sizes.push(Bytes::read(&text).map_err(de::Error::custom)?);
                }
                Ok(Sizes(sizes))
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// A size for each of several objects.
static SIZES: Text = Text {
    name: "sizes",
    expected: "sizes such as 10kB+2kB, or a list of them",
    pattern: concat!("^ *(", size!(), r"( *\+ *", size!(), ")*)? *$"),
    accepts: read::<Sizes>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["10kB+2kB", "50kB"],
    refused: &["10+2", "large"],
};

/// The latency of a raw stream.
static LATENCY: Text = Text {
    name: "latency",
    expected: Latency::EXPECTED,
    pattern: concat!("^ *(0|", time!(), "|default) *$"),
    accepts: unit::<Latency>,
    numbers: Numbers::None,
    names: Names::None,
    examples: &["100ms", "default"],
    refused: &["soon", "100"],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn read(text: &str) -> Result<Scenario, String> {
        let scenario = Scenario::from_toml(text, "a.toml").map_err(|error| error.to_string())?;
        scenario.validate().map_err(|error| error.to_string())?;
        let written = scenario.to_toml().unwrap();
        assert_eq!(Scenario::from_toml(&written, "b.toml").unwrap(), scenario);
        Ok(scenario)
    }

    fn latencies(scenario: &Scenario) -> Vec<Option<u64>> {
        let millis = |latency: Duration| latency.as_nanos() / 1_000_000;
        scenario.raw.streams.iter().map(|stream| stream.latency.map(millis)).collect()
    }

    #[test]
    fn streams_sizes_and_objects_read_as_people_write_them() {
        let text = "http = \"raw\"\n[raw]\nstreams = [{ latency = \"100ms\" }, \"1s\", {}]\n\
                    split = [\"2kB\", \"12kB\"]\norder = \"random\"\nsender = \"client\"";
        let scenario = read(text).unwrap();
        assert_eq!(latencies(&scenario), [Some(100), Some(1_000), None]);
        assert_eq!(scenario.raw.split, Sizes(vec![Bytes(2_000), Bytes(12_000)]));
        let objects = read("[raw]\nobjects = [[\"10kB\", \"2kB\"], [\"50kB\"]]").unwrap().raw;
        assert_eq!(objects.objects[0], Sizes(vec![Bytes(10_000), Bytes(2_000)]));
        assert_eq!(read("[raw]\nsplit = \"9kB\"").unwrap().raw.split, Sizes(vec![Bytes(9_000)]));
    }

    #[test]
    fn every_field_can_be_set_by_its_name() {
        let mut scenario = Scenario::default();
        for (field, value) in [
            ("raw.streams", "100ms,default,1s"),
            ("raw.split", "2kB,12kB"),
            ("raw.order", "random"),
            ("raw.sender", "client"),
            ("raw.gap", "0ms"),
            ("raw.objects", "10kB+2kB,,50kB"),
            ("http", "raw"),
        ] {
            scenario = scenario.with_field(field, value).unwrap();
        }
        scenario.validate().unwrap();
        assert_eq!(latencies(&scenario), [Some(100), None, Some(1_000)]);
        assert_eq!(scenario.raw.objects[0], Sizes(vec![Bytes(10_000), Bytes(2_000)]));
        assert!(scenario.raw.gap.is_zero());
    }

    #[test]
    fn mistakes_name_the_field_and_what_was_expected() {
        for (text, expected) in [
            ("streams = []", "raw.streams is 0; expected 1 to 1000"),
            ("streams = [\"5000s\", \"1s\"]", "raw.streams[0] is 5000s; expected at most 3600s"),
            ("streams = [{ delay = \"1s\" }]", "no such field; expected only latency"),
            ("streams = [\"fast\"]", "expected a latency"),
            ("split = [\"12kB\", \"2kB\"]", "ascending order"),
            ("split = \"0B\"", "above zero"),
            ("split = [\"2kB\", \"12kB\"]", "raw.split is 2 sizes for 2 streams"),
            ("gap = \"2s\"", "raw.gap is 2s; expected at most 1s"),
            ("order = \"randm\"", "did you mean `random`?"),
            ("objects = [[], []]", "raw.objects is 0 objects"),
            ("objects = [[\"1kB\"], [\"1kB\"], [\"1kB\"]]", "raw.objects is 3 lists"),
        ] {
            let error = read(&format!("[raw]\n{text}")).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = read("http = \"raw\"\n[transport]\nstart = \"warm:4\"").unwrap_err();
        assert!(error.contains("cold or paths-ready with raw streams"), "{error}");
    }
}
