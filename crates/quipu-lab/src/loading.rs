//! The page as it arrives: what to ask for, what came when, whether it is right.

use std::collections::VecDeque;
use std::sync::Arc;

use quipu_base::{Bytes, Duration, Instant};
use quipu_web::layout::Viewport;
use quipu_web::load::{DiscoveryMode, PageLoad};
use quipu_web::metrics::Timeline;
use quipu_web::page::{Object, ObjectId, Page};
use quipu_web::scheme::RequestFacts;
use thiserror::Error;

use crate::pages::{BodyCheck, RunPage};
use quipu_record::{Bounds, End, ObjectRecord, RunRecord};
use quipu_scenario::{Discovery, Reprioritise, Scenario};

/// A body that is not the one that the server sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("object {object} arrived with {received} and a wrong content; expected {expected}")]
pub struct WrongBody {
    /// The object.
    pub object: u32,
    /// Bytes that arrived.
    pub received: Bytes,
    /// Bytes that it has.
    pub expected: Bytes,
}

/// A page load with its record and its checks.
pub struct Loading {
    page: Arc<Page>,
    viewport: Viewport,
    /// Whether layout tells anything.
    sees_layout: bool,
    mode: DiscoveryMode,
    floor: Duration,
    /// What the server is to push.
    to_push: Vec<ObjectId>,
    /// By object: whether it was promised.
    promised: Vec<bool>,
    /// The load and its record, once it has begun.
    running: Option<(PageLoad, Timeline)>,
    /// What the browser asked for when the load began, and nobody has taken yet.
    asked: VecDeque<ObjectId>,
    /// Of objects whose body is arriving.
    checks: Vec<Option<BodyCheck>>,
    first_byte_at: Vec<Option<Instant>>,
}

impl Loading {
    /// The load of a page as `scenario` says, which has not begun.
    pub fn new(loaded: RunPage, scenario: &Scenario) -> Loading {
        let RunPage { page } = loaded;
        let objects = page.objects().len();
        // At most 1,000, as the scenario was checked.
        let images = usize::try_from(scenario.visible_images).unwrap_or(usize::MAX);
        let mode = match scenario.discovery {
            // Over raw streams nobody asks for single objects.
            Discovery::Recorded if !scenario.http.is_raw() => DiscoveryMode::Recorded,
            Discovery::Recorded | Discovery::AllAtOnce => DiscoveryMode::AllAtOnce,
        };
        let floor = match mode {
            // No server thinks there.
            _ if scenario.http.is_raw() => Duration::ZERO,
            DiscoveryMode::Recorded => page.floor(),
            DiscoveryMode::AllAtOnce => {
                let held = page.objects().iter().filter(|object| object.holds_load());
                held.map(|object| object.think_time).max().unwrap_or_default()
            }
        };
        Loading {
            floor,
            viewport: Viewport::of(&page, images),
            to_push: scenario.pushed(&page),
            promised: vec![false; objects],
            page,
            sees_layout: scenario.reprioritise == Reprioritise::Browser,
            mode,
            running: None,
            asked: VecDeque::new(),
            checks: std::iter::repeat_with(|| None).take(objects).collect(),
            first_byte_at: vec![None; objects],
        }
    }

    /// The page is asked for: its time counts from now on, whether there is a connection or not.
    pub fn begin(&mut self, now: Instant) {
        let page = Arc::clone(&self.page);
        let mut load = PageLoad::with_push(page, self.mode, &self.to_push, now);
        let mut timeline = Timeline::new(Arc::clone(&self.page));
        self.asked = std::iter::from_fn(|| load.poll_request()).collect();
        self.asked.iter().for_each(|object| timeline.on_request(*object, now));
        self.running = Some((load, timeline));
    }

    /// True once the page was asked for.
    pub fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    /// True once everything is there that the page's time waits for.
    pub fn is_finished(&self) -> bool {
        self.running.as_ref().is_some_and(|(load, _)| load.is_finished())
    }

    /// Objects that are not complete.
    pub fn open(&self) -> usize {
        self.running.as_ref().map_or(self.page.objects().len(), |(load, _)| load.open())
    }

    /// All objects.
    pub fn objects(&self) -> &[Object] {
        self.page.objects()
    }

    /// When the page would be there over an infinitely fast network.
    pub fn floor(&self) -> Duration {
        self.floor
    }

