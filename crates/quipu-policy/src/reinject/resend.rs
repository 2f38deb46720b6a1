//! The plain rules of sending lost bytes again.

/// Which path lost bytes take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResendPath {
    /// The one that the path policy picks for them.
    #[default]
    Policy,
    /// Any open one: that which has sent nothing for longest, whatever the path policy says.
    Open,
}

/// How lost bytes are sent again: four rules that can be set one by one, and the settings of known
/// implementations.
///
/// What is no rule, because it holds for every policy here:
/// - lost bytes wait in the send buffer of their stream, not in a queue of packets or frames: they
///   are cut anew, and what was acknowledged meanwhile is not sent again;
/// - sending again needs room in the congestion window. mp-quic ignores the window, which then
///   overshoots after every burst of losses;
/// - a probe of a probe timeout leaves on its own path, before anything else, beyond the window. As
///   RFC 9002 has it, and xquic, whose order is probes, lost bytes, fresh bytes;
/// - control frames that were lost go with the latest value, on any path but for those that speak of
///   their path. mp-quic keeps them on the path that lost them, and sends updates of windows twice.
///
/// Source: qdeconinck/mp-quic, alibaba/xquic and private-octopus/picoquic, read in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResendRules {
    /// Lost bytes go before all fresh ones; else they keep their stream's rank, and go before the
    /// fresh ones of that stream.
    pub first: bool,
    /// Which path they take.
    pub path: ResendPath,
    /// From so many probe timeouts in a row, lost bytes avoid the path that lost them, if another
    /// is open.
    pub avoid_origin_after_pto: u32,
    /// From so many probe timeouts in a row, a path's bytes in flight are pending again, if another
    /// path answered meanwhile.
    pub requeue_after_pto: u32,
}

impl ResendRules {
    /// Ours: by rank, on the path that the policy picks, away from a path at its first probe timeout.
    pub const RANK: ResendRules = ResendRules {
        first: false,
        path: ResendPath::Policy,
        avoid_origin_after_pto: 1,
        requeue_after_pto: 1,
    };

    /// Ours, before all fresh bytes.
    pub const FIRST: ResendRules = ResendRules { first: true, ..ResendRules::RANK };

    /// Those of mp-quic: before all fresh bytes; a path is potentially failed from its first timeout
    /// on, and its bytes go elsewhere.
    pub const MP_QUIC: ResendRules = ResendRules::FIRST;

    /// Those of xquic: before all fresh bytes; the scheduler alone decides on the path, also after
    /// timeouts. From the second one the path is of the lowest class. That its bytes in flight are
    /// pending again then is our choice: our probes never leave their path, so they would stay there.
    pub const XQUIC: ResendRules = ResendRules {
        avoid_origin_after_pto: u32::MAX,
        requeue_after_pto: 2,
        ..ResendRules::FIRST
    };

    /// Those of picoquic: before the fresh bytes of their stream, on any open path, that which lost
    /// them too.
    pub const PICOQUIC: ResendRules = ResendRules {
        path: ResendPath::Open,
        avoid_origin_after_pto: u32::MAX,
        ..ResendRules::RANK
    };
}

impl Default for ResendRules {
    fn default() -> Self {
        ResendRules::RANK
    }
}
