//! A browsing session: one page after the other, each read before the next is asked for.

use quipu_base::{Duration, Instant};
use quipu_web::page::{Object, ObjectId};
use quipu_web::scheme::RequestFacts;

use super::asked::VisitObject;
use super::error::RunError;
use crate::loading::Loading;
use crate::pages::PageLoadError;
use crate::plan::{Cell, Plan};

/// The pages of a session as they arrive. A session has one page unless the scenario says more.
pub(super) struct Visits {
    /// Not empty.
    loads: Vec<Loading>,
    /// Reading times after each page but the last.
    readings: Vec<Duration>,
    current: usize,
    /// When the next page is asked for, once the current one is there.
    next_at: Option<Instant>,
}

impl Visits {
    /// Those of one client.
    pub(super) fn new(plan: &Plan, cell: Cell, client: u32) -> Result<Visits, PageLoadError> {
        let session = plan.scenario.session;
        let load = |visit| Ok(Loading::new(plan.visit_of(cell, client, visit)?, &plan.scenario));
        let page = &plan.pages[cell.page];
        Ok(Visits {
            loads: (0..session).map(load).collect::<Result<_, PageLoadError>>()?,
            readings: (1..session)
                .map(|next| page.reading_time_of(cell.run, client, next - 1))
                .collect(),
            current: 0,
            next_at: None,
        })
    }

    /// The load of visit `visit`.
    pub(super) fn load(&self, visit: u32) -> Option<&Loading> {
        self.loads.get(usize::try_from(visit).ok()?)
    }

    fn load_mut(&mut self, visit: u32) -> Option<&mut Loading> {
        self.loads.get_mut(usize::try_from(visit).ok()?)
    }

    fn now_loading(&self) -> &Loading {
        &self.loads[self.current]
    }

    /// Number of the page that is loaded or read.
    fn visit(&self) -> u32 {
        // As many as a `u32` counted.
        u32::try_from(self.current).unwrap_or(u32::MAX)
    }

    /// The first page is asked for.
    pub(super) fn begin(&mut self, now: Instant) {
        self.loads[self.current].begin(now);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.now_loading().has_begun()
    }

    /// True if visit `visit` is loaded.
    pub(super) fn is_finished(&self, visit: u32) -> bool {
        self.load(visit).is_some_and(Loading::is_finished)
    }

    /// True once layout has shown what is in view of the current page.
    pub(super) fn is_laid_out(&self) -> bool {
        self.now_loading().is_laid_out()
    }

    /// True if `asked` is of the current page and in view.
    pub(super) fn is_visible(&self, asked: VisitObject) -> bool {
        asked.visit == self.visit() && self.now_loading().is_visible(asked.object)
    }

    pub(super) fn object(&self, asked: VisitObject) -> Option<&Object> {
        self.load(asked.visit)?.object(asked.object)
    }

    pub(super) fn facts(&self, asked: VisitObject) -> Option<RequestFacts> {
        self.load(asked.visit)?.facts(asked.object)
    }

    /// The next object to ask for.
    pub(super) fn poll_request(&mut self, now: Instant) -> Option<VisitObject> {
        let visit = self.visit();
        let object: ObjectId = self.loads[self.current].poll_request(now)?;
        Some(VisitObject { visit, object })
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        Instant::earlier(self.now_loading().poll_timeout(), self.next_at)
    }

    /// Time has come. True if the next page is to be asked for.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        self.loads[self.current].handle_timeout(now);
        if self.next_at.is_none()
            && self.now_loading().is_finished()
            && let Some(&reading) = self.readings.get(self.current)
        {
            self.next_at = Some(now + reading);
        }
        if self.next_at.is_none_or(|at| at > now) {
            return false;
        }
        self.next_at = None;
        self.current += 1;
        self.begin(now);
        true
    }

    /// The server promised the object. False if it is of no page of the session.
    pub(super) fn on_promise(&mut self, asked: VisitObject, now: Instant) -> bool {
        self.load_mut(asked.visit).is_some_and(|load| load.on_promise(asked.object, now))
    }

    pub(super) fn on_head(&mut self, asked: VisitObject, now: Instant) {
        if let Some(load) = self.load_mut(asked.visit) {
            load.on_head(asked.object, now);
        }
    }

    /// The next bytes of the body.
    pub(super) fn on_body(&mut self, asked: VisitObject, data: &[u8], now: Instant) {
        if let Some(load) = self.load_mut(asked.visit) {
            load.on_body(asked.object, data, now);
        }
    }

    /// The response is complete.
    pub(super) fn on_complete(&mut self, asked: VisitObject, now: Instant) -> Result<(), RunError> {
        let load = self.load_mut(asked.visit);
        Ok(load.map_or(Ok(()), |load| load.on_complete(asked.object, now))?)
    }
}
