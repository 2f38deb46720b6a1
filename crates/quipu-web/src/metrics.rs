//! Metrics of a page load, from the times at which things were asked for and arrived.
//!
//! All count from the first request, in integer nanoseconds. Objects that the load does not wait
//! for have times of their own, but are part of no metric of the page.

use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};

use crate::page::{ObjectId, Page};

/// What happened to each object of one load, and the metrics that follow.
///
/// Costs O(1) per event; [`Timeline::page_metrics`] costs O(n).
#[derive(Debug, Clone)]
pub struct Timeline {
    page: Arc<Page>,
    objects: Vec<ObjectRecord>,
    started_at: Option<Instant>,
    byte_index: MissingBytes,
}

#[derive(Clone, Copy, Debug, Default)]
struct ObjectRecord {
    requested_at: Option<Instant>,
    head_at: Option<Instant>,
    completed_at: Option<Instant>,
    received: Bytes,
}

/// Times of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectTimes {
    /// When it was requested, from the start of the page.
    pub requested: Duration,
    /// When the header of its response arrived, from the start of the page, if it was told.
    pub head: Option<Duration>,
    /// From the first request of the page to its last byte.
    pub since_page_start: Duration,
    /// From its own request to its last byte.
    pub since_request: Duration,
}

/// Metrics of a page whose load is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMetrics {
    /// From the first request to the last byte of the last object that the load waits for.
    pub page_time: Duration,
    /// Mean of `since_page_start` over these objects, rounded down.
    pub object_index: Duration,
    /// Integral over time of the share of these objects' body bytes that has not arrived yet,
    /// rounded down; zero if they have no bytes.
    pub byte_index: Duration,
    /// When the main document, render-blocking style sheets and parser-blocking scripts had all
    /// arrived.
    pub critical_time: Duration,
}

/// The integral of missing bytes over time, kept up with each arrival.
#[derive(Clone, Copy, Debug, Default)]
struct MissingBytes {
    total: Bytes,
    missing: Bytes,
    /// Byte-nanoseconds until `until`.
    area: u128,
    until: Instant,
}

