//! What can go wrong with a run.

use quipu_base::Instant;
use quipu_quic::ConfigError;
use quipu_quic::endpoint::ConnectError;
use quipu_sim::TopologyError;
use thiserror::Error;

use super::tls::TlsError;
use crate::loading::WrongBody;
use crate::pages::PageLoadError;
use crate::plan::MakeError;
use crate::policies::SpecError;
use quipu_record::End;
use quipu_scenario::{LinkError, Stack};

/// An end could not be set up.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The transport's configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A policy.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The page.
    #[error(transparent)]
    Page(#[from] PageLoadError),
    /// A client without a server.
    #[error("a client has no server to load from")]
    NoOrigin,
}

/// A run that gave no result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// An end could not be set up.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The links make no topology.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A path leads nowhere.
    #[error(transparent)]
    Path(#[from] LinkError),
    /// The network is a real one.
    #[error(
        "networks.server is {server}; expected a modelled network: real ones are compared with --live"
    )]
    Real {
        /// URL of its server.
        server: String,
    },
    /// The row is of another stack than Quipu's.
    #[error("stack is {stack}; expected quipu: other stacks run over emulated links alone")]
    OtherStack {
        /// The stack.
        stack: Stack,
    },
    /// The world does not come to an end.
    #[error(transparent)]
    World(#[from] quipu_sim::RunError),
    /// The connection ended.
    #[error("the connection of the {end} ended after {at}: {reason}")]
    Closed {
        /// Whose.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// HTTP failed.
    #[error("HTTP at the {end} failed after {at}: {reason}")]
    Http {
        /// At which end.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// Raw streams are not as they were to be.
    #[error("raw streams at the {end} failed after {at}: {reason}")]
    Streams {
        /// At which end.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// The connection of a flow ended before its time, or a stream of it failed.
    #[error("the {end} of flow {name} failed after {at}: {reason}")]
    Flow {
        /// The flow.
        name: String,
        /// At which end.
        end: End,
        /// When.
        at: Instant,
        /// Why.
        reason: String,
    },
    /// A body is not the one that the server sent.
    #[error(transparent)]
    WrongBody(#[from] WrongBody),
    /// A run outside of the simulator.
    #[error(transparent)]
    Elsewhere(#[from] MakeError),
    /// The time series could not be written.
    #[error("cannot write the time series: {0}")]
    Series(std::io::Error),
    /// The load did not end.
    #[error("the load had not ended after {at}: {open} of {objects} objects were missing")]
    Unfinished {
        /// When it was given up.
        at: Instant,
        /// Objects that were not complete.
        open: usize,
        /// All objects.
        objects: usize,
    },
}
