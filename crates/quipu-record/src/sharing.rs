//! What the runs say of flows, links and cross traffic: who got how much, and how fairly.

use serde::Serialize;

use crate::stats::median;

/// A quantity over the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The middle run.
    pub median: u64,
    /// The run in which it was least.
    pub least: u64,
    /// The run in which it was most.
    pub most: u64,
}

/// How much of the sender's bytes went over a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathShare {
    /// The path.
    pub path: u32,
    /// What the network calls it.
    pub name: String,
    /// Share of all bytes of all runs, in thousandths.
    pub per_mille: u64,
}

/// All traffic of one policy over one network, beside one page or without any.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sharing {
    /// The page; empty if there is none.
    pub page: String,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// Runs that ended well.
    pub runs: usize,
    /// The flows of the scenario that have a path with this policy, in its order.
    pub flows: Vec<FlowSummary>,
    /// Jain's index of the flows down that lived, in millionths; `null` if there are not two.
    pub fairness_down: Option<Spread>,
    /// The same of the flows up.
    pub fairness_up: Option<Spread>,
    /// Down and up of each path that has links of its own, and is there with this policy.
    pub links: Vec<LinkSummary>,
    /// The cross traffic of the scenario that has a path with this policy, in its order.
    pub cross: Vec<CrossSummary>,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlowSummary {
    /// Its name.
    pub name: String,
    /// Which way it goes.
    pub direction: String,
    /// Its congestion controller.
    pub congestion: String,
    /// Bits per second that its receiver read, while it lived.
    pub goodput: Spread,
    /// Share of the bytes of all flows of its direction, in thousandths.
    pub share_per_mille: Spread,
    /// Mean round-trip time in nanoseconds; `null` if none was measured.
    pub rtt_mean_ns: Option<Spread>,
    /// What 95 % of the round-trip times do not exceed.
    pub rtt_p95_ns: Option<Spread>,
    /// Packets that counted as lost, in millionths of those sent.
    pub lost_per_million: Spread,
    /// How much of what came over all runs came on which of its paths.
    pub paths: Vec<PathShare>,
}

/// One direction of one path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkSummary {
    /// What the network calls the path.
    pub name: String,
    /// Which way.
    pub direction: String,
    /// Share of its capacity that was used, in thousandths.
    pub utilisation_per_mille: Spread,
    /// Datagrams that did not arrive.
    pub dropped: Spread,
}

/// One sender of cross traffic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CrossSummary {
    /// Its name.
    pub name: String,
    /// How its datagrams follow one another.
    pub kind: String,
    /// Which way it goes.
    pub direction: String,
    /// Bits per second that it sent, headers included, over the whole window.
    pub sent: Spread,
    /// Bits per second that arrived.
    pub received: Spread,
}

impl Spread {
    /// Of values, one for each run; `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Option<Spread> {
        let values: Vec<u64> = values.into_iter().collect();
        Some(Spread {
            median: median(&values)?,
            least: values.iter().copied().min()?,
            most: values.iter().copied().max()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_tells_the_middle_and_the_ends() {
        assert_eq!(Spread::of([3, 1, 2]), Some(Spread { median: 2, least: 1, most: 3 }));
        assert_eq!(Spread::of([]), None);
    }
}
