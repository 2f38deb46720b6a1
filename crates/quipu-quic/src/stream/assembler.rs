//! Puts the bytes of a stream in order.

use std::collections::VecDeque;

use super::buffers::{Buffers, MAX_SHARED, Spares};
use super::clump::{Clump, Cut, MAX_PACKED};

mod ahead;

use ahead::Ahead;

/// What entries of lists and maps take beside what they point to, with the room that lists keep
/// free; a rough estimate.
const ENTRY: usize = 96;

/// The bytes of a stream from the first unread one on.
///
/// Bytes are not copied where that can be avoided: a piece that takes most of its datagram is kept
/// with the datagram's buffer, which is exchanged for a spent one. Small pieces that come in order
/// are copied one behind the other; those that come ahead of their turn are packed into [`Clump`]s.
/// So memory is in proportion to the bytes that a peer sent, however it cuts them, and credit bounds
/// what it may send.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    /// All below was read.
    read: u64,
    /// All below arrived.
    contiguous: u64,
    /// What arrived in order and was not read, from `read` to `contiguous` without a gap.
    ready: VecDeque<Piece>,
    /// What lies beyond the first gap, by where it starts. Nothing overlaps, and where clumps are no
    /// other piece lies within.
    ahead: Ahead,
    /// So much was read in a row already that a buffer of full size is filled soon.
    is_bulk: bool,
    /// Where the piece starts whose buffer is still the reader's: that of the present datagram.
    awaited: Option<u64>,
}

/// Bytes in a buffer of their own.
#[derive(Debug)]
struct Piece {
    start: u64,
    /// Where in the buffer they are.
    from: u32,
    to: u32,
    /// Empty until it is handed over.
    buffer: Box<[u8]>,
    /// The buffer is for small pieces that come in order.
    is_shared: bool,
}

/// Bytes beyond a gap.
#[derive(Debug)]
enum Segment {
    Piece(Piece),
    Clump(Clump),
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + u64::from(self.to - self.from)
    }

    fn bytes(&self) -> &[u8] {
        self.buffer.get(self.from as usize..self.to as usize).unwrap_or_default()
    }

    /// Forgets what lies before `start`, which is not beyond its end.
    fn begin_at(&mut self, start: u64) {
        // Both are within its length.
        self.from += (start - self.start) as u32;
        self.start = start;
    }

    /// Room for more bytes behind its own.
    fn room(&self) -> usize {
        self.buffer.len().saturating_sub(self.to as usize)
    }

    fn append(&mut self, bytes: &[u8]) {
        let to = self.to as usize;
        if let Some(room) = self.buffer.get_mut(to..to + bytes.len()) {
            room.copy_from_slice(bytes);
            self.to += bytes.len() as u32;
        }
    }
}

impl Assembler {
    /// Nothing arrived.
    pub(super) const fn new() -> Self {
        Assembler {
            read: 0,
            contiguous: 0,
            ready: VecDeque::new(),
            ahead: Ahead::new(),
            is_bulk: false,
            awaited: None,
        }
    }

    /// All below was read.
    pub(super) const fn read_end(&self) -> u64 {
        self.read
    }

    /// All below arrived.
    pub(super) const fn contiguous(&self) -> u64 {
        self.contiguous
    }

    /// Bytes arrived. What arrived before is ignored. True if the buffer of the present datagram is
    /// waited for: [`keep`](Self::keep) must follow before anything is read.
    #[inline]
    pub(super) fn insert(&mut self, offset: u64, data: &[u8], buffers: &mut Buffers) -> bool {
        let start = offset.max(self.contiguous);
        let new = usize::try_from(start - offset).ok().and_then(|old| data.get(old..));
        let Some(data) = new.filter(|data| !data.is_empty()) else { return false };
        if start == self.contiguous {
            self.push_ready(data, buffers);
            if !self.ahead.is_empty() {
                self.join(buffers);
            }
        } else {
            self.insert_ahead(start, data, buffers);
        }
        self.awaited.is_some()
    }

    /// The buffer of the datagram that was read: it is exchanged for a spent one of the same length if
    /// a piece waits for it.
    pub(super) fn keep(
        &mut self,
        buffer: &mut Box<[u8]>,
        buffers: &mut Buffers,
        spares: &mut Spares,
    ) {
        let Some(start) = self.awaited.take() else { return };
        let piece = if start < self.contiguous {
            let at = self.ready.partition_point(|piece| piece.start < start);
            self.ready.get_mut(at)
        } else {
            match self.ahead.get_mut(start) {
                Some(Segment::Piece(piece)) => Some(piece),
                _ => None,
            }
        };
        if let Some(piece) = piece {
            let spent = buffers.exact(buffer.len(), spares);
            piece.buffer = std::mem::replace(buffer, spent);
        }
    }

