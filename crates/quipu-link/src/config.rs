//! What a link is made of, with defaults and checks.

use quipu_base::{Bytes, Duration, Instant, Rate};

use crate::{Aqm, AtEnd, DeliveryTrace, Loss, Outage, QueueLimit, RateStep, Timeline, pings, rate};

/// One direction of a link.
///
/// The default is a perfect link: no limit of rate, no delay, no loss, never down.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Bits per second, above zero unless `steps` follow. `None`: no limit, and so no queue.
    pub rate: Option<Rate>,
    /// When the rate changes, in order of time. Needs a `rate` to begin with; the last step's must
    /// be above zero.
    pub steps: Vec<RateStep>,
    /// When bytes may leave, as recorded, in place of `rate` and `steps`.
    pub trace: Option<DeliveryTrace>,
    /// Bits per second over time, as recorded, in place of `rate`, `steps` and `trace`.
    pub rates: Option<Timeline<Rate>>,
    /// One-way propagation delay.
    pub delay: Duration,
    /// One-way propagation delay over time, in place of `delay`, which queues still count. A datagram
    /// has the delay of the instant at which it leaves; one that would so overtake another arrives
    /// together with it, unless `jitter_reorders`.
    pub delays: Option<Timeline<Duration>>,
    /// Half the width of the delay's variation: each datagram takes `delay ± jitter`, evenly
    /// spread, as in Linux' netem without a distribution. Not above any delay of the link.
    pub jitter: Duration,
    /// How far each datagram's delay depends on that of the one before, 0 (the default: not at all)
    /// to below 1, as the correlation of netem's `delay TIME JITTER CORRELATION`.
    ///
    /// The numbers are those of netem's recurrence: a correlation of c makes the delays gather
    /// around the mean, with sqrt((1 - c) / (1 + c)) of the standard deviation that they have
    /// without. Here the number is scaled to the width of the variation. netem without a
    /// distribution takes the remainder by that width in nanoseconds, which leaves nothing of the
    /// correlation if the jitter is far below a second: what it does with 1 ms and 75 % is what
    /// no correlation does here.
    pub jitter_correlation: f64,
    /// Whether jitter may let a datagram overtake another. If not (the default), one that would
    /// arrive before its predecessor arrives together with it.
    ///
    /// Linux' netem does reorder if it has a jitter and no rate: it keeps datagrams in order of the
    /// times at which they are to leave, of which the jitter is a part (`tfifo_enqueue` in
    /// net/sched/sch_netem.c). With a `rate` of its own it counts each time from that of the datagram
    /// before, and keeps their order.
    pub jitter_reorders: bool,
    /// Which datagrams are lost. A lost datagram has used its place in the queue and its time on
    /// the link, as on a radio link.
    pub loss: Loss,
    /// Which datagrams are lost over time, in place of `loss`. The instant of a datagram's offer
    /// counts.
    pub losses: Option<Timeline<Loss>>,
    /// When the queue is full. A limit in bandwidth-delay products counts `rate`, whatever the
    /// steps make of it, or the mean rate of `trace` or `rates`.
    pub queue: QueueLimit,
    /// A managed queue, which has a limit of its own, in place of `queue`: see
    /// [`ManagedLink`](crate::ManagedLink).
    pub aqm: Option<Aqm>,
    /// Datagrams that are ECN-capable and find more than this in the queue are marked with
    /// Congestion Experienced; the others are not. `None`: no datagram ever is.
    ///
    /// One threshold for the queue as it is at that instant, without an average and without the
    /// datagram itself: <https://www.rfc-editor.org/rfc/rfc8257#section-3.1>
    pub mark: Option<QueueLimit>,
    /// A share of the datagrams is late, so that others overtake them.
    pub reorder: Option<Reorder>,
    /// A share of the datagrams arrives twice.
    pub duplicate: Option<Duplicate>,
    /// When the link is down. In any order; they may overlap.
    pub outages: Vec<Outage>,
    /// Bytes that each datagram takes on the link above its UDP payload. Default 28: IPv4 and UDP.
    pub overhead: Bytes,
    /// The largest datagram that the link carries, headers included, above zero: its MTU. Larger ones
    /// are dropped without a word, as by a router that sends no ICMP message. `None`: any size.
    pub mtu: Option<Bytes>,
    /// The same over time, in place of `mtu`. The instant of a datagram's offer counts.
    pub mtus: Option<Timeline<Bytes>>,
}

