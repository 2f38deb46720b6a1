//! What a server of Quipu answers with, whatever the version of HTTP: services of `tower`, which the listeners
//! of each version call.
//!
//! Start with [`files::Files`], the files of a folder.

pub mod body;
mod clock;
pub mod files;

pub use body::Body;
