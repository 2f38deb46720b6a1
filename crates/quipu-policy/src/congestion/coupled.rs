//! Controllers that couple the windows of all paths: each path takes a share of Reno's increase.

use quipu_base::{Bytes, Duration};

use super::reno::RenoWindow;
use super::slow_start::SlowStartExit;
use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

/// What a path published, as numbers that can be divided by. Windows are in bytes, round-trip times
/// in nanoseconds; no formula here depends on the units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Congestion window, at least 1.
    pub(super) cwnd: f64,
    /// Smoothed round-trip time, at least 1.
    pub(super) rtt: f64,
    /// Larger of the bytes since the last loss and between the last two.
    pub(super) between_losses: f64,
}

impl Flow {
    fn new(cwnd: Bytes, srtt: Duration, between_losses: Option<Bytes>) -> Self {
        Flow {
            cwnd: cwnd.0.max(1) as f64,
            rtt: srtt.as_nanos().max(1) as f64,
            between_losses: between_losses.unwrap_or_default().0 as f64,
        }
    }

    /// Window over round-trip time.
    pub(super) fn rate(&self) -> f64 {
        self.cwnd / self.rtt
    }
}

/// The paths that are coupled: those with a round-trip time. The reader's is always one of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows<'a> {
    /// The reader's.
    pub(super) own: Flow,
    peers: Peers<'a>,
}

impl Flows<'_> {
    /// All of them, the reader's first.
    pub(super) fn iter(&self) -> impl Iterator<Item = Flow> {
        let others = self.peers.all.iter().filter(|(key, _)| *key != self.peers.own);
        let flow = |(_, published): &(_, Published)| {
            Some(Flow::new(published.cwnd, published.srtt?, published.between_losses))
        };
        std::iter::once(self.own).chain(others.filter_map(flow))
    }

    /// The rates added up; above 0.
    pub(super) fn total_rate(&self) -> f64 {
        self.iter().map(|flow| flow.rate()).sum()
    }

    /// The greatest rate; above 0.
    pub(super) fn greatest_rate(&self) -> f64 {
        self.iter().fold(0.0, |greatest, flow| flow.rate().max(greatest))
    }
}

/// How a path is coupled to the others. All is asked for the path that was acknowledged or that
/// lost; slow start, recovery period and minimum are those of [`NewReno`](super::NewReno).
pub(crate) trait Coupling: Default + Send {
    /// The share of Reno's increase in avoidance (one datagram per window acknowledged); finite.
    fn share(&self, flows: &Flows<'_>) -> f64;

    /// What a congestion event takes of the window, 0 to 1, where uncoupled it takes `plain`.
    fn decrease(&self, _flows: &Flows<'_>, plain: f64) -> f64 {
        plain
    }

    /// Bytes were acknowledged.
    fn on_acked(&mut self, _bytes: Bytes) {}

    /// A congestion event reduced the window.
    fn on_reduced(&mut self) {}

    /// See [`Published::between_losses`].
    fn between_losses(&self) -> Option<Bytes> {
        None
    }
}

/// The controller of one path, coupled by `C` to the other paths by what they published. While the
/// path has no round-trip time it is NewReno.
#[derive(Clone, Debug)]
pub(crate) struct Coupled<C> {
    window: RenoWindow,
    beta: f64,
    srtt: Option<Duration>,
    coupling: C,
}

impl<C: Coupling> Coupled<C> {
    /// A controller with a window of `initial_packets` datagrams of `datagram_size` bytes, whose slow
    /// start ends by `exit`, and of whose window, uncoupled, a congestion event leaves the part `beta`.
    pub(crate) fn new(
        initial_packets: u32,
        datagram_size: Bytes,
        exit: SlowStartExit,
        beta: f64,
    ) -> Self {
        Coupled {
            window: RenoWindow::new(initial_packets, datagram_size, exit),
            beta,
            srtt: None,
            coupling: C::default(),
        }
    }

    fn flows<'a>(&self, peers: &Peers<'a>) -> Option<Flows<'a>> {
        let own = Flow::new(self.window.cwnd(), self.srtt?, self.coupling.between_losses());
        Some(Flows { own, peers: *peers })
    }

    /// What a congestion event leaves of the window.
    fn kept(&self, peers: &Peers<'_>) -> Bytes {
        let cwnd = self.window.cwnd();
        let plain = 1.0 - self.beta;
        let coupled = |flows: Flows<'_>| self.coupling.decrease(&flows, plain).clamp(0.0, 1.0);
        let decrease = self.flows(peers).map_or(plain, coupled);
        // Conversions from floating point saturate.
        let taken =
            if decrease == 0.5 { cwnd.0.div_ceil(2) } else { (cwnd.0 as f64 * decrease) as u64 };
        cwnd.saturating_sub(Bytes(taken))
    }
}

impl<C: Coupling> Controller for Coupled<C> {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        self.window.on_sent(sent);
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>) {
        self.srtt = acked.srtt;
        self.coupling.on_acked(acked.packets.iter().map(|packet| packet.bytes).sum());
        let share = self.flows(peers).map_or(1.0, |flows| self.coupling.share(&flows));
        self.window.on_acked(acked, |window, bytes| window.grow_in_avoidance(bytes, share));
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>) {
        let kept = self.kept(peers);
        if self.window.on_lost(lost, kept) {
            self.coupling.on_reduced();
        }
    }

    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>) {
        let kept = self.kept(peers);
        if self.window.on_change(change, kept) {
            self.coupling.on_reduced();
        }
    }

    fn published(&self) -> Published {
        let between_losses = self.coupling.between_losses();
        Published { between_losses, ..self.window.published() }
    }
}

#[cfg(test)]
mod tests;
