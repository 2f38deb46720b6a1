//! Parents of the objects whose initiator the recording does not tell.
//!
//! From sure to weak: a font hangs on the last style sheet that ended before it started; a script
//! or a style sheet that started while the main document was arriving was found in it; otherwise
//! the parent is the latest-ended object of a type that can have children, if it ended before the
//! child started; else the main document. Such guesses miss true dependencies and invent others.

use quipu_base::Duration;

use super::ObjectKind;
use super::initiator::Edge;
use super::select::Draft;

/// Possible parents in order of their end.
pub(super) struct Candidates {
    any: Vec<(Duration, usize)>,
    stylesheets: Vec<(Duration, usize)>,
}

impl Candidates {
    pub(super) fn new(drafts: &[Draft<'_>]) -> Candidates {
        let by_end = |fits: fn(ObjectKind) -> bool| {
            let mut found: Vec<_> = drafts
                .iter()
                .enumerate()
                .filter(|(_, draft)| fits(draft.kind))
                .map(|(index, draft)| (draft.end, index))
                .collect();
            found.sort_unstable();
            found
        };
        Candidates {
            any: by_end(ObjectKind::can_have_children),
            stylesheets: by_end(|kind| kind == ObjectKind::Stylesheet),
        }
    }

    /// A guess for the parent of `child`, and how it hangs there.
    pub(super) fn guess(&self, drafts: &[Draft<'_>], child: usize, main: usize) -> (usize, Edge) {
        let (start, kind) = (drafts[child].start, drafts[child].kind);
        if kind == ObjectKind::Font
            && let Some(sheet) = last_ended(&self.stylesheets, drafts, start)
        {
            return (sheet, Edge::Ended);
        }
        let found_by_preload_scanner =
            matches!(kind, ObjectKind::Script | ObjectKind::Stylesheet) && start < drafts[main].end;
        if found_by_preload_scanner {
            return (main, Edge::Arriving);
        }
        match last_ended(&self.any, drafts, start) {
            Some(parent) => (parent, Edge::Ended),
            None => (main, Edge::Arriving),
        }
    }
}

/// The last of `by_end` that ended by `time`. One that began only then is none: recordings without
/// times would make a chain of everything.
fn last_ended(by_end: &[(Duration, usize)], drafts: &[Draft<'_>], time: Duration) -> Option<usize> {
    let ended = by_end.partition_point(|&(end, _)| end <= time);
    let (_, parent) = *by_end[..ended].last()?;
    (drafts[parent].start < time).then_some(parent)
}
