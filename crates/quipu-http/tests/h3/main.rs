//! Client and server of HTTP/3 over a transport double that splits, delays and interleaves streams.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(dead_code, reason = "the double serves HTTP/2 as well")]

mod datagrams;
mod exchanges;
mod going_away;
mod hostile_client;
mod hostile_server;
#[path = "../support/loopback.rs"]
mod loopback;
mod priorities;
mod raw;
mod session;
mod settings;
mod table;
