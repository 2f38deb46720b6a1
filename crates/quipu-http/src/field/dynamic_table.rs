//! The table that a connection's fields fill: bounded, first in, first out.
//! <https://www.rfc-editor.org/rfc/rfc7541#section-2.3.2>

use std::collections::VecDeque;

use super::list::FIELD_OVERHEAD;
use super::static_table::Found;

/// Fields in the order of insertion. An entry counts its name, its value and 32 octets; the oldest
/// leave when the sum would exceed the capacity.
/// <https://www.rfc-editor.org/rfc/rfc7541#section-4>
#[derive(Debug)]
pub struct DynamicTable {
    /// Newest first.
    entries: VecDeque<Entry>,
    size: u64,
    capacity: u64,
    inserted: u64,
    /// Octets that all entries ever inserted count.
    inserted_octets: u64,
}

#[derive(Debug)]
struct Entry {
    content: Content,
    /// Octets that the entries inserted before this one count.
    octets_before: u64,
}

#[derive(Clone, Debug)]
struct Content {
    /// The name, and behind it the value.
    octets: Box<[u8]>,
    name_len: usize,
    name_hash: u32,
    field_hash: u32,
}

impl Content {
    fn new((name, name_hash): (&[u8], u32), value: &[u8]) -> Self {
        let mut octets = Vec::with_capacity(name.len() + value.len());
        octets.extend_from_slice(name);
        octets.extend_from_slice(value);
        Content {
            octets: octets.into_boxed_slice(),
            name_len: name.len(),
            name_hash,
            field_hash: hash(name_hash, value),
        }
    }

    fn field(&self) -> (&[u8], &[u8]) {
        self.octets.split_at(self.name_len)
    }

    fn size(&self) -> u64 {
        self.octets.len() as u64 + FIELD_OVERHEAD
    }
}

impl DynamicTable {
    /// An empty table that holds at most `capacity` octets.
    pub const fn new(capacity: u64) -> Self {
        let entries = VecDeque::new();
        DynamicTable { entries, size: 0, capacity, inserted: 0, inserted_octets: 0 }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Octets that the entries count.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Octets that the entries may count.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Entries ever inserted, also those that left since.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Changes the capacity; entries beyond it leave.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_to(capacity);
    }

    /// Inserts a field as the newest entry. A field larger than the capacity empties the table and is
    /// not inserted, which is no error.
    /// <https://www.rfc-editor.org/rfc/rfc7541#section-4.4>
    pub fn insert(&mut self, name: &[u8], value: &[u8]) {
        self.push(Content::new((name, hash(HASH_START, name)), value));
    }

    /// Inserts a field with the name of the entry at `age` as the newest entry. That entry may be
    /// evicted by it. Nothing happens if there is no such entry.
    pub fn insert_with_name_of(&mut self, age: usize, value: &[u8]) {
        if let Some(Entry { content, .. }) = self.entries.get(age) {
            let (name, _) = content.field();
            let content = Content::new((name, content.name_hash), value);
            self.push(content);
        }
    }

    /// Inserts a copy of the entry at `age` as the newest entry. The original may be evicted by it.
    /// Nothing happens if there is no such entry.
    pub fn duplicate(&mut self, age: usize) {
        if let Some(entry) = self.entries.get(age) {
            let content = entry.content.clone();
            self.push(content);
        }
    }

    fn push(&mut self, content: Content) {
        let size = content.size();
        let Some(room) = self.capacity.checked_sub(size) else {
            self.evict_to(0);
            return;
        };
        self.evict_to(room);
        // https://www.rfc-editor.org/rfc/rfc7541#section-2.3.2
        //# Therefore, duplicate entries MUST NOT be treated as an error by a decoder.
        // https://www.rfc-editor.org/rfc/rfc9204#section-3.2
        //# Therefore, duplicate entries MUST NOT be treated as an error by the decoder.
        self.entries.push_front(Entry { content, octets_before: self.inserted_octets });
        self.size += size;
        self.inserted += 1;
        self.inserted_octets += size;
    }

