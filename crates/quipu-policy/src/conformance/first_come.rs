//! The plainest stream policy.

use std::collections::BTreeSet;

use quipu_base::Bytes;

use crate::key::StreamKey;
use crate::seam::decision::Notes;
use crate::seam::event::Event;
use crate::seam::view::{Kind, View};
use crate::stream::{StreamPolicy, Turn};

/// The ready stream of least identifier sends all that it has: a stream policy for tests of the
/// other layers.
#[derive(Clone, Debug, Default)]
pub struct FirstCome {
    ready: BTreeSet<StreamKey>,
}

impl StreamPolicy for FirstCome {
    fn next(&mut self, _view: &View<'_>, _notes: &mut Notes) -> Option<Turn> {
        self.ready.first().map(|&stream| Turn { stream, max: Bytes::MAX })
    }

    fn on_event(&mut self, event: &Event<'_>, _view: &View<'_>) {
        match *event {
            Event::Ready(stream) => {
                self.ready.insert(stream);
            }
            Event::Stopped(stream) | Event::Closed(stream) => {
                self.ready.remove(&stream);
            }
            _ => {}
        }
    }

    fn on_taken(&mut self, _turn: Turn, _kind: Kind, _view: &View<'_>) {}

    fn on_returned(&mut self, _turn: Turn, _view: &View<'_>) {}
}
