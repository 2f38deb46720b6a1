//! What a decision may read.
//!
//! A [`View`] is borrowed from the engine and copied nowhere; its parts are the engine's own
//! storage. Unit tests of policies build one by hand.

use quipu_base::{Bytes, Duration, Instant, Offset, PacketNumber, PathId, PerMille, Rate};

use crate::key::{PathKey, PathSet, Span, StreamKey};
use crate::priority::{Priorities, Priority};

/// What a decision may read.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The present.
    pub now: Instant,
    /// The connection as a whole.
    pub conn: &'a ConnView,
    /// Every path.
    pub paths: &'a Paths,
    /// Every stream that can send, control streams excepted.
    pub streams: &'a dyn StreamTable,
    /// Packets in flight.
    pub sent: &'a dyn SentTable,
    /// The dependency tree, urgencies, deadlines.
    pub priorities: &'a Priorities,
}

/// The connection as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnView {
    /// Connection flow control left: bytes beyond what was sent so far.
    pub credit: Bytes,
    /// Never-sent bytes buffered on all streams but the control streams (the `k` of ECF).
    pub unsent: Bytes,
    /// Streams with something to send.
    pub ready: u32,
    /// Bytes in flight over all paths.
    pub in_flight: Bytes,
    /// How many times connection credit stopped data (BLEST).
    pub window_blocked: u64,
    /// True if both ends speak the extension by which a sender of data names the return paths of
    /// its acknowledgements.
    pub return_paths: bool,
}

/// Where a path is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Its address is being validated; no data yet.
    Validating,
    /// It may carry data.
    Usable,
    /// It stopped answering while another path went on; only probes go there.
    Suspect,
    /// It is being abandoned.
    Closing,
}

/// What the peer, or the application, said of a path.
/// <https://www.rfc-editor.org/rfc/rfc10069#section-4.3>, PATH_STATUS_AVAILABLE and PATH_STATUS_BACKUP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathStatus {
    /// Use it.
    #[default]
    Available,
    /// Use it only if no available path can be used.
    Backup,
}

/// One path. The engine stores these values nowhere else.
#[derive(Clone, Debug, PartialEq)]
pub struct PathView {
    /// Its key.
    pub key: PathKey,
    /// Where it is in its life.
    pub state: PathState,
    /// Preference told by an endpoint.
    pub status: PathStatus,
    /// Packets sent on it so far.
    pub packets_sent: u64,
    /// When the last packet left.
    pub last_sent_at: Option<Instant>,
    /// Probe timeouts in a row without an acknowledgement.
    pub pto_count: u32,
    /// Smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Mean deviation of the round-trip time.
    pub rttvar: Duration,
    /// Least round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The last sample.
    pub latest_rtt: Option<Duration>,
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Bytes in flight.
    pub in_flight: Bytes,
    /// The pacer lets nothing go before this.
    pub release_at: Instant,
    /// How fast the path delivers UDP payload, measured alike under every controller: the greatest
    /// sample of the last ten round trips, of which one that application or policy limited counts
    /// only if it is no less than the estimate. `None` until window or pace have once held sending
    /// back; see [`RateEstimate`](crate::congestion::RateEstimate). Samples are those of
    /// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1>.
    pub rate: Option<Rate>,
    /// True if application or policy limited the last of these samples: its packet left before what
    /// had been in flight at a rest with window left was delivered. `rate` may then be less than
    /// the path can do now.
    pub limited: bool,
    /// True while the anti-amplification limit holds the path back.
    pub amplification_limited: bool,
    /// True while the path's socket takes no datagrams: nothing of the network, and mostly over
    /// within milliseconds.
    pub blocked: bool,
    /// Share of packets lost, smoothed.
    pub loss: PerMille,
    /// Stream bytes that fit one packet.
    pub payload: Bytes,
}

impl PathView {
    /// Window left: congestion window less bytes in flight.
    pub fn room(&self) -> Bytes {
        self.cwnd.saturating_sub(self.in_flight)
    }

