//! Who loads, and from where: clients, their servers, and how far servers are.

use std::ops::RangeInclusive;

use quipu_base::{Bytes, Duration, Seed};
use quipu_link::LinkConfig;
use rand::Rng;

use super::error::ScenarioError;
use super::form::{Bounds, Kind, Limit, Names, Numbers, Shorthand, Text, table};
use super::limits::{MOST_CLIENTS, MOST_TIME};

/// Numbers of clients, and of their servers.
const COUNTS: RangeInclusive<u32> = 1..=MOST_CLIENTS;

table! {
    /// The clients of a run, each of which loads the page. All of them share the links of the network; every host has
    /// its own access links.
    ///
    /// In files a number, or a table:
    ///
    /// ```
    /// use quipu_scenario::{Clients, Scenario};
    ///
    /// let file = "clients = { count = 10, spread = \"2s\", servers = 3 }";
    /// let scenario = Scenario::from_toml(file, "a.toml")?;
    /// assert_eq!((scenario.clients.count, scenario.clients.servers), (10, Some(3)));
    /// assert_eq!(Scenario::from_toml("clients = 5", "b.toml")?.clients, Clients::of(5));
    /// # Ok::<(), quipu_scenario::ScenarioError>(())
    /// ```
    #[derive(Copy, Eq)]
    pub struct Clients as "Clients" or u32 {
        /// How many.
        pub count: u32 [COUNTS],
        /// Servers, each with its own access links: client `i` loads from server `i mod servers`. At most as many as
        /// clients.
        ///
        /// By default no two clients share one.
        pub servers: Option<u32> [COUNTS] => "as many as clients",
        /// Each client starts at a random instant, uniformly distributed over this time and the same for every policy.
        pub spread: Duration [..=MOST_TIME] = Duration::ZERO,
        /// Client `i` starts `i` times this time later, in addition to the random part of `spread`.
        pub every: Duration [..=MOST_TIME] = Duration::ZERO,
    }
}

impl Default for Clients {
    fn default() -> Self {
        Clients::of(1)
    }
}

impl Shorthand<u32> for Clients {
    const EXPECTED: &'static str =
        "a number of clients, or a table with count, servers, spread, every";

    fn narrow(kind: Kind) -> Kind {
        Limit::<u32>::narrow(&Bounds::of(COUNTS), kind)
    }

    fn from_short(count: u32) -> Result<Self, String> {
        Ok(Clients::of(count))
    }

    fn short(&self) -> Option<u32> {
        (*self == Clients::default()).then_some(self.count)
    }
}

impl Clients {
    /// So many that start together.
    pub fn of(count: u32) -> Clients {
        Clients::least(count)
    }

    /// When client `client` of the run with that seed starts.
    pub fn start(&self, run_seed: Seed, client: u32) -> Duration {
        let number = run_seed.stream("client.start", u64::from(client)).next_u64();
        // Upper half of a product: at most `spread`, which is far below 2^64.
        let drawn = (u128::from(number) * (u128::from(self.spread.as_nanos()) + 1)) >> 64;
        let drawn = Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX));
        self.every.saturating_mul(u64::from(client)) + drawn
    }

    /// The number of the server of client `client`.
    pub fn server_of(&self, client: u32) -> u32 {
        self.servers.map_or(client, |servers| client.checked_rem(servers).unwrap_or(0))
    }

    /// Checks that there are as many servers as clients at most.
    pub(super) fn validate(&self) -> Result<(), ScenarioError> {
        if let Some(servers) = self.servers
            && !(1..=self.count).contains(&servers)
        {
            let expected = format!("1 to {}, the number of clients", self.count);
            return Err(ScenarioError::invalid("clients.servers", servers, expected));
        }
        Ok(())
    }
}

