//! The priority of a request, as its recording states it.

use super::priority::Vocabulary;
use super::select::Draft;
use super::{ChromePriority, ObjectKind, RecordedPriority};

/// The priority that a recording states. Where only the last is recorded, an image began with Low and was raised; other
/// types keep theirs.
pub(super) fn recorded_priority(draft: &Draft<'_>) -> Option<RecordedPriority> {
    let entry = draft.entry;
    let read = |word: &String| ChromePriority::from_word(word, Vocabulary::of(word));
    let first = entry.initial_priority_camel.as_ref().or(entry.initial_priority_snake.as_ref());
    let first = first.and_then(read);
    let last = entry.priority.as_ref().and_then(read).or(first)?;
    let unraised =
        if draft.kind == ObjectKind::Image { last.max(ChromePriority::Low) } else { last };
    Some(RecordedPriority { initial: first.unwrap_or(unraised), last })
}
