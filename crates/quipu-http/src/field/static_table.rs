//! A table that both ends know from the start.

/// A static table: entries by position, and an index for searching them.
#[derive(Debug)]
pub struct StaticTable<const N: usize> {
    entries: [(&'static str, &'static str); N],
    /// Positions, ascending by name, and by position where names are equal.
    by_name: [u8; N],
}

/// What a search in a table found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// An entry with this name and value.
    Field(usize),
    /// An entry with this name, but another value.
    Name(usize),
}

impl<const N: usize> StaticTable<N> {
    /// A table of `entries`, at most 255.
    pub const fn new(entries: [(&'static str, &'static str); N]) -> Self {
        assert!(N < 256);
        let mut by_name = [0; N];
        let mut count = 0;
        while count < N {
            // Insertion sort: runs when the program is compiled.
            let mut place = count;
            while place > 0 && is_less(entries[count].0, entries[by_name[place - 1] as usize].0) {
                by_name[place] = by_name[place - 1];
                place -= 1;
            }
            by_name[place] = count as u8;
            count += 1;
        }
        StaticTable { entries, by_name }
    }

    /// Number of entries.
    pub const fn len(&self) -> usize {
        N
    }

    /// True if there is no entry.
    pub const fn is_empty(&self) -> bool {
        N == 0
    }

    /// Name and value at `position`, counted from zero.
    pub fn get(&self, position: usize) -> Option<(&'static [u8], &'static [u8])> {
        self.entries.get(position).map(|(name, value)| (name.as_bytes(), value.as_bytes()))
    }

    /// The first entry with this name and value, else the first with this name.
    pub fn find(&self, name: &[u8], value: &[u8]) -> Option<Found> {
        let start = self.by_name.partition_point(|&position| self.name(position) < name);
        let mut first = None;
        for &position in self.by_name[start..].iter().take_while(|&&at| self.name(at) == name) {
            let position = usize::from(position);
            if self.entries[position].1.as_bytes() == value {
                return Some(Found::Field(position));
            }
            first = first.or(Some(Found::Name(position)));
        }
        first
    }

    fn name(&self, position: u8) -> &'static [u8] {
        self.entries[usize::from(position)].0.as_bytes()
    }
}

/// `a < b`, octet by octet; the operator is not available in constants.
const fn is_less(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() {
        if a[at] != b[at] {
            return a[at] < b[at];
        }
        at += 1;
    }
    a.len() < b.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: StaticTable<4> =
        StaticTable::new([("b", "1"), ("bb", ""), ("a", ""), ("b", "2")]);

    #[test]
    fn search_prefers_the_whole_field_and_then_the_first_name() {
        assert_eq!(TABLE.find(b"b", b"1"), Some(Found::Field(0)));
        assert_eq!(TABLE.find(b"b", b"2"), Some(Found::Field(3)));
        assert_eq!(TABLE.find(b"b", b"3"), Some(Found::Name(0)));
        assert_eq!(TABLE.find(b"a", b""), Some(Found::Field(2)));
        assert_eq!(TABLE.find(b"bb", b"x"), Some(Found::Name(1)));
        assert_eq!(TABLE.find(b"c", b""), None);
    }

    #[test]
    fn positions_start_at_zero() {
        assert_eq!(TABLE.get(3), Some((&b"b"[..], &b"2"[..])));
        assert_eq!(TABLE.get(4), None);
    }
}
