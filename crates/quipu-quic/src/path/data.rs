//! What the engine keeps of a path beside its view.

use std::net::IpAddr;

use quipu_base::{Bytes, Instant, PathId, PerMille};
use quipu_policy::{Controller, PathKey, PathSet, PathState, PathStatus, PathView};

use super::addresses::{Addresses, Leg};
use super::responses::Responses;
use super::{PathMtu, Pings};
use crate::config::TransportConfig;
use crate::counters::PathCounters;
use crate::recovery::{PacketSpace, PathRecovery};
use crate::route::Route;
use crate::wire::ConnectionId;

/// Bytes of a 1-RTT packet around stream data, at most for what we send: first byte, connection
/// ID of 20, packet number of 4, tag of 16, frame type, stream of 4, offset of 8.
const MAX_OVERHEAD: u64 = 1 + 20 + 4 + 16 + 1 + 4 + 8;

/// A path, beside what its view holds.
pub(crate) struct PathData {
    pub(crate) key: PathKey,
    /// Where its packets go.
    pub(crate) addresses: Addresses,
    pub(crate) measured: Measured,
    /// The connection ID by which the peer called this end when the path last moved.
    pub(crate) called_by: Option<ConnectionId>,
    /// That was another than the time before: the peer moved on purpose.
    pub(crate) calls_anew: bool,
    /// Its 1-RTT packets, both ways.
    pub(crate) packets: PacketSpace,
    pub(crate) recovery: PathRecovery,
    pub(crate) responses: Responses,
    /// Size of full datagrams.
    pub(crate) mtu: PathMtu,
    pub(crate) pings: Pings,
    /// Paths on which an acknowledgement of its packets has yet to go, in the present round.
    pub(crate) ack_owed: PathSet,
    /// When the last authentic packet came on it.
    pub(crate) heard_at: Option<Instant>,
    /// Something other than a PING came since the return path of acknowledgements was checked.
    pub(crate) has_content: bool,
    /// A probe without content came that was not acknowledged on this path yet.
    pub(crate) probed: bool,
    /// When a PING last asked for an acknowledgement of our acknowledgements.
    pub(crate) ack_pinged_at: Instant,
    /// Either end gave it up: nothing is sent on it any more.
    pub(crate) closing: bool,
    pub(crate) counters: PathCounters,
}

/// The network to which window and round-trip time belong.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) hosts: (IpAddr, IpAddr),
    /// How long datagrams may be there, if the path is elsewhere now.
    pub(crate) mtu: Option<Box<PathMtu>>,
}

/// The addresses of a route without their ports.
pub(crate) fn hosts(route: &Route) -> (IpAddr, IpAddr) {
    (route.local.ip(), route.remote.ip())
}

/// Stream bytes that fit one packet of that size.
pub(super) fn payload(datagram_size: u16) -> Bytes {
    Bytes(u64::from(datagram_size).saturating_sub(MAX_OVERHEAD))
}

impl PathData {
    /// A path on which nothing went yet. `trusted`: the peer's address needs no amplification limit.
    /// The first path carries the handshake; others are validated first.
    pub(crate) fn new(
        now: Instant,
        key: PathKey,
        (route, trusted): (Route, bool),
        datagram_size: u16,
        controller: Box<dyn Controller>,
        config: &TransportConfig,
    ) -> Self {
        let mut leg = Leg::new(route, trusted);
        // https://www.rfc-editor.org/rfc/rfc10069#section-3.1
        //# A client that wants to use a new path MUST validate the peer's address as described in
        //# Section 8.2 of [QUIC-TRANSPORT], unless it has previously validated the 4-tuple used
        //# for that path.
        if key.id != PathId::ZERO {
            leg.validation.start();
        } else if trusted {
            leg.prove();
        }
        let size = Bytes(u64::from(datagram_size));
        PathData {
            key,
            addresses: Addresses::new(now, leg),
            measured: Measured { hosts: hosts(&route), mtu: None },
            called_by: None,
            calls_anew: false,
            packets: PacketSpace::of_path(config.skips_packet_numbers),
            recovery: PathRecovery::new(now, key, controller, size, config),
            responses: Responses::default(),
            mtu: PathMtu::new(config.mtu, datagram_size),
            pings: Pings::default(),
            heard_at: None,
            ack_owed: PathSet::EMPTY,
            has_content: false,
            probed: false,
            ack_pinged_at: now,
            closing: false,
            counters: PathCounters::default(),
        }
    }

    /// What policies see of it at first.
    pub(crate) fn first_view(&self, now: Instant, status: PathStatus) -> PathView {
        let published = self.recovery.published();
        PathView {
            key: self.key,
            state: PathState::Validating,
            status,
            packets_sent: 0,
            last_sent_at: None,
            pto_count: 0,
            srtt: None,
            rttvar: self.recovery.rules().initial_rtt.divided_by(2),
            min_rtt: None,
            latest_rtt: None,
            cwnd: published.cwnd,
            ssthresh: published.ssthresh,
            in_flight: Bytes::ZERO,
            release_at: now,
            rate: None,
            limited: false,
            amplification_limited: self.is_amplification_limited(),
            blocked: false,
            loss: PerMille(0),
            payload: payload(self.mtu.size()),
        }
    }

    /// The size of a full datagram.
    pub(crate) fn datagram_bytes(&self) -> Bytes {
        Bytes(u64::from(self.mtu.size()))
    }

    pub(crate) fn id(&self) -> PathId {
        self.key.id
    }

    /// True if the anti-amplification limit does not let a full datagram go.
    pub(crate) fn is_amplification_limited(&self) -> bool {
        !self.addresses.active().amplification.allows(usize::from(self.mtu.size()))
    }

    /// True if something bound to this path may have to go: challenges, responses, probes, PINGs.
    #[inline]
    pub(crate) fn has_duties(&self, now: Instant) -> bool {
        self.addresses.wants_challenge()
            || !self.responses.is_empty()
            || self.recovery.probes_due() > 0
            || self.pings.are_due()
            || self.mtu.may_want_probe(now)
    }

    /// True unless the path is being abandoned.
    pub(crate) fn lives(&self) -> bool {
        !self.closing
    }
}
