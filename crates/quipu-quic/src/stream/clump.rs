//! Small pieces of a stream that came ahead of their turn, packed together.

/// Longest piece that is packed, in bytes; our choice. Longer ones have a buffer of their own.
pub(super) const MAX_PACKED: usize = 128;

/// Bytes of a clump at most, unless its only piece takes more; our choice: a search looks at fifty
/// pieces of one byte.
const MAX_CLUMP: usize = 256;

/// Bytes by which the memory of a clump grows.
const STEP: usize = 64;

/// Pieces in order, each as the length of the gap before it, its own length, and its bytes. Both
/// lengths take a byte for each seven bits. However small the pieces are that a peer sends, each
/// takes no more memory than the frame that brought it and the clump's share in its stream's map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clump {
    /// Where its first piece begins.
    start: u64,
    /// Where its last piece ends.
    end: u64,
    packed: Vec<u8>,
}

/// A piece of a clump.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'c> {
    pub(super) start: u64,
    pub(super) bytes: &'c [u8],
}

impl Packed<'_> {
    pub(super) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// What is left of a clump and of a stretch of the stream when pieces within the stretch are taken
/// out, and the stretch is cut where pieces reach into it.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) before: Clump,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) after: Clump,
}

impl Clump {
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packed.is_empty()
    }

    /// Memory that it takes beside itself.
    pub(super) fn memory(&self) -> usize {
        self.packed.capacity()
    }

    /// True if a piece of `length` bytes may be added.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.packed.is_empty() || self.packed.len() + length + 2 <= MAX_CLUMP
    }

    /// Adds a piece at or behind the end.
    pub(super) fn push(&mut self, start: u64, bytes: &[u8]) {
        if self.packed.is_empty() {
            (self.start, self.end) = (start, start);
        }
        let mut head = [0; 20];
        let mut length = put(&mut head, 0, start - self.end);
        length = put(&mut head, length, bytes.len() as u64);
        let more = length + bytes.len();
        if self.packed.capacity() - self.packed.len() < more {
            self.packed.reserve_exact(more.next_multiple_of(STEP));
        }
        self.packed.extend_from_slice(&head[..length]);
        self.packed.extend_from_slice(bytes);
        self.end = start + bytes.len() as u64;
    }

    /// Adds a piece in its place, if that is behind the first piece and none of its bytes is there
    /// yet; false, and nothing is changed, if not. The caller looked whether there is room, and that
    /// nothing else lies in the way behind the end.
    pub(super) fn insert(&mut self, start: u64, bytes: &[u8]) -> bool {
        let end = start + bytes.len() as u64;
        if start >= self.end {
            self.push(start, bytes);
            return true;
        }
        let mut pieces = self.iter();
        // Where the gap before the piece that follows is written, and where it begins.
        let (mut at, mut gap_start) = (0, self.start);
        let (next, gap_length) = loop {
            let rest = pieces.rest;
            let Some(piece) = pieces.next() else { return false };
            if piece.start >= end {
                // The number before its own length, which takes as many bytes as it has.
                break (piece.start, rest.iter().take_while(|&&byte| byte >= 0x80).count() + 1);
            }
            if piece.end() > start {
                return false;
            }
            at = self.packed.len() - pieces.rest.len();
            gap_start = piece.end();
        };
        if at == 0 || start < gap_start {
            return false;
        }
        let (mut head, mut gap) = ([0; 20], [0; 20]);
        let head_length = put(&mut head, 0, start - gap_start);
        let head_length = put(&mut head, head_length, bytes.len() as u64);
        let new_gap_length = put(&mut gap, 0, next - end);
        let more = head_length + bytes.len() + new_gap_length - gap_length;
        if self.packed.capacity() - self.packed.len() < more {
            self.packed.reserve_exact(more.next_multiple_of(STEP));
        }
        // Makes room, and fills it.
        let old_length = self.packed.len();
        self.packed.resize(old_length + more, 0);
        self.packed.copy_within(at + gap_length..old_length, at + gap_length + more);
        let parts = [&head[..head_length], bytes, &gap[..new_gap_length]];
        for part in parts {
            if let Some(place) = self.packed.get_mut(at..at + part.len()) {
                place.copy_from_slice(part);
            }
            at += part.len();
        }
        true
    }

    /// Its pieces in order.
    pub(super) fn iter(&self) -> Pieces<'_> {
        Pieces { rest: &self.packed, at: self.start }
    }

    /// The last pieces: `first` and those in `rest`.
    fn tail(&self, first: Packed<'_>, rest: &[u8]) -> Clump {
        let mut tail = Clump::default();
        tail.packed.reserve_exact(rest.len() + first.bytes.len() + 4);
        tail.push(first.start, first.bytes);
        // The gaps between those that follow are the same.
        tail.packed.extend_from_slice(rest);
        tail.end = self.end;
        tail
    }

    /// Splits at the stretch `start..end`, see [`Cut`]. An end that is not above its start is left
    /// if all of the stretch is there already.
    pub(super) fn cut(mut self, start: u64, end: u64) -> Cut {
        let (mut from, mut to) = (start, end);
        let mut pieces = self.iter();
        let (mut kept, mut before_end) = (0, self.start);
        let mut after = Clump::default();
        while let Some(piece) = pieces.next() {
            if piece.start < from {
                // Before the stretch, or into it.
                (kept, before_end) = (self.packed.len() - pieces.rest.len(), piece.end());
                from = from.max(piece.end());
            } else if piece.end() > to || from >= to {
                // The first one that reaches beyond it.
                to = to.min(piece.start);
                after = self.tail(piece, pieces.rest);
                break;
            }
        }
        self.packed.truncate(kept);
        self.end = before_end;
        Cut { before: self, start: from, end: to, after }
    }

    /// With the pieces of `other`, all of which lie behind.
    fn followed_by(mut self, other: &Clump) -> Clump {
        let mut pieces = other.iter();
        if let Some(piece) = pieces.next() {
            self.packed.reserve_exact((other.packed.len() + 10).next_multiple_of(STEP));
            self.push(piece.start, piece.bytes);
            // The gaps between those that follow are the same.
            self.packed.extend_from_slice(pieces.rest);
            self.end = other.end;
        }
        self
    }

    /// The pieces of `self` and of `other`, all of which lie behind: in one clump if they fit, else in
    /// two of about the same size.
    pub(super) fn join(self, other: Clump) -> (Clump, Clump) {
        let size = self.packed.len() + other.packed.len();
        if self.is_empty() {
            return (other, self);
        }
        if size + 10 <= MAX_CLUMP {
            return (self.followed_by(&other), Clump::default());
        }
        let (mut first, mut second) = (Clump::default(), Clump::default());
        for piece in self.iter().chain(other.iter()) {
            let half = if first.packed.len() < size / 2 { &mut first } else { &mut second };
            half.push(piece.start, piece.bytes);
        }
        (first, second)
    }
}

