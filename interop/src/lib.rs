//! Foreign QUIC engines as nodes of Quipu's simulator.
//!
//! quinn-proto and noq-proto are sans-IO, as our engine is: here each becomes a
//! [`Node`](quipu_sim::Node), so that any two engines meet over our links, in one thread and in
//! virtual time.
//!
//! - [`Exchange`]: the application that all nodes run. Each side sends a pattern on one
//!   bidirectional stream and hashes what arrives. It needs a [`ByteStream`], nothing else.
//! - [`ExchangeNode`]: a node that runs an exchange; [`QuinnNode`] and [`NoqNode`] are two.
//! - [`Scenario`]: paths, seed and [`Plan`]; [`Scenario::run`] lets two nodes meet and returns an
//!   [`Outcome`].
//! - [`Identity`]: the Ed25519 certificate and the TLS configurations, for every engine that uses
//!   rustls.
//!
//! To bring in one more engine: wrap it into a type that implements [`ExchangeNode`], drive an
//! [`Exchange`] over its stream, and hand it to [`Scenario::run`] with another node.
//!
//! The workspace is its own so that the foreign engines' dependencies stay out of the product's
//! lock file. Run it with `cargo test --release --manifest-path interop/Cargo.toml`.

mod clock;
mod connection_id;
mod exchange;
mod identity;
mod noq;
mod peer;
mod quinn;
mod scenario;

pub use clock::Clock;
pub use connection_id::SeededConnectionIds;
pub use exchange::{ByteStream, Exchange, Plan};
pub use identity::{ALPN, Identity, SERVER_NAME};
pub use noq::NoqNode;
pub use peer::{ExchangeNode, PeerConfig};
pub use quinn::QuinnNode;
pub use scenario::{Failure, Outcome, Scenario, client_address, server_address};
