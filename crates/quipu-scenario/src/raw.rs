//! Raw streams: objects written to QUIC streams, without HTTP.

use std::fmt;

use quipu_base::{Bytes, Duration};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::choice::{Sender, WriteOrder};
use super::units::{Unit, human};
use super::{Scenario, ScenarioError, Start};

/// Raw streams that a scenario may have.
pub const MOST_RAW_STREAMS: usize = 1_000;
/// Objects that `raw.objects` may have.
pub const MOST_RAW_OBJECTS: usize = 100_000;

/// What `http = "raw"` writes to which stream. Without effect otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Raw {
    /// The streams, opened in this order, each with a latency of its own for deadline policies such
    /// as `edf`, or `default`. Two, as in the ns-3 paper.
    pub streams: Vec<RawStream>,
    /// Sizes in ascending order, one fewer than streams. An object goes to the first stream if it is
    /// a document or smaller than the first size, to the second if smaller than the second size, and
    /// so on; to the last if it is no smaller than any. 12 kB, as in the ns-3 paper.
    pub split: Sizes,
    /// Order of writing. Given.
    pub order: WriteOrder,
    /// Which end writes. The server, which is asked by one byte.
    pub sender: Sender,
    /// From one write to the next. 1 µs: policies that go by the time of writing tell objects apart.
    #[serde(with = "human")]
    pub gap: Duration,
    /// Sizes of objects by stream, instead of `pages` and `split`: `[["10kB", "2kB"], ["50kB"]]`. None.
    pub objects: Vec<Sizes>,
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

impl Default for Raw {
    fn default() -> Self {
        Raw {
            streams: vec![RawStream::default(); 2],
            split: Sizes(vec![Bytes(12_000)]),
            order: WriteOrder::Given,
            sender: Sender::Server,
            gap: Duration::from_micros(1),
            objects: Vec::new(),
        }
    }
}

/// What stands for a stream without a latency of its own.
const NO_LATENCY: &str = "default";

impl Raw {
    /// Checks every field against its range, and against the rest of `scenario`.
    pub(super) fn validate(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let invalid = |field: &str, value: &dyn fmt::Display, expected: &str| {
            Err(ScenarioError::invalid(format!("raw.{field}"), value, expected))
        };
        let streams = self.streams.len();
        if !(1..=MOST_RAW_STREAMS).contains(&streams) {
            return invalid("streams", &streams, "1 to 1000 streams");
        }
        if let Some(late) = self.streams.iter().filter_map(|stream| stream.latency).max()
            && late > Duration::from_secs(3_600)
        {
            return invalid("streams", &late.print(), "latencies of at most 3600s");
        }
        if self.gap > Duration::from_secs(1) {
            return invalid("gap", &self.gap.print(), "at most 1s");
        }
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
        if scenario.http.is_raw()
            && let Start::Warm(_) = scenario.transport.start
        {
            let start = scenario.transport.start;
            let expected = "cold or paths-ready with raw streams";
            return Err(ScenarioError::invalid("transport.start", start, expected));
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

impl RawStream {
    fn read<E: de::Error>(text: &str) -> Result<RawStream, E> {
        let latency = match text {
            NO_LATENCY => None,
            _ => Some(Duration::read(text).map_err(E::custom)?),
        };
        Ok(RawStream { latency })
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

impl Serialize for RawStream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RawStream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> de::Visitor<'de> for Reader {
            type Value = RawStream;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a latency such as 100ms, { latency = \"100ms\" }, or default")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RawStream, E> {
                RawStream::read(text)
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<RawStream, A::Error> {
                let mut stream = RawStream::default();
                while let Some(key) = map.next_key::<String>()? {
                    if key != "latency" {
                        return Err(de::Error::unknown_field(&key, &["latency"]));
                    }
                    stream = RawStream::read(&map.next_value::<String>()?)?;
                }
                Ok(stream)
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for Sizes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        self.0.iter().try_for_each(|size| list.serialize_element(&size.print()))?;
        list.end()
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

#[cfg(test)]
mod tests {
    use super::*;

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
            ("streams = []", "raw.streams is 0; expected 1 to 1000 streams"),
            ("streams = [\"5000s\", \"1s\"]", "at most 3600s"),
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
