//! What a server of Quipu answers with, whatever the version of HTTP: services of `tower`, which the listeners
//! of each version call.
//!
//! Start with [`files::Files`], the files of a folder, [`Recorded`], which logs and counts its requests, and
//! [`Certificates`], what the server shows.

pub mod access;
pub mod body;
mod certificates;
mod client;
mod clock;
pub mod files;
pub mod metrics;

pub use access::Recorded;
pub use body::Body;
pub use certificates::{Certificates, LOOK_AFTER, Reloaded};
pub use client::Client;
pub use metrics::Metrics;
