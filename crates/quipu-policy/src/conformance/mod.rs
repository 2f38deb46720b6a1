//! A mock engine, and what every policy must stand.
//!
//! - [`World`] is all that a [`View`](crate::View) shows, to be set up by hand: what unit tests of
//!   policies need. [`FirstCome`] is a stream policy for tests of the other layers.
//! - [`Script`] is what application, peer and network do; other engines can follow it too.
//! - [`MockEngine`] knows [`Joint`](crate::Joint) only and lives the life of a decision to the
//!   letter, over naive bookkeeping.
//! - [`check`] runs a script on a policy and reports every breach of the seam's rules; [`stands`]
//!   runs many random ones.
//!
//! Not here: what a policy should decide. That is for the policy's own tests.

mod audit;
mod engine;
mod first_come;
mod run;
mod script;
mod streams;
mod trial;
mod world;

pub use audit::Audit;
pub use engine::{Manner, MockEngine, Report, Subject};
pub use first_come::FirstCome;
pub use run::{check, run};
pub use script::{Script, Step};
pub use streams::Streams;
pub use trial::{Verdict, stands};
pub use world::{Flight, Flights, World};