/// A share of the datagrams that is delayed further than the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Chance of each datagram, 0 to 1.
    pub share: f64,
    /// The further delay.
    pub extra: Duration,
}

/// A share of the datagrams that arrives twice. The copy takes nothing of the link's rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Duplicate {
    /// Chance of each datagram that arrives, 0 to 1.
    pub share: f64,
    /// Time from the arrival of the datagram to that of its copy. Zero: right after it.
    pub after: Duration,
}

/// A field of a [`LinkConfig`] has a value that makes no link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("link: {field} is {value}, expected {expected}")]
pub struct InvalidConfig {
    /// Name of the field, such as `reorder.share`.
    pub field: &'static str,
    /// The value found.
    pub value: String,
    /// What would have been right.
    pub expected: &'static str,
}

impl LinkConfig {
    /// A link with `rate` and `delay`, the default queue, and nothing that goes wrong.
    pub fn new(rate: Rate, delay: Duration) -> Self {
        LinkConfig { rate: Some(rate), delay, ..LinkConfig::default() }
    }

    /// A link that follows `trace` and delays by `delay`, with the default queue, and nothing that
    /// goes wrong.
    pub fn recorded(trace: DeliveryTrace, delay: Duration) -> Self {
        LinkConfig { trace: Some(trace), delay, ..LinkConfig::default() }
    }

    /// Sets the loss: a chance from 0 to 1 for each datagram by itself, or a [`Loss`] with bursts.
    #[must_use]
    pub fn with_loss(mut self, loss: impl Into<Loss>) -> Self {
        self.loss = loss.into();
        self
    }

    /// Sets the jitter, at most the delay, without reordering.
    #[must_use]
    pub fn with_jitter(mut self, jitter: Duration) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets how far each delay depends on the one before, 0 to below 1.
    #[must_use]
    pub fn with_jitter_correlation(mut self, correlation: f64) -> Self {
        self.jitter_correlation = correlation;
        self
    }

    /// Sets the queue's limit.
    #[must_use]
    pub fn with_queue(mut self, queue: QueueLimit) -> Self {
        self.queue = queue;
        self
    }

    /// Sets a managed queue.
    #[must_use]
    pub fn with_aqm(mut self, aqm: Aqm) -> Self {
        self.aqm = Some(aqm);
        self
    }

    /// Sets the queue above which ECN-capable datagrams are marked.
    #[must_use]
    pub fn with_mark(mut self, threshold: QueueLimit) -> Self {
        self.mark = Some(threshold);
        self
    }

    /// Sets the largest datagram, headers included.
    #[must_use]
    pub fn with_mtu(mut self, mtu: Bytes) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Changes the largest datagram, headers included, at `at` and for good; before, it is as set.
    #[must_use]
    pub fn with_mtu_from(mut self, at: Instant, mtu: Bytes) -> Self {
        let before = self.mtu_over_time();
        let changes = before.values().skip(1).chain([(at - Instant::ZERO, mtu)]);
        self.mtus = Some(Timeline::of_steps(before.value_at(Instant::ZERO), changes));
        self
    }

    /// Adds a change of the rate, which comes after those added before.
    #[must_use]
    pub fn with_step(mut self, at: Instant, rate: Rate) -> Self {
        self.steps.push(RateStep { at, rate });
        self
    }

    /// Adds an outage.
    #[must_use]
    pub fn with_outage(mut self, outage: Outage) -> Self {
        self.outages.push(outage);
        self
    }

