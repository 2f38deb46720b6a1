//! How long servers thought, from recorded waits.
//!
//! A recorded wait is one round trip and the server's thinking. The recording's round trip to a
//! host is the shortest connection set-up without TLS that it shows for this host (with QUIC, the
//! whole handshake is one), but no longer than the shortest wait; without a set-up, the shortest
//! wait itself.

use std::collections::BTreeMap;

use quipu_base::Duration;

use super::discovery::MAX_DELAY;
use super::object::host_of;
use super::select::{Draft, millis};

/// Recorded round trips per host.
pub(super) struct RoundTrips<'a>(BTreeMap<&'a str, HostTimes>);

#[derive(Default)]
struct HostTimes {
    shortest_setup: Option<Duration>,
    shortest_wait: Option<Duration>,
}

impl<'a> RoundTrips<'a> {
    pub(super) fn new(drafts: &[Draft<'a>]) -> RoundTrips<'a> {
        let mut hosts: BTreeMap<&str, HostTimes> = BTreeMap::new();
        for draft in drafts {
            let times = hosts.entry(host_of(draft.url)).or_default();
            let timings = &draft.entry.timings;
            shorten(&mut times.shortest_wait, millis(timings.wait));
            let (connect, tls) = (millis(timings.connect), millis(timings.ssl));
            let transport = connect.saturating_sub(tls);
            // Within half a millisecond, both started and ended together: that is QUIC.
            let quic = transport < Duration::from_micros(500) && !tls.is_zero();
            shorten(&mut times.shortest_setup, if quic { tls } else { transport });
        }
        RoundTrips(hosts)
    }

    /// Think time of a draft; zero where no wait was recorded.
    pub(super) fn think_time(&self, draft: &Draft<'_>) -> Duration {
        let round_trip = self.0.get(host_of(draft.url)).and_then(|times| {
            let wait = times.shortest_wait?;
            Some(times.shortest_setup.map_or(wait, |setup| setup.min(wait)))
        });
        let wait = millis(draft.entry.timings.wait);
        wait.saturating_sub(round_trip.unwrap_or(Duration::ZERO)).min(MAX_DELAY)
    }
}

/// Zero means that nothing was measured.
fn shorten(shortest: &mut Option<Duration>, measured: Duration) {
    if !measured.is_zero() {
        *shortest = Some(shortest.map_or(measured, |known| known.min(measured)));
    }
}
