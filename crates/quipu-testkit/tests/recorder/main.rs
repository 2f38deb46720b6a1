//! Recorders and the logs that they write.
#![expect(clippy::unwrap_used, reason = "tests")]

mod qlog;
mod run;
mod told;