    /// Checks every field.
    ///
    /// # Errors
    /// The first field whose value makes no link.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        if self.rate == Some(Rate::ZERO) && self.steps.is_empty() {
            return Err(invalid("rate", Rate::ZERO, "more than zero; an outage stops a link"));
        }
        if let (Some(rate), true) = (self.rate, self.trace.is_some() || self.rates.is_some()) {
            return Err(invalid("rate", rate, "none beside a trace"));
        }
        if let Some(trace) = &self.trace {
            if self.rates.is_some() {
                return Err(invalid("rates", "given", "none beside a trace"));
            }
            if trace.play().at_end == AtEnd::Hold {
                let expected = "loop or stop: a packet-delivery trace has no rate that could hold";
                return Err(invalid("at_end", "hold", expected));
            }
        }
        if let Some(rates) = &self.rates {
            rate::validate_rates(rates)?;
        }
        rate::validate(self.rate, &self.steps)?;
        if self.jitter > self.least_delay() {
            return Err(invalid("jitter", self.jitter, "not more than the delay"));
        }
        if let Some(losses) = &self.losses {
            losses.values().try_for_each(|(_, loss)| loss.validate())?;
        }
        check_correlation("jitter_correlation", self.jitter_correlation)?;
        self.loss.validate()?;
        if let Some(reorder) = self.reorder {
            check_probability("reorder.share", reorder.share)?;
        }
        if let Some(duplicate) = self.duplicate {
            check_probability("duplicate.share", duplicate.share)?;
        }
        self.queue.validate("queue.multiple")?;
        if let Some(aqm) = &self.aqm {
            aqm.validate()?;
        }
        if let Some(threshold) = self.mark {
            threshold.validate("mark.multiple")?;
        }
        if self.mtu_over_time().values().any(|(_, mtu)| mtu.is_zero()) {
            return Err(invalid("mtu", Bytes::ZERO, "more than zero; an outage stops a link"));
        }
        self.outages.iter().try_for_each(Outage::validate)
    }

    /// The queue's limit in bytes on this link, headers included.
    ///
    /// [`Bytes::MAX`] if there is no limit; see [`QueueLimit`] for the rules.
    pub fn queue_bytes(&self) -> Bytes {
        self.queue.in_bytes(self.usual_rate(), self.delay)
    }

    /// The bytes in the queue, headers included, above which ECN-capable datagrams are marked;
    /// [`Bytes::MAX`] if none ever is.
    pub fn mark_bytes(&self) -> Bytes {
        self.mark.map_or(Bytes::MAX, |threshold| threshold.in_bytes(self.usual_rate(), self.delay))
    }

    /// The shortest delay that the link ever has, without jitter.
    pub fn least_delay(&self) -> Duration {
        self.delays.as_ref().map_or(self.delay, pings::least)
    }

    /// What limits in bandwidth-delay products count.
    fn usual_rate(&self) -> Option<Rate> {
        let recorded = || self.trace.as_ref().map(DeliveryTrace::mean_rate);
        self.rate.or_else(recorded).or_else(|| self.rates.as_ref().map(rate::mean_rate))
    }

    /// The rates over time, unless opportunities say when bytes leave; `None` without a limit.
    pub(crate) fn rate_over_time(&self) -> Option<Timeline<Rate>> {
        self.rates.clone().or_else(|| rate::timeline(self.rate, &self.steps))
    }

    /// The delay over time, without jitter.
    pub(crate) fn delay_over_time(&self) -> Timeline<Duration> {
        self.delays.clone().unwrap_or_else(|| Timeline::of_steps(self.delay, []))
    }

    /// The largest datagram over time, headers included.
    pub(crate) fn mtu_over_time(&self) -> Timeline<Bytes> {
        let constant = || Timeline::of_steps(self.mtu.unwrap_or(Bytes::MAX), []);
        self.mtus.clone().unwrap_or_else(constant)
    }

    /// The outages. What a recording that stops never sends is lost as by one.
    pub(crate) fn outages_and_end(&self) -> Vec<Outage> {
        let of_trace = self.trace.as_ref().and_then(DeliveryTrace::ends_at);
        let ends_at = of_trace.or_else(|| self.rates.as_ref().and_then(Timeline::ends_at));
        let never = ends_at.map(|_| Outage::for_good(Instant::FAR_FUTURE));
        self.outages.iter().copied().chain(never).collect()
    }
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            rate: None,
            steps: Vec::new(),
            trace: None,
            rates: None,
            delay: Duration::ZERO,
            delays: None,
            jitter: Duration::ZERO,
            jitter_correlation: 0.0,
            jitter_reorders: false,
            loss: Loss::default(),
            losses: None,
            queue: QueueLimit::default(),
            aqm: None,
            mark: None,
            reorder: None,
            duplicate: None,
            outages: Vec::new(),
            // IPv4 header without options 20 B, UDP header 8 B.
            overhead: Bytes(28),
            mtu: None,
            mtus: None,
        }
    }
}

