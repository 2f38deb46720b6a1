//! What the hosts of a run cost: nothing, or what sockets, timers and the processor of a real one do.

use std::fmt;
use std::str::FromStr;

use quipu_base::{Bytes, Duration, Rate};
use quipu_link::HostCosts;
use quipu_record::{End, suggestion};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::error::ScenarioError;
use super::field_path::joined;
use super::form::{Kind, Names, Numbers, Shorthand, Text, field_types, table};
use super::units::Unit;

table! {
    /// What the hosts at both ends of each connection cost: timers, waking, batches, processor, and the queues of
    /// sockets ([host-costs.md](host-costs.md)). Each end is a process with a processor and sockets of its own. Cross
    /// traffic has hosts that cost nothing.
    ///
    /// In files a text for both ends, or a table:
    ///
    /// ```
    /// use quipu_scenario::Scenario;
    ///
    /// let file = "host = { client = \"measured\", server = \"measured:send_batch=1\" }";
    /// let scenario = Scenario::from_toml(file, "a.toml")?;
    /// assert_eq!(scenario.host.client.0.send_batch, 64);
    /// assert_eq!(scenario.host.server.0.send_batch, 1);
    /// assert!(Scenario::from_toml("", "b.toml")?.host.client.0.is_ideal());
    /// # Ok::<(), quipu_scenario::ScenarioError>(())
    /// ```
    #[derive(Copy, Eq)]
    pub struct Hosts as "Host costs" or HostSpec {
        /// The host of each client.
        pub client: HostSpec = HostSpec::IDEAL,
        /// The host of each server.
        pub server: HostSpec = HostSpec::IDEAL,
    }
}

impl Shorthand<HostSpec> for Hosts {
    const EXPECTED: &'static str = "the costs of both hosts, or a table with client, server";

    fn from_short(both: HostSpec) -> Result<Self, String> {
        Ok(Hosts { client: both, server: both })
    }

    fn short(&self) -> Option<HostSpec> {
        (self.client == self.server).then_some(self.client)
    }
}

impl Hosts {
    /// True if chance decides anything at a host.
    pub fn is_random(&self) -> bool {
        self.client.0.is_random() || self.server.0.is_random()
    }

    /// The costs of the hosts at that end of connections, where each datagram has `overhead` bytes of headers
    /// in the kernel's queue.
    pub fn costs(&self, end: End, overhead: Bytes) -> HostCosts {
        let spec = match end {
            End::Client => self.client,
            End::Server => self.server,
        };
        HostCosts { overhead, ..spec.0 }
    }

    /// Checks that costs go together.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        for (end, spec) in [("client", self.client), ("server", self.server)] {
            let HostCosts { timer_late, timer_late_p99, wake, wake_p99, .. } = spec.0;
            for (name, median, p99) in
                [("timer_late", timer_late, timer_late_p99), ("wake", wake, wake_p99)]
            {
                if p99 < median {
                    let field = joined(&joined("host", end), &format!("{name}_p99"));
                    let expected = format!("at least {name}, which is {}", median.print());
                    return Err(ScenarioError::invalid(field, p99.print(), expected));
                }
            }
        }
        Ok(())
    }
}

/// The costs of a host as text: a name, parameters, or a name and parameters that differ from it, such as
/// `measured:send_batch=1,timer_tick=1ms`. Headers are not part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpec(pub HostCosts);

/// Hosts with names.
const NAMED: [(&str, HostCosts); 2] =
    [("ideal", HostCosts::IDEAL), ("measured", HostCosts::MEASURED)];

/// The longest time of a parameter; our choice.
const MOST_TIME: Duration = Duration::from_secs(1);
/// Datagrams that a batch may be allowed to have; the kernel segments no more than 128 at once.
const MOST_BATCH: u32 = 1_024;
/// What a socket may hold.
const LEAST_BUFFER: Bytes = Bytes(1 << 10);
const MOST_BUFFER: Bytes = Bytes(1 << 30);

/// A parameter: how it is read into costs, with what was expected if that fails, and how it is written.
struct Parameter {
    name: &'static str,
    read: fn(&mut HostCosts, &str) -> Result<(), String>,
    print: fn(&HostCosts) -> String,
}

/// Parameters of one kind.
macro_rules! parameters {
    ($($name:ident: $read:ident,)+) => {
        [$(Parameter {
            name: stringify!($name),
            read: |costs, text| {
                costs.$name = $read(text)?;
                Ok(())
            },
            print: |costs| Shown(costs.$name).to_string(),
        }),+]
    };
}

