//! The server as its users have it: files through the service, and over TCP on loopback.
#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

mod access;
mod certificates;
mod client;
mod conditions;
mod encodings;
mod experiments;
mod files;
mod http3;
mod limits;
mod ranges;
mod replay;
mod setup;
mod tcp;
