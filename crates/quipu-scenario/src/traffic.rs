//! Traffic beside pages, or instead of them: flows, which fill what they can get, and cross traffic,
//! which takes no notice of anything.

use quipu_base::{Bytes, Duration, Rate};
use serde::{Deserialize, Deserializer, Serialize};

use super::choice::{CrossKind, Direction};
use super::limits::MOST_TIME;
use super::path::PathSpec;
use super::units::{Unit, human};
use super::{ScenarioError, distinct};

/// Flows that a scenario may have, and senders of cross traffic.
pub const MOST_FLOWS: usize = 100;
/// Streams that a flow may have.
pub const MOST_STREAMS: u32 = 1_000;

/// A connection between a client and a server of its own, over the same network as all others, that
/// carries as much as congestion control allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSpec {
    /// What it is called in tables.
    pub name: String,
    /// When its client opens the connection, counted from the start of the run. 0.
    #[serde(with = "human", default)]
    pub start: Duration,
    /// When both ends close it, whatever is under way. Never.
    #[serde(with = "human", default)]
    pub stop: Option<Duration>,
    /// Bytes that it carries, over all its streams. Unlimited.
    #[serde(with = "human", default)]
    pub bytes: Option<Bytes>,
    /// Which way. Down: from the server to the client.
    #[serde(default)]
    pub direction: Direction,
    /// The network's paths that it uses, by name or number; the first carries the handshake. All.
    #[serde(default, deserialize_with = "read_paths", skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Its congestion controller. `default`: that of the row, see `policies.congestion`.
    #[serde(default = "default_text")]
    pub congestion: String,
    /// Its path policy. `minrtt`.
    #[serde(default = "default_path")]
    pub path: String,
    /// Streams that share it, packet by packet. 1.
    #[serde(default = "default_streams")]
    pub streams: u32,
    /// Its initial congestion window in packets. That of the transport.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_window: Option<u32>,
}

/// A sender of datagrams that answers to nothing, and a sink for them, on one path of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossSpec {
    /// What it is called in tables.
    pub name: String,
    /// The path, by name or number. The first.
    #[serde(default = "default_cross_path", deserialize_with = "read_path")]
    pub path: String,
    /// Which way. Down: towards the client's side.
    #[serde(default)]
    pub direction: Direction,
    /// How datagrams follow one another. At constant distances.
    #[serde(default)]
    pub kind: CrossKind,
    /// Bits per second as links count them, headers included; of `on-off` while it is on.
    #[serde(with = "human")]
    pub rate: Rate,
    /// UDP payload of a datagram. 1,200 B.
    #[serde(with = "human", default = "default_packet")]
    pub packet: Bytes,
    /// Mean length of the times in which `on-off` sends, drawn from an exponential law. 500 ms.
    #[serde(with = "human", default = "default_on_off")]
    pub on: Duration,
    /// Mean length of the times in which it is silent. 500 ms.
    #[serde(with = "human", default = "default_on_off")]
    pub off: Duration,
    /// When it begins. 0.
    #[serde(with = "human", default)]
    pub start: Duration,
    /// When it ends. Never.
    #[serde(with = "human", default)]
    pub stop: Option<Duration>,
}

/// The part of a run over which flows and links are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// From when on. 0.
    #[serde(with = "human")]
    pub from: Duration,
    /// Until when. Never: until the run ends.
    #[serde(with = "human")]
    pub until: Option<Duration>,
}

fn default_text() -> String {
    "default".to_owned()
}

fn default_path() -> String {
    "minrtt".to_owned()
}

fn default_streams() -> u32 {
    1
}

fn default_cross_path() -> String {
    "0".to_owned()
}

fn default_packet() -> Bytes {
    Bytes(1_200)
}

/// Our choice: bursts and gaps of many round trips, so that congestion control meets both.
fn default_on_off() -> Duration {
    Duration::from_millis(500)
}

/// A path as a file names it.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of a path, or its number from 0")]
enum PathName {
    Number(u32),
    Name(String),
}

impl From<PathName> for String {
    fn from(path: PathName) -> String {
        match path {
            PathName::Number(number) => number.to_string(),
            PathName::Name(name) => name,
        }
    }
}

fn read_path<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    PathName::deserialize(input).map(String::from)
}

fn read_paths<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<String>, D::Error> {
    let paths = Vec::<PathName>::deserialize(input)?;
    Ok(paths.into_iter().map(String::from).collect())
}

impl FlowSpec {
    /// A flow with all its defaults.
    pub fn new(name: &str) -> FlowSpec {
        FlowSpec {
            name: name.to_owned(),
            start: Duration::ZERO,
            stop: None,
            bytes: None,
            direction: Direction::default(),
            paths: Vec::new(),
            congestion: default_text(),
            path: default_path(),
            streams: default_streams(),
            initial_window: None,
        }
    }

