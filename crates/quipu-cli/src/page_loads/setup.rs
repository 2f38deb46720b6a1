//! What both ends of emulated loads are set to: the transport of the scenario, as in simulated runs.

use std::sync::Arc;

use quipu_lab::base::{Bytes, Duration, Role};
use quipu_lab::policy::PolicySpec;
use quipu_lab::run::transport_config;
use quipu_scenario::{HttpVersion, Scenario, ScenarioError};
use quipu_serve::experiments::Policies;
use quipu_tokio::{TransportConfig, policies_of};

use crate::failure::Failure;
use crate::live::Factory;

/// What the part of a question is called that has the transport: the fields of that table of a scenario.
const ASKED_TRANSPORT: &str = "transport";

/// What stands above these fields in a scenario.
const HEAD: &str = "[transport]\n";

/// And that which has the number of paths.
const ASKED_PATHS: &str = "paths";

/// Octets that an end holds until the peer has them, at most; our choice, more than any page has. Simulated ends have
/// no such limit.
const MOST_HELD: Bytes = Bytes(64 << 20);

/// How long a connection may be idle; our choice, longer than servers think. Simulated ends have no such limit.
const IDLE: Duration = Duration::from_secs(60);

/// The transport of a scenario, for as many paths as the network has.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The fields of the table `[transport]`.
    text: String,
    paths: u32,
    client: Arc<TransportConfig>,
    server: Arc<TransportConfig>,
    initial_window: u32,
}

impl Setup {
    /// That of `scenario`, for emulated links.
    ///
    /// # Errors
    /// If it cannot be.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(scenario: &Scenario, paths: u32) -> Result<Setup, Failure> {
        let bare = Scenario { transport: scenario.transport.clone(), ..Scenario::default() };
        let text = bare.to_toml().map_err(Failure::usage)?;
        let fields = text.split_once(HEAD).map_or("", |(_, fields)| fields);
        let own = fields.lines().take_while(|line| !is_head(line));
        let own: String = own.flat_map(|line| [line, "\n"]).collect();
        Setup::read(&own, paths).map_err(Failure::usage)
    }

    /// That which a client asks for, if it does.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn asked_for(question: &Policies) -> Result<Option<Setup>, String> {
        let Some(text) = question.get(ASKED_TRANSPORT) else { return Ok(None) };
        // Nothing but fields of this table, as others may name files.
        if let Some(head) = text.lines().find(|line| is_head(line)) {
            return Err(format!(
                "{ASKED_TRANSPORT}: found `{head}`; expected fields of [transport] alone"
            ));
        }
        let paths = question.get(ASKED_PATHS).map_or(Ok(1), |paths| paths.parse());
        let paths = paths.map_err(|error| format!("{ASKED_PATHS}: {error}; expected a number"))?;
        Setup::read(text, paths).map(Some).map_err(|error| error.to_string())
    }

    fn read(text: &str, paths: u32) -> Result<Setup, ScenarioError> {
        let scenario = Scenario::from_toml(&format!("{HEAD}{text}"), ASKED_TRANSPORT)?;
        let transport = &scenario.transport;
        let made = |role| {
            let config = transport_config(transport, HttpVersion::H3, paths, role);
            let wrong = |error| ScenarioError::invalid("transport", error, "values that can be");
            let config = config.map_err(wrong)?;
            // What a server writes to a stream at a time is not sent before it writes more.
            let written = transport.server_write_chunk.filter(|_| role == Role::Server);
            Ok::<_, ScenarioError>(Arc::new(TransportConfig {
                send_buffer: MOST_HELD,
                max_unsent: written.unwrap_or(MOST_HELD),
                idle_timeout: IDLE,
                ..config
            }))
        };
        Ok(Setup {
            client: made(Role::Client)?,
            server: made(Role::Server)?,
            initial_window: transport.initial_window,
            text: text.to_owned(),
            paths,
        })
    }

    /// What a server is asked for beside policies.
    pub(crate) fn question(&self) -> impl Iterator<Item = (String, String)> {
        let parts = [(ASKED_TRANSPORT, self.text.clone()), (ASKED_PATHS, self.paths.to_string())];
        parts.into_iter().map(|(name, text)| (name.to_owned(), text))
    }

    /// Takes what is no policy away from `question`.
    pub(crate) fn without(mut question: Policies) -> Policies {
        for name in [ASKED_TRANSPORT, ASKED_PATHS] {
            question.remove(name);
        }
        question
    }

    /// The settings of the client's end.
    pub(crate) fn client_transport(&self) -> Arc<TransportConfig> {
        Arc::clone(&self.client)
    }

    /// The settings of the server's end.
    pub(crate) fn server_transport(&self) -> Arc<TransportConfig> {
        Arc::clone(&self.server)
    }

    /// What makes the policies of each connection.
    ///
    /// # Errors
    /// If they cannot be.
    pub(crate) fn policies(&self, spec: &PolicySpec) -> Result<Factory, Failure> {
        policies_of(spec, self.initial_window).map_err(Failure::usage)
    }
}

/// Whether a line of a scenario begins another table.
fn is_head(line: &str) -> bool {
    line.trim_start().starts_with('[')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(transport: &str, paths: &str) -> Result<Option<Setup>, String> {
        let parts = [(ASKED_TRANSPORT, transport), (ASKED_PATHS, paths)];
        let question = parts.into_iter().map(|(name, text)| (name.to_owned(), text.to_owned()));
        Setup::asked_for(&question.collect())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_a_server_is_asked_for_is_the_transport_of_the_scenario() {
        let text = "[transport]\nprofile = \"xquic\"\nudp_payload = \"1250B\"\nack_every = 7\n";
        let scenario = Scenario::from_toml(text, "a.toml").expect("a scenario");
        let setup = Setup::of(&scenario, 3).expect("a setup");
        let question: Policies = setup.question().collect();
        let there = Setup::asked_for(&question).expect("a setup").expect("it is asked for");
        assert_eq!(there.server, setup.server);
        assert_eq!((there.server.ack_every, there.server.max_paths), (7, 3));
        assert_eq!(there.server.max_udp_payload, 1_250);
        assert_eq!(there.initial_window, scenario.transport.initial_window);
        assert!(Setup::without(question).is_empty());
    }

    #[test]
    fn a_client_asks_for_fields_of_a_transport_and_nothing_else() {
        assert_eq!(Setup::asked_for(&Policies::new()).expect("nothing").map(drop), None);
        assert!(asked("ack_every = 2", "2").is_ok());
        for (transport, paths, told) in [
            ("ack_every = 2\n[[networks]]\nname = \"a\"", "2", "found `[[networks]]`"),
            ("networks = []", "2", "networks"),
            ("ack_every = 0", "2", "ack_every"),
            ("ack_every = 2", "two", "paths: "),
            ("ack_every = 2", "1000", "max_paths is 1000, expected 1 to 32"),
        ] {
            let error = asked(transport, paths).expect_err(told);
            assert!(error.contains(told), "{error}");
        }
    }
}
