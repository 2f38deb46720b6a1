//! Two endpoints of one process over the loopback interface.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod bursts;
mod closing;
mod errors;
mod fixed_tls;
mod http2;
mod http3;
mod identity;
mod idle;
mod paths;
mod perf;
mod replay;
mod setup;
mod shards;
mod spans;
mod streams;
mod transport;
mod unreachable;
