//! A close that waits until the peer has everything.

use quipu_base::{Duration, Instant};

use super::Connection;
use super::lifecycle::Farewell;

impl Connection {
    /// Closes the connection as [`Connection::close`] does, once the peer has acknowledged all that was
    /// written to streams and all ends of streams, resets included, and all datagrams left; at the
    /// latest after `limit`.
    /// Until then everything goes on, except that no stream can be opened any more; the peer may open
    /// streams and send. Streams are not ended by this: the application ends those that it means to.
    ///
    /// A later call replaces the limit, the code and the reason.
    pub fn close_when_delivered(
        &mut self,
        now: Instant,
        limit: Duration,
        code: u64,
        reason: &[u8],
    ) {
        let until = now + limit;
        self.lifecycle.bid_farewell(Farewell { until, code, reason: reason.to_vec() });
        self.rest.end();
    }

    /// Closes the connection if a farewell waited and nothing is left to wait for.
    pub(super) fn close_if_delivered(&mut self, now: Instant) {
        let Some(farewell) = self.lifecycle.farewell() else { return };
        let connected = self.lifecycle.is_established();
        let delivered = self.shared.streams.is_all_delivered() && self.datagrams.is_idle();
        if farewell.until <= now || connected && delivered {
            let Farewell { code, reason, .. } = farewell.clone();
            self.close(now, code, &reason);
        }
    }
}