impl MissingBytes {
    fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.until);
        // At most 2^64 bytes for 2^64 ns.
        let area = u128::from(self.missing.0) * u128::from(elapsed.as_nanos());
        self.area = self.area.saturating_add(area);
        self.until = self.until.max(now);
    }

    fn index(&self) -> Duration {
        let mean = self.area.checked_div(u128::from(self.total.0)).unwrap_or(0);
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

impl Timeline {
    /// The empty record of a load of `page`.
    pub fn new(page: Arc<Page>) -> Timeline {
        let held = page.objects().iter().filter(|object| object.holds_load());
        let total = held.map(|object| object.response_bytes).sum();
        Timeline {
            objects: vec![ObjectRecord::default(); page.objects().len()],
            page,
            started_at: None,
            byte_index: MissingBytes { total, missing: total, ..MissingBytes::default() },
        }
    }

    /// `object` was requested. Only the first time counts.
    pub fn on_request(&mut self, object: ObjectId, now: Instant) {
        let Some(record) = self.objects.get_mut(object.index()) else { return };
        record.requested_at.get_or_insert(now);
        if self.started_at.is_none() {
            self.started_at = Some(now);
            self.byte_index.until = now;
        }
    }

    /// The header of the response to `object` has arrived. Only the first time counts.
    pub fn on_response_head(&mut self, object: ObjectId, now: Instant) {
        if let Some(record) = self.objects.get_mut(object.index()) {
            record.head_at.get_or_insert(now);
        }
    }

    /// `total` different bytes of the body of `object` have arrived. What exceeds the size on the
    /// page, or does not grow, is ignored.
    pub fn on_body_bytes(&mut self, object: ObjectId, total: Bytes, now: Instant) {
        let Some(described) = self.page.object(object) else { return };
        let Some(record) = self.objects.get_mut(object.index()) else { return };
        let total = total.min(described.response_bytes);
        let new = total - record.received;
        if new.is_zero() {
            return;
        }
        record.received = total;
        if described.holds_load() {
            self.byte_index.advance(now);
            self.byte_index.missing -= new;
        }
    }

    /// The response to `object` is complete, however many bytes it had. Only the first time counts.
    pub fn on_complete(&mut self, object: ObjectId, now: Instant) {
        self.on_body_bytes(object, Bytes::MAX, now);
        if let Some(record) = self.objects.get_mut(object.index()) {
            record.completed_at.get_or_insert(now);
        }
    }

    /// Time of the first request.
    pub fn started_at(&self) -> Option<Instant> {
        self.started_at
    }

    /// Bytes of the body of `object` that have arrived.
    pub fn received(&self, object: ObjectId) -> Bytes {
        self.objects.get(object.index()).map_or(Bytes::ZERO, |record| record.received)
    }

    /// Times of `object`; `None` until it is complete.
    pub fn object_times(&self, object: ObjectId) -> Option<ObjectTimes> {
        let record = self.objects.get(object.index())?;
        let started = self.started_at?;
        let (requested, completed) = (record.requested_at?, record.completed_at?);
        Some(ObjectTimes {
            requested: requested - started,
            head: record.head_at.map(|head| head - started),
            since_page_start: completed - started,
            since_request: completed - requested,
        })
    }

    /// Metrics of the page; `None` until every object that the load waits for is complete.
    pub fn page_metrics(&self) -> Option<PageMetrics> {
        let started = self.started_at?;
        let mut page_time = Duration::ZERO;
        let mut critical_time = Duration::ZERO;
        let (mut sum, mut count) = (0_u128, 0_u128);
        for (object, record) in self.page.objects().iter().zip(&self.objects) {
            let critical = object.id == self.page.main_document() || object.blocking.is_critical();
            if !object.holds_load() {
                continue;
            }
            let time = record.completed_at? - started;
            page_time = page_time.max(time);
            if critical {
                critical_time = critical_time.max(time);
            }
            sum += u128::from(time.as_nanos());
            count += 1;
        }
        let mean = sum.checked_div(count)?;
        Some(PageMetrics {
            page_time,
            object_index: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            byte_index: self.byte_index.index(),
            critical_time,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::page::{Blocking, NotHeld, Object, ObjectKind};

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(7_000) + Duration::from_millis(millis)
    }

    fn page(sizes: &[u64]) -> Arc<Page> {
        let object = |(id, &bytes): (u32, &u64)| {
            let url = format!("https://a.test/{id}");
            Object::new(ObjectId(id), url, ObjectKind::Document, Bytes(bytes))
        };
        Page::new("test", (0..).zip(sizes).map(object).collect()).unwrap().shared()
    }

    #[test]
    fn metrics_of_a_load_worked_out_by_hand() {
        let mut objects = page(&[100, 300, 0, 50]).objects().to_vec();
        objects[1].blocking = Blocking::Render;
        objects[3].not_held = Some(NotHeld::Beacon);
        let mut timeline = Timeline::new(Page::new("test", objects).unwrap().shared());
        timeline.on_request(ObjectId(0), at(0));
        timeline.on_body_bytes(ObjectId(0), Bytes(100), at(10));
        timeline.on_request(ObjectId(1), at(10));
        timeline.on_request(ObjectId(2), at(10));
        timeline.on_complete(ObjectId(0), at(12));
        timeline.on_body_bytes(ObjectId(1), Bytes(150), at(20));
        timeline.on_complete(ObjectId(1), at(30));
        assert_eq!(timeline.page_metrics(), None);
        timeline.on_complete(ObjectId(2), at(42));
        let metrics = timeline.page_metrics().unwrap();
        assert_eq!(metrics.page_time, Duration::from_millis(42));
        assert_eq!(metrics.object_index, Duration::from_millis((12 + 30 + 42) / 3));
        // 10 ms of everything, 10 ms of 3/4, 10 ms of 3/8.
        assert_eq!(metrics.byte_index, Duration::from_micros(21_250));
        assert_eq!(metrics.critical_time, Duration::from_millis(30));
        let times = timeline.object_times(ObjectId(1)).unwrap();
        assert_eq!(times.since_page_start, Duration::from_millis(30));
        assert_eq!(times.since_request, Duration::from_millis(20));
        assert_eq!(timeline.object_times(ObjectId(3)), None);
    }

    #[test]
    fn a_page_without_bytes_has_a_byte_index_of_zero() {
        let mut timeline = Timeline::new(page(&[0]));
        timeline.on_request(ObjectId(0), at(0));
        timeline.on_complete(ObjectId(0), at(9));
        assert_eq!(timeline.page_metrics().unwrap().byte_index, Duration::ZERO);
    }

    proptest! {
        /// The naive model sums, over each byte, the time until it arrived.
        #[test]
        fn byte_index_is_the_mean_arrival_time_of_a_byte(
            sizes in proptest::collection::vec(1_u64..40, 1..5),
            arrivals in proptest::collection::vec((0_usize..5, 1_u64..50, 0_u64..9), 0..30),
        ) {
            let mut timeline = Timeline::new(page(&sizes));
            let mut received = vec![0; sizes.len()];
            let mut sum = 0;
            let mut time = 0;
            timeline.on_request(ObjectId(0), at(0));
            let last = (0..sizes.len()).map(|object| (object, u64::MAX, 1));
            for (object, total, wait) in arrivals.into_iter().chain(last) {
                time += wait;
                let Some(size) = sizes.get(object) else { continue };
                let id = ObjectId(u32::try_from(object).unwrap());
                timeline.on_body_bytes(id, Bytes(total), at(time));
                let arrived = total.min(*size).max(received[object]);
                sum += (arrived - received[object]) * time;
                received[object] = arrived;
            }
            for object in 0..sizes.len() {
                timeline.on_complete(ObjectId(u32::try_from(object).unwrap()), at(time));
            }
            let nanos = u128::from(sum) * 1_000_000 / u128::from(sizes.iter().sum::<u64>());
            let index = timeline.page_metrics().unwrap().byte_index;
            prop_assert_eq!(u128::from(index.as_nanos()), nanos);
        }
    }
}
