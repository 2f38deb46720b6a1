//! Foreign QUIC engines as nodes of Quipu's simulator.
//!
//! quinn-proto and noq-proto are sans-IO, as our engine is: here each becomes a
//! [`Node`](quipu_sim::Node), so that any two engines meet over our links, in one thread and in
//! virtual time.
//!
//! - [`QuinnNode`] and [`NoqNode`]: [`ExchangeNode`](quipu_testkit::ExchangeNode)s, as our own
//!   [`QuicNode`](quipu_testkit::QuicNode) is;
//! - [`PeerConfig`]: what they are made of; [`SharedTokens`]: what they remember.
//!
//! To bring in one more engine: wrap it into a type that implements [`ExchangeNode`], drive an
//! [`Exchange`](quipu_testkit::Exchange) over its stream, and hand it to
//! [`Scenario::run`](quipu_testkit::Scenario::run) with another node.
//!
//! The workspace is its own so that the foreign engines' dependencies stay out of the product's
//! lock file. Run it with `cargo test --release --manifest-path interop/Cargo.toml`.

mod clock;
mod connection_id;
mod noq;
mod peer;
mod quinn;
mod tokens;

pub use clock::Clock;
pub use connection_id::SeededConnectionIds;
pub use noq::NoqNode;
pub use peer::PeerConfig;
pub use quinn::QuinnNode;
pub use tokens::SharedTokens;