/// Walks the pieces of a clump.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces<'c> {
    rest: &'c [u8],
    /// Where the last piece ended.
    at: u64,
}

impl<'c> Iterator for Pieces<'c> {
    type Item = Packed<'c>;

    #[inline]
    fn next(&mut self) -> Option<Packed<'c>> {
        let gap = take(&mut self.rest)?;
        let length = usize::try_from(take(&mut self.rest)?).ok()?;
        let (bytes, rest) = self.rest.split_at_checked(length)?;
        let start = self.at + gap;
        self.rest = rest;
        self.at = start + length as u64;
        Some(Packed { start, bytes })
    }
}

/// Writes a number at `at` of `head`, seven bits to a byte; where it ends.
fn put(head: &mut [u8; 20], mut at: usize, mut number: u64) -> usize {
    while number >= 0x80 {
        head[at] = number as u8 | 0x80;
        number >>= 7;
        at += 1;
    }
    head[at] = number as u8;
    at + 1
}

/// Takes a number from the front of `rest`.
#[inline]
fn take(rest: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
        shift += 7;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clump(pieces: &[(u64, &[u8])]) -> Clump {
        let mut clump = Clump::default();
        for &(start, bytes) in pieces {
            clump.push(start, bytes);
        }
        clump
    }

    fn pieces(clump: &Clump) -> Vec<(u64, Vec<u8>)> {
        clump.iter().map(|piece| (piece.start, piece.bytes.to_vec())).collect()
    }

    #[test]
    fn pieces_come_out_as_they_went_in() {
        let long = [9; 300];
        let list: [(u64, &[u8]); 4] = [(5, b"a"), (6, b"bc"), (1 << 60, b"d"), (1 << 61, &long)];
        let clump = clump(&list);
        assert_eq!((clump.start(), clump.end()), (5, (1 << 61) + 300));
        assert_eq!(pieces(&clump), list.map(|(start, bytes)| (start, bytes.to_vec())));
    }

    #[test]
    fn a_byte_with_a_gap_takes_few_bytes() {
        let mut clump = Clump::default();
        let mut count = 0;
        while clump.has_room(1) {
            clump.push(4096 * count, &[7]);
            count += 1;
        }
        assert!(count >= 50, "{count}");
        assert!(clump.memory() <= MAX_CLUMP + STEP, "{}", clump.memory());
    }

    #[test]
    fn a_cut_takes_out_what_is_covered_and_leaves_what_is_not() {
        let all = clump(&[(10, b"aa"), (20, b"bb"), (30, b"cc"), (40, b"dd")]);
        let cut = |start, end| {
            let Cut { before, start, end, after } = all.clone().cut(start, end);
            let starts = |clump: &Clump| clump.iter().map(|piece| piece.start).collect::<Vec<_>>();
            (starts(&before), start, end, starts(&after))
        };
        assert_eq!(cut(0, 5), (vec![], 0, 5, vec![10, 20, 30, 40]));
        assert_eq!(cut(12, 20), (vec![10], 12, 20, vec![20, 30, 40]));
        assert_eq!(cut(20, 32), (vec![10], 20, 32, vec![40]));
        assert_eq!(cut(21, 41), (vec![10, 20], 22, 40, vec![40]));
        assert_eq!(cut(0, 100), (vec![], 0, 100, vec![]));
        let (_, start, end, _) = cut(30, 31);
        assert!(start >= end, "there already: {start}..{end}");
    }

    proptest! {
        #[test]
        fn insertion_is_what_sorting_would_be(
            list in prop::collection::vec((0u64..4_000, 1u64..6), 1..60),
        ) {
            let mut clump = Clump::default();
            let mut model: Vec<(u64, Vec<u8>)> = Vec::new();
            for (start, length) in list {
                let bytes: Vec<u8> = (start..start + length).map(|at| at as u8).collect();
                if model.is_empty() {
                    clump.push(start, &bytes);
                    model.push((start, bytes));
                    continue;
                }
                let overlaps = model
                    .iter()
                    .any(|(other, there)| start < other + there.len() as u64 && *other < start + length);
                let may = !overlaps && start > model[0].0;
                prop_assert_eq!(clump.insert(start, &bytes), may);
                if may {
                    let at = model.partition_point(|(other, _)| *other < start);
                    model.insert(at, (start, bytes));
                }
                prop_assert_eq!(pieces(&clump), model.clone());
                let last = model.last().unwrap();
                prop_assert_eq!(clump.end(), last.0 + last.1.len() as u64);
            }
        }

        #[test]
        fn a_cut_loses_and_doubles_nothing(
            gaps in prop::collection::vec((0u64..5, 1usize..4), 0..30),
            start in 0u64..120,
            length in 1u64..60,
        ) {
            let mut all = Clump::default();
            let (mut at, mut there) = (3, [false; 400]);
            for (gap, length) in gaps {
                let bytes: Vec<u8> = (at + gap..).take(length).map(|at| at as u8).collect();
                all.push(at + gap, &bytes);
                at += gap + length as u64;
                there[at as usize - length..at as usize].fill(true);
            }
            let end = start + length;
            let cut = all.cut(start, end);
            let mut left = [false; 400];
            for piece in cut.before.iter().chain(cut.after.iter()) {
                let range = piece.start as usize..piece.end() as usize;
                prop_assert!(!left[range.clone()].contains(&true));
                left[range.clone()].fill(true);
                let pattern: Vec<u8> = range.map(|at| at as u8).collect();
                prop_assert_eq!(piece.bytes, &pattern[..]);
            }
            if let (Some(first), Some(last)) = (cut.before.iter().next(), cut.before.iter().last()) {
                prop_assert_eq!((cut.before.start(), cut.before.end()), (first.start, last.end()));
                prop_assert!(last.end() <= cut.start);
            }
            if let (Some(first), Some(last)) = (cut.after.iter().next(), cut.after.iter().last()) {
                prop_assert_eq!((cut.after.start(), cut.after.end()), (first.start, last.end()));
                prop_assert!(first.start >= cut.end);
            }
            for at in 0..400u64 {
                let within = (cut.start..cut.end).contains(&at);
                let stays = left[at as usize];
                prop_assert!(!(within && stays), "{at} twice");
                prop_assert_eq!(within || stays, there[at as usize] || (start..end).contains(&at));
            }
        }
    }
}
