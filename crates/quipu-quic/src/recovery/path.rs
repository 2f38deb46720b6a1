//! What recovery keeps of a path, whichever packet number space it serves: round-trip estimate,
//! delivery rate, ECN, congestion controller and pace.

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_policy::congestion::{PathChange, Peers, Published, RateSample, SentInfo};
use quipu_policy::{Controller, PathKey, PathState, PathView};

use super::ack_times::AckTimes;
use super::{
    DeliveryRate, EcnPath, LossRound, Pacer, PersistentCongestion, Reordering, ReturnWay,
    SentRecord, take_rtt_sample,
};
use crate::config::{RecoveryRules, TransportConfig};

/// Probe packets per probe timeout.
// https://www.rfc-editor.org/rfc/rfc9002#section-6.2.4
//# a sender MUST send at least one ack-eliciting packet in the packet
//# number space as a probe [...] An endpoint MAY send up to two full-sized
//# datagrams containing ack-eliciting packets
pub(crate) const PROBES: u8 = 2;

/// What recovery keeps of a path beside its packets. The estimates that policies read stand in the
/// path's view.
pub(crate) struct PathRecovery {
    pub(super) key: PathKey,
    pub(super) rules: RecoveryRules,
    pub(super) controller: Box<dyn Controller>,
    pacer: Pacer,
    /// The pace where the controller asks for none: so many percent of the window per round trip.
    pacing_percent: Option<u32>,
    /// Packets of a burst: so much below the window is not application-limited.
    pub(super) burst_packets: u32,
    pub(super) delivery: DeliveryRate,
    pub(super) ecn: EcnPath,
    pub(super) ack_times: AckTimes,
    pub(super) return_way: ReturnWay,
    pub(super) persistent: PersistentCongestion,
    pub(super) reordering: Reordering,
    pub(super) loss_round: LossRound,
    /// The sender came to rest with window left since it last filled it.
    pub(super) app_limited: bool,
    /// The host took no more datagrams for a while though there was window left, since that was last filled.
    host_limited: bool,
    /// When it took no more, and has not taken any since.
    host_full_at: Option<Instant>,
    /// When the first round-trip sample was taken.
    pub(super) first_sample_at: Option<Instant>,
    /// Probe packets that a probe timeout asks for.
    pub(super) probes_due: u8,
    /// When the probe timeout last fired.
    pto_fired_at: Option<Instant>,
    /// When the last acknowledgement of its packets came.
    pub(super) acked_at: Option<Instant>,
}

impl PathRecovery {
    /// A path on which nothing was sent, with datagrams of `size`.
    pub(crate) fn new(
        now: Instant,
        key: PathKey,
        controller: Box<dyn Controller>,
        size: Bytes,
        config: &TransportConfig,
    ) -> Self {
        PathRecovery {
            key,
            rules: config.recovery,
            controller,
            pacer: Pacer::new(now, size, config.burst),
            pacing_percent: config.pacing_percent,
            burst_packets: config.burst.packets,
            delivery: DeliveryRate::new(now),
            ecn: EcnPath::new(config.ecn),
            ack_times: AckTimes::default(),
            return_way: ReturnWay::new(key),
            persistent: PersistentCongestion::default(),
            reordering: Reordering::default(),
            loss_round: LossRound::default(),
            app_limited: true,
            host_limited: false,
            host_full_at: None,
            first_sample_at: None,
            probes_due: 0,
            pto_fired_at: None,
            acked_at: None,
        }
    }

    /// The path.
    pub(crate) fn key(&self) -> PathKey {
        self.key
    }

    /// The path is expected to have that round-trip time, as long as there is no sample.
    pub(crate) fn expect_rtt(&mut self, rtt: Duration) {
        self.rules.initial_rtt = rtt;
    }

    /// When its packets count as lost, and when it is probed.
    pub(crate) fn rules(&self) -> &RecoveryRules {
        &self.rules
    }

    /// Packets by which a packet must be overtaken to be lost, among 1-RTT packets or in a space of
    /// the handshake; `None`: time alone decides.
    pub(crate) fn packet_threshold(&self, is_one_rtt: bool) -> Option<u64> {
        if is_one_rtt {
            self.reordering.threshold(&self.rules)
        } else {
            self.rules.packet_threshold
        }
    }

