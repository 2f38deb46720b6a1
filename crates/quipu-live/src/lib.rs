//! Page loads over real uplinks, measured as those of the laboratory.
//!
//! - [`load`]: what a browser would ask for, over an HTTP/3 connection, when and as urgently as it would.
//! - [`Loaded`]: the record of the load, and what the server answered unlike the recording.
//! - [`Clock`]: the time of one load.
//!
//! The page, what it waits for and its metrics are those of the laboratory
//! ([`Loading`](quipu_lab::loading::Loading)); requests, network and time are real. Start with [`load`].
//!
//! Not here: sockets, connections and certificates (`quipu-tokio`), servers (`quipu-serve`), files and tables.

mod clock;
mod error;
mod exchange;
mod head;
mod load;

pub use clock::Clock;
pub use error::LoadError;
pub use load::{Difference, Loaded, load};
