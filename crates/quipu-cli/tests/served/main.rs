//! Servers of the command, and what is asked of them over the loopback interface.
#![cfg(unix)]
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

mod cut;
mod fetch;
mod live_compare;
mod live_load;
mod scripted;
mod serve;
mod server;
