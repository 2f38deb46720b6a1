//! Pages: what is loaded, how large it is, and what has to come first.
//!
//! A [`Page`] is a list of [`Object`]s. Each says how it is discovered: at once, when the parser
//! has reached a byte of its parent, or some time after its parent is complete. [`read`] makes a
//! page from a HAR file, together with a [`PageReport`] that counts everything that was guessed.
//! [`Page::new`] makes one from objects written by hand.

mod blocking;
mod build;
mod compute;
mod discovery;
mod hold;
mod inference;
mod initiator;
mod kind;
mod measured;
mod object;
mod origin;
mod priority;
mod report;
mod select;
mod size;
mod stated_priority;
mod timing;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;

use quipu_base::{Bytes, Duration};
use thiserror::Error;

pub use build::{ReadOptions, ReadPage, read};
pub use compute::Compute;
pub use kind::{ObjectKind, SniffedClass};
pub(crate) use measured::is_of_first_load;
pub use measured::{MeasuredLoad, measured};
pub use object::{
    Blocking, Discovery, Evidence, Gap, NotHeld, Object, ObjectId, PRIVATE_HOST, RequestSize,
};
pub use origin::{Origins, host_of_origin};
pub use priority::{ChromePriority, Http2Priority, RecordedPriority};
pub use report::{
    Guess, GuessKind, KindTotal, LeftOut, LoadSummary, OriginTotal, PageReport, Skipped,
};

use crate::har::HarError;
use crate::trace::TraceError;

/// A page: its objects in the order in which a recording asked for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    name: String,
    objects: Vec<Object>,
    main_document: ObjectId,
}

/// Why a page could not be made.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum PageError {
    /// The file was not read.
    #[error(transparent)]
    Har(#[from] HarError),
    /// The trace in the file was not read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file has no such load.
    #[error("no load `{asked}` in the file; it has: {}", .known.join(", "))]
    NoSuchLoad {
        /// The load asked for.
        asked: String,
        /// The loads of the file.
        known: Vec<String>,
    },
    /// No entry of the load went to the network.
    #[error("none of the {entries} entries of the load is a request over HTTP")]
    NothingToLoad {
        /// Entries of the load.
        entries: usize,
    },
    /// There are no objects.
    #[error("a page needs at least one object")]
    NoObjects,
    /// Objects are not numbered by their position.
    #[error("object at position {position} has the id {id}; expected {position}")]
    WrongId {
        /// Position in the list, from 0.
        position: usize,
        /// The id found.
        id: u32,
    },
    /// Something waited for that does not exist.
    #[error("object {object} waits for object {parent}, which does not exist")]
    UnknownParent {
        /// The object that waits.
        object: u32,
        /// The id named as what it waits for.
        parent: u32,
    },
    /// Objects that wait for one another.
    #[error("object {object} waits for itself, through others")]
    Cycle {
        /// One object of the cycle.
        object: u32,
    },
}

impl Page {
    /// A page of `objects`, numbered by their position. The main document is the first root that
    /// is a document, else the first object.
    ///
    /// # Errors
    /// If there are none, ids are not positions, or an object waits for one that is unknown or that
    /// waits for it.
    pub fn new(name: impl Into<String>, objects: Vec<Object>) -> Result<Page, PageError> {
        if objects.is_empty() {
            return Err(PageError::NoObjects);
        }
        for (position, object) in objects.iter().enumerate() {
            if object.id.index() != position {
                return Err(PageError::WrongId { position, id: object.id.0 });
            }
            if let Some(parent) = object.needs().find(|parent| parent.index() >= objects.len()) {
                return Err(PageError::UnknownParent { object: object.id.0, parent: parent.0 });
            }
        }
        if let Some(object) = on_cycle(&objects) {
            return Err(PageError::Cycle { object: object.0 });
        }
        let main_document = objects
            .iter()
            .find(|object| {
                object.kind == ObjectKind::Document && object.discovery.parent().is_none()
            })
            .unwrap_or(&objects[0])
            .id;
        Ok(Page { name: name.into(), objects, main_document })
    }

    /// The same page with `document` as its main document; an unknown id changes nothing.
    #[must_use]
    pub fn with_main_document(mut self, document: ObjectId) -> Page {
        if document.index() < self.objects.len() {
            self.main_document = document;
        }
        self
    }

