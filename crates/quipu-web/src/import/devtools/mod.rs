//! Traces of Chromium as HAR: files that the performance panel of the developer tools saves, and any other trace with
//! events of requests.
//!
//! The first main frame that requests a document is the page. Every document that it requests begins a load, and
//! requests of its frames belong to the latest. Requests of other main frames are left out.

mod event;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::ImportError;
use super::har;
use super::load::{Load, Recorded};
use crate::recording::{AddTraceError, with_trace};
use crate::trace::{self, TraceError, read};
use event::{Event, What};
use requests::{Hop, Hops};

/// The HAR file of the loads of a trace, with the trace in it.
pub(super) fn har_file(file: &[u8]) -> Result<Vec<u8>, ImportError> {
    trace::check_file(file)?;
    let mut events: Vec<Event> = read::events(file)?;
    // Stable: events of one time keep the order of the file.
    events.sort_by(|a, b| a.at.total_cmp(&b.at));
    let recorded = Traced::of(events).recorded();
    if recorded.loads.iter().all(|load| load.requests.is_empty()) {
        return Err(ImportError::NoTracedRequests);
    }
    let plain = har::file(&recorded);
    match with_trace(&plain, file) {
        // Without the main thread it tells nothing of computing.
        Err(AddTraceError::Trace(TraceError::NoMainThread) | AddTraceError::OfAnother { .. }) => {
            Ok(plain)
        }
        traced => Ok(traced?),
    }
}

/// What a trace tells of pages.
#[derive(Default)]
struct Traced {
    hops: Hops,
    /// Of each frame the one that it is in.
    parents: BTreeMap<Arc<str>, Arc<str>>,
    navigations: Vec<Mark>,
    content_loads: Vec<Mark>,
    loads: Vec<Mark>,
    last: f64,
}

/// Something that happened to a frame.
struct Mark {
    at: f64,
    frame: Arc<str>,
    url: Option<Arc<str>>,
}

impl Traced {
    fn of(events: Vec<Event>) -> Traced {
        let mut traced = Traced::default();
        for event in events {
            traced.take(event);
        }
        traced
    }

    fn take(&mut self, event: Event) {
        let Event { at, what, data } = event;
        self.last = self.last.max(at);
        let marks = match what {
            What::ContentLoad => &mut self.content_loads,
            What::Load => &mut self.loads,
            What::NavigationStart if data.is_loading_main_frame => &mut self.navigations,
            What::Frames => {
                for frame in data.frames {
                    self.parents.extend(frame.frame.zip(frame.parent));
                }
                return;
            }
            What::FrameCommitted => {
                self.parents.extend(data.frame.zip(data.parent));
                return;
            }
            _ => return self.hops.take(Event { at, what, data }),
        };
        let url = data.document_loader_url;
        marks.extend(data.frame.map(|frame| Mark { at, frame, url }));
    }

    /// The frame at the top of the page that `frame` is in.
    fn top<'f>(&'f self, frame: &'f Arc<str>) -> &'f Arc<str> {
        let mut seen = BTreeSet::new();
        let mut top = frame;
        while let Some(parent) = self.parents.get(top).filter(|_| seen.insert(top)) {
            top = parent;
        }
        top
    }

    fn recorded(&self) -> Recorded {
        let hops = self.hops.all();
        let mut recorded = Recorded {
            creator: "trace of Chromium",
            clock: hops.iter().find_map(Hop::clock).unwrap_or(0.0),
            loads: Vec::new(),
            ..Recorded::default()
        };
        // The page is the frame of the first document that is at the top of one.
        let at_top = |hop: &&Hop| hop.frame().is_some_and(|frame| self.top(frame) == frame);
        let documents = || hops.iter().filter(at_top).filter(|hop| hop.is_document());
        let first = documents().next().or(hops.first());
        let Some(page) = first.and_then(Hop::frame).map(|frame| self.top(frame).clone()) else {
            return recorded;
        };
        let own = documents().filter(|hop| hop.frame() == Some(&page));
        recorded.loads = own.map(|hop| self.load(hop)).collect();
        if recorded.loads.is_empty()
            && let Some(first) = first
        {
            recorded.loads.push(self.load(first));
        }
        self.add_marks(&page, &mut recorded.loads);
        for hop in hops {
            let of_page = hop.frame().is_none_or(|frame| *self.top(frame) == page);
            let begun = recorded.loads.iter().rposition(|load| load.start <= hop.asked);
            match begun.and_then(|at| recorded.loads.get_mut(at)).filter(|_| of_page) {
                Some(load) => load.requests.push(hop.request(self.last)),
                None => recorded.of_others += 1,
            }
        }
        recorded
    }

    /// The load that begins with `document`: at its navigation, if that is told.
    fn load(&self, document: &Hop) -> Load {
        let own = |mark: &&Mark| {
            Some(&mark.frame) == document.frame() && mark.url.as_deref() == Some(document.url())
        };
        let earlier = |mark: &&Mark| mark.at <= document.asked;
        let mut start = self.navigations.iter().filter(own).filter(earlier).map(|mark| mark.at);
        Load {
            url: document.url().to_owned(),
            start: start.next_back().unwrap_or(document.asked),
            ..Load::default()
        }
    }

    /// Gives each load the first marks after its start.
    fn add_marks(&self, page: &Arc<str>, loads: &mut [Load]) {
        let mut end = f64::INFINITY;
        for load in loads.iter_mut().rev() {
            let first = |marks: &[Mark]| {
                let mut of_load = marks.iter().filter(|mark| mark.frame == *page);
                of_load.find(|mark| (load.start..end).contains(&mark.at)).map(|mark| mark.at)
            };
            load.content_load = first(&self.content_loads);
            load.on_load = first(&self.loads);
            end = load.start;
        }
    }
}
