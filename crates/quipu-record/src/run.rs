//! What one run measured: integers in nanoseconds, bytes and counts.

use std::fmt;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};
use serde::{Deserialize, Serialize};

use crate::energy::RadioRecord;
use crate::traffic::TrafficRecord;

/// Everything that the load of one page measured: a run, one page of its session, or that of one of its
/// clients. Counts are sums over the connections of the client,
/// since the end of the page before. Without a page only the run's end and its traffic are there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Number of the page in the client's session, from 0; 0 unless a session has several.
    pub visit: u32,
    /// Number of the client whose load it is, from 0; 0 unless there are several.
    pub client: u32,
    /// The end that sends what is loaded.
    pub sender: End,
    /// From the start of the first connection to the handshake's end.
    pub connect_time: Duration,
    /// From the first request to the last byte of the last object that the load waits for.
    pub page_time: Duration,
    /// What thinking of servers, computing and timers take of it by themselves: the page time over an infinitely fast
    /// network. Zero for pages without any of that.
    #[serde(default)]
    pub page_floor: Duration,
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
    /// Connection by connection, paths of the server, then of the client, each in order of their ids.
    pub paths: Vec<PathRecord>,
    /// What paths with a model of energy or a price cost the client, in order of the paths.
    pub radios: Vec<RadioRecord>,
    /// Flows, links and cross traffic; empty but for the links if the scenario has none.
    pub traffic: TrafficRecord,
    /// Raw streams that carried something, in order of their numbers; none with HTTP.
    pub streams: Vec<StreamRecord>,
    /// Connections that were opened, if each origin of the page has one.
    pub connections: Vec<ConnectionRecord>,
    /// What no page time can be below.
    pub page_bound: Bounds,
    /// What no critical time can be below.
    pub critical_bound: Bounds,
}

/// One connection of one load, to the server of one origin. Instants are those of the run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// Number among those of the client, in the order of the page's first objects.
    pub connection: u32,
    /// The origin, such as `https://example.com`.
    #[serde(with = "shared_text")]
    pub origin: Arc<str>,
    /// When the client opened it.
    pub opened_at: Instant,
    /// When the client's handshake ended; `None` if it had not when the page was there.
    pub connected_at: Option<Instant>,
    /// Objects that came over it.
    pub objects: u64,
    /// Bytes of their bodies.
    pub body: Bytes,
}

/// Lower bounds of a time, by capacity, delays and windows, which nothing can beat. Zero where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// By capacity, delays and discovery alone.
    pub fluid: Duration,
    /// Also by the handshake and windows at the start; not below `fluid`.
    pub tight: Duration,
}

/// One object of one run. Instants are those of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRecord {
    /// Position in the page.
    pub object: u32,
    /// Number of the connection that it came over; 0 unless each origin has one.
    pub connection: u32,
    /// Bytes of the body.
    pub body: Bytes,
    /// Whether the page's time waits for it.
    pub held: bool,
    /// Whether the server pushed it.
    pub pushed: bool,
    /// Number of the raw stream that carried it; `None` with HTTP.
    pub stream: Option<u32>,
    /// When it was asked for; if it was pushed, when its promise came.
    pub requested_at: Instant,
    /// When the first byte of its body, or the head of a body without bytes, had arrived.
    pub first_byte_at: Instant,
    /// When it was complete.
    pub completed_at: Instant,
    /// From the start of the page to its completion.
    pub since_page_start: Duration,
    /// From its request, or its promise, to its completion.
    pub since_request: Duration,
    /// What no time from the start of the page to its completion can be below.
    pub bound: Bounds,
}

/// One raw stream of one run. Instants are those of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRecord {
    /// Number of the connection; 0 unless each origin has one.
    pub connection: u32,
    /// Which end sent.
    pub end: End,
    /// Position of the path in the network.
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
    /// Packets that counted as lost.
    pub packets_lost: u64,
    /// Bytes of packets that counted as lost.
    pub bytes_lost: Bytes,
    /// Sum over them of the time from sending a packet to counting it as lost.
    pub loss_detection: Duration,
    /// Bytes of packets that counted as lost and arrived nevertheless.
    pub bytes_spurious: Bytes,
}

/// An end of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// The end that serves the page.
    #[default]
    Server,
    /// The end that asks for it.
    Client,
}

/// Text that several hold.
mod shared_text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Arc<str>, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(from).map(Arc::from)
    }
}

impl End {
    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            End::Server => "server",
            End::Client => "client",
        }
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl PathRecord {
    /// What was counted since `earlier`.
    fn since(self, earlier: &PathRecord) -> PathRecord {
        PathRecord {
            connection: self.connection,
            end: self.end,
            path: self.path,
            packets_sent: self.packets_sent.saturating_sub(earlier.packets_sent),
            datagrams_received: self.datagrams_received.saturating_sub(earlier.datagrams_received),
            bytes_sent: self.bytes_sent.saturating_sub(earlier.bytes_sent),
            bytes_resent: self.bytes_resent.saturating_sub(earlier.bytes_resent),
            bytes_copies: self.bytes_copies.saturating_sub(earlier.bytes_copies),
            packets_lost: self.packets_lost.saturating_sub(earlier.packets_lost),
            bytes_lost: self.bytes_lost.saturating_sub(earlier.bytes_lost),
            loss_detection: self.loss_detection.saturating_sub(earlier.loss_detection),
            bytes_spurious: self.bytes_spurious.saturating_sub(earlier.bytes_spurious),
        }
    }
}

impl RunRecord {
    /// True of the first load of a run, which has its traffic.
    pub fn is_first(&self) -> bool {
        (self.client, self.visit) == (0, 0)
    }

    /// The same with everything that is counted from the start of the run counted from `earlier`, a
    /// record of the same client in the same run.
    pub fn since(&self, earlier: &RunRecord) -> RunRecord {
        let path = |path: &PathRecord| {
            let mut before = earlier.paths.iter();
            let place = |path: &PathRecord| (path.connection, path.end, path.path);
            let before = before.find(|other| place(other) == place(path));
            before.map_or(*path, |before| path.since(before))
        };
        let radio = |radio: &RadioRecord| {
            let before = earlier.radios.iter().find(|other| other.path == radio.path);
            before.map_or(*radio, |before| radio.since(before))
        };
        RunRecord {
            radios: self.radios.iter().map(radio).collect(),
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

    /// What path `path` cost the client, if it has a model of energy or a price.
    pub fn radio(&self, path: u32) -> Option<&RadioRecord> {
        self.radios.iter().find(|radio| radio.path == path)
    }

    /// What the sender sent on path `path`, of each connection.
    pub fn sender_path(&self, path: u32) -> impl Iterator<Item = &PathRecord> {
        self.paths_of(self.sender).filter(move |it| it.path == path)
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
