//! Delivery-rate estimation: how fast a path delivers, as its acknowledgements show.
//! <https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1>

use quipu_base::{Bytes, Duration, Instant, Rate};
use quipu_policy::congestion::{RateEstimate, RateSample};

use super::{AtSend, SentRecord};

/// What is counted of a path's deliveries, and the last sample.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryRate {
    /// Bytes acknowledged in all.
    delivered: Bytes,
    /// When that count last grew, or sending began again after silence.
    delivered_at: Instant,
    /// Slot of the path that brought the acknowledgement then; `None` after silence.
    delivered_by: Option<u8>,
    /// When the newest packet acknowledged so far was sent, or sending began again after silence.
    first_sent_at: Instant,
    /// Bytes declared lost in all.
    lost: Bytes,
    /// The path is application-limited until more than this is delivered.
    limited_until: Option<Bytes>,
    latest: Option<RateSample>,
    estimate: RateEstimate,
}

impl DeliveryRate {
    /// Nothing was sent yet.
    pub(crate) fn new(now: Instant) -> Self {
        DeliveryRate {
            delivered: Bytes::ZERO,
            delivered_at: now,
            delivered_by: None,
            first_sent_at: now,
            lost: Bytes::ZERO,
            limited_until: None,
            latest: None,
            estimate: RateEstimate::new(),
        }
    }

