//! What keeps a connection open.

use std::sync::Arc;

use quipu_quic::ConnectionHandle;

use crate::state::Shared;

/// A connection, which closes when the last one that shares this drops it: clones and streams.
pub(crate) struct Holder {
    pub(crate) shared: Arc<Shared>,
    pub(crate) handle: ConnectionHandle,
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.shared.forget_connection(self.handle);
    }
}
