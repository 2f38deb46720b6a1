//! Client and server over a transport double that splits, delays and interleaves streams.
#![expect(clippy::unwrap_used, reason = "tests")]

mod byte_stream;
mod control;
mod exchanges;
mod hostile;
#[path = "../support/loopback.rs"]
mod loopback;
mod priorities;
mod push;
mod session;
mod urgencies;