    /// True if a data packet may leave now: the path is usable, there is window for a packet, and
    /// neither pacer, anti-amplification limit nor socket holds it.
    pub fn is_open(&self, now: Instant) -> bool {
        self.state == PathState::Usable
            && self.room() >= self.payload
            && self.release_at <= now
            && !self.amplification_limited
            && !self.blocked
    }

    /// The delivery rate, in bytes per second; while there is none, congestion window over smoothed
    /// round-trip time; `None` before the first sample of either.
    pub fn bandwidth(&self) -> Option<f64> {
        if let Some(rate) = self.rate {
            return Some(rate.bits_per_sec() as f64 / 8.0);
        }
        let srtt = self.srtt?;
        (!srtt.is_zero()).then(|| self.cwnd.0 as f64 / srtt.as_secs_f64())
    }
}

/// All paths, in order of path identifier. Closed slots are skipped.
#[derive(Clone, Debug, Default)]
pub struct Paths {
    by_slot: Vec<Option<PathView>>,
    /// Slots of live paths, in order of path identifier.
    order: Vec<u8>,
}

impl Paths {
    /// Most paths at a time.
    pub const MAX: usize = 32;

    /// No paths.
    pub fn new() -> Self {
        Paths::default()
    }

    /// Adds a path; `false` if its slot is taken or out of range.
    pub fn insert(&mut self, path: PathView) -> bool {
        let slot = path.key.index();
        if slot >= Self::MAX {
            return false;
        }
        if self.by_slot.len() <= slot {
            // Most connections have one path, whose view is large.
            self.by_slot.reserve_exact(slot + 1 - self.by_slot.len());
            self.by_slot.resize_with(slot + 1, || None);
        }
        if self.by_slot[slot].is_some() {
            return false;
        }
        let place = self
            .order
            .iter()
            .position(|&other| {
                self.by_slot[usize::from(other)].as_ref().is_some_and(|view| view.key > path.key)
            })
            .unwrap_or(self.order.len());
        self.order.insert(place, path.key.slot);
        self.by_slot[slot] = Some(path);
        true
    }

    /// Takes a path out.
    pub fn remove(&mut self, key: PathKey) -> Option<PathView> {
        self.get(key)?;
        self.order.retain(|&slot| slot != key.slot);
        self.by_slot[key.index()].take()
    }

    /// The path of that key, if it lives.
    pub fn get(&self, key: PathKey) -> Option<&PathView> {
        self.by_slot.get(key.index())?.as_ref().filter(|view| view.key == key)
    }

    /// The same, to change it: for the engine and for tests.
    pub fn get_mut(&mut self, key: PathKey) -> Option<&mut PathView> {
        self.by_slot.get_mut(key.index())?.as_mut().filter(|view| view.key == key)
    }

    /// The live path with that identifier.
    pub fn by_id(&self, id: PathId) -> Option<&PathView> {
        self.iter().find(|view| view.key.id == id)
    }

    /// The live path in that slot.
    pub fn by_slot(&self, slot: u8) -> Option<&PathView> {
        self.by_slot.get(usize::from(slot))?.as_ref()
    }

    /// All live paths, in order of path identifier.
    pub fn iter(&self) -> impl Iterator<Item = &PathView> + Clone {
        self.order.iter().filter_map(|&slot| self.by_slot[usize::from(slot)].as_ref())
    }

    /// Paths that may carry data, window or not.
    pub fn usable(&self) -> impl Iterator<Item = &PathView> + Clone {
        self.iter().filter(|view| view.state == PathState::Usable)
    }

    /// Paths on which a data packet may leave now.
    pub fn open(&self, now: Instant) -> impl Iterator<Item = &PathView> + Clone {
        self.iter().filter(move |view| view.is_open(now))
    }

    /// The open path of least smoothed round-trip time; an unprobed one only if no probed path is
    /// open. Ties go to the lower path identifier.
    pub fn least_srtt_open(&self, now: Instant) -> Option<PathKey> {
        self.open(now)
            .min_by_key(|view| (view.srtt.unwrap_or(Duration::MAX), view.key))
            .map(|view| view.key)
    }

    /// The usable path of least smoothed round-trip time, open or not.
    pub fn least_srtt_usable(&self) -> Option<PathKey> {
        self.least_srtt_of(|_| true)
    }

