//! The scenario: everything that decides a result, as one plain struct with documented defaults.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_base::{Bytes, Duration, Seed};
use quipu_link::HostCosts;
use quipu_record::End;
use quipu_web::page::{ObjectId, Page};
use quipu_web::scheme::BrowserScheme;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serializer};

use crate::choice::{
    Compute, Discovery, Origins, Priorities, Push, Reprioritise, Sender, SeriesEnds, Tls,
};
use crate::error::ScenarioError;
use crate::experiment::Experiment;
use crate::form::{FieldType, Kind, table};
use crate::host::Hosts;
use crate::hosts::{Clients, ServerSpec};
use crate::http::HttpVersions;
use crate::input::{FileUse, Inputs, split_hash, with_hash};
use crate::limits::{LEAST_TIME, MOST_RUNS, MOST_SERVERS, MOST_SESSION, MOST_TIME};
use crate::network::Network;
use crate::networks;
use crate::page_name::{PAGE, PageName};
use crate::policies::Policies;
use crate::raw::Raw;
use crate::series::Series;
use crate::stack::Stacks;
use crate::traffic::{CrossSpec, FlowSpec, MOST_FLOWS, Measure};
use crate::transport::Transport;

table! {
    /// An experiment: every page over every network with every policy, `runs` times. Omitted fields have their
    /// defaults, so the empty file is a scenario too.
    pub struct Scenario as "Scenario" {
        /// The experiment's seed, from which all random numbers are derived.
        ///
        /// TOML has no numbers above 2^63.
        pub seed: u64 [0..=i64::MAX as u64] = 1,
        /// Runs of each combination; run `n` has the same links, losses and page for each policy.
        pub runs: u32 [1..=MOST_RUNS] = 30,
        /// Pages: files with recordings, names that come with the program, `pries` (drawn anew for each run from
        /// the model of Pries et al.) or `pries:N` (the page that run N draws). Names of files count from the
        /// folder of the scenario's file; an existing file takes precedence over a name. May be empty if there
        /// are flows.
        pub pages: Vec<String> [text PAGE] =
            ["framework-youtube", "rust-book"].map(str::to_owned).to_vec(),
        /// Pages that a run loads one after the other over its connection, each read for a time drawn
        /// from the model of Pries et al.; `pries` draws each, any other page is loaded again.
        pub session: u32 [1..=MOST_SESSION] = 1,
        /// The browser whose requests and priorities are used.
        pub browser: String [one of || BrowserScheme::names().collect()] = "chrome".to_owned(),
        /// How the browser signals priorities: by the dependency tree of RFC 7540 or by the urgencies of RFC 9218.
        pub priorities: Priorities = Priorities::Tree,
        /// Whether pending requests are reprioritised at layout: as the browser does, or never.
        pub reprioritise: Reprioritise = Reprioritise::Browser,
        /// Number of images that count as visible if a recording does not say which ones are: the first images of the
        /// main document that are not small.
        ///
        /// The default is what Chrome guesses before layout.
        pub visible_images: u32 [0..=1_000] = 5,
        /// When objects are requested: when the parser or a parent discovers them, or all at time 0.
        pub discovery: Discovery = Discovery::Recorded,
        /// How much of the time in a page's recording counts as computing and server think time, which are the same
        /// over any network: the `likely` amount after the recording's own network is removed, as little (`low`) or as
        /// much (`high`) as the recording allows, or all of it (`as-recorded`).
        pub compute: Compute = Compute::Likely,
        /// Factor by which the browser's computing times are multiplied. Server think times and script timers are
        /// unchanged.
        pub compute_scale: f64 [0.0..=4.0] = 1.0,
        /// Which objects the server pushes with the main document, out of those that are discovered from it and come
        /// from its server: none, those pushed in the recording, those that block rendering (`critical`), images, or
        /// images with all style sheets, scripts, fonts and media (`assets`). They count as requested when their
        /// promise arrives.
        ///
        /// They are promised when the request for the document has come, in the order in which it refers
        /// to them. The browser requests nothing that was promised, and looks at a pushed response when
        /// it comes to it.
        pub push: Push = Push::None,
        /// How many servers a page comes from: one, or as many as the recording has, each with a
        /// connection of its own.
        pub origins: Origins = Origins::One,
        /// Clients, each of which loads the page over its own connections: a number, or a table.
        pub clients: Clients = Clients::default(),
        /// How HTTP is carried: over QUIC's streams, over one byte stream as over TCP, or not at all
        /// (`raw`: see `raw`). Several values, separated by commas, give one row each.
        pub http: HttpVersions = HttpVersions::default(),
        /// What carries pages over emulated links: `quipu`, with the `policies`, or the kernel: HTTP/2 (`tcp-h2`) or HTTP/1.1
        /// with at most six connections (`tcp-h1`) over TCP, each path alone, or HTTP/2 over Multipath TCP (`mptcp-h2`).
        /// Where the program has them, HTTP/3 over published libraries: each path alone (`quinn-h3`), or all paths
        /// (`noq-h3`). Chromium in place of a model of a browser: HTTP/3 (`chromium-h3`), HTTP/2 (`chromium-h2`) or HTTP/1.1
        /// (`chromium-h1`) over each path alone, or HTTP/2 over Multipath TCP (`chromium-mptcp-h2`). Several values, separated
        /// by commas, give rows each. The congestion control of stacks other than `quipu` and `chromium-h3` is `cubic`
        /// unless named, as in `tcp-h2:congestion=bbr`.
        pub stack: Stacks = Stacks::default(),
        /// What the hosts cost, at both ends or at each: timers, batches, processor and full sockets.
        pub host: Hosts = Hosts::default(),
        /// Greatest random processing delay of a host per datagram; 0 turns it off.
        pub host_jitter: Duration [..=Duration::from_secs(1)] = Duration::from_micros(100),
        /// Bytes per datagram that a link counts in addition to the UDP payload; the default is the headers of IPv4 and
        /// UDP.
        pub link_overhead: Bytes [..=Bytes(1_000)] = Bytes(28),
        /// Virtual time after which an unfinished load is an error.
        pub time_limit: Duration [LEAST_TIME..=MOST_TIME] = Duration::from_secs(600),
        /// How long a run without pages lasts, unless all its flows end earlier. A run with pages ends with its page.
        pub duration: Duration [LEAST_TIME..=MOST_TIME] = Duration::from_secs(60),
        /// The part of a run during which flows and links are measured.
        pub measure: Measure = Measure::default(),
        /// Sampling interval of the state of connections and queues in `series.csv`, beginning at the start of the run.
        pub series: Series [Series::LEAST..] = Series::None,
        /// Which ends of connections are sampled: the sender of the data, or both.
        pub series_ends: SeriesEnds = SeriesEnds::Sender,
        /// The policies that decide which bytes are sent next, and on which path.
        pub policies: Policies = Policies::default(),
        /// The transport of both ends.
        pub transport: Transport = Transport::default(),
        /// Raw streams, for `http = "raw"`.
        pub raw: Raw = Raw::default(),
        /// The networks: each a table, the name of a built-in network, or a file.
        pub networks: Vec<Network> [1..] = networks::default_networks(),
        /// Servers with an additional delay beyond the network's paths, with `origins = "recorded"`.
        pub servers: Vec<ServerSpec> [..=MOST_SERVERS] => "none",
        /// Flows in addition to the page, or without one.
        pub flows: Vec<FlowSpec> [..=MOST_FLOWS] => "none",
        /// Cross traffic.
        pub cross: Vec<CrossSpec> [..=MOST_FLOWS] => "none",
        /// Claims about the results, for `quipu reproduce`. It does not affect runs.
        pub experiment: Option<ExperimentTable> => "none",
        /// Which fields take which values, for `quipu sweep`: each key is a field with a list of
        /// values; `zip` is a list of tables of fields that move together, `random` a table of random values.
        /// [sweeps.md](sweeps.md) explains it. It does not affect single runs.
        pub sweep: Option<SweepTable> => "none",
    }
}

