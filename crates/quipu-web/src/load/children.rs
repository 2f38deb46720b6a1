//! What waits for each object, in the order in which it is discovered.

use std::ops::Range;

use quipu_base::{Bytes, Duration};

use crate::page::{Discovery, Object, ObjectId, Page};

/// Objects by what they wait for, in flat lists, and what each still waits for at the start.
#[derive(Debug, Clone, Default)]
pub(super) struct Children {
    /// Sorted by parent, offset and id.
    parsed: Vec<(ObjectId, Bytes, ObjectId)>,
    /// Sorted by what is waited for and id.
    completed: Vec<(ObjectId, ObjectId)>,
    /// Where each parent begins in `parsed` and in `completed`; one more than there are objects.
    starts: Vec<(usize, usize)>,
    /// By object: on how much it waits, and what passes then until its request.
    waits: Vec<(u32, Duration)>,
}

impl Children {
    /// The children of a page, as it says itself, or with `other` discoveries and without waiting for anything
    /// else.
    pub(super) fn of(page: &Page, other: Option<&dyn Fn(&Object) -> Discovery>) -> Children {
        let mut children = Children::default();
        for object in page.objects() {
            let discovery = other.map_or(object.discovery, |discovery| discovery(object));
            match discovery {
                Discovery::Root => {}
                Discovery::ParserOffset { parent, offset } => {
                    children.parsed.push((parent, offset, object.id));
                }
                Discovery::AfterCompletion { parent } => {
                    children.completed.push((parent, object.id));
                }
            }
            let mut needs = u32::from(discovery.parent().is_some());
            let mut gap = Duration::ZERO;
            if other.is_none() {
                gap = object.gap.total();
                for need in &object.waits_for {
                    children.completed.push((*need, object.id));
                    needs += 1;
                }
            }
            children.waits.push((needs, gap));
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

    /// True if `object` waits for nothing.
    pub(super) fn is_root(&self, object: ObjectId) -> bool {
        self.waits.get(object.index()).is_some_and(|(needs, _)| *needs == 0)
    }

    /// One of the things that `object` waits for has come. The time until its request, if it was the
    /// last one.
    pub(super) fn came(&mut self, object: ObjectId) -> Option<Duration> {
        let (needs, gap) = self.waits.get_mut(object.index())?;
        *needs = needs.checked_sub(1)?;
        (*needs == 0).then_some(*gap)
    }

    /// What passes from the start to the request of an object that waits for nothing.
    pub(super) fn gap(&self, object: ObjectId) -> Duration {
        self.waits.get(object.index()).map_or(Duration::ZERO, |(_, gap)| *gap)
    }

    /// The `rank`-th child that the parser of `parent` comes to, and the byte where it stands.
    pub(super) fn parsed(&self, parent: ObjectId, rank: u32) -> Option<(Bytes, ObjectId)> {
        let (start, _) = *self.starts.get(parent.index())?;
        // A rank counts objects of a page, whose ids are 32 bits wide.
        let &(of, offset, child) = self.parsed.get(start + rank as usize)?;
        (of == parent).then_some((offset, child))
    }

    /// Positions of the objects that wait for `parent` to be complete.
    pub(super) fn completed_range(&self, parent: ObjectId) -> Range<usize> {
        match self.starts.get(parent.index()..parent.index() + 2) {
            Some([(_, start), (_, end)]) => *start..*end,
            _ => 0..0,
        }
    }

    /// The object at a position of [`Children::completed_range`].
    pub(super) fn after_completion(&self, position: usize) -> ObjectId {
        self.completed[position].1
    }
}

fn count<T>(sorted: &[T], below: impl Fn(&T) -> bool) -> usize {
    sorted.iter().take_while(|item| below(item)).count()
}
