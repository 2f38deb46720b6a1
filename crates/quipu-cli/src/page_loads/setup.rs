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

/// What the part of a question is called that has the transport, as the text of a scenario.
const ASKED_SCENARIO: &str = "scenario";

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
    /// A scenario that has nothing else.
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
        Setup::read(&text, paths).map_err(Failure::usage)
    }

    /// That which a client asks for, if it does.
    ///
    /// # Errors
    /// If it is none.
    pub(crate) fn asked_for(question: &Policies) -> Result<Option<Setup>, String> {
        let Some(text) = question.get(ASKED_SCENARIO) else { return Ok(None) };
        let paths = question.get(ASKED_PATHS).map_or(Ok(1), |paths| paths.parse());
        let paths = paths.map_err(|error| format!("{ASKED_PATHS}: {error}; expected a number"))?;
        Setup::read(text, paths).map(Some).map_err(|error| error.to_string())
    }

    fn read(text: &str, paths: u32) -> Result<Setup, ScenarioError> {
        let scenario = Scenario::from_toml(text, ASKED_SCENARIO)?;
        let transport = &scenario.transport;
        let made = |role| {
            let config = transport_config(transport, HttpVersion::H3, paths, role);
            let wrong = |error| ScenarioError::invalid("transport", error, "values that can be");
            let config = config.map_err(wrong)?;
            Ok::<_, ScenarioError>(Arc::new(TransportConfig {
                send_buffer: MOST_HELD,
                max_unsent: MOST_HELD,
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
        let parts = [(ASKED_SCENARIO, self.text.clone()), (ASKED_PATHS, self.paths.to_string())];
        parts.into_iter().map(|(name, text)| (name.to_owned(), text))
    }

    /// Takes what is no policy away from `question`.
    pub(crate) fn without(mut question: Policies) -> Policies {
        for name in [ASKED_SCENARIO, ASKED_PATHS] {
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
