//! How far packets of a path overtake each other, and losses that turn out to be none.

use quipu_base::{Duration, Instant, PacketNumber};
use quipu_policy::PathView;

use super::SentRecord;
use crate::config::RecoveryRules;

/// The greatest packet threshold that reordering leads to; our choice. From there on time decides.
const MAX_THRESHOLD: u64 = 4_096;

/// Rounds of losses without a spurious one after which reordering is forgotten.
/// <https://www.rfc-editor.org/rfc/rfc8985#section-6.2>
const PERSISTENCE: u32 = 16;

/// The thresholds of loss detection, as reordering on the path demands them.
///
/// Packets that arrive after they were declared lost show how far packets may be overtaken: the
/// packet threshold grows to that, as in Linux and in Google's QUIC. If they came later than the
/// time threshold allows, that grows by a quarter of the least round-trip time, once in a round
/// trip and up to a round trip, as the reordering window of RACK. After 16 rounds of losses without
/// a spurious one both are as RFC 9002 recommends them.
/// <https://www.rfc-editor.org/rfc/rfc8985#section-6.2>
#[derive(Clone, Debug, Default)]
pub(super) struct Reordering {
    /// The packet threshold; none above that of the rules while zero.
    threshold: u64,
    /// Quarters of the least round-trip time added to the time threshold.
    steps: u64,
    /// No further step before this.
    next_step_at: Instant,
    /// Rounds of losses left until all of it is forgotten.
    rounds_left: u32,
}

impl Reordering {
    /// Packets of a space that were declared lost arrived after all. `largest`: the largest that was
    /// acknowledged before.
    pub(super) fn on_late(
        &mut self,
        now: Instant,
        late: &[SentRecord],
        largest: Option<PacketNumber>,
        rules: &RecoveryRules,
        view: &PathView,
    ) {
        for record in late.iter().filter(|record| !record.mtu_probe) {
            let overtaken = largest.map_or(0, |largest| largest.0.saturating_sub(record.pn.0));
            self.threshold = self.threshold.max((overtaken + 1).min(MAX_THRESHOLD));
            self.rounds_left = PERSISTENCE;
            let too_late = now - record.sent_at > rules.loss_delay(view);
            if too_late && now >= self.next_step_at {
                self.steps += 1;
                self.next_step_at = now + rules.rtt(view);
            }
        }
    }

    /// A round of losses began: losses of packets sent before it belong to it.
    pub(super) fn on_round(&mut self) {
        self.rounds_left = self.rounds_left.saturating_sub(1);
        if self.rounds_left == 0 {
            *self = Reordering::default();
        }
    }

    /// Packets by which a packet must be overtaken to be lost; `None`: time alone decides.
    pub(super) fn threshold(&self, rules: &RecoveryRules) -> Option<u64> {
        rules.packet_threshold.map(|least| least.max(self.threshold))
    }

    /// How long after it was sent a packet may come, once a later one was acknowledged.
    pub(super) fn loss_delay(&self, rules: &RecoveryRules, view: &PathView) -> Duration {
        let plain = rules.loss_delay(view);
        if self.steps == 0 {
            return plain;
        }
        let (rtt, least) = (rules.rtt(view), view.min_rtt.unwrap_or_default());
        let window = least.divided_by(4).saturating_mul(self.steps).min(rtt);
        plain.max(rtt.max(view.latest_rtt.unwrap_or(rtt)) + window)
    }
}

/// The last round of losses: those for which the controller reduced the window once.
///
/// If all of its packets arrive after all, nothing was lost and the reduction is to be undone.
/// <https://www.rfc-editor.org/rfc/rfc9438#section-4.9>
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossRound {
    round: Option<Round>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    /// When the first of its losses was found; packets sent until then belong to it.
    began_at: Instant,
    /// Packets sent until then belong to earlier rounds.
    after: Option<Instant>,
    /// Lost packets of the round that have not arrived.
    missing: u64,
}

impl Round {
    fn holds(&self, record: &SentRecord) -> bool {
        // The loss of a probe of the path MTU reduces no window.
        !record.mtu_probe
            && record.sent_at <= self.began_at
            && self.after.is_none_or(|after| record.sent_at > after)
    }
}

impl LossRound {
    /// Packets were declared lost, in order of sending. True if a round began with them.
    pub(super) fn on_lost(&mut self, now: Instant, lost: &[SentRecord]) -> bool {
        let after = self.round.map(|round| round.began_at);
        let newest = lost.iter().rfind(|record| !record.mtu_probe);
        let begins = newest.is_some_and(|newest| after.is_none_or(|at| newest.sent_at > at));
        if begins {
            self.round = Some(Round { began_at: now, after, missing: 0 });
        }
        if let Some(round) = &mut self.round {
            round.missing += lost.iter().filter(|record| round.holds(record)).count() as u64;
        }
        begins
    }

