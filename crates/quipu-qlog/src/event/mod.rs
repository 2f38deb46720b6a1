//! Events as records, a file for each kind of them.

pub(crate) mod connection;
pub(crate) mod packet;
pub(crate) mod path;
pub(crate) mod scheduler;
