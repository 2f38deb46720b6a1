//! Traffic beside pages, or instead of them: flows, which fill what they can get, and cross traffic,
//! which takes no notice of anything.

use std::fmt;

use quipu_base::{Bytes, Duration, Rate};
use serde::{Deserialize, Deserializer, Serializer};

use super::choice::{CrossKind, Direction};
use super::error::{ScenarioError, distinct};
use super::form::text::{NAME, PATH_NAME};
use super::form::{FieldType, Kind, Limit, OfText, table};
use super::limits::{INITIAL_WINDOWS, MOST_TIME};
use super::path::PathSpec;
use super::policies::{FLOW_CONGESTION, PATH};
use super::units::Unit;

/// Flows that a scenario may have, and senders of cross traffic.
pub const MOST_FLOWS: usize = 100;
/// Streams that a flow may have.
pub const MOST_STREAMS: u32 = 1_000;

table! {
    /// A connection between a client and a server of its own, over the same network as all others, that
    /// carries as much as congestion control allows.
    pub struct FlowSpec as "Flow" {
        /// Its name in tables.
        pub name: String [text NAME],
        /// When its client opens the connection, counted from the start of the run.
        pub start: Duration [..=MOST_TIME] = Duration::ZERO,
        /// When both ends close it, even if data are in flight.
        pub stop: Option<Duration> = None,
        /// Bytes that it carries, over all its streams.
        pub bytes: Option<Bytes> = None,
        /// Which way: `down`, from the server to the client, or `up`.
        pub direction: Direction = Direction::Down,
        /// The network's paths that it uses, by name or number; the first carries the handshake.
        pub paths: Vec<PathName> => "all",
        /// Its congestion controller. `default`: that of the row, see `policies.congestion`.
        pub congestion: String [text FLOW_CONGESTION] = "default".to_owned(),
        /// Its path policy.
        pub path: String [text PATH] = "minrtt".to_owned(),
        /// Streams that share it, packet by packet.
        pub streams: u32 [1..=MOST_STREAMS] = 1,
        /// Its initial congestion window in packets.
        pub initial_window: Option<u32> [INITIAL_WINDOWS] => "that of `transport`",
    }
}

table! {
    /// A sender of datagrams that reacts to nothing, and a sink for them, on one path of the network.
    pub struct CrossSpec as "Cross traffic" {
        /// Its name in tables.
        pub name: String [text NAME],
        /// The path, by name or number.
        pub path: PathName = PathName::from("0"),
        /// Which way: `down`, towards the client's side, or `up`.
        pub direction: Direction = Direction::Down,
        /// Spacing of the datagrams: constant; exponentially distributed; or constant during periods of
        /// exponentially distributed length, with silence between them.
        pub kind: CrossKind = CrossKind::Constant,
        /// Bits per second as links count them, headers included; of `on-off` while it is on.
        ///
        /// Below 5 ns between datagrams a run would hardly move.
        pub rate: Rate [..=Rate::from_mbit_per_sec(100_000)],
        /// UDP payload of a datagram.
        pub packet: Bytes [Bytes(64)..=Bytes(65_527)] = Bytes(1_200),
        /// Mean length of the times in which `on-off` sends, drawn from an exponential law.
        ///
        /// Both defaults are our choice: bursts and gaps of many round trips, so that congestion
        /// control meets both.
        pub on: Duration [Duration::from_micros(1)..=MOST_TIME] = Duration::from_millis(500),
        /// Mean length of the times in which it is silent.
        pub off: Duration [Duration::from_micros(1)..=MOST_TIME] = Duration::from_millis(500),
        /// When it begins.
        pub start: Duration [..=MOST_TIME] = Duration::ZERO,
        /// When it ends.
        pub stop: Option<Duration> = None,
    }
}

table! {
    /// The part of a run over which flows and links are measured.
    #[derive(Copy)]
    pub struct Measure as "Measure" {
        /// Start of the measurement.
        pub from: Duration = Duration::ZERO,
        /// End of the measurement; `never`: the end of the run.
        pub until: Option<Duration> = None,
    }
}

/// A path of a network: its name, or its number from 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathName(String);

impl From<&str> for PathName {
    fn from(name: &str) -> Self {
        PathName(name.to_owned())
    }
}

impl fmt::Display for PathName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl PathName {
    /// The name, or the number in digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FieldType for PathName {
    fn kind() -> Kind {
        Kind::Text(&PATH_NAME)
    }

    fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "the name of a path, or its number from 0")]
        enum Given {
            Number(u32),
            Name(String),
        }
        Ok(PathName(match Given::deserialize(input)? {
            Given::Number(number) => number.to_string(),
            Given::Name(name) => name,
        }))
    }

    fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.serialize_str(&self.0)
    }

    fn check(&self, path: &str, problems: &mut Vec<ScenarioError>) {
        OfText(&PATH_NAME).check(&self.0, path, problems);
    }
}

impl FlowSpec {
    /// A flow with all its defaults.
    pub fn new(name: &str) -> FlowSpec {
        FlowSpec::least(name.to_owned())
    }

    fn validate(&self, index: usize) -> Result<(), ScenarioError> {
        let field = |field: &str| format!("flows[{index}].{field}");
        life(self.start, self.stop, field)?;
        distinct(&field("paths"), self.paths.iter().map(PathName::as_str))
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
            let index = position(name.as_str(), paths).map_err(|error| error.at(&field))?;
            if found.contains(&index) {
                return Err(ScenarioError::invalid(
                    field,
                    format!("{} twice", name.as_str()),
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
        life(self.start, self.stop, field)
    }

    /// Position of its path among those of a network; it stands at `field` itself.
    ///
    /// # Errors
    /// If the network has no such path.
    pub fn path_on(&self, paths: &[PathSpec], field: &str) -> Result<usize, ScenarioError> {
        position(self.path.as_str(), paths).map_err(|error| error.at(format!("{field}.path")))
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
        assert!(flow("initial_window = 0").contains("1 to 10000"));
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
            let names = names.iter().map(|&name| PathName::from(name)).collect();
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
