//! What the engine tells a policy.

use quipu_base::{Bytes, Duration, PacketNumber, Rate};

use crate::key::{PathKey, Span, StreamKey};
use crate::priority::TreeEdit;
use crate::seam::decision::Refusal;
use crate::seam::view::{Piece, SentPacket};

/// What happened. The state is changed first: when an event is told, the view already shows
/// everything of the frame or call that caused it.
///
/// Order of events:
/// - per received ACK frame: `PathMeasured`; `Acked` in packet-number order; `Lost` likewise;
///   `Requeued` by (stream, offset); `Ready` and `Stopped` last;
/// - of a stream: `Opened`, then `Tree`, `Sized`, `Written`, then `Ready`; after `Closed` nothing
///   for that slot until the next `Opened`;
/// - `PathSuspect` and `PathGone` come before the `Requeued` of that path's bytes;
/// - `Placed` comes before the next question, `Sent` before the next question for a packet.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A stream that can send came to life.
    Opened(StreamKey),
    /// The application told, or changed, a stream's total size.
    Sized(StreamKey),
    /// The application wrote or finished.
    Written(StreamKey),
    /// Urgency or deadline of a stream changed.
    Reprioritised(StreamKey),
    /// The dependency tree changed in one elementary way.
    Tree(TreeEdit),
    /// Lost bytes are pending again.
    Requeued {
        /// Of which stream.
        stream: StreamKey,
        /// Which bytes; empty for a lost bare FIN.
        span: Span,
        /// On which path they were lost.
        origin: PathKey,
    },
    /// The stream has something to send, and had not before.
    Ready(StreamKey),
    /// The stream has nothing to send any more: sent, acknowledged or out of credit.
    Stopped(StreamKey),
    /// The stream is over: reset, or all of it acknowledged.
    Closed(StreamKey),
    /// One frame was written: charge here, not in `decide`.
    Placed {
        /// On which path.
        path: PathKey,
        /// What.
        piece: Piece,
    },
    /// A packet left.
    Sent(SentPacket<'a>),
    /// A packet was acknowledged.
    Acked(SentPacket<'a>),
    /// A packet was declared lost.
    Lost(SentPacket<'a>),
    /// A path became usable.
    PathUp(PathKey),
    /// Round-trip time, window or rate of a path changed.
    PathMeasured(PathKey),
    /// A path stopped answering while another went on.
    PathSuspect(PathKey),
    /// A suspect path answered.
    PathRevived(PathKey),
    /// The preference of a path changed.
    PathStatus(PathKey),
    /// The socket of a path takes no more datagrams at present: the path is not open until
    /// [`PathUnblocked`](Event::PathUnblocked). In the simulator this never happens.
    PathBlocked(PathKey),
    /// The socket of a path takes datagrams again.
    PathUnblocked(PathKey),
    /// A path was abandoned or closed.
    PathGone(PathKey),
    /// A probe timeout fired.
    Pto(PathKey),
    /// An acknowledgement arrived. Told to the acknowledgement policy alone.
    AckSeen {
        /// The path whose packets it acknowledges.
        data: PathKey,
        /// The path on which it came.
        arrived_on: PathKey,
        /// The largest packet number that it acknowledges.
        largest: PacketNumber,
        /// Time since that packet was sent, less the delay that the peer says to have added.
        since_sent: Duration,
        /// True if it acknowledges a packet for the first time.
        advances: bool,
    },
    /// An acknowledgement of all that came on a path left, on every path of its route. Told to the
    /// acknowledgement policy alone.
    AckSent(PathKey),
    /// The peer advised on which path to acknowledge which: (data path, return path). Told to the
    /// acknowledgement policy alone.
    ReturnAdvice(&'a [(PathKey, PathKey)]),
    /// The application told how well it is served.
    Quality(Quality),
    /// The send loop came to rest: the end of a send batch.
    Drained,
    /// A time asked for by `Wait` or `wake_at` has come.
    Woken,
    /// An answer was refused.
    Refused(Refusal),
}

/// How well the application is served (XLINK's feedback of a video player).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Media bytes buffered at the receiver.
    pub cached_bytes: Option<Bytes>,
    /// Rate at which they are played.
    pub play_rate: Option<Rate>,
    /// Media frames buffered at the receiver.
    pub cached_frames: Option<u64>,
    /// Frames played per second.
    pub frames_per_second: Option<u32>,
}