/// Declares what stands for a table of which runs take no notice, and which is not written out with
/// their results.
macro_rules! apart {
    ($($(#[$doc:meta])* $name:ident: $kind:expr;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl FieldType for $name {
            const WRITTEN: bool = false;

            fn kind() -> Kind {
                $kind
            }

            fn from_input<'de, D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
                BTreeMap::<String, IgnoredAny>::deserialize(input).map(|_| $name)
            }

            fn to_output<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
                output.serialize_unit()
            }
        }
    )+};
}

apart! {
    /// That a file has the table `[experiment]`, which [`experiment`](crate::experiment) reads.
    ExperimentTable: Kind::Table(Experiment::table());
    /// That a file has the table `[sweep]`, which [`SweepSpec`](crate::SweepSpec) reads.
    SweepTable: Kind::Sweep;
}

impl Scenario {
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

    /// Makes names of files count from `folder`.
    pub(super) fn count_from(&mut self, folder: &Path) {
        for page in &mut self.pages {
            if let Some(located) = FileUse::Page.located(page, folder) {
                *page = located;
            }
        }
        self.networks.iter_mut().for_each(|network| network.count_from(folder));
    }

    /// The scenario with the hashes of the contents of all files that it names.
    #[must_use]
    pub fn pinned(mut self) -> Scenario {
        for page in &mut self.pages {
            if let Some(pinned) = FileUse::Page.pinned(page) {
                *page = pinned;
            }
        }
        self.networks.iter_mut().for_each(Network::pin);
        self
    }

    /// The scenario as it stands beside a result, with the copies of `inputs` in place of the files that were
    /// read, whose content is known.
    #[must_use]
    pub fn with_inputs(&self, inputs: &mut Inputs) -> Scenario {
        let mut kept = self.clone();
        for page in &mut kept.pages {
            if let (name, Some(hash)) = split_hash(page) {
                *page = with_hash(inputs.keep(Path::new(name), hash), Some(hash));
            }
        }
        let networks = kept.networks.into_iter();
        kept.networks = networks.map(|network| network.with_inputs(inputs)).collect();
        kept
    }

    /// True if chance decides anything on `network`; if not, one run tells everything.
    pub fn is_random(&self, network: &Network) -> bool {
        let drawn = |name: &String| PageName::parse(name).is_ok_and(PageName::is_random);
        !self.host_jitter.is_zero()
            || self.host.is_random()
            || network.is_random()
            || self.transport.tls == Tls::Rustls
            || self.session > 1
            || !self.clients.spread.is_zero()
            || self.pages.iter().any(drawn)
            || (self.http.is_raw() && self.raw.is_random())
            || self.cross.iter().any(CrossSpec::is_random)
    }

    /// The objects of `page` that its server pushes, in that order.
    pub fn pushed(&self, page: &Page) -> Vec<ObjectId> {
        let push = quipu_web::push::Push::from(self.push);
        push.objects(page, self.origins == Origins::One)
    }

    /// The costs of the hosts at that end of connections.
    pub fn host_costs(&self, end: End) -> HostCosts {
        self.host.costs(end, self.link_overhead)
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

#[cfg(test)]
mod tests;
