//! QUIC v1 and its multipath extension (RFC 10069), sans-IO.

mod config;
pub mod connection;
pub mod endpoint;
pub mod error;
mod outbox;
mod path;
mod range_map;
mod range_set;
mod recovery;
pub(crate) mod stream;
pub mod tls;
pub mod transport_parameters;
pub mod wire;

pub use config::{ConfigError, MIN_UDP_PAYLOAD, TransportConfig};
pub use connection::{Arrival, Connection, ConnectionEvent, Drain};
pub use endpoint::{ConnectionHandle, Endpoint};
pub use outbox::{Outbox, Route, Transmit};
pub use path::PathCounters;
pub use stream::{Read, StreamError};

/// Parts of the engine, for its own benches and fuzz targets. No part of the API.
#[doc(hidden)]
pub mod internals {
    pub use crate::range_set::RangeSet;
    pub use crate::stream::*;
}
