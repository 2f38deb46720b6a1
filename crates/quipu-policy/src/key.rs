//! Keys by which engine and policies name paths, streams and stretches of a stream.

use quipu_base::{Bytes, Offset, PathId, StreamId};

/// A path: its identifier and a dense slot.
///
/// `slot` is below [`Paths::MAX`](crate::Paths::MAX) and is used again only after
/// [`Event::PathGone`](crate::Event::PathGone), so a policy may index a vector with it.
/// Keys order by path identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathKey {
    /// Dense index, below 32.
    pub slot: u8,
    /// The identifier on the wire.
    pub id: PathId,
}

/// A stream: its identifier and a dense slot.
///
/// `slot` is used again only after [`Event::Closed`](crate::Event::Closed), so a policy may index
/// a vector with it. Keys order by stream identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    /// Dense index.
    pub slot: u32,
    /// The identifier on the wire.
    pub id: StreamId,
}

/// A stretch of a stream, half-open: `start..end`. Empty only for a bare FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: Offset,
    /// One past the last byte.
    pub end: Offset,
}

/// A set of paths by slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSet(u32);

impl PathKey {
    /// The slot as an index.
    pub const fn index(self) -> usize {
        self.slot as usize
    }
}

impl PartialOrd for PathKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PathKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.id, self.slot).cmp(&(other.id, other.slot))
    }
}

impl StreamKey {
    /// The slot as an index.
    pub const fn index(self) -> usize {
        self.slot as usize
    }
}

impl PartialOrd for StreamKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for StreamKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.id, self.slot).cmp(&(other.id, other.slot))
    }
}

impl Span {
    /// The stretch from `start` to `end`; empty at `start` if `end` lies before it.
    pub const fn new(start: Offset, end: Offset) -> Self {
        Span { start, end: if end.0 < start.0 { start } else { end } }
    }

    /// The stretch of `len` bytes from `start`.
    pub const fn from_len(start: Offset, len: Bytes) -> Self {
        Span { start, end: start.advanced(len) }
    }

    /// Bytes in the stretch.
    pub const fn len(self) -> Bytes {
        self.end.since(self.start)
    }

    /// True for a bare FIN.
    pub const fn is_empty(self) -> bool {
        self.end.0 <= self.start.0
    }

    /// True if the byte at `at` is in the stretch.
    pub const fn contains(self, at: Offset) -> bool {
        self.start.0 <= at.0 && at.0 < self.end.0
    }

    /// What both stretches hold, if anything.
    pub fn intersection(self, other: Span) -> Option<Span> {
        let start = self.start.max(other.start);
        let end = self.end.min(other.end);
        (start < end).then_some(Span { start, end })
    }
}

impl PathSet {
    /// No path.
    pub const EMPTY: PathSet = PathSet(0);

    /// Just one path.
    pub const fn only(path: PathKey) -> Self {
        PathSet(1 << (path.slot & 31))
    }

    /// The set with `path` in it.
    #[must_use]
    pub const fn with(self, path: PathKey) -> Self {
        PathSet(self.0 | 1 << (path.slot & 31))
    }

    /// The set without `path`.
    #[must_use]
    pub const fn without(self, path: PathKey) -> Self {
        PathSet(self.0 & !(1 << (path.slot & 31)))
    }

    /// True if `path` is in the set.
    pub const fn contains(self, path: PathKey) -> bool {
        self.0 & 1 << (path.slot & 31) != 0
    }

    /// True if there is no path in the set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Number of paths in the set.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_order_by_identifier_not_by_slot() {
        let early = StreamKey { slot: 9, id: StreamId(4) };
        let late = StreamKey { slot: 1, id: StreamId(8) };
        assert!(early < late);
        let low = PathKey { slot: 3, id: PathId(0) };
        let high = PathKey { slot: 0, id: PathId(1) };
        assert!(low < high);
    }

    #[test]
    fn spans_intersect_where_they_overlap() {
        let span = |a, b| Span::new(Offset(a), Offset(b));
        assert_eq!(span(0, 10).intersection(span(5, 20)), Some(span(5, 10)));
        assert_eq!(span(0, 5).intersection(span(5, 20)), None);
        assert!(span(7, 3).is_empty());
    }
}