    fn validate(&self, index: usize) -> Result<(), ScenarioError> {
        let field = |field: &str| format!("flows[{index}].{field}");
        life(self.start, self.stop, field)?;
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return Err(ScenarioError::invalid(field("streams"), self.streams, "1 to 1000"));
        }
        if let Some(packets) = self.initial_window
            && !(1..=10_000).contains(&packets)
        {
            let expected = "1 to 10000 packets";
            return Err(ScenarioError::invalid(field("initial_window"), packets, expected));
        }
        distinct(&field("paths"), self.paths.iter().map(String::as_str))
    }

    /// Positions of its paths among those of a network; it stands at `field` itself.
    ///
    /// # Errors
    /// If the network has no such path, or a path is there under two names.
    pub fn paths_on(&self, paths: &[PathSpec], field: &str) -> Result<Vec<usize>, ScenarioError> {
        if self.paths.is_empty() {
            return Ok((0..paths.len()).collect());
        }
        let mut found = Vec::with_capacity(self.paths.len());
        for (at, name) in self.paths.iter().enumerate() {
            let field = format!("{field}.paths[{at}]");
            let index = position(name, paths).map_err(|error| error.at(&field))?;
            if found.contains(&index) {
                return Err(ScenarioError::invalid(
                    field,
                    format!("{name} twice"),
                    "different paths",
                ));
            }
            found.push(index);
        }
        Ok(found)
    }
}

impl CrossSpec {
    fn validate(&self, index: usize) -> Result<(), ScenarioError> {
        let field = |field: &str| format!("cross[{index}].{field}");
        life(self.start, self.stop, field)?;
        // Below 5 ns between datagrams a run would hardly move.
        if self.rate > Rate::from_mbit_per_sec(100_000) {
            return Err(ScenarioError::invalid(
                field("rate"),
                self.rate.print(),
                "at most 100gbit",
            ));
        }
        if !(64..=65_527).contains(&self.packet.0) {
            let expected = "64B to 65527B";
            return Err(ScenarioError::invalid(field("packet"), self.packet.print(), expected));
        }
        for (name, mean) in [("on", self.on), ("off", self.off)] {
            if !(Duration::from_micros(1)..=MOST_TIME).contains(&mean) {
                let expected = "1us to 1000000s";
                return Err(ScenarioError::invalid(field(name), mean.print(), expected));
            }
        }
        Ok(())
    }

    /// Position of its path among those of a network; it stands at `field` itself.
    ///
    /// # Errors
    /// If the network has no such path.
    pub fn path_on(&self, paths: &[PathSpec], field: &str) -> Result<usize, ScenarioError> {
        position(&self.path, paths).map_err(|error| error.at(format!("{field}.path")))
    }

    /// True if chance decides when it sends.
    pub fn is_random(&self) -> bool {
        self.kind != CrossKind::Constant
    }
}

/// The path of that name, or else of that number.
fn position(name: &str, paths: &[PathSpec]) -> Result<usize, ScenarioError> {
    let named = paths.iter().position(|path| path.name == name);
    let numbered = || name.parse().ok().filter(|index| *index < paths.len());
    named.or_else(numbered).ok_or_else(|| {
        ScenarioError::unknown("path", name, paths.iter().map(|path| path.name.as_str()))
    })
}

fn life(
    start: Duration,
    stop: Option<Duration>,
    field: impl Fn(&str) -> String,
) -> Result<(), ScenarioError> {
    if start > MOST_TIME {
        return Err(ScenarioError::invalid(field("start"), start.print(), "at most 1000000s"));
    }
    match stop {
        Some(at) if at <= start => {
            let expected = format!("later than its start, {}", start.print());
            Err(ScenarioError::invalid(field("stop"), at.print(), expected))
        }
        _ => Ok(()),
    }
}

impl Measure {
    fn validate(&self) -> Result<(), ScenarioError> {
        match self.until {
            Some(until) if until <= self.from => {
                let expected = format!("later than measure.from, {}", self.from.print());
                Err(ScenarioError::invalid("measure.until", until.print(), expected))
            }
            _ => Ok(()),
        }
    }
}

