//! What happens in a connection, told while it happens: for logs and time series.
//!
//! A [`Recorder`] is told [`Event`]s, which are borrowed from the engine's own state: nothing is
//! allocated or formatted for them. Without a recorder the engine pays one branch per packet; with
//! one, the frames of each packet are there to be decoded once more ([`PacketInfo::frames`]), and
//! the policies keep the candidates that they weigh.
//!
//! A recorder cannot change anything: with it or without, the same datagrams leave. Recorders come
//! from [`Endpoint::record`](crate::Endpoint::record), one for each connection.
//!
//! Not told: keys, the bytes of streams and TLS messages apart from the frames that carry them, and
//! what only the application knows.

use std::sync::Arc;

use quipu_base::{Instant, PacketNumber, PathId, Rate, Role, StreamId};
use quipu_policy::congestion::Published;
use quipu_policy::{Ask, DecidedBy, Decision, Note, PathStatus, PathView, Refusal, Span};

use crate::connection::CloseReason;
use crate::route::Route;
use crate::transport_parameters::TransportParameters;
use crate::wire::{ConnectionId, Frames, PacketKind};

/// Takes note of what happens in one connection.
pub trait Recorder: Send {
    /// Something happened at `now`. Times never go back from one call to the next.
    fn record(&mut self, now: Instant, event: &Event<'_>);
}

/// Makes the recorder of a new connection, if it is to be recorded.
pub type RecorderFactory = Arc<dyn Fn(&Started) -> Option<Box<dyn Recorder>> + Send + Sync>;

/// A connection begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Which end this is.
    pub role: Role,
    /// Addresses of the first path.
    pub route: Route,
    /// Connection ID by which the peer calls this end.
    pub local_cid: ConnectionId,
    /// Connection ID by which this end calls the peer at first.
    pub remote_cid: ConnectionId,
    /// Destination of the client's first datagram: both ends' name for the connection.
    pub original_dcid: ConnectionId,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The connection begins: the first event.
    Started(Started),
    /// The connection moved on.
    State(ConnectionState),
    /// The connection ended, for this reason; told once.
    Closed(&'a CloseReason),
    /// The transport parameters of one end, as they are sent or were received. A connection is
    /// never resumed, so there are none from an earlier one.
    Parameters {
        /// True for our own, false for the peer's.
        own: bool,
        /// What they say.
        parameters: &'a TransportParameters,
    },
    /// A packet was written.
    PacketSent {
        /// The packet.
        packet: PacketInfo<'a>,
        /// True if a probe timeout asked for it.
        probe: bool,
    },
    /// A packet was opened. What its frames cause is told after it.
    PacketReceived {
        /// The packet.
        packet: PacketInfo<'a>,
        /// The two ECN bits of its IP header.
        ecn: u8,
    },
    /// A packet, or a datagram that is none, was dropped unread.
    PacketDropped {
        /// Its kind, as far as it can be told.
        kind: Option<PacketKind>,
        /// The path by the connection ID.
        path: PathId,
        /// Its bytes.
        size: usize,
        /// Why.
        reason: DropReason,
    },
    /// A packet came before its keys and is kept until they are there.
    PacketKept {
        /// Its kind.
        kind: PacketKind,
        /// Its bytes.
        size: usize,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its kind.
        kind: PacketKind,
        /// Its path.
        path: PathId,
        /// Its number.
        number: PacketNumber,
        /// By what sign.
        sign: LossSign,
    },
    /// Round-trip time, window or bytes in flight of a path: told after each acknowledgement and
    /// loss, and whenever sending comes to rest, changed or not.
    Metrics(Metrics<'a>),
    /// Something changed in the life of a path.
    Path {
        /// Which.
        path: PathId,
        /// What.
        change: PathEvent,
    },
    /// One side of a stream moved on. The receiving side of a unidirectional stream is told of
    /// only when it ends.
    Stream {
        /// Which.
        stream: StreamId,
        /// Its sending or receiving side.
        side: StreamSide,
        /// Where it is now.
        state: StreamState,
    },
    /// The policies were asked, or the engine chose in their place.
    Scheduled(Scheduled<'a>),
    /// A timer ran out.
    TimerExpired {
        /// Of which path.
        path: PathId,
        /// Which.
        timer: Timer,
    },
    /// When the timer of loss detection of a path expires, told whenever sending comes to rest,
    /// changed or not; `None`: it is not set.
    TimerSet {
        /// Of which path.
        path: PathId,
        /// Which, and when.
        expires_at: Option<(Timer, Instant)>,
    },
    /// Packets of 1-RTT are protected by the next keys from now on.
    KeysUpdated {
        /// How often that happened.
        updates: u64,
    },
}

/// A packet that carries frames.
#[derive(Clone, Copy, Debug)]
pub struct PacketInfo<'a> {
    /// Which packet.
    pub kind: PacketKind,
    /// The path that it travels on, and, of 1-RTT packets, whose number space it is in.
    pub path: PathId,
    /// Its number.
    pub number: PacketNumber,
    /// Bytes of the whole packet.
    pub size: usize,
    /// Connection ID of its receiver.
    pub dcid: ConnectionId,
    /// Connection ID of its sender; empty in a short header, which has none.
    pub scid: ConnectionId,
    /// Bytes of the token of an Initial packet.
    pub token: usize,
    /// Its plaintext: its frames, one after the other.
    pub payload: &'a [u8],
}

impl<'a> PacketInfo<'a> {
    /// Its frames, decoded while they are walked.
    pub fn frames(&self) -> Frames<'a> {
        Frames::new(self.payload)
    }
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// TLS finished.
    HandshakeComplete,
    /// Both ends know that it did.
    HandshakeConfirmed,
    /// This end closed and tells the peer.
    Closing,
    /// The peer closed.
    Draining,
    /// Nothing is sent or read any more.
    Closed,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// It does not open with the keys.
    DoesNotOpen,
    /// It came before.
    Duplicate,
    /// It is no packet of QUIC v1.
    Invalid,
    /// There are no keys for it, and it is not kept.
    NoKeys,
    /// Its path is gone, or not open to this packet.
    NoPath,
    /// It came from an address that is not known to be the server's.
    UnknownAddress,
    /// It is of a kind that is not read here.
    Unsupported,
}

/// By what sign a packet is lost. <https://www.rfc-editor.org/rfc/rfc9002#section-6.1>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossSign {
    /// Later packets were acknowledged.
    Reordering,
    /// It left too long ago.
    Time,
}

