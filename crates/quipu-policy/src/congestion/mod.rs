//! Congestion control: one controller per path.
//!
//! A coupled controller reads what the other paths' controllers published ([`Peers`]); there is no
//! shared mutable state.

use quipu_base::{Bytes, Duration, Instant, PacketNumber, Rate};

use crate::key::PathKey;

mod balia;
mod bbr;
mod bbr3;
mod coupled;
mod cubic;
mod factory;
mod filter;
mod full_pipe;
mod hybrid;
mod hystart;
mod lia;
mod newreno;
mod olia;
mod prr;
mod rate_estimate;
mod reno;
mod round;
mod slow_start;
#[cfg(test)]
mod testing;
mod wvegas;

pub(crate) use balia::Balia;
pub(crate) use bbr::{Bbr, Options as BbrOptions, Quantum, STARTUP_GAIN};
pub(crate) use bbr3::{Bbr3, Tuning as BbrTuning};
pub(crate) use coupled::{Coupled, Coupling};
pub use cubic::Cubic;
pub use factory::ControllerFactory;
pub(crate) use lia::Lia;
pub(crate) use newreno::BETA as RENO_BETA;
pub use newreno::NewReno;
pub(crate) use olia::Olia;
pub(crate) use prr::wrap as with_prr;
pub use rate_estimate::RateEstimate;
pub use slow_start::SlowStartExit;
pub(crate) use wvegas::Wvegas;

/// One controller per path. All amounts are bytes of UDP payload.
pub trait Controller: Send {
    /// An ack-eliciting packet left.
    fn on_sent(&mut self, sent: &SentInfo, peers: &Peers<'_>);

    /// An ACK frame newly acknowledged packets. Called once per frame.
    fn on_acked(&mut self, acked: &AckedInfo<'_>, peers: &Peers<'_>);

    /// Packets were declared lost. Called once per detection.
    fn on_lost(&mut self, lost: &LostInfo<'_>, peers: &Peers<'_>);

    /// Something else changed.
    fn on_change(&mut self, change: PathChange, peers: &Peers<'_>);

    /// What the engine and the other controllers may read.
    fn published(&self) -> Published;
}

/// A packet left.
#[derive(Clone, Copy, Debug)]
pub struct SentInfo {
    /// When.
    pub now: Instant,
    /// Its size.
    pub bytes: Bytes,
    /// Bytes in flight on the path, this packet included.
    pub in_flight: Bytes,
    /// True if the path was application-limited when it left: the sender had come to rest with
    /// window left, and what it had in flight then is not all delivered yet.
    pub limited: bool,
}

/// A packet that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckedPacket {
    /// When it was sent.
    pub sent_at: Instant,
    /// Its size.
    pub bytes: Bytes,
}

/// An ACK frame newly acknowledged packets.
#[derive(Clone, Copy, Debug)]
pub struct AckedInfo<'a> {
    /// When it came.
    pub now: Instant,
    /// The packets in flight that it acknowledges, in packet-number order.
    pub packets: &'a [AckedPacket],
    /// Bytes in flight on the path before it.
    pub prior_in_flight: Bytes,
    /// Bytes in flight on the path after it.
    pub in_flight: Bytes,
    /// True if the path had been application-limited or held by a policy: the window was not what
    /// limited sending.
    pub limited: bool,
    /// The round-trip time as estimated now.
    pub srtt: Option<Duration>,
    /// Least round-trip time seen.
    pub min_rtt: Option<Duration>,
    /// The sample of this frame, if it gave one.
    pub latest_rtt: Option<Duration>,
    /// The delivery rate as this frame shows it, if it does.
    pub rate: Option<RateSample>,
    /// All bytes acknowledged on the path so far, this frame's included.
    pub delivered: Bytes,
    /// All bytes declared lost on the path so far.
    pub lost: Bytes,
}

