//! Page loads over real uplinks, measured as those of the laboratory.
//!
//! - [`load`]: what a browser would ask for, over a connection, when and as urgently as it would.
//! - [`warm_up`]: small objects before that, on the same connection.
//! - [`Client`]: what it is asked over; [`Http2Tree`] is HTTP/2 over QUIC with the browser's dependency tree, [`tcp`] has
//!   HTTP/1.1 and HTTP/2 over the kernel's TCP and Multipath TCP, to compare with, and [`foreign`] the traits by which other
//!   libraries are used.
//! - [`Loaded`]: the record of the load, and what the server answered unlike the recording.
//! - [`Clock`]: the time of one load.
//!
//! The page, what it waits for and its metrics are those of the laboratory
//! ([`Loading`](quipu_lab::loading::Loading)); requests, network and time are real. Start with [`load`].
//!
//! Not here: QUIC, sockets and certificates (`quipu-tokio`), servers (`quipu-serve`), files and tables.

mod body;
mod client;
mod clock;
mod error;
mod exchange;
pub mod foreign;
mod head;
mod load;
pub mod tcp;
mod tree;
mod warm_up;

pub use client::Client;
pub use clock::Clock;
pub use error::{ExchangeError, LoadError};
pub use load::{Difference, Loaded, load};
pub use tree::Http2Tree;
pub use warm_up::warm_up;
