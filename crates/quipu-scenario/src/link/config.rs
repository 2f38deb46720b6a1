//! The link that the simulator makes of one that a scenario describes.

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_link::{Duplicate, LinkConfig, Outage, QueueLimit, Reorder, Timeline};

use super::LinkSpec;
use crate::error::LinkError;
use crate::queue::QueueSpec;
use crate::recorded;
use crate::steps::Course;

/// The limit with the round trip that counts, if it tells none itself.
pub(crate) fn over(limit: QueueLimit, round_trip: Duration) -> QueueLimit {
    match limit {
        QueueLimit::BandwidthDelay { multiple, round_trip: None, at_least } => {
            QueueLimit::BandwidthDelay { multiple, round_trip: Some(round_trip), at_least }
        }
        limit => limit,
    }
}

impl LinkSpec {
    /// The link that the simulator makes of it, with `overhead` bytes of headers per datagram, if
    /// it is all that lies between two hosts. If not, see [`LinkSpec::config_on`].
    pub fn config(&self, overhead: Bytes) -> LinkConfig {
        self.config_on(overhead, self.usual_delay().saturating_mul(2))
    }

    /// The same as one link of several in a row: a queue or a mark that is told in
    /// bandwidth-delay products, as the default queue is, has those of `round_trip`, which is that
    /// of all of them together.
    ///
    /// A start of recordings that is to be drawn counts as zero: see [`Network::for_run`]. A
    /// recording that cannot be read, which makes a scenario invalid, leaves a link that the
    /// simulator refuses.
    ///
    /// [`Network::for_run`]: crate::Network::for_run
    pub fn config_on(&self, overhead: Bytes, round_trip: Duration) -> LinkConfig {
        // A rate of zero is refused.
        let nothing = LinkConfig { rate: Some(Rate::ZERO), ..LinkConfig::default() };
        self.read_config(overhead, round_trip).unwrap_or(nothing)
    }

    /// What its steps come to, which are valid.
    pub(super) fn course(&self) -> Course {
        Course::of(&self.steps, self.rate.unwrap_or(Rate::ZERO), self.delay, self.loss)
    }

    pub(super) fn read_config(
        &self,
        overhead: Bytes,
        round_trip: Duration,
    ) -> Result<LinkConfig, LinkError> {
        let at = |time: Duration| Instant::ZERO + time;
        let play = recorded::play(self.from, self.at_end);
        let columns = &self.columns();
        let Course { rates, delays, losses, mtus } = self.course();
        let recorded_delays = self.delay_trace.as_ref().map(|trace| {
            let pings = trace.delays(columns)?;
            Ok::<_, LinkError>(pings.delays(play).map(|delay| delay + self.delay))
        });
        let recorded_losses = self
            .loss_trace
            .as_ref()
            .map(|trace| Ok::<_, LinkError>(trace.losses(columns)?.played(play)));
        let mut config = LinkConfig {
            rate: self.rate,
            steps: rates,
            trace: None,
            rates: None,
            delay: self.usual_delay(),
            delays: recorded_delays
                .transpose()?
                .or_else(|| (!delays.is_empty()).then(|| Timeline::of_steps(self.delay, delays))),
            losses: recorded_losses.transpose()?.or_else(|| {
                (!losses.is_empty()).then(|| Timeline::of_steps(self.loss.config(), losses))
            }),
            jitter: self.jitter,
            jitter_correlation: self.jitter_correlation.as_f64(),
            jitter_reorders: self.jitter_reorders,
            loss: self.loss.config(),
            queue: match self.queue {
                QueueSpec::DropTail(limit) => over(limit, round_trip),
                QueueSpec::Managed(_) => QueueLimit::default(),
            },
            aqm: match self.queue {
                QueueSpec::DropTail(_) => None,
                QueueSpec::Managed(aqm) => Some(aqm),
            },
            mark: self.mark.map(|threshold| over(threshold, round_trip)),
            reorder: (!self.reorder.share.is_zero())
                .then(|| Reorder { share: self.reorder.share.as_f64(), extra: self.reorder.extra }),
            duplicate: (!self.duplicate.share.is_zero()).then(|| Duplicate {
                share: self.duplicate.share.as_f64(),
                after: self.duplicate.after,
            }),
            outages: self
                .outages
                .iter()
                .map(|outage| Outage { from: at(outage.from), until: outage.until.map(at) })
                .collect(),
            overhead,
            mtu: self.mtu,
            mtus: (!mtus.is_empty())
                .then(|| Timeline::of_steps(self.mtu.unwrap_or(Bytes::MAX), mtus)),
        };
        if let Some(trace) = &self.trace {
            trace.rates(columns)?.put_into(&mut config, play);
        }
        Ok(config)
    }

    /// Bytes that its queue holds where the way through it takes `one_way`: of drop-tail queues the limit, of
    /// managed ones that of full datagrams. `None` if nothing is ever dropped.
    pub fn queue_size(&self, one_way: Duration) -> Option<Bytes> {
        let round_trip = one_way.saturating_mul(2);
        let most = match self.queue {
            QueueSpec::DropTail(limit) => {
                over(limit, round_trip).in_bytes(self.usual_rate(), self.usual_delay())
            }
            QueueSpec::Managed(aqm) => aqm.limit().most_bytes(),
        };
        (most < Bytes::MAX).then_some(most)
    }
}