    /// Packets that were declared lost arrived after all. When the round began, if nothing of it is
    /// lost any more; told once.
    pub(super) fn on_late(&mut self, late: &[SentRecord]) -> Option<Instant> {
        let round = self.round.as_mut()?;
        let before = round.missing;
        round.missing -=
            (late.iter().filter(|record| round.holds(record)).count() as u64).min(before);
        (before > 0 && round.missing == 0).then_some(round.began_at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::rtt::tests::view;
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn records(packets: &[(u64, u64)]) -> Vec<SentRecord> {
        packets.iter().map(|&(pn, at)| SentRecord::new(PacketNumber(pn), ms(at))).collect()
    }

    /// A path with a round trip of 100 ms.
    fn path() -> PathView {
        let rtt = Some(Duration::from_millis(100));
        PathView { srtt: rtt, latest_rtt: rtt, min_rtt: rtt, ..view() }
    }

    const fn millis(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_packet_threshold_grows_to_what_was_seen_and_no_further_than_its_limit() {
        let (rules, view) = (RecoveryRules::default(), path());
        let mut reordering = Reordering::default();
        assert_eq!(reordering.threshold(&rules), Some(3));
        let largest = Some(PacketNumber(17));
        reordering.on_late(ms(105), &records(&[(10, 0), (12, 0)]), largest, &rules, &view);
        assert_eq!(reordering.threshold(&rules), Some(8));
        assert_eq!(reordering.loss_delay(&rules, &view), rules.loss_delay(&view));
        let largest = Some(PacketNumber(1_000_000));
        reordering.on_late(ms(105), &records(&[(20, 0)]), largest, &rules, &view);
        assert_eq!(reordering.threshold(&rules), Some(MAX_THRESHOLD));
        let by_time = RecoveryRules { packet_threshold: None, ..rules };
        assert_eq!(reordering.threshold(&by_time), None);
    }

    #[test]
    fn the_time_threshold_grows_once_in_a_round_trip_and_up_to_one() {
        let (rules, view) = (RecoveryRules::default(), path());
        let mut reordering = Reordering::default();
        let largest = Some(PacketNumber(9));
        let mut delays = Vec::new();
        for round in 0..6 {
            for _ in 0..3 {
                let at = 1_000 + round * 100;
                let late = records(&[(8, at - 300)]);
                reordering.on_late(ms(at), &late, largest, &rules, &view);
            }
            delays.push(reordering.loss_delay(&rules, &view));
        }
        assert_eq!(delays, [125, 150, 175, 200, 200, 200].map(millis));
    }

    #[test]
    fn what_was_seen_is_forgotten_after_rounds_of_true_losses() {
        let (rules, view) = (RecoveryRules::default(), path());
        let mut reordering = Reordering::default();
        reordering.on_late(ms(300), &records(&[(0, 0)]), Some(PacketNumber(9)), &rules, &view);
        for _ in 1..PERSISTENCE {
            reordering.on_round();
            assert_eq!(reordering.threshold(&rules), Some(10));
        }
        reordering.on_round();
        assert_eq!(reordering.threshold(&rules), Some(3));
        assert_eq!(reordering.loss_delay(&rules, &view), rules.loss_delay(&view));
    }

    #[test]
    fn a_round_is_void_once_all_its_packets_arrived() {
        let mut round = LossRound::default();
        assert!(round.on_lost(ms(100), &records(&[(1, 10), (2, 20)])));
        assert!(!round.on_lost(ms(110), &records(&[(5, 50)])), "sent before the round began");
        assert_eq!(round.on_late(&records(&[(1, 10), (5, 50)])), None);
        assert_eq!(round.on_late(&records(&[(2, 20)])), Some(ms(100)));
        assert_eq!(round.on_late(&records(&[(2, 20)])), None);
    }

    #[test]
    fn packets_of_an_earlier_round_do_not_void_the_present_one() {
        let mut round = LossRound::default();
        round.on_lost(ms(100), &records(&[(1, 10)]));
        assert!(round.on_lost(ms(200), &records(&[(2, 90), (3, 150)])));
        assert_eq!(round.on_late(&records(&[(1, 10), (2, 90)])), None);
        assert_eq!(round.on_late(&records(&[(3, 150)])), Some(ms(200)));
    }
}