    /// Appends bytes to those that are in order.
    fn push_ready(&mut self, data: &[u8], buffers: &mut Buffers) {
        let start = self.contiguous;
        self.contiguous += data.len() as u64;
        if let Some(from) = buffers.want(data) {
            self.awaited = Some(start);
            let (to, buffer) = (from + data.len() as u32, Box::default());
            self.ready.push_back(Piece { start, from, to, buffer, is_shared: false });
            return;
        }
        self.copy_ready(start, data, buffers);
    }

    /// The same with a copy of the bytes: behind the last ones if there is room.
    fn copy_ready(&mut self, start: u64, data: &[u8], buffers: &mut Buffers) {
        match self.ready.back_mut() {
            Some(last) if last.room() >= data.len() => last.append(data),
            last => {
                // Twice the one before if that is full, but not behind a piece with a buffer of its own:
                // where such pieces take turns with small ones, most of it would stay empty.
                let most = match last {
                    Some(last) if last.is_shared => MAX_SHARED.min(2 * last.buffer.len()),
                    None if self.is_bulk => MAX_SHARED,
                    _ => 0,
                };
                let buffer = buffers.about(data.len().max(most));
                let mut piece = Piece { start, from: 0, to: 0, buffer, is_shared: true };
                piece.append(data);
                self.ready.push_back(piece);
            }
        }
    }

    /// Moves what is in order by now from behind the gap.
    fn join(&mut self, buffers: &mut Buffers) {
        while let Some(segment) = self.ahead.pop_first(self.contiguous) {
            match segment {
                Segment::Piece(piece) => self.join_piece(piece, buffers),
                Segment::Clump(clump) => self.join_clump(&clump, buffers),
            }
        }
    }

    fn join_piece(&mut self, mut piece: Piece, buffers: &mut Buffers) {
        let is_awaited = piece.buffer.is_empty();
        if piece.end() <= self.contiguous {
            if is_awaited {
                self.awaited = None;
            }
            return buffers.give(piece.buffer);
        }
        piece.begin_at(self.contiguous);
        if is_awaited {
            self.awaited = Some(piece.start);
        }
        self.contiguous = piece.end();
        self.ready.push_back(piece);
    }

    fn join_clump(&mut self, clump: &Clump, buffers: &mut Buffers) {
        let mut rest = Clump::default();
        for piece in clump.iter() {
            if piece.start > self.contiguous {
                rest.push(piece.start, piece.bytes);
                continue;
            }
            // Those beyond a gap follow those before it.
            let old = usize::try_from(self.contiguous - piece.start).unwrap_or(usize::MAX);
            if let Some(new) = piece.bytes.get(old..).filter(|new| !new.is_empty()) {
                let start = self.contiguous;
                self.contiguous += new.len() as u64;
                self.copy_ready(start, new, buffers);
            }
        }
        self.insert_clump(rest);
    }

    fn insert_clump(&mut self, clump: Clump) {
        if !clump.is_empty() {
            self.ahead.insert(clump.start(), Segment::Clump(clump));
        }
    }