/// One sample of the delivery rate, taken over the time since the newest packet acknowledged left.
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1>
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes delivered over that time, by its length.
    pub rate: Rate,
    /// Those bytes.
    pub delivered: Bytes,
    /// That time: the longer of the sending and of the acknowledging of them.
    pub interval: Duration,
    /// All bytes that had been delivered when the newest packet left: a round trip ends once this
    /// reaches what was delivered at its start.
    pub prior_delivered: Bytes,
    /// Bytes in flight when the newest packet left, itself included.
    pub in_flight_at_send: Bytes,
    /// Bytes declared lost since the newest packet left.
    pub lost: Bytes,
    /// True if the newest packet left while the path was application-limited: the rate is then a
    /// lower bound of what the path can do.
    pub limited: bool,
}

/// A packet that was declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Its number: where the next one lost follows on it, both belong to one range.
    pub pn: PacketNumber,
    /// When it was sent.
    pub sent_at: Instant,
    /// Its size.
    pub bytes: Bytes,
    /// Bytes in flight when it left, itself included.
    pub in_flight_at_send: Bytes,
    /// All bytes that had been declared lost on the path when it left.
    pub lost_at_send: Bytes,
    /// True if it left while the path was application-limited.
    pub limited: bool,
}

/// Packets were declared lost.
#[derive(Clone, Copy, Debug)]
pub struct LostInfo<'a> {
    /// When.
    pub now: Instant,
    /// The packets, in packet-number order.
    pub packets: &'a [LostPacket],
    /// Their sizes added up.
    pub bytes: Bytes,
    /// All bytes declared lost on the path so far, these included.
    pub lost: Bytes,
    /// When the last of them was sent.
    pub newest_sent_at: Instant,
    /// Bytes in flight on the path without them.
    pub in_flight: Bytes,
    /// True if they show persistent congestion.
    pub persistent: bool,
}

/// What else may change on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathChange {
    /// New ECN-CE marks were reported for packets sent up to `sent_at`.
    EcnCongestion {
        /// How many packets were marked; at least one.
        marks: u64,
        /// When the newest packet acknowledged with them was sent.
        sent_at: Instant,
        /// When the report came.
        now: Instant,
    },
    /// A probe timeout fired.
    Pto,
    /// The sender came to rest with window left.
    ApplicationLimited,
    /// Acknowledgements return another way: the least round-trip time is void.
    ReturnRoute,
    /// The largest datagram changed, before anything was measured with it: the initial window is
    /// counted anew.
    DatagramSize(Bytes),
    /// Everything that was declared lost in a round of losses arrived after all. A round begins with
    /// the loss of a packet that was sent after the start of the round before, as a recovery period
    /// does. <https://www.rfc-editor.org/rfc/rfc9438#section-4.9>
    SpuriousLoss {
        /// When the round began: [`LostInfo::now`] of its first losses.
        since: Instant,
        /// When the last of its packets was acknowledged.
        now: Instant,
    },
    /// The largest datagram changed, as the path was found to carry it, or to carry no more. The window
    /// in bytes stays, unless it is below the least. <https://www.rfc-editor.org/rfc/rfc8899#section-3>
    PathMtu(Bytes),
}

/// What a controller publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Published {
    /// Congestion window.
    pub cwnd: Bytes,
    /// Slow-start threshold; `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// The pace the controller asks for; `None`: the engine's default pace.
    pub pacing_rate: Option<Rate>,
    /// Its bandwidth estimate, if it has one.
    pub bandwidth: Option<Rate>,
    /// The round-trip time without queue that it reckons with, if it keeps one of its own.
    pub min_rtt: Option<Duration>,
    /// Smoothed round-trip time of the path, copied in by the engine.
    pub srtt: Option<Duration>,
    /// Bytes acknowledged since the last loss or between the last two, whichever is more; `None` if
    /// the controller does not count them. `olia` ranks paths by it.
    pub between_losses: Option<Bytes>,
    /// Name of the state, such as `slow start`.
    pub state: &'static str,
}

/// What every path's controller last published, the reader's own included, in order of path
/// identifier. A path that leaves drops out at once.
#[derive(Clone, Copy, Debug)]
pub struct Peers<'a> {
    /// The path of the reader.
    pub own: PathKey,
    /// All of them.
    pub all: &'a [(PathKey, Published)],
}
