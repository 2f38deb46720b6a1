//! The scenario: everything that decides a result, as one plain struct with documented defaults.

use quipu_base::{Bytes, Duration, Seed};
use quipu_record::End;
use serde::{Deserialize, Serialize};
use std::path::Path;

use crate::choice::{
    Discovery, HttpVersion, Origins, Priorities, Reprioritise, Sender, SeriesEnds, Tls,
};
use crate::document::Document;
use crate::error::{ScenarioError, distinct};
use crate::hosts::{self, Clients, ServerSpec};
use crate::http::HttpVersions;
use crate::limits::{MOST_RUNS, MOST_SESSION, MOST_TIME};
use crate::networks;
use crate::page_name::PageName;
use crate::path::Network;
use crate::raw::Raw;
use crate::series::{self, Series};
use crate::traffic::{self, CrossSpec, FlowSpec, Measure};
use crate::transport::Transport;
use crate::units::{Unit, human};

/// An experiment: every page over every network with every policy, `runs` times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The experiment's seed. 1.
    pub seed: u64,
    /// Runs of each combination; run `n` has the same links, losses and page for each policy. 30.
    pub runs: u32,
    /// Pages: names that come with the program, HAR files, `pries` (drawn anew for each run from the
    /// model of Pries et al.) or `pries:N` (the page that run N draws). May be empty if there are flows.
    pub pages: Vec<String>,
    /// Pages that a run loads one after the other over its connection, each read for a time drawn from
    /// the model of Pries et al.; `pries` draws each, another page is loaded again. 1.
    pub session: u32,
    /// The browser whose requests and priorities are used. Chrome.
    pub browser: String,
    /// How the browser tells what is urgent. By the tree.
    pub priorities: Priorities,
    /// Whether requests under way are prioritised again at layout. As the browser does.
    pub reprioritise: Reprioritise,
    /// Images that count as visible where a recording does not say which are: the first of the main
    /// document that are not small. 5, as Chrome guesses before layout.
    pub visible_images: u32,
    /// When objects are asked for. Recorded.
    pub discovery: Discovery,
    /// How many servers a page comes from. One.
    pub origins: Origins,
    /// Clients, each of which loads the page over connections of its own: a number, or a table with
    /// `count`, `servers`, `spread` and `every`; see [`Clients`]. 1.
    pub clients: Clients,
    /// How HTTP is carried; several ways, separated by commas, are rows each. HTTP/2 over QUIC.
    pub http: HttpVersions,
    /// Greatest random processing delay of a host per datagram. 100 µs; 0 turns it off.
    #[serde(with = "human")]
    pub host_jitter: Duration,
    /// Bytes counted on a link above the UDP payload. 28 B: IPv4 and UDP.
    #[serde(with = "human")]
    pub link_overhead: Bytes,
    /// Virtual time after which a load that has not ended is an error. 600 s.
    #[serde(with = "human")]
    pub time_limit: Duration,
    /// How long a run without pages lasts, unless all its flows end earlier. 60 s. One with pages
    /// ends with its page.
    #[serde(with = "human")]
    pub duration: Duration,
    /// Over which part of a run flows and links are measured. The whole.
    pub measure: Measure,
    /// How finely the state of connections and queues is written out over time (`series.csv`): at
    /// the start and then every so long, at least 10 µs. None.
    #[serde(with = "human")]
    pub series: Series,
    /// Which ends of connections are written out. The sender of the data.
    pub series_ends: SeriesEnds,
    /// Who decides which bytes go next, on which path.
    pub policies: Policies,
    /// The transport of both ends.
    pub transport: Transport,
    /// Raw streams, for `http = "raw"`.
    pub raw: Raw,
    /// The networks; each a table, or the name of one that comes with the program.
    #[serde(deserialize_with = "networks::read_list")]
    pub networks: Vec<Network>,
    /// Servers that are farther than the network's paths reach, with `origins = "recorded"`. None.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerSpec>,
    /// Flows beside the page, or without one. None.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowSpec>,
    /// Cross traffic. None.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossSpec>,
    /// What is claimed of the results, see [`crate::experiment`]. Plays no part in runs, and is not
    /// written out with their results. None.
    #[serde(skip_serializing)]
    pub experiment: Option<toml::Table>,
    /// Which fields take which values, see [`crate::SweepSpec`]. As `experiment`. None.
    #[serde(skip_serializing)]
    pub sweep: Option<toml::Table>,
}