static PARAMETERS: [Parameter; 13] = parameters! {
    timer_tick: time,
    timer_late: time,
    timer_late_p99: time,
    wake: time,
    wake_p99: time,
    send_batch: batch,
    send_batch_cost: time,
    send_cost: time,
    receive_batch: batch,
    receive_batch_cost: time,
    receive_cost: time,
    socket_buffer: buffer,
    interface_rate: rate,
};

fn time(text: &str) -> Result<Duration, String> {
    let time = Duration::parse(text).filter(|time| *time <= MOST_TIME);
    time.ok_or_else(|| "a time such as 2us, at most 1s".to_owned())
}

fn batch(text: &str) -> Result<u32, String> {
    let batch = text.parse().ok().filter(|batch| (1..=MOST_BATCH).contains(batch));
    batch.ok_or_else(|| format!("a number of datagrams, 1 to {MOST_BATCH}"))
}

fn buffer(text: &str) -> Result<Option<Bytes>, String> {
    let fits = |bytes: &Option<Bytes>| {
        bytes.is_none_or(|bytes| (LEAST_BUFFER..=MOST_BUFFER).contains(&bytes))
    };
    let bytes = Option::<Bytes>::parse(text).filter(fits);
    bytes.ok_or_else(|| "unlimited, or a size from 1KiB to 1GiB".to_owned())
}

fn rate(text: &str) -> Result<Option<Rate>, String> {
    let rate = if text == "unlimited" { Some(None) } else { Rate::parse(text).map(Some) };
    rate.ok_or_else(|| "unlimited, or a rate such as 30mbit".to_owned())
}

/// A value as a parameter has it.
struct Shown<T>(T);

impl fmt::Display for Shown<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.print())
    }
}

impl fmt::Display for Shown<u32> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Shown<Option<Bytes>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.print())
    }
}

impl fmt::Display for Shown<Option<Rate>> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.map_or_else(|| "unlimited".to_owned(), |rate| rate.print()))
    }
}

impl HostSpec {
    /// A host that costs nothing.
    pub const IDEAL: HostSpec = HostSpec(HostCosts::IDEAL);
}

/// All parameters that differ from those of an ideal host: a result says what its hosts cost, whatever
/// `measured` means later.
impl fmt::Display for HostSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for parameter in &PARAMETERS {
            let value = (parameter.print)(&self.0);
            if value != (parameter.print)(&HostCosts::IDEAL) {
                write!(f, "{separator}{}={value}", parameter.name)?;
                separator = ",";
            }
        }
        if separator.is_empty() { f.write_str(NAMED[0].0) } else { Ok(()) }
    }
}

impl FromStr for HostSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = |what: String| format!("`{text}`: expected {what}");
        let (name, parameters) = match text.trim().split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None if text.contains('=') => (NAMED[0].0, Some(text)),
            None => (text, None),
        };
        let named = NAMED.iter().find(|(known, _)| *known == name.trim());
        let Some(&(_, mut costs)) = named else {
            let near = suggestion(name.trim(), NAMED.map(|(name, _)| name));
            return Err(expected(format!("{}{near}", HOST.expected)));
        };
        for part in parameters.into_iter().flat_map(|parameters| parameters.split(',')) {
            let Some((field, value)) = part.split_once('=') else {
                return Err(expected(format!("PARAMETER=VALUE instead of `{}`", part.trim())));
            };
            let (field, value) = (field.trim(), value.trim());
            let names = || PARAMETERS.iter().map(|parameter| parameter.name);
            let Some(parameter) = PARAMETERS.iter().find(|it| it.name == field) else {
                let near = suggestion(field, names());
                let names = names().collect::<Vec<_>>().join(", ");
                return Err(expected(format!("one of {names} instead of `{field}`{near}")));
            };
            (parameter.read)(&mut costs, value)
                .map_err(|wanted| expected(format!("{wanted} as {field}, not `{value}`")))?;
        }
        Ok(HostSpec(costs))
    }
}

impl Serialize for HostSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HostSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// Costs of a host. Only the form is looked at here: the reader tells which parameter is wrong.
static HOST: Text = Text {
    name: "costs of a host",
    expected: "ideal, measured, or parameters such as timer_tick=1ms,send_batch=10, behind a name and a colon or alone",
    pattern: "^ *((ideal|measured)|((ideal|measured) *: *)?[a-z0-9_]+ *=[^,=]+(,[^,=]+=[^,=]+)*) *$",
    accepts: |text| {
        let (name, parameters) = text.trim().split_once(':').unwrap_or(("ideal", text.trim()));
        let is_named = |name: &str| NAMED.iter().any(|(known, _)| *known == name.trim());
        let is_assignment = |part: &str| part.split('=').filter(|it| !it.is_empty()).count() == 2;
        is_named(text) || is_named(name) && parameters.split(',').all(is_assignment)
    },
    numbers: Numbers::None,
    names: Names::Usual(|| NAMED.map(|(name, _)| name.to_owned()).to_vec()),
    examples: &["ideal", "measured", "measured:send_batch=1", "timer_tick=1ms,send_cost=2us"],
    refused: &["", "mesured", "this:send_batch=1", "measured:", "measured:send_batch"],
};

