//! The laboratory as a whole. One program, because linking each file into a program of its own takes longer than the
//! tests; `cargo test -p quipu-lab --test lab bounds` runs those of one file.
#![expect(clippy::unwrap_used, reason = "tests")]

mod alone;
mod bounds;
mod byte_stream;
mod congestion;
mod detail;
mod directions;
mod everything;
mod host_costs;
mod hosts;
mod invariants;
mod loads;
mod logs;
mod outside;
mod priorities;
mod push;
mod queueing;
mod queues;
mod raw;
mod recorded_links;
mod result_bytes;
mod scenario_schema;
