//! What a connection is doing at an instant, for time series. Nothing here changes anything.

use quipu_base::{Bytes, Duration, PathId, Rate};

use super::Connection;
use crate::counters::PathCounters;
use crate::route::Route;

/// A path at an instant, as its end knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSample {
    /// Identifier of the path.
    pub path: PathId,
    /// Its addresses: [`ConnectionEvent::PathMigrated`](super::ConnectionEvent::PathMigrated) tells
    /// of others.
    pub route: Route,
    /// The peer proved that it receives there. <https://www.rfc-editor.org/rfc/rfc9000#section-8>
    pub is_proved: bool,
    /// UDP payload of a full datagram, in bytes.
    pub datagram_size: u16,
    /// What the congestion controller calls its state, such as `slow start`.
    pub state: &'static str,
    /// Congestion window, in bytes of UDP payload.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while it is infinite, or if the controller has none.
    pub ssthresh: Option<Bytes>,
    /// UDP payload in flight, as RFC 9002 counts it.
    pub in_flight: Bytes,
    /// The pace at which packets leave once a burst is spent; `None`: they leave as the window
    /// allows.
    pub pacing_rate: Option<Rate>,
    /// The last sample of the delivery rate, application-limited or not; `None` before the first.
    pub delivery_rate: Option<Rate>,
    /// The controller's own estimate of the bandwidth, if it makes one.
    pub bandwidth: Option<Rate>,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time; before the first sample half of the initial one.
    pub rttvar: Duration,
    /// The last sample of the round-trip time.
    pub latest_rtt: Option<Duration>,
    /// Least round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// What went over the path so far.
    pub counters: PathCounters,
}

impl Connection {
    /// The paths that live, in order of path identifier, each as it is now.
    pub fn path_samples(&self) -> impl Iterator<Item = PathSample> {
        let paths = &self.shared.paths;
        paths.published.iter().filter_map(|(key, published)| {
            let view = paths.views.get(*key)?;
            let data = paths.get(key.slot)?;
            Some(PathSample {
                path: key.id,
                route: data.addresses.route(),
                is_proved: data.addresses.active().is_proved,
                datagram_size: data.mtu.size(),
                state: published.state,
                cwnd: view.cwnd,
                ssthresh: view.ssthresh,
                in_flight: view.in_flight,
                pacing_rate: data.recovery.pacing_rate(),
                delivery_rate: data.recovery.rate_sample().map(|sample| sample.rate),
                bandwidth: published.bandwidth,
                srtt: view.srtt,
                rttvar: view.rttvar,
                latest_rtt: view.latest_rtt,
                min_rtt: view.min_rtt,
                counters: data.counters,
            })
        })
    }

    /// The counters of all paths added up, those of paths that are gone included.
    pub fn totals(&self) -> PathCounters {
        let mut totals = self.plan.past().total();
        self.shared.paths.iter().for_each(|data| totals += data.counters);
        totals
    }
}