table! {
    /// The additional distance of some servers: a link without a rate limit between them and every path.
    /// The first entry that matches a host applies.
    ///
    /// ```
    /// use quipu_scenario::Scenario;
    ///
    /// let file = r#"
    ///     origins = "recorded"
    ///     servers = [{ hosts = "*.cdn.net", delay = "20ms" }, { hosts = "*", delay = "5ms" }]
    /// "#;
    /// let scenario = Scenario::from_toml(file, "a.toml")?;
    /// assert!(scenario.servers[0].holds("img.cdn.net"));
    /// assert!(!scenario.servers[0].holds("cdn.net"));
    /// # Ok::<(), quipu_scenario::ScenarioError>(())
    /// ```
    pub struct ServerSpec as "Server" {
        /// Hosts, by their names in URLs, with the port if the URL has one; `*` matches any text.
        pub hosts: String [text HOSTS],
        /// One-way delay in each direction.
        pub delay: Duration [..=Duration::from_secs(10)],
    }
}

impl ServerSpec {
    /// True if it is about the server of `host`.
    pub fn holds(&self, host: &str) -> bool {
        crate::wildcard::matches(&self.hosts.to_ascii_lowercase(), &host.to_ascii_lowercase())
    }

    /// The link in one direction, with `overhead` bytes of headers per datagram.
    pub fn config(&self, overhead: Bytes) -> LinkConfig {
        LinkConfig { delay: self.delay, overhead, ..LinkConfig::default() }
    }
}

/// A host, or several.
static HOSTS: Text = Text {
    name: "hosts",
    expected: "a host name, in which * stands for any text",
    pattern: "^.{1,255}$",
    accepts: |text| (1..=255).contains(&text.len()),
    numbers: Numbers::None,
    names: Names::None,
    examples: &["img.cdn.net", "*.cdn.net", "*"],
    refused: &[""],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

    fn scenario(text: &str) -> Scenario {
        Scenario::from_toml(text, "a.toml").unwrap()
    }

    #[test]
    fn clients_survive_their_file_and_can_be_set() {
        assert_eq!(scenario("").clients, Clients::default());
        let spread = Duration::from_secs(2);
        for text in ["clients = 7", "clients = { count = 7, spread = \"2s\", servers = 2 }"] {
            let read = scenario(text);
            read.validate().unwrap();
            let written = read.to_toml().unwrap();
            assert_eq!(scenario(&written), read, "{written}");
            let expected = if text.len() < 20 {
                Clients::of(7)
            } else {
                Clients { servers: Some(2), spread, ..Clients::of(7) }
            };
            assert_eq!(read.clients, expected);
        }
        assert!(scenario("").to_toml().unwrap().contains("\nclients = 1\n"));
        let set = scenario("").with_field("clients", "30").unwrap();
        assert_eq!(set.clients, Clients::of(30));
        let servers = "origins = \"recorded\"\nservers = [{ hosts = \"a\", delay = \"1ms\" }, { hosts = \"*\", delay = \"0ms\" }]";
        let read = scenario(servers);
        read.validate().unwrap();
        assert_eq!(scenario(&read.to_toml().unwrap()), read);
    }

    #[test]
    fn starts_are_drawn_within_the_spread_and_the_same_again() {
        let clients = Clients { spread: Duration::from_secs(2), ..Clients::of(50) };
        let seed = Seed::new(3);
        let starts: Vec<Duration> = (0..50).map(|client| clients.start(seed, client)).collect();
        assert!(starts.iter().all(|start| *start <= clients.spread));
        let mean = starts.iter().map(|start| start.as_nanos()).sum::<u64>() / 50;
        // Standard deviation of the mean: 82 ms.
        assert!(mean.abs_diff(1_000_000_000) < 330_000_000, "{mean}");
        assert_eq!(starts[7], clients.start(seed, 7));
        assert_ne!(starts[7], clients.start(Seed::new(4), 7));
        let every = Clients { every: Duration::from_millis(100), ..Clients::of(3) };
        assert_eq!(every.start(seed, 2), Duration::from_millis(200));
        assert_eq!(Clients::of(3).start(seed, 2), Duration::ZERO);
    }
}