    /// The record of the load, once it has begun.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.running.as_ref().map(|(_, timeline)| timeline)
    }

    /// When the first byte of the body of `object` came.
    pub fn first_byte_at(&self, object: ObjectId) -> Option<Instant> {
        self.first_byte_at.get(object.index()).copied().flatten()
    }

    /// The object of that number.
    pub fn object(&self, object: ObjectId) -> Option<&Object> {
        self.page.object(object)
    }

    /// What the browser knows of `object` when it says how urgent it is.
    pub fn facts(&self, object: ObjectId) -> Option<RequestFacts> {
        let facts = self.viewport.facts(&self.page, object, self.is_laid_out())?;
        Some(RequestFacts { pushed: self.is_pushed(object), ..facts })
    }

    /// True once layout has shown what is in view.
    pub fn is_laid_out(&self) -> bool {
        self.sees_layout && self.running.as_ref().is_some_and(|(load, _)| load.is_laid_out())
    }

    /// True if the object is in view, once the page is laid out.
    pub fn is_visible(&self, object: ObjectId) -> bool {
        self.viewport.is_visible(object)
    }

    /// The next object to ask for.
    pub fn poll_request(&mut self, now: Instant) -> Option<ObjectId> {
        let (load, timeline) = self.running.as_mut()?;
        if let Some(object) = self.asked.pop_front() {
            return Some(object);
        }
        let object = load.poll_request()?;
        timeline.on_request(object, now);
        Some(object)
    }

    /// The server promised an object, which counts as its request. False if the page has none of that number.
    pub fn on_promise(&mut self, object: ObjectId, now: Instant) -> bool {
        let Some(promised) = self.promised.get_mut(object.index()) else { return false };
        *promised = true;
        if let Some((_, timeline)) = &mut self.running {
            timeline.on_request(object, now);
        }
        true
    }

    /// True if the server promised the object.
    pub fn is_pushed(&self, object: ObjectId) -> bool {
        self.promised.get(object.index()).copied().unwrap_or_default()
    }

    /// When [`Loading::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.running.as_ref().and_then(|(load, _)| load.poll_timeout())
    }

    /// The time has come that [`Loading::poll_timeout`] told, or any other.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some((load, _)) = &mut self.running {
            load.handle_timeout(now);
        }
    }

    /// The head of a response came.
    pub fn on_head(&mut self, object: ObjectId, now: Instant) {
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_response_head(object, now);
            load.on_response_head(object, now);
        }
    }

    /// The next bytes of a body of the laboratory, which are held against what they should be.
    pub(crate) fn on_body(&mut self, object: ObjectId, data: &[u8], now: Instant) {
        let Some(check) = self.checks.get_mut(object.index()) else { return };
        let check = check.get_or_insert_with(|| BodyCheck::new(object));
        check.update(data);
        let received = check.received();
        self.on_body_bytes(object, received, now);
    }

    /// So many bytes of a body are there, whatever they are.
    pub fn on_body_bytes(&mut self, object: ObjectId, total: Bytes, now: Instant) {
        self.mark_first_byte(object, now);
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_body_bytes(object, total, now);
            load.on_body_bytes(object, total, now);
        }
    }

    /// A response of the laboratory is complete.
    ///
    /// # Errors
    /// If its body was not what it should be.
    pub(crate) fn on_complete(&mut self, object: ObjectId, now: Instant) -> Result<(), WrongBody> {
        let check = self.checks.get_mut(object.index()).and_then(Option::take);
        let check = check.unwrap_or_else(|| BodyCheck::new(object));
        let expected = self.page.object(object).map(|object| object.response_bytes);
        let expected = expected.unwrap_or_default();
        if !check.is_whole(expected) {
            let received = check.received();
            return Err(WrongBody { object: object.0, received, expected });
        }
        self.on_end(object, now);
        Ok(())
    }

    /// A response is complete, whatever it was.
    pub fn on_end(&mut self, object: ObjectId, now: Instant) {
        self.mark_first_byte(object, now);
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_complete(object, now);
            load.on_complete(object, now);
        }
    }

    /// What was measured of a load that ended at `at` and whose bodies `sender` sent, without what
    /// connections know; `None` if it did not end.
    pub fn record(&self, at: Instant, sender: End) -> Option<RunRecord> {
        self.record_of(self.timeline()?, at, sender)
    }

    /// The same of what `timeline` has.
    pub(crate) fn record_of(
        &self,
        timeline: &Timeline,
        at: Instant,
        sender: End,
    ) -> Option<RunRecord> {
        let metrics = timeline.page_metrics()?;
        let start = timeline.started_at()?;
        let object = |spec: &Object| {
            let times = timeline.object_times(spec.id)?;
            Some(ObjectRecord {
                object: spec.id.0,
                connection: 0,
                body: spec.response_bytes,
                held: spec.holds_load(),
                pushed: self.is_pushed(spec.id),
                stream: None,
                requested_at: start + times.requested,
                first_byte_at: self.first_byte_at(spec.id)?,
                completed_at: start + times.since_page_start,
                since_page_start: times.since_page_start,
                since_request: times.since_request,
                bound: Bounds::default(),
            })
        };
        Some(RunRecord {
            sender,
            page_time: metrics.page_time,
            page_floor: self.floor(),
            object_index: metrics.object_index,
            byte_index: metrics.byte_index,
            critical_time: metrics.critical_time,
            ended_at: at,
            objects: self.objects().iter().filter_map(object).collect(),
            ..RunRecord::default()
        })
    }

    pub(crate) fn mark_first_byte(&mut self, object: ObjectId, now: Instant) {
        if let Some(first) = self.first_byte_at.get_mut(object.index()) {
            first.get_or_insert(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Cell, Plan};

    #[test]
    fn a_page_counts_from_when_it_was_asked_for_though_there_was_no_connection_yet() {
        let plan = Plan::new(Scenario::default()).unwrap();
        let page = plan.page(Cell { page: 0, network: 0, policy: 0, run: 0 }).unwrap();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut loading = Loading::new(page, &plan.scenario);
        loading.begin(at(5));
        let document = loading.poll_request(at(40)).unwrap();
        assert_eq!(loading.timeline().unwrap().started_at(), Some(at(5)));
        assert_eq!(loading.poll_request(at(40)), None);
        loading.on_head(document, at(60));
        let size = loading.object(document).unwrap().response_bytes;
        loading.on_body_bytes(document, size, at(70));
        loading.on_end(document, at(70));
        let times = loading.timeline().unwrap().object_times(document).unwrap();
        assert_eq!((times.requested, times.since_page_start), (Duration::ZERO, at(70) - at(5)));
    }
}