pub(crate) fn invalid(
    field: &'static str,
    value: impl ToString,
    expected: &'static str,
) -> InvalidConfig {
    InvalidConfig { field, value: value.to_string(), expected }
}

pub(crate) fn check_probability(field: &'static str, value: f64) -> Result<(), InvalidConfig> {
    // Written so that NaN fails.
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(invalid(field, value, "a probability from 0 to 1"))
    }
}

pub(crate) fn check_correlation(field: &'static str, value: f64) -> Result<(), InvalidConfig> {
    // One would repeat the first number for ever.
    if (0.0..1.0).contains(&value) {
        Ok(())
    } else {
        Err(invalid(field, value, "a correlation from 0 to below 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> LinkConfig {
        LinkConfig::new(Rate::from_mbit_per_sec(10), Duration::from_millis(10))
    }

    fn field_refused(config: &LinkConfig) -> &'static str {
        config.validate().unwrap_err().field
    }

    #[test]
    fn the_default_and_a_plain_link_are_valid() {
        assert_eq!(LinkConfig::default().validate(), Ok(()));
        assert_eq!(base().with_loss(1.0).with_jitter(Duration::from_millis(10)).validate(), Ok(()));
    }

    #[test]
    fn shares_that_are_no_probability_are_refused() {
        for share in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
            assert_eq!(field_refused(&base().with_loss(share)), "loss");
            let reorder = Some(Reorder { share, extra: Duration::ZERO });
            assert_eq!(field_refused(&LinkConfig { reorder, ..base() }), "reorder.share");
            let duplicate = Some(Duplicate { share, after: Duration::ZERO });
            assert_eq!(field_refused(&LinkConfig { duplicate, ..base() }), "duplicate.share");
        }
    }

    #[test]
    fn correlations_outside_zero_to_below_one_are_refused() {
        for correlation in [-0.01, 1.0, f64::NAN, f64::INFINITY] {
            let jittery = base().with_jitter_correlation(correlation);
            assert_eq!(field_refused(&jittery), "jitter_correlation");
            let lossy = base().with_loss(Loss::Correlated { share: 0.1, correlation });
            assert_eq!(field_refused(&lossy), "loss.correlation");
        }
    }

    #[test]
    fn rates_jitters_queues_and_outages_that_make_no_link_are_refused() {
        assert_eq!(field_refused(&LinkConfig { rate: Some(Rate::ZERO), ..base() }), "rate");
        assert_eq!(field_refused(&base().with_jitter(Duration::from_millis(11))), "jitter");
        let queue = QueueLimit::bandwidth_delay(f64::NAN);
        assert_eq!(field_refused(&base().with_queue(queue)), "queue.multiple");
        assert_eq!(field_refused(&base().with_mark(queue)), "mark.multiple");
        let instant = Instant::from_nanos(5);
        let stopped = base().with_step(instant, Rate::ZERO);
        assert_eq!(field_refused(&stopped), "steps.rate");
        let trace = DeliveryTrace::parse("1").ok();
        assert_eq!(field_refused(&LinkConfig { trace, ..base() }), "rate");
        let empty = Outage::between(instant, instant);
        assert_eq!(field_refused(&base().with_outage(empty)), "outages.until");
        assert_eq!(field_refused(&base().with_mtu(Bytes::ZERO)), "mtu");
        assert_eq!(field_refused(&base().with_mtu_from(instant, Bytes::ZERO)), "mtu");
    }

    #[test]
    fn a_queue_in_front_of_a_trace_counts_its_mean_rate() {
        // 1,500 B each ms for 20 ms, twice.
        let trace = DeliveryTrace::parse("1").unwrap();
        let config = LinkConfig::recorded(trace, Duration::from_millis(10));
        assert_eq!(config.validate(), Ok(()));
        let config = config.with_queue(QueueLimit::bandwidth_delay(2.0));
        assert_eq!(config.queue_bytes(), Bytes(60_000));
    }

    #[test]
    fn the_error_names_field_value_and_what_was_expected() {
        let error = base().with_loss(1.5).validate().unwrap_err();
        assert_eq!(error.to_string(), "link: loss is 1.5, expected a probability from 0 to 1");
    }
}