    /// What the controller publishes.
    pub(crate) fn published(&self) -> Published {
        self.controller.published()
    }

    /// The pace; `None` while there is none and nothing is held back.
    pub(crate) fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate()
    }

    /// What left does not arrive, and says nothing of the path: a burst may leave at once.
    pub(crate) fn restart_pace(&mut self, now: Instant, view: &mut PathView) {
        self.pacer.restart(now);
        view.release_at = self.pacer.release_at();
    }

    /// The pace that the configuration asks for, if it asks for one.
    pub(crate) fn configured_pace(&self) -> Option<Rate> {
        self.pacing_percent.and_then(|_| self.pacer.rate())
    }

    /// The last sample of the delivery rate.
    pub(crate) fn rate_sample(&self) -> Option<&RateSample> {
        self.delivery.latest()
    }

    /// When the last acknowledgement of its packets came.
    pub(crate) fn acked_at(&self) -> Option<Instant> {
        self.acked_at
    }

    /// When the packet left that an acknowledgement names as its largest, if that is remembered.
    pub(crate) fn sent_at(&self, largest: quipu_base::PacketNumber) -> Option<Instant> {
        self.ack_times.sent_at(largest)
    }

    /// From when a probe timeout runs: the last ack-eliciting packet, or the timeout before.
    pub(crate) fn probe_base(&self, last_eliciting_at: Instant) -> Instant {
        self.pto_fired_at.map_or(last_eliciting_at, |at| at.max(last_eliciting_at))
    }

    /// The probe timeout of one of its spaces fired.
    pub(crate) fn on_probe_timeout(&mut self, now: Instant) {
        self.pto_fired_at = Some(now);
    }

    /// The path leads to another address: a probe timeout runs from now, or from what is sent there, and
    /// is not over already for what was sent elsewhere.
    pub(crate) fn on_moved(&mut self, now: Instant) {
        self.pto_fired_at = Some(now);
    }

    /// Probes that were due elsewhere go no more.
    pub(crate) fn forget_probes(&mut self) {
        self.probes_due = 0;
    }

    /// Everything that was measured is void, and another controller begins. Probes that are due and the
    /// probe timeout that runs are of the address, and stay.
    pub(crate) fn restart(
        &mut self,
        now: Instant,
        controller: Box<dyn Controller>,
        size: Bytes,
        config: &TransportConfig,
    ) {
        let PathRecovery { probes_due, pto_fired_at, .. } = *self;
        let mut ecn = self.ecn.clone();
        ecn.restart(now, config.ecn);
        let fresh = PathRecovery::new(now, self.key, controller, size, config);
        *self = PathRecovery { probes_due, pto_fired_at, ecn, ..fresh };
    }

    /// At least so many probe packets are to go.
    pub(crate) fn ask_for_probes(&mut self, count: u8) {
        self.probes_due = self.probes_due.max(count);
    }

    /// Probe packets that are to go.
    pub(crate) fn probes_due(&self) -> u8 {
        self.probes_due
    }

    /// A probe packet goes, or cannot: the how-manieth of its timeout it is, from 0.
    pub(crate) fn take_probe(&mut self) -> usize {
        let nth = usize::from(PROBES.saturating_sub(self.probes_due));
        self.probes_due = self.probes_due.saturating_sub(1);
        nth
    }

    /// The datagram of a 1-RTT packet leaves: whether it is marked as ECN-capable.
    pub(crate) fn marks_next(&mut self, now: Instant) -> bool {
        self.ecn.on_sent(now)
    }

    /// A packet that counts as in flight leaves: window, pace and controller know of it. Its record
    /// keeps what is counted then.
    pub(crate) fn on_sent(
        &mut self,
        record: &mut SentRecord,
        datagram: Bytes,
        view: &mut PathView,
        published: &mut [(PathKey, Published)],
    ) {
        let (now, bytes) = (record.sent_at, Bytes(u64::from(record.bytes)));
        view.in_flight += bytes;
        record.at_send = Some(self.delivery.on_sent(now, bytes, view.in_flight));
        if record.is_awaited() {
            record.eliciting_number = self.persistent.next_number();
        }
        let limited = self.delivery.is_limited();
        let info = SentInfo { now, bytes, in_flight: view.in_flight, limited };
        self.controller.on_sent(&info, &Peers { own: self.key, all: published });
        view.release_at = self.pacer.on_sent(now, bytes, datagram);
        // One that takes more at once, as in virtual time, holds nothing back.
        if self.host_full_at.take().is_some_and(|at| now > at) {
            self.host_limited = true;
        }
        if view.room() < view.payload {
            self.host_limited = false;
        }
        if !view.is_open(now) {
            self.app_limited = false;
            if view.state == PathState::Usable && !view.amplification_limited {
                self.delivery.on_held_back();
            }
        }
        let begins = view.in_flight == bytes;
        if begins {
            // After silence the controller may ask for another pace.
            self.publish(now, datagram, view, published);
        }
    }

    /// A round-trip time was measured otherwise than by an acknowledgement, before any other.
    pub(crate) fn on_first_rtt(&mut self, now: Instant, rtt: Duration, view: &mut PathView) {
        self.first_sample_at = Some(now);
        take_rtt_sample(view, rtt, Duration::ZERO);
    }

    /// Something changed on the path: the controller hears of it.
    pub(crate) fn on_change(
        &mut self,
        now: Instant,
        change: PathChange,
        datagram: Bytes,
        view: &mut PathView,
        published: &mut [(PathKey, Published)],
    ) {
        self.controller.on_change(change, &Peers { own: self.key, all: published });
        self.publish(now, datagram, view, published);
    }

    /// The host takes no more datagrams, which the pacer alone does not tell: where the processor is slower
    /// than the path, it holds back for an instant now and then.
    pub(crate) fn on_host_full(&mut self, now: Instant, view: &PathView) {
        self.host_full_at = (view.room() >= view.payload).then_some(now);
    }

    /// True if the window was not filled since the application, a policy or the host last left room in it.
    pub(super) fn is_held_back(&self, now: Instant) -> bool {
        self.app_limited || self.host_limited || self.host_full_at.is_some_and(|at| now > at)
    }

    /// Nothing more goes now. A path that has window and pace left is limited by the application or
    /// a policy, and says so; of the others, when the pacer lets go of the next packet.
    pub(crate) fn on_rest(
        &mut self,
        now: Instant,
        view: &mut PathView,
        published: &[(PathKey, Published)],
    ) -> Option<Instant> {
        self.host_full_at = None;
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.8
        //# A sender SHOULD NOT consider itself application limited if it would have fully
        //# utilized the congestion window without pacing delay.
        if view.is_open(now) {
            self.delivery.on_limited(view.in_flight);
            if !self.app_limited {
                self.app_limited = true;
                let peers = Peers { own: self.key, all: published };
                self.controller.on_change(PathChange::ApplicationLimited, &peers);
            }
            return None;
        }
        let held =
            view.state == PathState::Usable && view.release_at > now && view.room() >= view.payload;
        held.then_some(view.release_at)
    }

    /// Copies what the controller publishes to where policies and other controllers see it, and
    /// sets the pace: the one that the controller asks for, or one made of window and round-trip
    /// time where the configuration asks for pacing.
    pub(crate) fn publish(
        &mut self,
        now: Instant,
        datagram: Bytes,
        view: &mut PathView,
        published: &mut [(PathKey, Published)],
    ) {
        let mut news = self.controller.published();
        news.srtt = view.srtt;
        view.cwnd = news.cwnd;
        view.ssthresh = news.ssthresh;
        // https://www.rfc-editor.org/rfc/rfc9002#section-7.7
        //# A sender SHOULD pace sending of all in-flight packets based on input from the
        //# congestion controller.
        let default_pace = || {
            let rate = Rate::from_bytes_over(view.cwnd, view.srtt?)?;
            let bits = u128::from(rate.bits_per_sec()) * u128::from(self.pacing_percent?);
            Some(Rate::from_bits_per_sec(u64::try_from(bits / 100).unwrap_or(u64::MAX)))
        };
        if let Some(rate) = news.pacing_rate.or_else(default_pace) {
            self.pacer.set_rate(now, rate, datagram);
            view.release_at = self.pacer.release_at();
        }
        if let Some(entry) = published.iter_mut().find(|(key, _)| *key == self.key) {
            entry.1 = news;
        }
    }
}
