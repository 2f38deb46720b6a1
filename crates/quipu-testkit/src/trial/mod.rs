//! Trials: random operations on two ends of our engine, and what must hold whatever they do.
//!
//! - [`Trial`]: paths, windows, policies, and a list of [`Op`]s. Plain data with small numbers,
//!   so that a shrunken one reads as a test.
//! - [`Trial::run`]: the ends meet in virtual time, the operations are done one after the other,
//!   the links heal, everything is read, and the connection is closed.
//! - [`Trial::of_seed`]: a random trial; [`Trial::shrunken`]: the smallest that fails as it does.
//! - [`Violation`]: the first thing that should never happen, and when it did.
//!
//! The rules are those of [`Rule`]: every byte arrives once, in order and right, unless its stream
//! was reset or stopped; the books of bytes in flight balance; windows and the anti-amplification
//! limit are kept; no policy is overridden; a deadline that was served does not stand; no end finds a fault in the other; at
//! last all is quiet, both ends say the same about why it ended, and no memory is left. An end whose peer's
//! keys somebody else uses keeps the rules too, as far as they are its own affair.

mod application;
mod clock;
mod draw;
mod ending;
mod news;
mod node;
mod op;
mod rule;
mod run;
mod shrink;
mod watch;

pub use op::{Direction, Edit, Op, PathSetup, Trial};
pub use rule::{Rule, Violation};
pub use run::Report;
pub use shrink::Broken;