/// Checks all traffic of a scenario; one error of each flow and sender at most.
pub(super) fn problems(
    flows: &[FlowSpec],
    cross: &[CrossSpec],
    measure: &Measure,
) -> Vec<ScenarioError> {
    let mut problems = Vec::new();
    for (field, count) in [("flows", flows.len()), ("cross", cross.len())] {
        if count > MOST_FLOWS {
            return vec![ScenarioError::invalid(field, count, "at most 100")];
        }
    }
    let distinct_flows = distinct("flows", flows.iter().map(|flow| flow.name.as_str()));
    let distinct_cross = distinct("cross", cross.iter().map(|sender| sender.name.as_str()));
    problems.extend(distinct_flows.err());
    problems.extend(distinct_cross.err());
    problems.extend((0..).zip(flows).filter_map(|(index, flow)| flow.validate(index).err()));
    problems.extend((0..).zip(cross).filter_map(|(index, sender)| sender.validate(index).err()));
    problems.extend(measure.validate().err());
    problems
}

#[cfg(test)]
mod tests {
    use super::super::{Scenario, find_network};
    use super::*;

    fn scenario(more: &str) -> Scenario {
        let text = format!("pages = []\nnetworks = [\"wifi+lte\"]\n{more}");
        Scenario::from_toml(&text, "a.toml").unwrap()
    }

    fn refused(more: &str) -> String {
        scenario(more).validate().unwrap_err().to_string()
    }

    #[test]
    fn a_flow_and_cross_traffic_have_defaults_and_survive_their_file() {
        let read = scenario(
            "[[flows]]\nname = \"a\"\n[[flows]]\nname = \"b\"\nstart = \"15s\"\nbytes = \"1MiB\"\n\
             paths = [1, \"wifi\"]\n[[cross]]\nname = \"c\"\nrate = \"1mbit\"\nkind = \"on-off\"\n\
             path = 1\n[measure]\nfrom = \"40s\"",
        );
        read.validate().unwrap();
        assert_eq!(read.flows[0], FlowSpec::new("a"));
        let text = read.to_toml().unwrap();
        assert_eq!(Scenario::from_toml(&text, "b.toml").unwrap(), read);
        let paths = find_network("wifi+lte").unwrap().paths;
        assert_eq!(read.flows[0].paths_on(&paths, "flows[0]").unwrap(), [0, 1]);
        assert_eq!(read.flows[1].paths_on(&paths, "flows[1]").unwrap(), [1, 0]);
        assert_eq!(read.cross[0].path_on(&paths, "cross[0]").unwrap(), 1);
    }

    #[test]
    fn the_window_and_the_length_are_fields_that_can_be_set() {
        let read = scenario("[[flows]]\nname = \"a\"");
        let read = read.with_field("measure.from", "40s").unwrap();
        let read = read.with_field("measure.until", "60s").unwrap();
        let read = read.with_field("duration", "90s").unwrap();
        read.validate().unwrap();
        assert_eq!(read.measure.until, Some(Duration::from_secs(60)));
        assert_eq!(read.duration, Duration::from_secs(90));
        assert!(read.with_field("flows", "a").is_err());
    }

    #[test]
    fn traffic_that_makes_no_sense_is_refused_by_field() {
        assert_eq!(refused(""), "pages is empty; expected at least one page, or one of `flows`");
        let flow = |field: &str| refused(&format!("[[flows]]\nname = \"a\"\n{field}"));
        assert_eq!(flow("streams = 0"), "flows[0].streams is 0; expected 1 to 1000");
        assert!(flow("stop = \"0s\"").contains("later than its start, 0ms"));
        assert!(flow("initial_window = 0").contains("1 to 10000 packets"));
        assert!(flow("[[flows]]\nname = \"a\"").contains("a twice"));
        assert!(flow("[measure]\nfrom = \"2s\"\nuntil = \"1s\"").contains("measure.until is 1s"));
        let cross = |fields: &str| {
            refused(&format!(
                "[[flows]]\nname = \"a\"\n[[cross]]\nname = \"c\"\nrate = \"1mbit\"\n{fields}"
            ))
        };
        assert!(cross("packet = \"10B\"").contains("64B to 65527B"));
        assert!(cross("on = \"0s\"").contains("cross[0].on is 0ms"));
        let many: String =
            (0..101).map(|index| format!("[[flows]]\nname = \"f{index}\"\n")).collect();
        assert_eq!(refused(&many), "flows is 101; expected at most 100");
    }

    #[test]
    fn paths_that_are_not_there_are_told_the_nearest() {
        let paths = find_network("wifi+lte").unwrap().paths;
        let refused = |names: &[&str]| {
            let names = names.iter().map(|&name| name.to_owned()).collect();
            let flow = FlowSpec { paths: names, ..FlowSpec::new("a") };
            flow.paths_on(&paths, "flows[0]").unwrap_err().to_string()
        };
        assert!(refused(&["wify"]).contains("did you mean `wifi`?"));
        assert!(refused(&["2"]).contains("unknown path `2`"));
        assert_eq!(
            refused(&["wifi", "0"]),
            "flows[0].paths[1] is 0 twice; expected different paths"
        );
    }
}
