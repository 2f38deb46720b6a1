//! A value per stream.

use quipu_base::StreamId;

use crate::key::StreamKey;

/// Values by stream slot; that of another stream in the same slot is none.
#[derive(Clone, Debug)]
pub(super) struct ByStream<T> {
    slots: Vec<Option<(StreamId, T)>>,
}

impl<T> Default for ByStream<T> {
    fn default() -> Self {
        ByStream { slots: Vec::new() }
    }
}

impl<T: Copy> ByStream<T> {
    pub(super) fn get(&self, stream: StreamKey) -> Option<T> {
        let (id, value) = self.slots.get(stream.index()).copied().flatten()?;
        (id == stream.id).then_some(value)
    }

    pub(super) fn set(&mut self, stream: StreamKey, value: T) {
        if self.slots.len() <= stream.index() {
            self.slots.resize(stream.index() + 1, None);
        }
        self.slots[stream.index()] = Some((stream.id, value));
    }

    pub(super) fn remove(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slots.get_mut(stream.index()) {
            *slot = None;
        }
    }
}
