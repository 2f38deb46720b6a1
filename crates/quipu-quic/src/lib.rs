//! QUIC v1 and its multipath extension (RFC 10069), sans-IO.

pub mod error;
mod range_map;
mod range_set;
pub(crate) mod stream;
pub mod tls;
pub mod transport_parameters;
pub mod wire;

/// Parts of the engine, for its own benches and fuzz targets. No part of the API.
#[doc(hidden)]
pub mod internals {
    pub use crate::range_set::RangeSet;
    pub use crate::stream::*;
}
