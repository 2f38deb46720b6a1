//! Balanced linked adaptation.

use super::coupled::{Coupling, Flows};

/// `balia`: between friendliness to others and quick response; a path far slower than the fastest
/// one grows more and gives up more than in [`Lia`](super::lia::Lia).
///
/// With `x_k = cwnd_k/rtt_k` and `α_i = max_k x_k / x_i`, the increase per acknowledged packet is
/// `x_i/(rtt_i·(Σ x_k)²)·(1 + α_i)/2·(4 + α_i)/5`, here as a share of Reno's `1/cwnd_i`:
/// `(x_i + max x)·(4·x_i + max x)/(10·(Σ x_k)²)`, which is at most 1. A congestion event takes
/// `cwnd_i/2·min(α_i, 1.5)`. Linux rounds α down for the decrease; here it is a fraction.
///
/// Source: Peng, Walid, Hwang, Low, "Multipath TCP: Analysis, Design, and Implementation", IEEE/ACM
/// Transactions on Networking 2016; Linux `mptcp_balia.c`; confidence high.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balia;

impl Coupling for Balia {
    fn share(&self, flows: &Flows<'_>) -> f64 {
        let total = flows.total_rate();
        let own = flows.own.rate() / total;
        let greatest = flows.greatest_rate() / total;
        (own + greatest) * (4.0 * own + greatest) / 10.0
    }

    fn decrease(&self, flows: &Flows<'_>, _plain: f64) -> f64 {
        f64::min(flows.greatest_rate() / flows.own.rate(), 1.5) / 2.0
    }
}
