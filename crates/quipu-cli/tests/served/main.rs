//! Servers of the command, and what is asked of them over the loopback interface.
#![cfg(unix)]
#![expect(clippy::panic, reason = "a helper of tests is allowed to stop them")]

mod live_load;
mod serve;
mod server;