    /// A packet of `bytes` leaves, after which `in_flight` bytes are in flight.
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) -> AtSend {
        if in_flight <= bytes {
            // The time of silence is none in which anything could have been delivered.
            self.first_sent_at = now;
            self.delivered_at = now;
            self.delivered_by = None;
        }
        AtSend {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            delivered_by: self.delivered_by,
            first_sent_at: self.first_sent_at,
            lost: self.lost,
            in_flight,
            limited: self.is_limited(),
        }
    }

    /// The sender came to rest with window left while `in_flight` bytes were in flight.
    pub(crate) fn on_limited(&mut self, in_flight: Bytes) {
        self.limited_until = Some(self.delivered + in_flight);
    }

    /// Window or pace hold sending back.
    pub(crate) fn on_held_back(&mut self) {
        self.estimate.begin();
    }

    /// How fast the path delivers, as policies see it.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.estimate.rate()
    }

    /// True while a sample may show the application's rate rather than the path's.
    pub(crate) fn is_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    /// Packets of `bytes` were declared lost.
    pub(crate) fn on_lost(&mut self, bytes: Bytes) {
        self.lost += bytes;
    }

    /// All bytes declared lost so far.
    pub(crate) fn lost(&self) -> Bytes {
        self.lost
    }

    /// All bytes acknowledged so far.
    pub(crate) fn delivered(&self) -> Bytes {
        self.delivered
    }

    /// The last sample.
    pub(crate) fn latest(&self) -> Option<&RateSample> {
        self.latest.as_ref()
    }

    /// An acknowledgement that came on the path in slot `arrived_on` settles `acked`, in order of sending,
    /// and tells that packets declared lost before, of `late` bytes, arrived after all.
    ///
    /// The sample, if it gives one. It gives none if the acknowledgement with which the newest
    /// packet's time began came another way: the two ways differ in delay, and the time between
    /// their ends says nothing (our choice).
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        arrived_on: u8,
        acked: &[SentRecord],
        late: Bytes,
        min_rtt: Option<Duration>,
    ) -> Option<RateSample> {
        let bytes: Bytes = acked.iter().map(|record| Bytes(u64::from(record.bytes))).sum();
        self.delivered += bytes + late;
        self.delivered_at = now;
        self.delivered_by = Some(arrived_on);
        if self.limited_until.is_some_and(|end| self.delivered > end) {
            self.limited_until = None;
        }
        let newest = acked.last()?;
        let at_send = newest.at_send?;
        self.first_sent_at = newest.sent_at;
        let interval = (newest.sent_at - at_send.first_sent_at).max(now - at_send.delivered_at);
        // https://datatracker.ietf.org/doc/html/draft-ietf-ccwg-bbr#section-4.1.2.4
        //# Normally we expect interval >= MinRTT.
        let too_short = interval.is_zero() || min_rtt.is_some_and(|least| interval < least);
        let same_way = at_send.delivered_by.is_none_or(|by| by == arrived_on);
        if too_short || !same_way {
            return None;
        }
        let delivered = self.delivered.saturating_sub(at_send.delivered);
        let sample = RateSample {
            rate: Rate::from_bytes_over(delivered, interval)?,
            delivered,
            interval,
            prior_delivered: at_send.delivered,
            in_flight_at_send: at_send.in_flight,
            lost: self.lost.saturating_sub(at_send.lost),
            limited: at_send.limited,
        };
        self.latest = Some(sample);
        self.estimate.on_sample(&sample, self.delivered);
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_base::PacketNumber;

    const SIZE: Bytes = Bytes(1_000);
    const OWN: u8 = 0;
    const OTHER: u8 = 1;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// A path: packets in flight in order, and the counts.
    struct Path {
        delivery: DeliveryRate,
        sent: Vec<SentRecord>,
    }

    impl Path {
        fn new() -> Path {
            Path { delivery: DeliveryRate::new(ms(0)), sent: Vec::new() }
        }

        fn send(&mut self, at: u64) {
            let number = PacketNumber(self.sent.len() as u64);
            let in_flight = SIZE.saturating_mul(self.sent.len() as u64 + 1);
            let mut record = SentRecord::new(number, ms(at));
            record.bytes = 1_000;
            record.at_send = Some(self.delivery.on_sent(ms(at), SIZE, in_flight));
            self.sent.push(record);
        }

        fn ack(&mut self, at: u64, count: usize, on: u8) -> Option<RateSample> {
            let acked: Vec<_> = self.sent.drain(..count).collect();
            self.delivery.on_acked(ms(at), on, &acked, Bytes::ZERO, Some(Duration::from_millis(50)))
        }
    }

    /// A packet each millisecond, acknowledged 100 ms later: 8 Mbit/s.
    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut path = Path::new();
        let mut last = None;
        for at in 0..400 {
            if at >= 100 {
                last = path.ack(at, 1, OWN);
            }
            path.send(at);
        }
        let sample = last.unwrap();
        assert_eq!(sample.rate, Rate::from_mbit_per_sec(8));
        assert_eq!(sample.delivered, Bytes(100_000));
        assert!(!sample.limited);
    }

    #[test]
    fn acknowledgements_that_come_in_one_lump_do_not_raise_the_rate_above_that_of_sending() {
        let mut path = Path::new();
        for at in 0..100 {
            path.send(at);
        }
        path.ack(100, 1, OWN);
        for at in 100..300 {
            path.send(at);
        }
        let sample = path.ack(300, 299, OWN).unwrap();
        assert!(sample.rate <= Rate::from_mbit_per_sec(8), "{:?}", sample.rate);
    }

    #[test]
    fn silence_is_not_counted() {
        let mut path = Path::new();
        path.send(0);
        path.ack(100, 1, OWN);
        path.send(10_000);
        let sample = path.ack(10_100, 1, OWN).unwrap();
        assert_eq!(sample.interval, Duration::from_millis(100));
    }

    #[test]
    fn samples_are_limited_until_what_was_in_flight_then_is_delivered() {
        let mut path = Path::new();
        path.send(0);
        path.send(1);
        path.delivery.on_limited(Bytes(2_000));
        path.send(60);
        assert!(!path.ack(100, 2, OWN).unwrap().limited, "sent before the rest");
        path.send(110);
        assert!(path.ack(160, 1, OWN).unwrap().limited, "sent while limited");
        path.send(165);
        assert!(!path.delivery.is_limited());
        path.ack(210, 1, OWN);
        assert!(!path.ack(265, 1, OWN).unwrap().limited);
    }

    #[test]
    fn a_sample_over_two_ways_of_return_is_none() {
        let mut path = Path::new();
        for at in 0..3 {
            path.send(at);
        }
        assert!(path.ack(100, 1, OWN).is_some());
        path.send(100);
        // The other way is faster. The time of these began when they left themselves.
        assert!(path.ack(101, 1, OTHER).is_some());
        path.send(102);
        assert!(path.ack(103, 1, OTHER).is_some());
        assert!(path.ack(150, 1, OTHER).is_none(), "its time began by its own way");
        assert!(path.ack(152, 1, OTHER).is_some());
    }
}
