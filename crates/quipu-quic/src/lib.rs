//! QUIC v1 (RFC 8999, 9000, 9001, 9002) and v2 (RFC 9369) with the negotiation between them
//! (RFC 9368), datagrams (RFC 9221), and the multipath extension (RFC 10069), sans-IO.
//!
//! The engine owns every byte, range and packet; what goes next and on which path is asked of the
//! policies of `quipu-policy`. Time and datagrams come in, datagrams and a deadline come out: no
//! socket, no clock, no thread.
//!
//! Start with three types:
//! - [`Endpoint`]: many connections behind the same sockets;
//! - [`Connection`]: one of them, with its streams and paths;
//! - [`Outbox`]: where finished datagrams go.
//!
//! From the ground up: [`wire`] reads and writes packets and frames, [`tls`] is the seam behind
//! which rustls (or a TLS without arithmetic) lives, `stream` keeps what is sent and received,
//! `recovery` what is in flight, `path` the paths, and [`connection`] brings them together.
//!
//! [`random`] is where unpredictable bytes come from, and [`connection_ids`] makes connection IDs of
//! them. [`recorder`] tells what happens while it happens.
//!
//! Not here: HTTP, sockets, simulated links, and any scheduling order.

mod address_token;
mod config;
pub mod connection;
pub mod connection_ids;
mod constant_time;
#[cfg(test)]
mod cost;
mod counters;
mod datagrams;
pub mod endpoint;
pub mod error;
mod kinds;
mod outbox;
mod path;
pub mod random;
mod range_map;
mod range_set;
pub mod recorder;
mod recovery;
mod route;
pub(crate) mod stream;
pub mod tls;
pub mod token_store;
pub mod transport_parameters;
pub mod wire;

pub use config::{
    AckFrequencyConfig, AckRequest, Burst, ConfigError, DatagramConfig, MIN_UDP_PAYLOAD, Mtu,
    PreferredAddresses, RecoveryRules, TransportConfig,
};
pub use connection::{Arrival, Connection, ConnectionEvent, Drain, PathSample};
pub use counters::PathCounters;
pub use datagrams::{DatagramCounters, DatagramId};
pub use endpoint::{ConnectionHandle, Endpoint};
pub use outbox::{Outbox, Transmit};
pub use range_set::RangeSet;
pub use route::Route;
pub use stream::{CancelLimit, Read, StreamError};

/// Parts of the engine, for its own benches and fuzz targets. No part of the API.
#[doc(hidden)]
pub mod internals {
    pub use crate::stream::*;
}