    /// Name of the page.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects; each one's id is its position.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// The object `id`, if the page has it.
    pub fn object(&self, id: ObjectId) -> Option<&Object> {
        self.objects.get(id.index())
    }

    /// The main HTML document: the last hop of a redirect chain in front of it.
    pub fn main_document(&self) -> ObjectId {
        self.main_document
    }

    /// Bytes of all response bodies.
    pub fn body_bytes(&self) -> Bytes {
        self.objects.iter().map(|object| object.response_bytes).sum()
    }

    /// Distinct hosts. All are folded into one server unless a run keeps its [`Origins`] apart.
    pub fn hosts(&self) -> usize {
        self.objects.iter().map(|object| object.host()).collect::<BTreeSet<_>>().len()
    }

    /// The origins of its objects.
    pub fn origins(&self) -> Origins {
        Origins::of(self)
    }

    /// The longest chain of discoveries: 0 if every object is a root.
    pub fn depth(&self) -> usize {
        let mut depths = vec![None::<usize>; self.objects.len()];
        let mut chain = Vec::new();
        for object in &self.objects {
            let mut at = Some(object.id);
            while let Some(id) = at.filter(|id| depths[id.index()].is_none()) {
                chain.push(id);
                at = self.objects[id.index()].discovery.parent();
            }
            let mut depth = at.and_then(|id| depths[id.index()]).map_or(0, |depth| depth + 1);
            while let Some(id) = chain.pop() {
                depths[id.index()] = Some(depth);
                depth += 1;
            }
        }
        depths.into_iter().flatten().max().unwrap_or(0)
    }

    /// When all that the load waits for would be there over an infinitely fast network without any delay: what
    /// thinking of servers, computing and timers take by themselves.
    pub fn floor(&self) -> Duration {
        let mut done = vec![Duration::ZERO; self.objects.len()];
        // Pages have no cycles.
        for id in order_of(&self.objects).unwrap_or_default() {
            let object = &self.objects[id.index()];
            let last = object.needs().map(|need| done[need.index()]).max();
            done[id.index()] = last.unwrap_or_default() + object.gap.total() + object.think_time;
        }
        let held = self.objects.iter().filter(|object| object.holds_load());
        held.map(|object| done[object.id.index()]).max().unwrap_or_default()
    }

    /// The same page with every object asked for at time 0, in order of ids, as the client of
    /// the framework paper does. Nothing else changes.
    #[must_use]
    pub fn all_at_once(&self) -> Page {
        let mut page = self.clone();
        for object in &mut page.objects {
            object.discovery = Discovery::Root;
            object.waits_for.clear();
            object.gap = Gap::default();
        }
        page
    }

    /// The same page with computing that takes `factor` times as long.
    #[must_use]
    pub fn with_computing(mut self, factor: f64) -> Page {
        for object in &mut self.objects {
            let computing = object.gap.computing.as_secs_f64() * factor.max(0.0);
            object.gap.computing = Duration::from_secs_f64(computing);
        }
        self
    }

    /// The page in a shared pointer, as page loads want it.
    pub fn shared(self) -> Arc<Page> {
        Arc::new(self)
    }
}

/// An object that waits for itself, if there is one. All that is waited for must exist.
fn on_cycle(objects: &[Object]) -> Option<ObjectId> {
    order_of(objects).err()
}

/// The objects, each behind all that it waits for.
///
/// # Errors
/// An object that waits for itself.
fn order_of(objects: &[Object]) -> Result<Vec<ObjectId>, ObjectId> {
    let mut missing: Vec<usize> = objects.iter().map(|object| object.needs().count()).collect();
    let mut waiting: Vec<(ObjectId, ObjectId)> =
        objects.iter().flat_map(|object| object.needs().map(|need| (need, object.id))).collect();
    waiting.sort_unstable();
    let mut order: Vec<ObjectId> =
        objects.iter().map(|object| object.id).filter(|id| missing[id.index()] == 0).collect();
    let mut next = 0;
    while let Some(&done) = order.get(next) {
        next += 1;
        let first = waiting.partition_point(|(need, _)| *need < done);
        for (_, id) in waiting[first..].iter().take_while(|(need, _)| *need == done) {
            missing[id.index()] -= 1;
            if missing[id.index()] == 0 {
                order.push(*id);
            }
        }
    }
    let stuck = objects.iter().find(|object| missing[object.id.index()] > 0);
    stuck.map_or(Ok(order), |object| Err(object.id))
}

#[cfg(test)]
mod tests;
