//! BBR, version 1: pace and window follow a model of the path.

use quipu_base::{Bytes, Random};

use super::{AckedInfo, Controller, LostInfo, PathChange, Peers, Published, SentInfo};

mod machine;
mod model;
mod pace;
mod window;

use machine::Machine;
use model::Model;
use pace::Pace;
pub(crate) use pace::Quantum;
use window::{Goal, Window};

/// Gain with which startup doubles what it sends each round trip: 2 / ln 2.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.2.1>
pub(crate) const STARTUP_GAIN: f64 = 2.0 / std::f64::consts::LN_2;

/// BBR as its first draft states it and the ns-3 module for QUIC does it, with these choices:
///
/// - The greatest bandwidth of ten rounds is exact; the module and the Linux kernel keep the three
///   best samples.
/// - Recovery lasts until something is acknowledged that was sent after the last loss was found: all
///   losses can have been repaired then. Its first round trip conserves packets (the module's code
///   does so for one acknowledgement).
/// - The window is never below four datagrams, in recovery too, and does not grow while it is not
///   what limits sending.
/// - Persistent congestion is what the draft calls a retransmission timeout. A probe timeout changes
///   nothing.
/// - ECN marks change nothing. (The ns-3 paper says that BBR can make full use of them; its code
///   and the draft do not.)
/// - As acknowledgements return another way the least round-trip time is replaced by the next
///   sample; bandwidth stays.
/// - Rates measured while the round-trip time is probed count as limited by the application, as in
///   the draft; the controller tells them apart itself.
///
/// Source: `draft-cardwell-iccrg-bbr-congestion-control-00`; Paro et al., "Extending the ns-3 QUIC
/// Module" (2020), section 3; confidence high.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00>
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    model: Model,
    machine: Machine,
    window: Window,
    pace: Pace,
    quantum: Quantum,
    /// Nothing was acknowledged yet.
    fresh: bool,
}

/// How a [`Bbr`] is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Window to begin with, in datagrams.
    pub(crate) initial_packets: u32,
    /// Gain of pace and window in startup; above 1.
    pub(crate) startup_gain: f64,
    pub(crate) quantum: Quantum,
    /// The gain cycle may begin with 0.75.
    pub(crate) drain_first: bool,
}

impl Bbr {
    pub(crate) fn new(options: Options, datagram_size: Bytes, random: Random) -> Self {
        let window = Window::new(options.initial_packets, datagram_size);
        let mut bbr = Bbr {
            model: Model::new(window.initial()),
            machine: Machine::new(options.startup_gain, options.drain_first, random),
            pace: Pace::new(window.initial(), options.startup_gain),
            window,
            quantum: options.quantum,
            fresh: true,
        };
        bbr.update_quantum();
        bbr
    }

    fn update_quantum(&mut self) {
        let quantum = self.quantum.bytes(self.pace.rate(), self.window.datagram_size());
        self.model.set_quantum(quantum);
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &SentInfo, _peers: &Peers<'_>) {
        if self.machine.on_sent(sent)
            && let Some(bandwidth) = self.model.bandwidth()
        {
            self.pace.set(bandwidth);
        }
    }

    fn on_acked(&mut self, acked: &AckedInfo<'_>, _peers: &Peers<'_>) {
        self.fresh = false;
        self.machine.on_acked(acked, &mut self.model, &mut self.window);
        let found = self.model.pipe_is_full();
        self.pace.on_acked(
            acked.srtt,
            self.window.initial(),
            self.model.bandwidth(),
            self.machine.pacing_gain(),
            found,
        );
        self.update_quantum();
        let goal = Goal {
            target: self.model.in_flight(self.machine.window_gain()),
            found,
            probes_rtt: self.machine.probes_rtt(),
        };
        self.window.on_acked(acked, goal);
    }

    fn on_lost(&mut self, lost: &LostInfo<'_>, _peers: &Peers<'_>) {
        self.window.on_lost(lost);
    }

    fn on_change(&mut self, change: PathChange, _peers: &Peers<'_>) {
        match change {
            PathChange::ReturnRoute => self.model.void_min_rtt(),
            PathChange::DatagramSize(size) => {
                self.window.set_datagram_size(size, self.fresh);
                self.model.set_initial(self.window.initial());
                self.update_quantum();
            }
            PathChange::PathMtu(size) => {
                self.window.set_datagram_size(size, false);
                self.update_quantum();
            }
            // Samples tell what the application limited.
            PathChange::EcnCongestion { .. } | PathChange::Pto | PathChange::ApplicationLimited => {
            }
            // The window returns to what it was when recovery ends.
            PathChange::SpuriousLoss { .. } => {}
        }
    }

    fn published(&self) -> Published {
        Published {
            cwnd: self.window.cwnd(),
            pacing_rate: Some(self.pace.rate()),
            bandwidth: self.model.bandwidth(),
            min_rtt: self.model.min_rtt(),
            state: self.machine.name(),
            ..Published::default()
        }
    }
}

#[cfg(test)]
mod tests;
