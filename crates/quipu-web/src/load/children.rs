//! The children of each object, in the order in which they are discovered.

use std::ops::Range;

use quipu_base::{Bytes, Duration};

use crate::page::{Discovery, Object, ObjectId, Page};

/// Children by parent, in two flat lists.
#[derive(Debug, Clone, Default)]
pub(super) struct Children {
    /// Sorted by parent, offset and id.
    parsed: Vec<(ObjectId, Bytes, ObjectId)>,
    /// Sorted by parent and id.
    completed: Vec<(ObjectId, ObjectId, Duration)>,
    /// Where each parent begins in `parsed` and in `completed`; one more than there are objects.
    starts: Vec<(usize, usize)>,
}

impl Children {
    /// The children of a page, as `discovery` says of each object.
    pub(super) fn of(page: &Page, discovery: impl Fn(&Object) -> Discovery) -> Children {
        let mut children = Children::default();
        for object in page.objects() {
            match discovery(object) {
                Discovery::Root => {}
                Discovery::ParserOffset { parent, offset } => {
                    children.parsed.push((parent, offset, object.id));
                }
                Discovery::AfterCompletion { parent, gap } => {
                    children.completed.push((parent, object.id, gap));
                }
            }
        }
        children.parsed.sort_unstable();
        children.completed.sort_unstable();
        let (mut parsed, mut completed) = (0, 0);
        for object in page.objects() {
            let id = object.id;
            parsed += count(&children.parsed[parsed..], |child| child.0 < id);
            completed += count(&children.completed[completed..], |child| child.0 < id);
            children.starts.push((parsed, completed));
        }
        children.starts.push((children.parsed.len(), children.completed.len()));
        children
    }

    /// The `rank`-th child that the parser of `parent` comes to, and the byte where it stands.
    pub(super) fn parsed(&self, parent: ObjectId, rank: u32) -> Option<(Bytes, ObjectId)> {
        let (start, _) = *self.starts.get(parent.index())?;
        // A rank counts objects of a page, whose ids are 32 bits wide.
        let &(of, offset, child) = self.parsed.get(start + rank as usize)?;
        (of == parent).then_some((offset, child))
    }

    /// Positions of the children that wait for `parent` to be complete.
    pub(super) fn completed_range(&self, parent: ObjectId) -> Range<usize> {
        match self.starts.get(parent.index()..parent.index() + 2) {
            Some([(_, start), (_, end)]) => *start..*end,
            _ => 0..0,
        }
    }

    /// The child at a position of [`Children::completed_range`], and its gap.
    pub(super) fn after_completion(&self, position: usize) -> (Duration, ObjectId) {
        let (_, child, gap) = self.completed[position];
        (gap, child)
    }
}

fn count<T>(sorted: &[T], below: impl Fn(&T) -> bool) -> usize {
    sorted.iter().take_while(|item| below(item)).count()
}
