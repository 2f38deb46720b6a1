//! HTTP over QUIC streams, sans-IO.

pub mod field;
pub mod h2;
pub mod hpack;
pub mod transport;
