//! From stream identifiers to slots.

use std::collections::VecDeque;

const PAGE: usize = 256;
const VACANT: u32 = u32::MAX;

/// Slots of 256 streams of one kind, in order of identifier.
#[derive(Debug)]
struct Page {
    slots: [u32; PAGE],
    live: u16,
}

/// The slots of the live streams of one initiator and direction, by position among them.
///
/// A page is freed when all of its streams were opened and closed, so that a long connection
/// costs a few words per 256 streams at most, and nothing while all old ones are closed.
#[derive(Debug, Default)]
pub(crate) struct SlotIndex {
    pages: VecDeque<Option<Box<Page>>>,
    first_page: u64,
    /// Streams opened so far; all at or above are new.
    opened: u64,
}

impl SlotIndex {
    /// Streams opened so far.
    pub(crate) const fn opened(&self) -> u64 {
        self.opened
    }

    /// Opens the next stream.
    pub(crate) fn push(&mut self, slot: u32) {
        let (page, within) = Self::split(self.opened);
        self.opened += 1;
        if self.pages.is_empty() {
            self.first_page = page;
        }
        if page == self.first_page + self.pages.len() as u64 {
            self.pages.push_back(None);
        }
        let vacant = || Box::new(Page { slots: [VACANT; PAGE], live: 0 });
        if let Some(page) = self.pages.back_mut() {
            let page = page.get_or_insert_with(vacant);
            page.slots[within] = slot;
            page.live += 1;
        }
    }

    /// The slot of a live stream.
    pub(crate) fn get(&self, position: u64) -> Option<u32> {
        let (page, within) = Self::split(position);
        let page = usize::try_from(page.checked_sub(self.first_page)?).ok()?;
        let slot = self.pages.get(page)?.as_ref()?.slots[within];
        (slot != VACANT).then_some(slot)
    }

    /// Closes a stream.
    pub(crate) fn remove(&mut self, position: u64) {
        let (number, within) = Self::split(position);
        let Some(page) = number.checked_sub(self.first_page) else { return };
        let Some(entry) = usize::try_from(page).ok().and_then(|page| self.pages.get_mut(page))
        else {
            return;
        };
        let Some(page) = entry else { return };
        if std::mem::replace(&mut page.slots[within], VACANT) == VACANT {
            return;
        }
        page.live -= 1;
        if page.live > 0 || self.opened / PAGE as u64 <= number {
            return;
        }
        *entry = None;
        while let Some(None) = self.pages.front() {
            self.pages.pop_front();
            self.first_page += 1;
        }
    }

    const fn split(position: u64) -> (u64, usize) {
        (position / PAGE as u64, (position % PAGE as u64) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_closed_streams_are_freed() {
        let mut index = SlotIndex::default();
        for position in 0..1_000_000 {
            index.push(7);
            assert_eq!(index.get(position), Some(7));
            if position > 0 {
                index.remove(position);
                assert_eq!(index.get(position), None);
            }
        }
        assert_eq!(index.get(0), Some(7));
        assert!(index.pages.iter().flatten().count() <= 2);
        index.remove(0);
        assert!(index.pages.len() <= 1);
        assert_eq!(index.get(u64::MAX), None);
        index.push(3);
        assert_eq!(index.get(1_000_000), Some(3));
    }
}
