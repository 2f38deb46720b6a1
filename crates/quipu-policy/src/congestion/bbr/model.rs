//! What BBR believes of a path: its bandwidth, its round-trip time without queue, whether it is full.

use quipu_base::{Bytes, Duration, Instant, Rate};

use super::super::filter::{AgedMin, WindowedMax};
use super::super::full_pipe::FullPipe;
use super::super::round::RoundCounter;
use super::super::{AckedInfo, RateSample};

/// Rounds after its own in which a delivery rate counts.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.1.2>
const BANDWIDTH_ROUNDS: u64 = 10;
/// How long a round-trip time counts as the least.
/// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.2.2>
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// The model of a path.
#[derive(Clone, Debug)]
pub(super) struct Model {
    bandwidth: WindowedMax<Rate>,
    min_rtt: AgedMin,
    /// The least round-trip time is of another route; the next sample replaces it.
    min_rtt_is_void: bool,
    /// The least round-trip time had grown too old when the last acknowledgement came.
    min_rtt_expired: bool,
    rounds: RoundCounter,
    full_pipe: FullPipe,
    /// Bytes delivered by the beginning of the last probe of the round-trip time, and by the end of
    /// what was in flight in it.
    probed: Option<(Bytes, Bytes)>,
    /// Product of bandwidth and least round-trip time.
    bdp: Option<Bytes>,
    /// What is in flight beyond that for the ends' sake.
    slack: Bytes,
    /// What is in flight while the product is not known.
    initial: Bytes,
}

impl Model {
    /// Nothing is known; up to then `initial` bytes are in flight.
    pub(super) fn new(initial: Bytes) -> Self {
        Model {
            bandwidth: WindowedMax::new(BANDWIDTH_ROUNDS),
            min_rtt: AgedMin::new(MIN_RTT_WINDOW),
            min_rtt_is_void: false,
            min_rtt_expired: false,
            rounds: RoundCounter::default(),
            full_pipe: FullPipe::default(),
            probed: None,
            bdp: None,
            slack: Bytes::ZERO,
            initial,
        }
    }

    /// Three quanta of sending are in flight beyond the product.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.2>
    pub(super) fn set_quantum(&mut self, quantum: Bytes) {
        self.slack = quantum.saturating_mul(3);
    }

    pub(super) fn set_initial(&mut self, initial: Bytes) {
        self.initial = initial;
    }

    /// Takes the delivery rate of an acknowledgement.
    ///
    /// A rate of zero tells nothing. One that the application limited counts only if it is no less
    /// than the greatest.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.1.5>
    pub(super) fn update_bandwidth(&mut self, acked: &AckedInfo<'_>) {
        let sample = acked.rate.as_ref().filter(|sample| sample.rate != Rate::ZERO);
        self.rounds.on_acked(sample, acked.delivered);
        let Some(sample) = sample else { return };
        let limited = self.is_limited(sample);
        if !limited || self.bandwidth().is_none_or(|best| sample.rate >= best) {
            self.bandwidth.update(self.rounds.count(), sample.rate);
            self.update_bdp();
        }
    }

    /// Judges whether bandwidth still grows; call after [`Model::update_bandwidth`].
    pub(super) fn check_full_pipe(&mut self, acked: &AckedInfo<'_>) {
        let limited = acked.rate.is_none_or(|sample| self.is_limited(&sample));
        if self.rounds.started()
            && !limited
            && let Some(bandwidth) = self.bandwidth()
        {
            self.full_pipe.on_round(bandwidth);
        }
    }

    /// Takes the round-trip time of an acknowledgement.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.1.2.3>
    pub(super) fn update_min_rtt(&mut self, acked: &AckedInfo<'_>) {
        self.min_rtt_expired = self.min_rtt.is_expired(acked.now);
        let Some(sample) = acked.latest_rtt else { return };
        if self.min_rtt_is_void {
            self.min_rtt_is_void = false;
            self.min_rtt_expired = false;
            self.min_rtt.clear();
        }
        if self.min_rtt.update(acked.now, sample) {
            self.update_bdp();
        }
    }

    /// Acknowledgements return another way: the next sample replaces the least round-trip time,
    /// which serves until then.
    pub(super) fn void_min_rtt(&mut self) {
        self.min_rtt_is_void = true;
    }

    /// The least round-trip time was just probed.
    pub(super) fn renew_min_rtt(&mut self, now: Instant) {
        self.min_rtt.renew(now);
    }

    /// True if the least round-trip time had to be probed when the last acknowledgement came.
    pub(super) fn min_rtt_expired(&self) -> bool {
        self.min_rtt_expired
    }

    /// What is sent now shows what a probe of the round-trip time leaves, not what the path can do.
    /// `begins`: with this acknowledgement the probe begins.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.3.5>
    pub(super) fn mark_probed(&mut self, acked: &AckedInfo<'_>, begins: bool) {
        let from = match self.probed {
            Some((from, _)) if !begins => from,
            _ => acked.delivered,
        };
        self.probed = Some((from, acked.delivered + acked.in_flight));
    }

    fn is_limited(&self, sample: &RateSample) -> bool {
        let sent_at = sample.prior_delivered;
        sample.limited || self.probed.is_some_and(|(from, to)| from <= sent_at && sent_at <= to)
    }

    fn update_bdp(&mut self) {
        self.bdp = match (self.bandwidth(), self.min_rtt()) {
            (Some(bandwidth), Some(rtt)) => Some(bandwidth.bytes_in(rtt)),
            _ => None,
        };
    }

    /// Bytes in flight at a gain.
    /// <https://datatracker.ietf.org/doc/html/draft-cardwell-iccrg-bbr-congestion-control-00#section-4.2.3.2>
    pub(super) fn in_flight(&self, gain: f64) -> Bytes {
        match self.bdp {
            // The conversion saturates.
            Some(bdp) => Bytes((bdp.0 as f64 * gain) as u64) + self.slack,
            None => self.initial,
        }
    }

    /// Greatest recent delivery rate.
    pub(super) fn bandwidth(&self) -> Option<Rate> {
        self.bandwidth.best()
    }

    /// Least recent round-trip time.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.best()
    }

    /// True once bandwidth had stopped growing.
    pub(super) fn pipe_is_full(&self) -> bool {
        self.full_pipe.is_full()
    }

    pub(super) fn rounds(&self) -> &RoundCounter {
        &self.rounds
    }

    /// The present round begins anew.
    pub(super) fn restart_round(&mut self, delivered: Bytes) {
        self.rounds.restart(delivered);
    }
}