    /// Name and value of the entry at `age`: the newest has age 0.
    pub fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(age).map(|entry| entry.content.field())
    }

    /// The age of the entry that was inserted after `index` others, if it is still there.
    /// <https://www.rfc-editor.org/rfc/rfc9204#section-3.2.4>
    pub fn age_of(&self, index: u64) -> Option<usize> {
        let age = self.inserted.checked_sub(index)?.checked_sub(1)?;
        usize::try_from(age).ok().filter(|&age| age < self.entries.len())
    }

    /// Octets that the entry at `age` and all newer ones count.
    pub fn octets_since(&self, age: usize) -> Option<u64> {
        self.entries.get(age).map(|entry| self.inserted_octets - entry.octets_before)
    }

    /// Whether an entry of `size` octets can be inserted if only entries may leave that were inserted
    /// after fewer than `evictable` others.
    pub fn has_room(&self, size: u64, evictable: u64) -> bool {
        let Some(room) = self.capacity.checked_sub(size) else { return false };
        let oldest = self.inserted - self.entries.len() as u64;
        let mut left = self.size;
        for (_, entry) in (oldest..evictable).zip(self.entries.iter().rev()) {
            if left <= room {
                break;
            }
            left -= entry.content.size();
        }
        left <= room
    }

    /// Age of the newest entry with this name and value, else of the newest with this name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> Option<Found> {
        self.find_from(0, name, value)
    }

    /// As [`DynamicTable::find`], but ignores entries younger than `youngest`.
    pub fn find_from(&self, youngest: usize, name: &[u8], value: &[u8]) -> Option<Found> {
        let name_hash = hash(HASH_START, name);
        let field_hash = hash(name_hash, value);
        let mut first = None;
        for (age, Entry { content, .. }) in self.entries.iter().enumerate().skip(youngest) {
            if content.name_hash != name_hash {
                continue;
            }
            let (entry_name, entry_value) = content.field();
            if entry_name != name {
                continue;
            }
            if content.field_hash == field_hash && entry_value == value {
                return Some(Found::Field(age));
            }
            first = first.or(Some(Found::Name(age)));
        }
        first
    }

    fn evict_to(&mut self, limit: u64) {
        while self.size > limit {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.content.size();
        }
    }
}

/// What a field counts in a table, in octets.
pub fn entry_size(name: &[u8], value: &[u8]) -> u64 {
    name.len() as u64 + value.len() as u64 + FIELD_OVERHEAD
}

const HASH_START: u32 = 0x811c_9dc5;

/// FNV-1a. Equal hashes only lead to a comparison, so a peer that makes them collide gains nothing
/// but comparisons within a bounded table.
fn hash(start: u32, octets: &[u8]) -> u32 {
    octets.iter().fold(start, |hash, &octet| (hash ^ u32::from(octet)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_leave_first() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        assert_eq!((table.len(), table.size()), (2, 68));
        table.insert(b"c", b"3");
        assert_eq!((table.len(), table.size()), (2, 68));
        assert_eq!(table.get(0), Some((&b"c"[..], &b"3"[..])));
        assert_eq!(table.get(1), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(table.get(2), None);
        assert_eq!(table.inserted(), 3);
    }

    #[test]
    fn a_field_larger_than_the_table_empties_it() {
        let mut table = DynamicTable::new(64);
        table.insert(b"a", b"1");
        table.insert(b"b", &[0; 40]);
        assert!(table.is_empty());
        assert_eq!(table.size(), 0);
    }

    #[test]
    fn a_smaller_capacity_evicts_at_once() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        table.set_capacity(34);
        assert_eq!(table.get(0), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(table.len(), 1);
        table.set_capacity(0);
        assert!(table.is_empty());
    }

    #[test]
    fn search_finds_the_newest() {
        let mut table = DynamicTable::new(1000);
        for (name, value) in [("a", "1"), ("a", "2"), ("a", "1"), ("b", "1")] {
            table.insert(name.as_bytes(), value.as_bytes());
        }
        assert_eq!(table.find(b"a", b"1"), Some(Found::Field(1)));
        assert_eq!(table.find(b"a", b"2"), Some(Found::Field(2)));
        assert_eq!(table.find(b"a", b"3"), Some(Found::Name(1)));
        assert_eq!(table.find(b"c", b"1"), None);
    }

    #[test]
    fn an_entry_may_be_evicted_by_its_own_copy() {
        let mut table = DynamicTable::new(80);
        table.insert(b"name", b"1");
        table.insert_with_name_of(0, b"22222222");
        assert_eq!(table.get(0), Some((&b"name"[..], &b"22222222"[..])));
        assert_eq!((table.len(), table.inserted()), (1, 2));
        table.duplicate(0);
        assert_eq!(table.get(0), Some((&b"name"[..], &b"22222222"[..])));
        assert_eq!((table.len(), table.inserted()), (1, 3));
        assert_eq!(table.find(b"name", b"22222222"), Some(Found::Field(0)));
        assert_eq!((table.age_of(1), table.age_of(2), table.age_of(3)), (None, Some(0), None));
    }

    #[test]
    fn room_counts_what_may_leave() {
        let mut table = DynamicTable::new(100);
        table.insert(b"a", b"1");
        table.insert(b"b", b"2");
        assert_eq!((table.octets_since(0), table.octets_since(1)), (Some(34), Some(68)));
        assert!(table.has_room(32, 0));
        assert!(!table.has_room(34, 0));
        assert!(table.has_room(34, 1));
        assert!(!table.has_room(100, 1));
        assert!(table.has_room(100, 2));
        assert!(!table.has_room(101, u64::MAX));
    }
}
