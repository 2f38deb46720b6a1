//! What every other crate of Quipu counts in: ids, virtual time, units and named random streams.
//!
//! - [`Instant`] and [`Duration`]: integer nanoseconds since the start of a run. Nothing here reads
//!   a clock.
//! - [`Bytes`], [`Rate`] and [`PerMille`]: amounts that cannot be mixed up with a bare integer.
//! - [`Seed`]: one experiment seed, from which each component derives its own random stream.
//!
//! Not here: anything about packets, streams of data or policies.

mod id;
mod seed;
mod time;
mod unit;

pub use id::{Offset, PacketNumber, PathId, Role, StreamDirection, StreamId};
pub use seed::{Random, Rng, Seed, shuffle, uniform};
pub use time::{Duration, Instant, SignedDuration};
pub use unit::{Bytes, PerMille, Rate};
