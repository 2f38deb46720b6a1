//! A stream policy that is watched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_base::StreamId;

use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};
use crate::stream::{StreamPolicy, Turn};

/// What a watched stream policy was charged, and what it did wrong.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    books: Arc<Mutex<Books>>,
}

#[derive(Debug, Default)]
struct Books {
    /// Taken less returned.
    charged: BTreeMap<StreamId, i128>,
    ready: BTreeSet<StreamKey>,
    faults: Vec<String>,
}

impl Audit {
    /// Wraps a stream policy. It must name only streams that it was told are ready.
    pub fn watch(&self, inner: Box<dyn StreamPolicy>) -> Box<dyn StreamPolicy> {
        Box::new(Watched { inner, audit: self.clone() })
    }

    /// Bytes taken less bytes returned, by stream.
    pub fn charged(&self) -> BTreeMap<StreamId, i128> {
        self.books().charged.clone()
    }

    /// What it did wrong.
    pub fn faults(&self) -> Vec<String> {
        self.books().faults.clone()
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Watched {
    inner: Box<dyn StreamPolicy>,
    audit: Audit,
}

impl Watched {
    fn charge(&self, stream: StreamKey, bytes: i128) {
        *self.audit.books().charged.entry(stream.id).or_default() += bytes;
    }
}

impl StreamPolicy for Watched {
    fn next(&mut self, view: &View<'_>, notes: &mut Notes) -> Option<Turn> {
        let turn = self.inner.next(view, notes);
        let mut books = self.audit.books();
        let fault = match turn {
            Some(turn) if !books.ready.contains(&turn.stream) => {
                format!("named {:?}, which is not ready", turn.stream)
            }
            Some(turn) if turn.max.is_zero() => format!("gave {:?} no bytes", turn.stream),
            None if !books.ready.is_empty() => {
                format!("named none of {} ready streams", books.ready.len())
            }
            _ => return turn,
        };
        books.faults.push(fault);
        turn
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        let mut books = self.audit.books();
        let fault = match *event {
            Event::Ready(stream) => {
                (!books.ready.insert(stream)).then_some((stream, "ready twice"))
            }
            Event::Stopped(stream) => {
                (!books.ready.remove(&stream)).then_some((stream, "stopped without being ready"))
            }
            Event::Closed(stream) => {
                books.ready.remove(&stream);
                None
            }
            _ => None,
        };
        books.faults.extend(fault.map(|(stream, what)| format!("was told {stream:?} is {what}")));
        drop(books);
        self.inner.on_event(event, view);
    }

    fn on_taken(&mut self, turn: Turn, kind: Kind, view: &View<'_>) {
        self.charge(turn.stream, i128::from(turn.max.0));
        self.inner.on_taken(turn, kind, view);
    }

    fn on_returned(&mut self, turn: Turn, view: &View<'_>) {
        self.charge(turn.stream, -i128::from(turn.max.0));
        self.inner.on_returned(turn, view);
    }

    fn order(&self) -> u64 {
        self.inner.order()
    }

    fn stays_with(&self, stream: StreamKey) -> bool {
        self.inner.stays_with(stream)
    }
}