field_types! {
    HostSpec: Kind::Text(&HOST),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn host(text: &str) -> HostCosts {
        text.parse::<HostSpec>().unwrap().0
    }

    #[test]
    fn names_and_parameters_are_read() {
        assert_eq!(host("ideal"), HostCosts::IDEAL);
        assert_eq!(host(" measured "), HostCosts::MEASURED);
        let costs =
            host("timer_tick=1ms, send_batch = 10,socket_buffer=64KiB,interface_rate=8mbit");
        let expected = HostCosts {
            timer_tick: Duration::from_millis(1),
            send_batch: 10,
            socket_buffer: Some(Bytes(64 << 10)),
            interface_rate: Some(Rate::from_mbit_per_sec(8)),
            ..HostCosts::IDEAL
        };
        assert_eq!(costs, expected);
        let costs = host("measured:wake=90us,wake_p99=400us");
        let expected = HostCosts {
            wake: Duration::from_micros(90),
            wake_p99: Duration::from_micros(400),
            ..HostCosts::MEASURED
        };
        assert_eq!(costs, expected);
        let costs = host("measured:receive_cost=7us,socket_buffer=unlimited");
        let expected = HostCosts {
            receive_cost: Duration::from_micros(7),
            socket_buffer: None,
            ..HostCosts::MEASURED
        };
        assert_eq!(costs, expected);
    }

    #[test]
    fn a_scenario_is_written_with_every_parameter_and_reads_back() {
        let read = |text: &str| Scenario::from_toml(text, "a.toml").unwrap();
        assert!(read("").to_toml().unwrap().contains("\nhost = \"ideal\"\n"));
        for file in [
            "host = \"measured\"",
            "host = \"measured:interface_rate=30mbit,timer_tick=4ms\"",
            "host = { client = \"send_cost=5us\" }",
            "host = \"wake=90us,wake_p99=400us\"",
            "[host]\nserver = \"measured\"\nclient = \"ideal\"",
        ] {
            let scenario = read(file);
            scenario.validate().unwrap();
            let written = scenario.to_toml().unwrap();
            assert!(!written.contains("measured"), "{written}");
            assert_eq!(read(&written), scenario, "{written}");
        }
        let set = read("").with_field("host", "measured").unwrap();
        assert_eq!(set.host, Hosts::from_short(HostSpec(HostCosts::MEASURED)).unwrap());
        assert_eq!(set.with_field("host", "ideal").unwrap(), read(""));
    }

    #[test]
    fn errors_name_parameter_value_and_what_was_expected() {
        let told = |value: &str| {
            let set = Scenario::default().with_field("host", value);
            let file = Scenario::from_toml(&format!("host = \"{value}\""), "a.toml").unwrap_err();
            let set = set.unwrap_err().to_string();
            let (_, expected) = set.split_once("expected ").unwrap();
            assert!(file.to_string().contains(expected), "{file}\n{set}");
            assert!(file.to_string().starts_with("a.toml:1:8: host: "), "{file}");
            set
        };
        assert_eq!(
            told("measured:send_batch=0"),
            "host is measured:send_batch=0; expected a number of datagrams, 1 to 1024 as send_batch, not `0`"
        );
        assert!(told("measured:send_bach=3").ends_with("did you mean `send_batch`?"));
        assert!(told("mesured").ends_with("did you mean `measured`?"));
        assert!(told("timer_tick=2s").contains("at most 1s as timer_tick, not `2s`"));
        assert!(told("socket_buffer=1B").contains("from 1KiB to 1GiB as socket_buffer"));
        assert!(told("interface_rate=0").contains("as interface_rate, not `0`"));
        let late = Scenario::default().with_field("host", "measured:timer_late=9ms").unwrap();
        let told = late.validate().unwrap_err().to_string();
        assert!(told.starts_with("host.client.timer_late_p99 is "), "{told}");
        assert!(told.ends_with("expected at least timer_late, which is 9ms"), "{told}");
        let wake = Scenario::default().with_field("host", "wake=9ms").unwrap();
        let told = wake.validate().unwrap_err().to_string();
        assert!(told.starts_with("host.client.wake_p99 is "), "{told}");
    }
}
