//! A path, found once: what is done to it takes the handle, not its slot.

use quipu_base::{Bytes, Duration, Instant, PerMille};
use quipu_policy::congestion::{PathChange, Published};
use quipu_policy::{Controller, PathKey, PathView, Piece};

use super::data::payload;
use super::{PathData, PathMtu, Which, hosts};
use crate::config::TransportConfig;
use crate::recovery::{SentPackets, SentRecord, SpaceRecovery};
use crate::route::Route;

/// What the engine keeps of a path, and what policies see of it.
#[derive(Clone, Copy)]
pub(crate) struct PathRef<'t> {
    pub(crate) data: &'t PathData,
    /// `None` once the path is abandoned: it is hidden from policies.
    pub(crate) view: Option<&'t PathView>,
}

/// The same, to change it.
pub(crate) struct PathMut<'t> {
    pub(crate) data: &'t mut PathData,
    /// `None` once the path is abandoned: it is hidden from policies.
    pub(crate) view: Option<&'t mut PathView>,
    /// What the controllers of all paths last published.
    pub(super) published: &'t mut [(PathKey, Published)],
}

impl PathRef<'_> {
    /// Bytes that the next packet may take: a full datagram, or what the window leaves.
    pub(crate) fn packet_size(&self) -> usize {
        let room = self.view.map_or(Bytes::ZERO, PathView::room);
        // https://www.rfc-editor.org/rfc/rfc9000#section-14.2
        //# All QUIC packets that are not sent in a PMTU probe SHOULD be sized to fit within the
        //# maximum datagram size to avoid the datagram being fragmented or dropped [RFC8085].
        usize::try_from(room.0).unwrap_or(usize::MAX).min(usize::from(self.data.mtu.size()))
    }

    /// True while the path's socket takes no datagrams.
    pub(crate) fn is_blocked(&self) -> bool {
        self.view.is_some_and(|view| view.blocked)
    }

    /// True if a data packet may leave now.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.view.is_some_and(|view| view.is_open(now))
    }
}

