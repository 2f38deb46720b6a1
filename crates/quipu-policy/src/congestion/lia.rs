//! Linked increases.

use super::coupled::{Coupling, Flows};

/// `lia`: all paths together grow as one Reno connection on the best of them would, and none grows
/// faster than Reno.
///
/// RFC 6356 has the increase per acknowledged byte `min(alpha·mss_i/cwnd_total, mss_i/cwnd_i)` with
/// `alpha = cwnd_total·max_k(cwnd_k/rtt_k²)/(Σ cwnd_k/rtt_k)²`. As a share of Reno's
/// `mss_i/cwnd_i` that is `min(1, cwnd_i·max_k(cwnd_k/rtt_k²)/(Σ cwnd_k/rtt_k)²)`. `alpha` is
/// computed at each ACK frame, from what the other paths last published.
///
/// Source: <https://www.rfc-editor.org/rfc/rfc6356#section-3>; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lia;

impl Coupling for Lia {
    fn share(&self, flows: &Flows<'_>) -> f64 {
        let total = flows.total_rate();
        // cwnd_i·(cwnd_k/rtt_k²)/(Σ x)², as factors that stay in range: (x_k/Σ x)²·cwnd_i/cwnd_k.
        flows.iter().fold(0.0, |share: f64, flow| {
            let part = flow.rate() / total;
            share.max(part * part * (flows.own.cwnd / flow.cwnd)).min(1.0)
        })
    }
}
