//! Round trips counted by packets: from sending one to its acknowledgement.

use quipu_base::Bytes;

use super::RateSample;

/// Counts the round trips of a path.
///
/// One ends when a packet is acknowledged that left after its start. Nothing depends on time: while
/// little is sent, rounds are long.
///
/// Source: `draft-cardwell-iccrg-bbr-congestion-control-00`, section 4.1.1.3, the same in
/// <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-5.5.1>.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundCounter {
    /// What has to be delivered when a packet leaves for its acknowledgement to end the round.
    ends_at: Bytes,
    count: u64,
    started: bool,
}

impl RoundCounter {
    /// An acknowledgement gave `sample`; `delivered` bytes are acknowledged in all. True if it
    /// starts a round. Without a sample it is not known when its packet left, and no round starts.
    pub(super) fn on_acked(&mut self, sample: Option<&RateSample>, delivered: Bytes) -> bool {
        self.started = sample.is_some_and(|sample| sample.prior_delivered >= self.ends_at);
        if self.started {
            self.ends_at = delivered;
            self.count = self.count.saturating_add(1);
        }
        self.started
    }

    /// Begins the present round anew: it ends with a packet that leaves from now on, `delivered`
    /// bytes being acknowledged in all.
    pub(super) fn restart(&mut self, delivered: Bytes) {
        self.ends_at = delivered;
    }

    /// Round trips that ended.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// True if the last acknowledgement started a round.
    pub(super) fn started(&self) -> bool {
        self.started
    }
}

#[cfg(test)]
mod tests {
    use quipu_base::{Duration, Rate};

    use super::*;

    fn sent_when(prior_delivered: u64) -> RateSample {
        RateSample {
            rate: Rate::ZERO,
            delivered: Bytes(1),
            interval: Duration::ZERO,
            prior_delivered: Bytes(prior_delivered),
            in_flight_at_send: Bytes(1),
            lost: Bytes(0),
            limited: false,
        }
    }

    #[test]
    fn a_round_ends_with_a_packet_sent_after_its_start() {
        let mut rounds = RoundCounter::default();
        // Three packets leave before anything is delivered.
        assert!(rounds.on_acked(Some(&sent_when(0)), Bytes(1)));
        assert!(!rounds.on_acked(Some(&sent_when(0)), Bytes(2)));
        assert!(!rounds.on_acked(Some(&sent_when(0)), Bytes(3)));
        assert!(!rounds.on_acked(None, Bytes(4)));
        // What left on the first acknowledgement.
        assert!(rounds.on_acked(Some(&sent_when(1)), Bytes(5)));
        assert_eq!(rounds.count(), 2);
        rounds.restart(Bytes(7));
        assert!(!rounds.on_acked(Some(&sent_when(5)), Bytes(8)));
        assert!(rounds.on_acked(Some(&sent_when(7)), Bytes(9)));
        assert!(rounds.started());
    }
}
