//! The streams that a policy may choose from.

use quipu_policy::{Event, StreamKey, View};

/// Streams with something to send, in order of arrival, kept up by events.
#[derive(Debug, Default)]
pub(crate) struct Ready(Vec<(u64, StreamKey)>);

impl Ready {
    /// Takes note of what happened.
    pub(crate) fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        match event {
            Event::Ready(key) => {
                let Some(stream) = view.streams.get(*key) else { return };
                let entry = (stream.seq, *key);
                if let Err(place) = self.0.binary_search_by_key(&stream.seq, |(seq, _)| *seq) {
                    self.0.insert(place, entry);
                }
            }
            Event::Stopped(key) | Event::Closed(key) => self.0.retain(|(_, other)| other != key),
            _ => {}
        }
    }

    /// All of them.
    pub(crate) fn keys(&self) -> impl Iterator<Item = StreamKey> + '_ {
        self.0.iter().map(|(_, key)| *key)
    }

    /// The one with that identifier.
    pub(crate) fn by_id(&self, id: u64) -> Option<StreamKey> {
        self.keys().find(|key| key.id.0 == id)
    }
}