/// The policies that are compared: every stream policy with every path policy, then every joint
/// one, then each path alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policies {
    /// Stream policies.
    pub stream: Vec<String>,
    /// Path policies.
    pub path: Vec<String>,
    /// Policies that decide both at once.
    pub joint: Vec<String>,
    /// Which path an acknowledgement takes; several, separated by commas, are rows each. Its own.
    pub ack: String,
    /// How much may be in flight on each path; several, separated by commas, are rows each. NewReno.
    pub congestion: String,
    /// How many streams share a packet. `default`: what the stream policy says.
    pub pack: String,
    /// When and where lost bytes go again. `default`: what the stream policy says.
    pub resend: String,
    /// Copies of bytes in flight on other paths. None but those that a path policy brings.
    pub reinject: String,
    /// Whether each path alone is a row too (`single:id=N` with the first stream policy). Yes.
    pub baselines: bool,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            seed: 1,
            runs: 30,
            pages: ["framework-youtube", "ilmessaggero"].map(str::to_owned).to_vec(),
            session: 1,
            browser: "chrome".to_owned(),
            priorities: Priorities::Tree,
            reprioritise: Reprioritise::Browser,
            visible_images: 5,
            discovery: Discovery::Recorded,
            origins: Origins::One,
            clients: Clients::default(),
            http: HttpVersions::default(),
            host_jitter: Duration::from_micros(100),
            link_overhead: Bytes(28),
            time_limit: Duration::from_secs(600),
            duration: Duration::from_secs(60),
            measure: Measure::default(),
            series: Series::None,
            series_ends: SeriesEnds::Sender,
            policies: Policies::default(),
            transport: Transport::default(),
            raw: Raw::default(),
            networks: networks::default_networks(),
            servers: Vec::new(),
            flows: Vec::new(),
            cross: Vec::new(),
            experiment: None,
            sweep: None,
        }
    }
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            stream: ["rr", "fifo", "wrr", "swrr", "dwrr"].map(str::to_owned).to_vec(),
            path: vec!["minrtt".to_owned()],
            joint: Vec::new(),
            ack: "own".to_owned(),
            congestion: "newreno".to_owned(),
            pack: "default".to_owned(),
            resend: "default".to_owned(),
            reinject: "none".to_owned(),
            baselines: true,
        }
    }
}

impl Scenario {
    /// Reads a scenario; what it does not name has its default. Files of recordings count from the
    /// folder of `file`.
    ///
    /// # Errors
    /// If `text` is no TOML or has an unknown field or a value that is none: all of them, with
    /// `file`, line and column.
    pub fn from_toml(text: &str, file: &str) -> Result<Scenario, ScenarioError> {
        Document::new(text, file).scenario()
    }

