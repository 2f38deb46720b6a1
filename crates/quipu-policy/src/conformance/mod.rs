//! A mock engine, and what every policy must stand.
//!
//! - [`World`] is all that a [`View`](crate::View) shows, to be set up by hand: what unit tests of
//!   policies need.

mod first_come;
mod streams;
mod world;

pub use first_come::FirstCome;
pub use streams::Streams;
pub use world::{Flight, Flights, World};
