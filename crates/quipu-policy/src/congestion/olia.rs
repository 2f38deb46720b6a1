//! Opportunistic linked increases.

use quipu_base::Bytes;

use super::coupled::{Coupling, Flow, Flows};

/// `olia`: like [`Lia`](super::lia::Lia), and moves growth from the paths of largest window to the
/// best ones whose window is smaller.
///
/// Of n paths let `best` be those of greatest `l_k/rtt_k²`, with `l_k` the bytes since the last loss
/// or between the last two, whichever is more; `M` those of largest window; `B\M` what is best but
/// not largest. The increase per acknowledged packet is
/// `(cwnd_i/rtt_i²)/(Σ cwnd_k/rtt_k)² + ε_i/cwnd_i`, with `ε_i = 1/(n·|B\M|)` in `B\M`; `−1/(n·|M|)`
/// in `M`, unless `B\M` is empty; else 0. As a share of Reno's `1/cwnd_i` that is
/// `(x_i/Σ x_k)² + ε_i`, `x = cwnd/rtt`. It may be negative.
///
/// The paper ranks by `l²/rtt`; this is the rank of Linux and of mp-quic. A window that shrinks
/// takes its slow-start threshold along, where Linux would go back to slow start: our choice.
///
/// Source: Khalili et al., "MPTCP is not Pareto-optimal", CoNEXT 2012; Linux `mptcp_olia.c`;
/// confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Olia {
    /// Bytes acknowledged since the last loss.
    since_loss: Bytes,
    /// Bytes acknowledged between the last two losses.
    between: Bytes,
}

fn quality(flow: &Flow) -> f64 {
    flow.between_losses / flow.rtt / flow.rtt
}

/// ε of the reader's path.
fn epsilon(flows: &Flows<'_>) -> f64 {
    let largest = flows.iter().fold(0.0, |largest, flow| flow.cwnd.max(largest));
    let best = flows.iter().fold(0.0, |best, flow| quality(&flow).max(best));
    let is_best_not_largest = |flow: &Flow| flow.cwnd < largest && quality(flow) >= best;
    let count = |test: &dyn Fn(&Flow) -> bool| flows.iter().filter(test).count() as f64;
    let small = count(&is_best_not_largest);
    let paths = count(&|_| true);
    if small == 0.0 {
        0.0
    } else if is_best_not_largest(&flows.own) {
        1.0 / (paths * small)
    } else if flows.own.cwnd >= largest {
        -1.0 / (paths * count(&|flow| flow.cwnd >= largest))
    } else {
        0.0
    }
}

impl Coupling for Olia {
    fn share(&self, flows: &Flows<'_>) -> f64 {
        let part = flows.own.rate() / flows.total_rate();
        part * part + epsilon(flows)
    }

    fn on_acked(&mut self, bytes: Bytes) {
        self.since_loss += bytes;
    }

    fn on_reduced(&mut self) {
        // Two losses with nothing between them are one, as in Linux.
        if !self.since_loss.is_zero() {
            self.between = std::mem::take(&mut self.since_loss);
        }
    }

    fn between_losses(&self) -> Option<Bytes> {
        Some(self.since_loss.max(self.between))
    }
}
