//! Making a controller for each path.

use std::fmt;
use std::sync::Arc;

use quipu_base::Bytes;

use super::Controller;
use crate::key::PathKey;

type Make = dyn Fn(PathKey, Bytes) -> Box<dyn Controller> + Send + Sync;

/// Makes the controllers of a connection, one per path.
#[derive(Clone)]
pub struct ControllerFactory(Arc<Make>);

impl ControllerFactory {
    /// A factory of what `make` gives for a path and the largest datagram on it.
    pub fn new(
        make: impl Fn(PathKey, Bytes) -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Self {
        ControllerFactory(Arc::new(make))
    }

    /// A controller for `path`, whose datagrams have at most `datagram_size` bytes.
    pub fn make(&self, path: PathKey, datagram_size: Bytes) -> Box<dyn Controller> {
        (self.0)(path, datagram_size)
    }
}

impl fmt::Debug for ControllerFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerFactory")
    }
}
