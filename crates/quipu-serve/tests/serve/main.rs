//! The server as its users have it: files through the service, and over TCP on loopback.
#![expect(clippy::unwrap_used, reason = "tests")]

mod conditions;
mod encodings;
mod files;
mod ranges;
mod setup;
