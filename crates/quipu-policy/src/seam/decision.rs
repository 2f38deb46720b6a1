//! What the engine asks, what a policy may answer, and how it may explain itself.

use quipu_base::{Bytes, Instant, Offset};

use crate::key::{PathKey, Span, StreamKey};

/// The engine's question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// What goes into the next packet, and on which path?
    Packet,
    /// The open packet on `path` has `space` left: what else goes in?
    Fill {
        /// The path of the open packet.
        path: PathKey,
        /// Stream bytes that still fit.
        space: Bytes,
    },
}

/// A policy's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send pending bytes of a stream.
    Send {
        /// Where.
        path: PathKey,
        /// Whose.
        stream: StreamKey,
        /// From which byte; `None`: the lowest pending byte.
        from: Option<Offset>,
        /// At most so many; one packet's worth at most goes, and it may be cut.
        max: Bytes,
    },
    /// Send bytes again that are in flight and not pending; at least one.
    Copy {
        /// Where.
        path: PathKey,
        /// Whose.
        stream: StreamKey,
        /// Which.
        span: Span,
    },
    /// Send a PING: refreshes an idle or standby path. At most one on a path before sending comes to
    /// rest, and only on an open path; see [`Referee`](crate::Referee).
    Probe {
        /// Where.
        path: PathKey,
    },
    /// Something could go, but a better moment comes.
    Wait {
        /// When to ask again at the latest.
        until: Instant,
        /// The path waited for, if it is one.
        on: Option<PathKey>,
    },
    /// Nothing can go. To [`Ask::Fill`]: close the packet.
    Idle,
}

/// Why the engine refused an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The path is not open.
    PathClosed(PathKey),
    /// A fill named another path than that of the open packet.
    OtherPath(PathKey),
    /// The stream does not live.
    NoStream(StreamKey),
    /// The byte asked for is not pending.
    NotPending(StreamKey, Offset),
    /// The bytes to copy are not in flight, or are pending.
    NotInFlight(StreamKey, Span),
    /// Not a byte is left after cutting to stream and connection credit and packet space.
    NothingLeft(StreamKey),
    /// It waited where waiting is not allowed: a packet is open, one path is usable, or nothing has
    /// been in flight for a round-trip time.
    MustNotWait,
    /// A second PING on a path before sending came to rest, or one as the filling of a packet.
    MustNotProbe(PathKey),
}

/// Which part of a policy an answer comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DecidedBy {
    /// The policy, asked now: the stream policy's turn on the path policy's path, or a joint one's.
    #[default]
    Policy,
    /// A plan made earlier, whose path is open now.
    Plan,
    /// Lost bytes, sent again ahead of the stream policy's turn.
    Lost,
    /// Bytes that were skipped and cost no connection credit, while there is none.
    Skipped,
    /// The reinjection policy.
    Reinjection,
}

/// A policy's explanation of a decision: candidates with scores, and the part it comes from. Off,
/// it costs one branch.
#[derive(Debug, Default)]
pub struct Notes {
    lines: Option<Vec<Note>>,
    decided_by: DecidedBy,
}

/// One candidate that a policy weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    /// What the score means, such as `pat`.
    pub label: &'static str,
    /// The path weighed, if any.
    pub path: Option<PathKey>,
    /// The stream weighed, if any.
    pub stream: Option<StreamKey>,
    /// The score, in the unit that the policy documents.
    pub score: f64,
}

impl Notes {
    /// Notes that keep nothing.
    pub const fn off() -> Self {
        Notes { lines: None, decided_by: DecidedBy::Policy }
    }

    /// Notes that keep every candidate.
    pub const fn on() -> Self {
        Notes { lines: Some(Vec::new()), decided_by: DecidedBy::Policy }
    }

    /// True if notes are kept.
    pub fn are_on(&self) -> bool {
        self.lines.is_some()
    }

    /// Keeps the note that `note` makes, if notes are on.
    pub fn add(&mut self, note: impl FnOnce() -> Note) {
        if let Some(lines) = &mut self.lines {
            lines.push(note());
        }
    }

    /// Says which part answers; the last word before the answer counts.
    pub fn answered_by(&mut self, part: DecidedBy) {
        self.decided_by = part;
    }

    /// The part that answered.
    pub fn decider(&self) -> DecidedBy {
        self.decided_by
    }

    /// What was kept since the last [`Notes::clear`] or [`Notes::take`].
    pub fn kept(&self) -> &[Note] {
        self.lines.as_deref().unwrap_or_default()
    }

    /// Forgets everything, for the next question.
    pub fn clear(&mut self) {
        self.decided_by = DecidedBy::Policy;
        if let Some(lines) = &mut self.lines {
            lines.clear();
        }
    }

    /// What was kept since the last call.
    pub fn take(&mut self) -> Vec<Note> {
        self.lines.as_mut().map(std::mem::take).unwrap_or_default()
    }
}
