//! From stream identifiers to slots.

use std::collections::VecDeque;

const PAGE: usize = 256;
const VACANT: u32 = u32::MAX;
/// Open, but without a slot yet.
const IMPLIED: u32 = u32::MAX - 1;

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

    /// Opens the next streams, so many, without slots.
    pub(crate) fn imply(&mut self, count: u64) {
        let mut left = count;
        while left > 0 {
            let (_, within) = Self::split(self.opened);
            self.push(IMPLIED);
            left -= 1;
            let more = left.min((PAGE - 1 - within) as u64);
            if let Some(Some(page)) = self.pages.back_mut() {
                page.slots[within + 1..within + 1 + more as usize].fill(IMPLIED);
                page.live += more as u16;
                self.opened += more;
                left -= more;
            }
        }
    }

    /// Gives a stream that was opened without a slot one; false if it has one, or is over.
    pub(crate) fn fill(&mut self, position: u64, slot: u32) -> bool {
        let Some(entry) = self.entry_mut(position).filter(|entry| **entry == IMPLIED) else {
            return false;
        };
        *entry = slot;
        true
    }

    /// True if the stream is open without a slot.
    pub(crate) fn is_implied(&self, position: u64) -> bool {
        self.entry(position) == Some(IMPLIED)
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
        self.entry(position).filter(|&slot| slot < IMPLIED)
    }

    fn entry(&self, position: u64) -> Option<u32> {
        let (page, within) = Self::split(position);
        let page = usize::try_from(page.checked_sub(self.first_page)?).ok()?;
        Some(self.pages.get(page)?.as_ref()?.slots[within])
    }

    fn entry_mut(&mut self, position: u64) -> Option<&mut u32> {
        let (page, within) = Self::split(position);
        let page = usize::try_from(page.checked_sub(self.first_page)?).ok()?;
        Some(&mut self.pages.get_mut(page)?.as_mut()?.slots[within])
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
    fn streams_without_slots_keep_their_page_until_they_had_one() {
        let mut index = SlotIndex::default();
        index.imply(300);
        index.push(9);
        assert_eq!((index.opened(), index.get(300), index.get(5)), (301, Some(9), None));
        assert!(index.is_implied(5) && !index.is_implied(300) && !index.is_implied(301));
        assert!(
            index.fill(5, 7) && !index.fill(5, 8) && !index.fill(300, 8) && !index.fill(400, 8)
        );
        assert_eq!(index.get(5), Some(7));
        for position in (0..256).filter(|position| *position != 6) {
            index.fill(position, 1);
            index.remove(position);
        }
        assert!(index.is_implied(6), "the page stays");
        assert!(index.fill(6, 2));
        index.remove(6);
        assert!(!index.is_implied(6) && !index.fill(6, 2) && index.is_implied(256));
    }

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
