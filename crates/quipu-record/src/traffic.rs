//! What one run measured of flows, links and cross traffic.

use quipu_base::{Bytes, Duration, Instant, Rate};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which way data goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// To the client.
    #[default]
    Down,
    /// To the server.
    Up,
}

impl Direction {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Down => "down",
            Direction::Up => "up",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Flows, links and cross traffic of one run, between two instants.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRecord {
    /// From when on it was measured.
    pub from: Instant,
    /// Until when: the end of the window or of the run, whichever was first.
    pub until: Instant,
    /// The scenario's flows that have a path in the run, in its order.
    pub flows: Vec<FlowRecord>,
    /// Down and up of each path of the run that has links of its own, in the order of the network.
    pub links: Vec<LinkRecord>,
    /// The scenario's cross traffic that has a path in the run, in its order.
    pub cross: Vec<CrossRecord>,
}

/// One flow of one run. Amounts are those of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Position in the scenario.
    pub flow: u32,
    /// When its client opened the connection.
    pub started_at: Instant,
    /// When its last byte had come or it was stopped; `None` if it went on to the end of the run.
    pub ended_at: Option<Instant>,
    /// How much of the window it lived.
    pub lived: Duration,
    /// Bytes that its receiver read, in order on each stream.
    pub bytes: Bytes,
    /// Mean of the round-trip times that its sender measured; `None` if it measured none.
    pub rtt_mean: Option<Duration>,
    /// What 95 % of them do not exceed, to 1.6 %.
    pub rtt_p95: Option<Duration>,
    /// Packets that its sender sent.
    pub packets_sent: u64,
    /// Packets that its sender counted as lost.
    pub packets_lost: u64,
    /// Bytes of those.
    pub bytes_lost: Bytes,
    /// What came on each path that it has used.
    pub paths: Vec<FlowPathRecord>,
}

/// One path of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowPathRecord {
    /// Position in the network.
    pub path: u32,
    /// UDP payload that the receiver got on it.
    pub bytes: Bytes,
}

/// One direction of one path of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Position in the network of the path whose link it is.
    pub path: u32,
    /// Which way.
    pub direction: Direction,
    /// Bytes that left it for the other end, headers included.
    pub delivered: Bytes,
    /// Bytes that its rate allowed.
    pub capacity: Bytes,
    /// Datagrams that did not arrive.
    pub dropped: u64,
}

/// One sender of cross traffic. Bytes are counted as links count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossRecord {
    /// Position in the scenario.
    pub sender: u32,
    /// Bytes that it sent.
    pub sent: Bytes,
    /// Bytes that arrived.
    pub received: Bytes,
}

impl TrafficRecord {
    /// The flow at position `flow` of the scenario, if it has a path in the run.
    pub fn flow(&self, flow: usize) -> Option<&FlowRecord> {
        self.flows.iter().find(|record| record.flow as usize == flow)
    }

    /// The sender of cross traffic at position `sender` of the scenario, if its path is in the run.
    pub fn cross(&self, sender: usize) -> Option<&CrossRecord> {
        self.cross.iter().find(|record| record.sender as usize == sender)
    }

    /// What the links of the path at position `path` of the network did in one direction.
    pub fn link(&self, path: usize, direction: Direction) -> Option<&LinkRecord> {
        let mut links = self.links.iter();
        links.find(|link| link.path as usize == path && link.direction == direction)
    }
}

impl FlowRecord {
    /// Bytes over the time that it lived, zero if it lived none.
    pub fn goodput(&self) -> Rate {
        Rate::from_bytes_over(self.bytes, self.lived).unwrap_or(Rate::ZERO)
    }
}

impl LinkRecord {
    /// Share of the capacity that was used, in thousandths; zero without time.
    pub fn utilisation(&self) -> u64 {
        per_mille(self.delivered, self.capacity)
    }
}

/// `part` of `whole` in thousandths, rounded; zero of nothing.
pub fn per_mille(part: Bytes, whole: Bytes) -> u64 {
    let whole = u128::from(whole.0);
    let share = (u128::from(part.0) * 1_000 + whole / 2).checked_div(whole).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}