/// What is known of a path.
#[derive(Clone, Copy, Debug)]
pub struct Metrics<'a> {
    /// What policies see of it.
    pub view: &'a PathView,
    /// What its congestion controller last published.
    pub controller: &'a Published,
    /// Packets in flight on it, those of the handshake not counted.
    pub packets_in_flight: usize,
    /// The pace in use; `None` before there is one, or without pacing.
    pub pacing_rate: Option<Rate>,
}

/// What changes in the life of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// It was added; the first path is usable at once, others are validated first.
    Assigned {
        /// Our address and the peer's.
        route: Route,
    },
    /// It was validated, and may carry data.
    Validated,
    /// Its packets go by other addresses from now on.
    Moved {
        /// Those before.
        old: Route,
        /// Those from now on.
        new: Route,
    },
    /// It stopped answering while another went on.
    Suspect,
    /// It answered again.
    Revived,
    /// An end prefers that it be spared, or no longer does.
    Status {
        /// What it asks for.
        status: PathStatus,
        /// True if this end asks, false if the peer does.
        own: bool,
    },
    /// Full datagrams have another size, as the path was found to carry it, or to carry no more.
    DatagramSize {
        /// Bytes of UDP payload before.
        before: u16,
        /// And from now on.
        size: u16,
    },
    /// It is abandoned, by either end.
    Abandoned {
        /// The code that this end tells; 0 answers the peer.
        code: u64,
    },
    /// Its state was dropped.
    Dropped,
}

/// A side of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamSide {
    /// Where this end sends.
    Sending,
    /// Where it receives.
    Receiving,
}

/// Where a side of a stream is. <https://www.rfc-editor.org/rfc/rfc9000#section-3>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamState {
    /// Data may flow.
    Open,
    /// Receiving: the application has all of it.
    DataRead,
    /// Sending: it was given up.
    ResetSent,
    /// Receiving: the peer gave it up.
    ResetReceived,
    /// Sending: policies see it no more.
    Closed,
}

/// A question to the policies and what came of it.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled<'a> {
    /// The question.
    pub ask: Ask,
    /// The answer; `None` if the engine chose in place of policies that failed.
    pub decision: Option<Decision>,
    /// Which part of the policies it comes from.
    pub decided_by: DecidedBy,
    /// What they weighed, in the order in which they did.
    pub candidates: &'a [Note],
    /// What came of it.
    pub outcome: Outcome,
}

/// What the engine does with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// These bytes go, less what does not fit the packet.
    Sends {
        /// Where.
        path: PathId,
        /// Whose.
        stream: StreamId,
        /// Which.
        span: Span,
        /// True if they are a copy.
        copy: bool,
    },
    /// A PING goes.
    Probes {
        /// Where.
        path: PathId,
    },
    /// Nothing goes.
    Rests,
    /// The answer was refused.
    Refused(Refusal),
}

/// Which timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// Packets are overdue. <https://www.rfc-editor.org/rfc/rfc9002#section-6.1.2>
    Loss,
    /// Nothing was acknowledged. <https://www.rfc-editor.org/rfc/rfc9002#section-6.2>
    Probe,
    /// No answer to a challenge. <https://www.rfc-editor.org/rfc/rfc9000#section-8.2.4>
    PathValidation,
}

/// The recorder of a connection, if it has one.
#[derive(Default)]
pub(crate) struct Recording {
    recorder: Option<Box<dyn Recorder>>,
    /// The end was told.
    closed: bool,
    /// The state told last.
    state: Option<ConnectionState>,
    /// Key updates told.
    updates: u64,
}

impl Recording {
    pub(crate) fn new(recorder: Option<Box<dyn Recorder>>) -> Self {
        Recording { recorder, ..Recording::default() }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.recorder.is_some()
    }

    /// Tells the recorder, if there is one, what `event` makes.
    #[inline]
    pub(crate) fn record<'e>(&mut self, now: Instant, event: impl FnOnce() -> Event<'e>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(now, &event());
        }
    }

    /// The same of a path.
    #[inline]
    pub(crate) fn path(&mut self, now: Instant, path: PathId, change: PathEvent) {
        self.record(now, || Event::Path { path, change });
    }

    /// Tells the end of the connection, once.
    pub(crate) fn close(&mut self, now: Instant, reason: &CloseReason) {
        if !std::mem::replace(&mut self.closed, true) {
            self.record(now, || Event::Closed(reason));
        }
    }

    /// Tells a state, once.
    pub(crate) fn state(&mut self, now: Instant, state: ConnectionState) {
        if self.state.replace(state) != Some(state) {
            self.record(now, || Event::State(state));
        }
    }

    /// Tells of key updates, if there were some since the last call.
    pub(crate) fn updates(&mut self, now: Instant, updates: u64) {
        if std::mem::replace(&mut self.updates, updates) != updates {
            self.record(now, || Event::KeysUpdated { updates });
        }
    }
}
