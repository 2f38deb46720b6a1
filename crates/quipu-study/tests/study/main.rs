//! Many runs as a whole. One program, because linking each file into a program of its own takes longer than most of
//! the tests; `cargo test -p quipu-study --test study predict` runs those of one file.
#![expect(clippy::unwrap_used, reason = "tests")]

mod edited;
mod experiments;
mod gathered;
mod in_turns;
mod predict;
mod self_test;
mod settings;
