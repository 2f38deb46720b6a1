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
}

#[derive(Debug)]
struct Entry {
    /// The name, and behind it the value.
    octets: Box<[u8]>,
    name_len: usize,
    name_hash: u32,
    field_hash: u32,
}

impl DynamicTable {
    /// An empty table that holds at most `capacity` octets.
    pub const fn new(capacity: u64) -> Self {
        DynamicTable { entries: VecDeque::new(), size: 0, capacity, inserted: 0 }
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
        let size = entry_size(name, value);
        if size > self.capacity {
            self.evict_to(0);
            return;
        }
        self.evict_to(self.capacity - size);
        let mut octets = Vec::with_capacity(name.len() + value.len());
        octets.extend_from_slice(name);
        octets.extend_from_slice(value);
        let name_hash = hash(HASH_START, name);
        // https://www.rfc-editor.org/rfc/rfc7541#section-2.3.2
        //# Therefore, duplicate entries MUST NOT be treated as an error by a decoder.
        self.entries.push_front(Entry {
            octets: octets.into_boxed_slice(),
            name_len: name.len(),
            name_hash,
            field_hash: hash(name_hash, value),
        });
        self.size += size;
        self.inserted += 1;
    }

    /// Name and value of the entry at `age`: the newest has age 0.
    pub fn get(&self, age: usize) -> Option<(&[u8], &[u8])> {
        self.entries.get(age).map(|entry| entry.octets.split_at(entry.name_len))
    }

    /// Age of the newest entry with this name and value, else of the newest with this name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> Option<Found> {
        let name_hash = hash(HASH_START, name);
        let field_hash = hash(name_hash, value);
        let mut first = None;
        for (age, entry) in self.entries.iter().enumerate() {
            if entry.name_hash != name_hash {
                continue;
            }
            let (entry_name, entry_value) = entry.octets.split_at(entry.name_len);
            if entry_name != name {
                continue;
            }
            if entry.field_hash == field_hash && entry_value == value {
                return Some(Found::Field(age));
            }
            first = first.or(Some(Found::Name(age)));
        }
        first
    }

    fn evict_to(&mut self, limit: u64) {
        while self.size > limit {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.size -= oldest.octets.len() as u64 + FIELD_OVERHEAD;
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
}