impl PathMut<'_> {
    /// A datagram of `length` bytes leaves by `route`.
    pub(crate) fn on_datagram_sent(&mut self, route: &Route, length: usize) {
        let addresses = &mut self.data.addresses;
        if let Some(leg) = addresses.find(route).and_then(|which| addresses.leg_mut(which)) {
            leg.amplification.on_sent(length);
        }
        self.data.responses.on_sent(route, length);
        self.show_limit();
    }

    /// Policies see whether the anti-amplification limit holds the path now.
    pub(crate) fn show_limit(&mut self) {
        if let Some(view) = &mut self.view {
            view.amplification_limited = self.data.is_amplification_limited();
        }
    }

    /// A packet of `bytes` leaves for an address that is not the path's.
    pub(crate) fn count_sent_apart(&mut self, bytes: Bytes) {
        self.data.counters.packets_sent += 1;
        self.data.counters.bytes_sent += bytes.0;
    }

    /// A packet of `bytes` leaves, with these pieces of streams.
    pub(crate) fn count_sent(&mut self, now: Instant, bytes: Bytes, pieces: &[Piece]) {
        self.data.counters.on_pieces(pieces);
        let Some(view) = &mut self.view else { return };
        self.data.counters.packets_sent += 1;
        self.data.counters.bytes_sent += bytes.0;
        view.packets_sent += 1;
        view.last_sent_at = Some(now);
    }

    /// The same packet counts as in flight: window, pace and controller know of it, but for a path
    /// that is abandoned. Its record keeps what is counted then.
    pub(crate) fn depart(&mut self, record: &mut SentRecord) {
        let PathMut { data, view: Some(view), published } = self else { return };
        let datagram = data.datagram_bytes();
        data.recovery.on_sent(record, datagram, view, published);
    }

    /// A PATH_CHALLENGE with that data leaves for one of the addresses, in a datagram of full size
    /// or not.
    pub(crate) fn on_challenge(
        &mut self,
        now: Instant,
        which: Which,
        data: [u8; 8],
        is_full: bool,
    ) {
        if let Some(timeout) = self.challenge_timeout(which)
            && let Some(leg) = self.data.addresses.leg_mut(which)
        {
            // https://www.rfc-editor.org/rfc/rfc9000#section-9.4
            //# This timer SHOULD be set as described in Section 6.2.1 of [QUIC-RECOVERY] and MUST
            //# NOT be more aggressive.
            leg.validation.on_challenge_sent(now, data, is_full, timeout);
        }
    }

    /// A PATH_CHALLENGE is to be sent, but the anti-amplification limit does not allow it.
    pub(crate) fn withhold_challenge(&mut self, now: Instant, which: Which) {
        if let Some(timeout) = self.challenge_timeout(which)
            && let Some(leg) = self.data.addresses.leg_mut(which)
        {
            leg.validation.on_challenge_withheld(now, timeout);
        }
    }

    /// How long an answer from an address is waited for. Nothing is known of the round trip to an
    /// address that is not the one in use.
    fn challenge_timeout(&self, which: Which) -> Option<Duration> {
        let rules = self.data.recovery.rules();
        let present = rules.probe_timeout(self.view.as_deref()?, Duration::ZERO);
        Some(match which {
            Which::Active => present,
            Which::Other => present.max(rules.first_probe_timeout()),
        })
    }

    /// When the validation of a new address is given up.
    pub(crate) fn validation_end(&self, now: Instant) -> Instant {
        let rules = self.data.recovery.rules();
        let present = self.view.as_deref().map(|view| rules.probe_timeout(view, Duration::ZERO));
        let longer = rules.first_probe_timeout().max(present.unwrap_or_default());
        // https://www.rfc-editor.org/rfc/rfc9000#section-8.2.4
        //# A value of three times the larger of the current PTO or the PTO for the new path
        //# (using kInitialRtt, as defined in [QUIC-RECOVERY]) is RECOMMENDED.
        now + longer.saturating_mul(3)
    }

    /// Packets go to another address from now on. Those in flight count no longer; what was
    /// subtracted.
    pub(crate) fn begin_epoch(&mut self, now: Instant) -> Bytes {
        self.data.packets.sent.begin_epoch();
        self.data.recovery.on_moved(now);
        let Some(view) = &mut self.view else { return Bytes::ZERO };
        view.pto_count = 0;
        view.amplification_limited = self.data.is_amplification_limited();
        std::mem::take(&mut view.in_flight)
    }

    /// Window, round-trip time and rate begin anew, for a network that nothing is known of.
    pub(crate) fn restart(
        &mut self,
        now: Instant,
        controller: Box<dyn Controller>,
        config: &TransportConfig,
    ) {
        let PathMut { data, view: Some(view), published } = self else { return };
        let datagram = data.datagram_bytes();
        data.measured.mtu = None;
        data.measured.hosts = hosts(&data.addresses.route());
        data.recovery.restart(now, controller, datagram, config);
        view.srtt = None;
        view.rttvar = config.recovery.initial_rtt.divided_by(2);
        view.min_rtt = None;
        view.latest_rtt = None;
        view.rate = None;
        view.limited = false;
        view.loss = PerMille(0);
        view.release_at = now;
        data.recovery.publish(now, datagram, view, published);
    }

    /// Packets go by `route` from now on. To another host nothing longer than that of `mtu` goes until
    /// it is proved; back where the path was measured, what went there before. The controller hears
    /// nothing of it: it is for the network that was measured.
    pub(crate) fn leave(&mut self, now: Instant, route: Route, mtu: PathMtu) {
        let PathMut { data, view: Some(view), .. } = self else { return };
        if hosts(&route) != data.measured.hosts {
            let before = std::mem::replace(&mut data.mtu, mtu);
            data.measured.mtu.get_or_insert_with(|| Box::new(before));
        } else if let Some(mtu) = data.measured.mtu.take() {
            data.mtu = *mtu;
        }
        data.mtu.on_moved(now);
        view.payload = payload(data.mtu.size());
    }

    /// The path was validated, or the handshake is complete: datagrams of up to `most` bytes may be
    /// sent, as far as the path carries them.
    pub(crate) fn allow_datagrams(&mut self, now: Instant, most: u16) {
        let before = self.data.mtu.size();
        self.data.mtu.on_connected(most);
        if self.data.mtu.size() != before {
            self.on_resized(now, PathChange::DatagramSize(self.data.datagram_bytes()));
        }
    }

    /// Full datagrams have another size, as the path was found to carry it, or to carry no more.
    pub(crate) fn on_mtu_found(&mut self, now: Instant) {
        // https://www.rfc-editor.org/rfc/rfc8899#section-3
        //# An update to the PLPMTU (or MPS) MUST NOT increase the congestion window measured in
        //# bytes [RFC4821].
        self.on_resized(now, PathChange::PathMtu(self.data.datagram_bytes()));
    }

    fn on_resized(&mut self, now: Instant, change: PathChange) {
        if let Some(view) = &mut self.view {
            view.payload = payload(self.data.mtu.size());
            self.change(now, change);
        }
        // It is about a full datagram.
        self.show_limit();
    }

    /// Something changed: the controller hears of it. Not of a path that is abandoned.
    pub(crate) fn change(&mut self, now: Instant, change: PathChange) {
        let PathMut { data, view: Some(view), published } = self else { return };
        let datagram = data.datagram_bytes();
        data.recovery.on_change(now, change, datagram, view, published);
    }

    /// The host takes no more datagrams now.
    pub(crate) fn host_is_full(&mut self, now: Instant) {
        if let Some(view) = &self.view {
            self.data.recovery.on_host_full(now, view);
        }
    }

    /// Nothing more goes now: see [`PathRecovery::on_rest`](crate::recovery::PathRecovery::on_rest).
    pub(crate) fn rest(&mut self, now: Instant) -> Option<Instant> {
        let view = self.view.as_deref_mut()?;
        self.data.recovery.on_rest(now, view, self.published)
    }
}

impl<'t> PathMut<'t> {
    /// The recovery of its 1-RTT packets.
    pub(crate) fn into_recovery(self) -> SpaceRecovery<'t> {
        let PathMut { data, view, published } = self;
        let datagram = data.datagram_bytes();
        let PathData { packets, recovery: path, counters, .. } = data;
        let sent = &mut packets.sent;
        SpaceRecovery { sent, path, is_one_rtt: true, counters, view, published, datagram }
    }

    /// The recovery of a space of the handshake, whose packets travel on it.
    pub(crate) fn into_recovery_of(self, sent: &'t mut SentPackets) -> SpaceRecovery<'t> {
        SpaceRecovery { sent, is_one_rtt: false, ..self.into_recovery() }
    }
}
