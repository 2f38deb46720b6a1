//! A client and a server in virtual time, for integration tests and benches.
//!
//! - [`Exchange`]: the application that all nodes run. Each side sends a pattern on one
//!   bidirectional stream and hashes what arrives. It needs a [`ByteStream`], nothing else.
//! - [`QuicNode`]: our engine as a node of the simulator that runs an exchange.
//! - [`Scenario`]: paths, seed and [`Plan`]; [`Scenario::run`] lets two nodes meet and returns an
//!   [`Outcome`].
//! - [`Watch`]: policies that are held to the rules of the seam while the engine runs them.
//! - [`Strict`]: an outbox that holds the engine to its contract.
//! - [`Hostile`]: a node in a network that forges, damages and repeats datagrams.
//! - [`Middlebox`]: rebinds addresses and drops what is too long, before a node.
//! - [`forge`]: a hostile peer that forges authentic packets, and an attacker on the wire.
//! - [`trial`]: random operations on two ends, and what must hold whatever they do.
//! - [`Identity`]: an Ed25519 certificate and the TLS configurations, for every engine that uses
//!   rustls.
//!
//! Unpublished. Not here: HTTP, pages, foreign engines (those are in `interop/`).

mod exchange;
pub mod forge;
mod hostile;
mod identity;
mod middlebox;
mod node;
mod scenario;
mod script;
mod strict;
pub mod trial;
mod watched;

pub use exchange::{ByteStream, Exchange, ExchangeNode, Plan};
pub use hostile::{Hostile, Mischief};
pub use identity::{ALPN, Identity, SERVER_NAME, SharedTls};
pub use middlebox::{Behind, Middlebox, Rebinding, SizeLimit};
pub use node::{Blocking, NodeConfig, QuicNode, SimOutbox, Tls, plain_policies, policies};
pub use scenario::{Failure, Outcome, Scenario, client_address, preferred_address, server_address};
pub use script::{Action, Script};
pub use strict::Strict;
pub use watched::{Account, Watch};
