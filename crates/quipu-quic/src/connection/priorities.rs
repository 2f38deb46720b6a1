//! Priorities of the application's streams, as HTTP edits them.

use quipu_base::{Instant, StreamId};
use quipu_policy::{Event, Priority, PriorityEdit, PriorityError, StreamKey};
use thiserror::Error;

use super::Connection;
use super::scheduler::Shared;

/// Why priorities could not be edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// The tree refused.
    #[error(transparent)]
    Tree(#[from] PriorityError),
    /// The stream is not open for sending.
    #[error("{0} is not open for sending")]
    NotOpen(StreamId),
}

impl Connection {
    /// Edits the dependency tree, or the urgency, deadline or size of a stream.
    ///
    /// # Errors
    /// If the tree refuses, or the stream is not open; nothing is changed then.
    // https://www.rfc-editor.org/rfc/rfc9000#section-2.3
    //# A QUIC implementation SHOULD provide ways in which an application can indicate the
    //# relative priority of streams.
    pub fn edit_priority(&mut self, now: Instant, edit: PriorityEdit) -> Result<(), EditError> {
        let stream = match edit {
            PriorityEdit::Attach { stream, .. }
            | PriorityEdit::Urgency { stream, .. }
            | PriorityEdit::Deadline { stream, .. }
            | PriorityEdit::Size { stream, .. } => {
                Some(self.sending_key(now, stream).ok_or(EditError::NotOpen(stream))?)
            }
            _ => None,
        };
        let edits = self.shared.priorities.apply(&edit, stream)?;
        self.complete_priority(stream);
        for edit in &edits {
            self.complete_priority(self.shared.priorities.touched(edit));
        }
        for edit in edits {
            self.scheduler.tell_joint(now, &self.shared, Event::Tree(edit));
        }
        match edit {
            PriorityEdit::Deadline { stream, latency } => {
                self.update_priority(stream, |priority| priority.latency = Some(latency));
            }
            PriorityEdit::Size { stream, size } => {
                // The stream was found open above.
                let _ = self.shared.streams.set_size(stream, size);
            }
            _ => {}
        }
        self.flush_edges(now);
        Ok(())
    }

    /// Copies what the container has of a stream's priority, told or derived, into the stream's view.
    fn complete_priority(&mut self, stream: Option<StreamKey>) {
        let Some(key) = stream else { return };
        let Shared { priorities, streams, .. } = &mut self.shared;
        if let Some(priority) = streams.priority(key.id) {
            // The stream was found open just now.
            let _ = streams.set_priority(key.id, priorities.complete(key, priority));
        }
    }

    fn update_priority(&mut self, stream: StreamId, change: impl FnOnce(&mut Priority)) {
        if let Some(mut priority) = self.shared.streams.priority(stream) {
            change(&mut priority);
            // The stream was found open above.
            let _ = self.shared.streams.set_priority(stream, priority);
        }
    }

    /// The key of a stream that can send; a stream of the peer that must yet arrive is opened.
    fn sending_key(&mut self, now: Instant, stream: StreamId) -> Option<StreamKey> {
        let key = self.shared.streams.ensure_open(stream, now);
        self.flush_edges(now);
        key
    }
}
