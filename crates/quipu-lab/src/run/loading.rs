//! The page as it arrives: what to ask for, what came when, whether it is right.

use std::sync::Arc;

use quipu_base::{Duration, Instant};
use quipu_web::layout::Viewport;
use quipu_web::load::{DiscoveryMode, PageLoad};
use quipu_web::metrics::Timeline;
use quipu_web::page::{Object, ObjectId, Page};
use quipu_web::scheme::RequestFacts;

use super::error::RunError;
use crate::pages::{BodyCheck, RunPage};
use quipu_scenario::{Discovery, Reprioritise, Scenario};

/// A page load with its record and its checks.
pub(super) struct Loading {
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
    /// Of objects whose body is arriving.
    checks: Vec<Option<BodyCheck>>,
    first_byte_at: Vec<Option<Instant>>,
}

impl Loading {
    pub(super) fn new(loaded: RunPage, scenario: &Scenario) -> Loading {
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
            checks: std::iter::repeat_with(|| None).take(objects).collect(),
            first_byte_at: vec![None; objects],
        }
    }

    /// The page is asked for.
    pub(super) fn begin(&mut self, now: Instant) {
        let page = Arc::clone(&self.page);
        let load = PageLoad::with_push(page, self.mode, &self.to_push, now);
        self.running = Some((load, Timeline::new(Arc::clone(&self.page))));
    }

    pub(super) fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    pub(super) fn is_finished(&self) -> bool {
        self.running.as_ref().is_some_and(|(load, _)| load.is_finished())
    }

    /// Objects that are not complete.
    pub(super) fn open(&self) -> usize {
        self.running.as_ref().map_or(self.page.objects().len(), |(load, _)| load.open())
    }

    /// All objects.
    pub(super) fn objects(&self) -> &[Object] {
        self.page.objects()
    }

    /// When the page would be there over an infinitely fast network.
    pub(super) fn floor(&self) -> Duration {
        self.floor
    }

    pub(super) fn timeline(&self) -> Option<&Timeline> {
        self.running.as_ref().map(|(_, timeline)| timeline)
    }

    pub(super) fn first_byte_at(&self, object: ObjectId) -> Option<Instant> {
        self.first_byte_at.get(object.index()).copied().flatten()
    }

    pub(super) fn object(&self, object: ObjectId) -> Option<&Object> {
        self.page.object(object)
    }

    pub(super) fn facts(&self, object: ObjectId) -> Option<RequestFacts> {
        let facts = self.viewport.facts(&self.page, object, self.is_laid_out())?;
        Some(RequestFacts { pushed: self.is_pushed(object), ..facts })
    }

    /// True once layout has shown what is in view.
    pub(super) fn is_laid_out(&self) -> bool {
        self.sees_layout && self.running.as_ref().is_some_and(|(load, _)| load.is_laid_out())
    }

    pub(super) fn is_visible(&self, object: ObjectId) -> bool {
        self.viewport.is_visible(object)
    }

    /// The next object to ask for.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<ObjectId> {
        let (load, timeline) = self.running.as_mut()?;
        let object = load.poll_request()?;
        timeline.on_request(object, now);
        Some(object)
    }

    /// The server promised an object, which counts as its request. False if the page has none of that number.
    pub(super) fn on_promise(&mut self, object: ObjectId, now: Instant) -> bool {
        let Some(promised) = self.promised.get_mut(object.index()) else { return false };
        *promised = true;
        if let Some((_, timeline)) = &mut self.running {
            timeline.on_request(object, now);
        }
        true
    }

    /// True if the server promised the object.
    pub(super) fn is_pushed(&self, object: ObjectId) -> bool {
        self.promised.get(object.index()).copied().unwrap_or_default()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.running.as_ref().and_then(|(load, _)| load.poll_timeout())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some((load, _)) = &mut self.running {
            load.handle_timeout(now);
        }
    }

    pub(super) fn on_head(&mut self, object: ObjectId, now: Instant) {
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_response_head(object, now);
            load.on_response_head(object, now);
        }
    }

    /// The next bytes of the body.
    pub(super) fn on_body(&mut self, object: ObjectId, data: &[u8], now: Instant) {
        let Some(check) = self.checks.get_mut(object.index()) else { return };
        let check = check.get_or_insert_with(|| BodyCheck::new(object));
        check.update(data);
        let received = check.received();
        self.mark_first_byte(object, now);
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_body_bytes(object, received, now);
            load.on_body_bytes(object, received, now);
        }
    }

    /// The response is complete.
    pub(super) fn on_complete(&mut self, object: ObjectId, now: Instant) -> Result<(), RunError> {
        self.mark_first_byte(object, now);
        let check = self.checks.get_mut(object.index()).and_then(Option::take);
        let check = check.unwrap_or_else(|| BodyCheck::new(object));
        let expected = self.page.object(object).map(|object| object.response_bytes);
        let expected = expected.unwrap_or_default();
        if !check.is_whole(expected) {
            let received = check.received();
            return Err(RunError::WrongBody { object: object.0, received, expected });
        }
        if let Some((load, timeline)) = &mut self.running {
            timeline.on_complete(object, now);
            load.on_complete(object, now);
        }
        Ok(())
    }

    fn mark_first_byte(&mut self, object: ObjectId, now: Instant) {
        if let Some(first) = self.first_byte_at.get_mut(object.index()) {
            first.get_or_insert(now);
        }
    }
}