    /// Reads the scenario in the file at `path`.
    ///
    /// # Errors
    /// As [`Scenario::from_toml`], and if the file is unreadable.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        Document::read(path)?.scenario()
    }

    /// The complete scenario, defaults written out.
    ///
    /// # Errors
    /// If a value cannot be written in TOML, such as a seed above 2^63.
    pub fn to_toml(&self) -> Result<String, ScenarioError> {
        toml::to_string(self).map_err(|error| ScenarioError::Write { message: error.to_string() })
    }

    /// The same as a table. Both ways go through text, so that what reads and writes all parts of a
    /// scenario is compiled once.
    pub fn to_table(&self) -> Result<toml::Table, ScenarioError> {
        let table = self.to_toml()?.parse();
        table.map_err(|error: toml::de::Error| ScenarioError::Write { message: error.to_string() })
    }

    /// The scenario that a table describes.
    ///
    /// # Errors
    /// The first value that is none, without a place.
    pub fn from_table(table: &toml::Value) -> Result<Scenario, toml::de::Error> {
        let text = toml::to_string(table).map_err(serde::de::Error::custom)?;
        toml::from_str(&text)
    }

    /// Checks every value that can be checked without the registries of pages, browsers and
    /// policies.
    ///
    /// # Errors
    /// The first field that is wrong, with its value and what was expected.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        self.problems().into_iter().next().map_or(Ok(()), Err)
    }

    /// All that [`Scenario::validate`] finds wrong: of each part of the scenario at least the first.
    pub fn problems(&self) -> Vec<ScenarioError> {
        let mut problems = self.own_problems();
        problems.extend(self.policies.problems());
        problems.extend(self.transport.validate().err());
        if self.http.has(HttpVersion::H2Tcp) {
            problems.extend(self.transport.validate_windows().err());
        }
        problems.extend(self.raw.validate(self).err());
        problems.extend(hosts::problems(self));
        problems.extend(traffic::problems(&self.flows, &self.cross, &self.measure));
        if self.networks.is_empty() {
            problems.push(ScenarioError::invalid("networks", "empty", "at least one network"));
        }
        let names = self.networks.iter().map(|network| network.name.as_str());
        problems.extend(distinct("networks", names).err());
        for (index, network) in self.networks.iter().enumerate() {
            problems.extend(networks::problems(network, &format!("networks[{index}]")));
        }
        problems.extend(series::validate(self).err());
        problems
    }

    /// What is wrong with fields that are in no table.
    fn own_problems(&self) -> Vec<ScenarioError> {
        let mut problems = Vec::new();
        let mut refuse = |field: &str, value: &dyn std::fmt::Display, expected: &str| {
            problems.push(ScenarioError::invalid(field, value, expected));
        };
        if self.seed > i64::MAX as u64 {
            refuse("seed", &self.seed, "0 to 9223372036854775807, as TOML has it");
        }
        if !(1..=MOST_RUNS).contains(&self.runs) {
            refuse("runs", &self.runs, "1 to 10000");
        }
        if !self.has_pages() && self.flows.is_empty() {
            refuse("pages", &"empty", "at least one page, or one of `flows`");
        }
        if !(1..=MOST_SESSION).contains(&self.session) {
            refuse("session", &self.session, "1 to 1000 pages");
        }
        if self.session > 1 && self.http.is_raw() {
            refuse("session", &self.session, "1 with raw streams, which are written once");
        }
        if self.visible_images > 1_000 {
            refuse("visible_images", &self.visible_images, "at most 1000");
        }
        if self.host_jitter > Duration::from_secs(1) {
            refuse("host_jitter", &self.host_jitter.print(), "at most 1s");
        }
        if self.link_overhead.0 > 1_000 {
            refuse("link_overhead", &self.link_overhead.print(), "at most 1000B");
        }
        for (field, time) in [("time_limit", self.time_limit), ("duration", self.duration)] {
            if !(Duration::from_millis(1)..=MOST_TIME).contains(&time) {
                refuse(field, &time.print(), "1ms to 1000000s");
            }
        }
        problems
    }

    /// True if chance decides anything on `network`; if not, one run tells everything.
    pub fn is_random(&self, network: &Network) -> bool {
        let drawn = |name: &String| PageName::parse(name).is_ok_and(PageName::is_random);
        !self.host_jitter.is_zero()
            || network.is_random()
            || self.transport.tls == Tls::Rustls
            || self.session > 1
            || !self.clients.spread.is_zero()
            || self.pages.iter().any(drawn)
            || (self.http.is_raw() && self.raw.is_random())
            || self.cross.iter().any(CrossSpec::is_random)
    }

    /// The end that sends what pages are made of.
    pub fn sender(&self) -> End {
        match self.raw.sender {
            Sender::Client if self.http.is_raw() => End::Client,
            Sender::Client | Sender::Server => End::Server,
        }
    }

    /// True if there is a page to load, recorded, drawn or written out as objects.
    pub fn has_pages(&self) -> bool {
        let objects = self.http.is_raw() && !self.raw.objects.is_empty();
        objects || !self.pages.is_empty()
    }

    /// True if there is anything beside pages.
    pub fn has_traffic(&self) -> bool {
        !self.flows.is_empty() || !self.cross.is_empty()
    }

    /// Runs of each combination on `network`: one if nothing is random.
    pub fn runs_on(&self, network: &Network) -> u32 {
        if self.is_random(network) { self.runs } else { 1 }
    }

    /// The seed of what chance decides for one client of a run, in which `Scenario::run_seed` is that of
    /// the first.
    pub fn client_seed(&self, run: u32, client: u32) -> Seed {
        match client {
            0 => self.run_seed(run),
            _ => self.run_seed(run).child("client", u64::from(client)),
        }
    }

    /// The seed of run `run`, the same for every page, network and policy.
    pub fn run_seed(&self, run: u32) -> Seed {
        Seed::new(self.seed).child("run", u64::from(run))
    }
}

impl Policies {
    fn problems(&self) -> Vec<ScenarioError> {
        let mut problems = Vec::new();
        if self.joint.is_empty() && self.stream.is_empty() {
            let expected = "at least one stream policy or joint policy";
            problems.push(ScenarioError::invalid("policies.stream", "empty", expected));
        }
        if !self.stream.is_empty() && self.path.is_empty() {
            let expected = "at least one path policy for the stream policies";
            problems.push(ScenarioError::invalid("policies.path", "empty", expected));
        }
        problems
    }
}

#[cfg(test)]
mod tests;
