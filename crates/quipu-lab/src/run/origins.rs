//! The servers that one client needs, and which of its connections an object comes over.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_web::page::host_of_origin;

use super::asked::VisitObject;
use crate::pages::{PageLoadError, RunPage};
use crate::plan::{Cell, Plan};

/// The origins of all pages of a client's session, numbered in the order of their first objects: each
/// has a server and a connection of its own. One if origins are folded.
#[derive(Clone)]
pub(super) struct Origins {
    /// Empty if origins are folded.
    names: Vec<Arc<str>>,
    /// Per visit and object, the number of its origin; nothing if origins are folded.
    of_object: Vec<Vec<usize>>,
}

impl Origins {
    pub(super) fn new(plan: &Plan, cell: Cell, client: u32) -> Result<Origins, PageLoadError> {
        let mut origins = Origins { names: Vec::new(), of_object: Vec::new() };
        if plan.scenario.origins == quipu_scenario::Origins::One {
            return Ok(origins);
        }
        let mut numbers = BTreeMap::new();
        for visit in 0..plan.scenario.session {
            let RunPage { page, .. } = plan.visit_of(cell, client, visit)?;
            let of_page = page.origins();
            let number = |name: &String| {
                *numbers.entry(name.clone()).or_insert_with(|| {
                    origins.names.push(name.as_str().into());
                    origins.names.len() - 1
                })
            };
            let of_page_to_all: Vec<usize> = of_page.names().iter().map(number).collect();
            let objects = page.objects().iter();
            let number = |id| of_page_to_all.get(of_page.number_of(id)).copied().unwrap_or(0);
            origins.of_object.push(objects.map(|object| number(object.id)).collect());
        }
        Ok(origins)
    }

    /// How many there are, at least one.
    pub(super) fn count(&self) -> usize {
        self.names.len().max(1)
    }

    /// The name of origin `number`; `None` if origins are folded.
    pub(super) fn name(&self, number: usize) -> Option<&Arc<str>> {
        self.names.get(number)
    }

    /// The host of origin `number`; `None` if origins are folded.
    pub(super) fn host(&self, number: usize) -> Option<&str> {
        self.names.get(number).map(|name| host_of_origin(name))
    }

    /// The number of the origin of an object.
    pub(super) fn number_of(&self, asked: VisitObject) -> usize {
        let visit = usize::try_from(asked.visit).ok();
        let objects = visit.and_then(|visit| self.of_object.get(visit));
        objects.and_then(|of| of.get(asked.object.index())).copied().unwrap_or(0)
    }
}