    /// Bytes beyond the first gap arrived.
    fn insert_ahead(&mut self, start: u64, data: &[u8], buffers: &mut Buffers) {
        let (mut from, mut to) = (start, start + data.len() as u64);
        // What is left of a clump in which the new bytes lie, before and after them.
        let mut before = Clump::default();
        let mut after = Clump::default();
        match self.ahead.last_at_most(from) {
            Some((_, Segment::Piece(piece))) => from = from.max(piece.end()),
            Some((key, Segment::Clump(clump))) => {
                let ends = clump.end() <= from;
                let fits = data.len() < MAX_PACKED && clump.has_room(data.len());
                let next = self.ahead.first_at_least(from).map(|(key, _)| key);
                if fits && (!ends || next.is_none_or(|next| next >= to)) {
                    // Looked up again, since what follows had to be looked at.
                    if let Some(Segment::Clump(clump)) = self.ahead.get_mut(key)
                        && clump.insert(from, data)
                    {
                        return;
                    }
                }
                if !ends && let Some(Segment::Clump(clump)) = self.ahead.remove(key) {
                    let cut = clump.cut(from, to);
                    Cut { before, start: from, end: to, after } = cut;
                }
            }
            None => {}
        }
        // Those that start within.
        while from < to
            && after.is_empty()
            && let Some((key, segment)) = self.ahead.first_at_least(from)
            && key < to
        {
            match segment {
                Segment::Piece(piece) if piece.end() > to => to = key,
                Segment::Piece(piece) => {
                    let buffer = std::mem::take(&mut piece.buffer);
                    if buffer.is_empty() {
                        // It will not be waited for in vain: this datagram's is.
                        self.awaited = None;
                    }
                    buffers.give(buffer);
                    self.ahead.remove(key);
                }
                Segment::Clump(clump) => {
                    let cut = std::mem::take(clump).cut(from, to);
                    self.ahead.remove(key);
                    (to, after) = (cut.end, cut.after);
                }
            }
        }
        let new = (from < to).then(|| {
            // Both ends lie within the data.
            let (from, to) = ((from - start) as usize, (to - start) as usize);
            data.get(from..to).unwrap_or_default()
        });
        match new.filter(|new| !new.is_empty()) {
            Some(new) if new.len() < MAX_PACKED => {
                return self.insert_small(from, new, before, after);
            }
            Some(new) => self.insert_piece(from, new, buffers),
            None => {}
        }
        self.insert_clump(before);
        self.insert_clump(after);
    }

    /// A small piece between two clumps, both of which may be empty.
    fn insert_small(&mut self, start: u64, data: &[u8], mut before: Clump, mut after: Clump) {
        if after.is_empty() && !before.has_room(data.len()) {
            self.insert_clump(std::mem::take(&mut before));
        }
        if after.is_empty()
            && before.is_empty()
            && let Some((key, Segment::Clump(clump))) = self.ahead.first_at_least(start)
            && clump.has_room(data.len() + 10)
        {
            after = std::mem::take(clump);
            self.ahead.remove(key);
        }
        before.push(start, data);
        if !after.is_empty() {
            (before, after) = before.join(after);
        }
        self.insert_clump(before);
        self.insert_clump(after);
    }

    fn insert_piece(&mut self, start: u64, data: &[u8], buffers: &mut Buffers) {
        let piece = match buffers.want(data) {
            Some(from) => {
                self.awaited = Some(start);
                let (to, buffer) = (from + data.len() as u32, Box::default());
                Piece { start, from, to, buffer, is_shared: false }
            }
            None => {
                let (to, buffer) = (data.len() as u32, data.into());
                Piece { start, from: 0, to, buffer, is_shared: false }
            }
        };
        self.ahead.insert(start, Segment::Piece(piece));
    }

    /// Gives up to `max` bytes that are in order to `sink`, in pieces. Returns how many.
    pub(super) fn read(
        &mut self,
        max: u64,
        buffers: &mut Buffers,
        sink: &mut dyn FnMut(&[u8]),
    ) -> u64 {
        let mut left = max;
        while left > 0
            && let Some(piece) = self.ready.front_mut()
        {
            let bytes = piece.bytes();
            let length = bytes.len() as u64;
            if length > left {
                sink(bytes.get(..left as usize).unwrap_or_default());
                piece.begin_at(piece.start + left);
                left = 0;
                break;
            }
            sink(bytes);
            left -= length;
            if let Some(piece) = self.ready.pop_front() {
                self.is_bulk |= piece.is_shared && piece.buffer.len() >= MAX_SHARED;
                buffers.give(piece.buffer);
            }
        }
        self.read += max - left;
        max - left
    }

    /// Drops everything: all below `end` counts as read.
    pub(super) fn skip_to(&mut self, end: u64, buffers: &mut Buffers) {
        for piece in self.ready.drain(..) {
            buffers.give(piece.buffer);
        }
        self.ahead.clear(|segment| {
            if let Segment::Piece(piece) = segment {
                buffers.give(piece.buffer);
            }
        });
        self.ready = VecDeque::new();
        self.awaited = None;
        (self.read, self.contiguous) = (end, end);
    }

    /// Memory that the bytes take, about.
    pub(super) fn memory(&self) -> usize {
        let ready: usize = self.ready.iter().map(|piece| piece.buffer.len() + ENTRY).sum();
        let ahead = self.ahead.iter().map(|(_, segment)| match segment {
            Segment::Piece(piece) => piece.buffer.len() + ENTRY,
            Segment::Clump(clump) => clump.memory() + ENTRY,
        });
        ready + ahead.sum::<usize>()
    }
}

#[cfg(test)]
mod tests;
