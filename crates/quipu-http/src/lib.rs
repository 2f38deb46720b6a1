//! HTTP over QUIC streams, sans-IO.

pub mod field;
pub mod hpack;