    /// Among the usable paths that `keep` keeps, open or not, the one of least smoothed round-trip
    /// time.
    pub fn least_srtt_of(&self, keep: impl Fn(&PathView) -> bool) -> Option<PathKey> {
        self.usable()
            .filter(|view| keep(view))
            .min_by_key(|view| (view.srtt.unwrap_or(Duration::MAX), view.key))
            .map(|view| view.key)
    }

    /// Live paths as a set.
    pub fn set(&self) -> PathSet {
        self.iter().fold(PathSet::EMPTY, |set, view| set.with(view.key))
    }

    /// Number of live paths.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// True if no path lives.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// One stream that can send.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamView {
    /// Its key.
    pub key: StreamKey,
    /// What was said of its priority.
    pub priority: Priority,
    /// Order of arrival, from zero, over the connection.
    pub seq: u64,
    /// When it was opened.
    pub opened_at: Instant,
    /// Total bytes if the application told, else `None`: use `written`, mark the result estimated.
    pub size: Option<Bytes>,
    /// End of what the application wrote.
    pub written: Offset,
    /// True once the application finished the stream.
    pub fin: bool,
    /// End of what was ever sent.
    pub high_sent: Offset,
    /// End of the peer's stream credit.
    pub credit_end: Offset,
    /// Pending bytes within stream credit: fresh, lost and holes.
    pub sendable: Bytes,
    /// The part of `sendable` below `high_sent`, which costs no connection credit.
    pub free: Bytes,
    /// True if nothing but the end of the stream is left to tell.
    pub bare_fin: bool,
}

impl StreamView {
    /// True if the stream has something to send: bytes within its credit, or a bare FIN.
    pub fn is_ready(&self) -> bool {
        !self.sendable.is_zero() || self.bare_fin
    }
}

/// Why bytes are pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Never sent, at or above `high_sent`.
    Fresh,
    /// Never sent, but later bytes were.
    Hole,
    /// Sent on `origin` and lost.
    Lost {
        /// The path on which they were lost.
        origin: PathKey,
    },
}

/// A stretch of pending bytes of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The bytes; empty for a bare FIN.
    pub span: Span,
    /// Why they are pending.
    pub class: Class,
}

/// The streams of a connection. Every call costs O(log ranges).
pub trait StreamTable {
    /// The stream, if it lives and is no control stream.
    fn get(&self, stream: StreamKey) -> Option<&StreamView>;

    /// Lowest pending run of one class at or after `at`, within stream credit. A bare FIN is an
    /// empty fresh run at the stream's end.
    fn pending_from(&self, stream: StreamKey, at: Offset) -> Option<Run>;

    /// Highest pending run of one class that ends at or before `at`, within stream credit: for
    /// senders from the back. It is cut at `at`.
    fn pending_before(&self, stream: StreamKey, at: Offset) -> Option<Run>;

    /// Lowest stretch at or after `at` that was sent, is not acknowledged and not pending: what
    /// may be copied.
    fn unacked_from(&self, stream: StreamKey, at: Offset) -> Option<Span>;
}

/// Packets in flight.
pub trait SentTable {
    /// The next ack-eliciting packet in flight on `path` after `after`, in packet-number order.
    fn next_sent(&self, path: PathKey, after: Option<PacketNumber>) -> Option<SentPacket<'_>>;
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentPacket<'a> {
    /// Where.
    pub path: PathKey,
    /// Its number in the path's packet number space.
    pub pn: PacketNumber,
    /// Size of the UDP payload.
    pub bytes: Bytes,
    /// When.
    pub sent_at: Instant,
    /// Its stream frames, in order; control streams excepted.
    pub pieces: &'a [Piece],
}

/// A stream frame of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Of which stream.
    pub stream: StreamKey,
    /// Which bytes.
    pub span: Span,
    /// First time, again, or a copy.
    pub kind: Kind,
}

/// Why a frame was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// For the first time; holes too.
    Fresh,
    /// It was lost before.
    Again,
    /// It was not pending when it was sent.
    Copy,
}

#[cfg(test)]
mod tests;
