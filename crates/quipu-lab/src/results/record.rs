//! What one run measured: integers in nanoseconds, bytes and counts.

use std::fmt;

use quipu_base::{Bytes, Duration, Instant};

use super::TrafficRecord;

/// Everything that the load of one page measured: a run, or one page of its session. Counts are those
/// since the end of the page before. Without a page only the run's end and its traffic are there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunRecord {
    /// Number of the page in the session, from 0; 0 unless a session has several.
    pub visit: u32,
    /// The end that sends what is loaded.
    pub sender: End,
    /// From the start of the connection to the handshake's end.
    pub connect_time: Duration,
    /// From the first request to the last byte of the last object that the load waits for.
    pub page_time: Duration,
    /// Mean over the objects of the time from the page's start to their completion.
    pub object_index: Duration,
    /// Integral over time of the share of body bytes that is still missing.
    pub byte_index: Duration,
    /// Completion of the last of the document, blocking style sheets and blocking scripts.
    pub critical_time: Duration,
    /// Times that the sender changed the path from one packet to the next.
    pub path_switches: u64,
    /// Answers of the sender's policy that the engine refused. Zero for a sound policy.
    pub refused: u64,
    /// Decisions that the engine took for the sender's policy. Zero for a sound policy.
    pub overridden: u64,
    /// When the run ended.
    pub ended_at: Instant,
    /// The page's objects, in order of their ids.
    pub objects: Vec<ObjectRecord>,
    /// Paths of the server, then of the client, each in order of their ids.
    pub paths: Vec<PathRecord>,
    /// Flows, links and cross traffic; empty but for the links if the scenario has none.
    pub traffic: TrafficRecord,
    /// Raw streams that carried something, in order of their numbers; none with HTTP.
    pub streams: Vec<StreamRecord>,
}

/// One object of one run. Instants are those of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRecord {
    /// Position in the page.
    pub object: u32,
    /// Bytes of the body.
    pub body: Bytes,
    /// Whether the page's time waits for it.
    pub held: bool,
    /// Number of the raw stream that carried it; `None` with HTTP.
    pub stream: Option<u32>,
    /// When it was asked for.
    pub requested_at: Instant,
    /// When the first byte of its body, or the head of a body without bytes, had arrived.
    pub first_byte_at: Instant,
    /// When it was complete.
    pub completed_at: Instant,
    /// From the start of the page to its completion.
    pub since_page_start: Duration,
    /// From its request to its completion.
    pub since_request: Duration,
}

/// One raw stream of one run. Instants are those of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamRecord {
    /// Number in the scenario, from 0.
    pub stream: u32,
    /// From writing to deadline, if it has one of its own.
    pub latency: Option<Duration>,
    /// Objects written to it.
    pub objects: u64,
    /// Their bytes.
    pub bytes: Bytes,
    /// When its first byte had arrived.
    pub first_byte_at: Instant,
    /// When its last byte had arrived, and all before.
    pub completed_at: Instant,
    /// From the start of the page to its last byte.
    pub since_page_start: Duration,
}

/// One path of one run, as one end saw what it sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRecord {
    /// Which end sent.
    pub end: End,
    /// Identifier of the path.
    pub path: u32,
    /// Packets sent.
    pub packets_sent: u64,
    /// Datagrams that this end received on the path.
    pub datagrams_received: u64,
    /// UDP payload sent.
    pub bytes_sent: Bytes,
    /// Stream bytes sent again because they counted as lost.
    pub bytes_resent: Bytes,
    /// Stream bytes sent as copies of bytes still in flight elsewhere.
    pub bytes_copies: Bytes,
    /// Bytes of packets that counted as lost.
    pub bytes_lost: Bytes,
    /// Bytes of packets that counted as lost and arrived nevertheless.
    pub bytes_spurious: Bytes,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// The end that serves the page.
    #[default]
    Server,
    /// The end that asks for it.
    Client,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            End::Server => "server",
            End::Client => "client",
        })
    }
}

impl PathRecord {
    /// What was counted since `earlier`.
    fn since(self, earlier: &PathRecord) -> PathRecord {
        PathRecord {
            end: self.end,
            path: self.path,
            packets_sent: self.packets_sent.saturating_sub(earlier.packets_sent),
            datagrams_received: self.datagrams_received.saturating_sub(earlier.datagrams_received),
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            bytes_resent: self.bytes_resent.saturating_sub(earlier.bytes_resent),
            bytes_copies: self.bytes_copies.saturating_sub(earlier.bytes_copies),
            bytes_lost: self.bytes_lost.saturating_sub(earlier.bytes_lost),
            bytes_spurious: self.bytes_spurious.saturating_sub(earlier.bytes_spurious),
        }
    }
}

impl RunRecord {
    /// The same with everything that is counted from the start of the run counted from `earlier`, a
    /// record of the same run.
    pub(crate) fn since(&self, earlier: &RunRecord) -> RunRecord {
        let path = |path: &PathRecord| {
            let mut before = earlier.paths.iter();
            let before = before.find(|other| (other.end, other.path) == (path.end, path.path));
            before.map_or(*path, |before| path.since(before))
        };
        RunRecord {
            path_switches: self.path_switches.saturating_sub(earlier.path_switches),
            refused: self.refused.saturating_sub(earlier.refused),
            overridden: self.overridden.saturating_sub(earlier.overridden),
            paths: self.paths.iter().map(path).collect(),
            ..self.clone()
        }
    }

    /// The paths as `end` sent on them.
    pub fn paths_of(&self, end: End) -> impl Iterator<Item = &PathRecord> {
        self.paths.iter().filter(move |path| path.end == end)
    }

    /// Sum over the sender's paths.
    pub fn sender_total(&self, amount: impl Fn(&PathRecord) -> Bytes) -> Bytes {
        self.paths_of(self.sender).map(amount).sum()
    }

    /// Packets that the sender sent.
    pub fn sender_packets(&self) -> u64 {
        self.paths_of(self.sender).map(|path| path.packets_sent).sum()
    }

    /// Path stability index: packets sent per change of path; all packets if there was none.
    pub fn path_stability(&self) -> u64 {
        self.sender_packets() / self.path_switches.max(1)
    }
}
