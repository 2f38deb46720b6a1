//! The ledger: bytes planned for paths whose window is closed.
//!
//! A commit is a plan only. The engine keeps the bytes pending; the ledger remembers which path
//! they wait for, how much connection credit they will need, and below which offset all of a
//! stream is spoken for. Joint policies use it as a library, [`Pair`](super::Pair) is built on it.

use std::collections::VecDeque;

use quipu_base::{Bytes, Offset};

use crate::key::{PathKey, Span, StreamKey};
use crate::seam::view::{Class, Paths, Run, StreamTable, StreamView};

/// Bytes of one stream planned for one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Grows with every plan over all paths.
    pub sequence: u64,
    /// Whose bytes.
    pub stream: StreamKey,
    /// Which; empty for a bare FIN.
    pub span: Span,
}

/// Commits of all paths, and what they hold of each stream. Vectors by slot throughout.
///
/// A commit costs O(1) when it joins its predecessor or goes to the end of its stream, O(commits of
/// the stream) at worst; lookups are binary searches.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// By path slot, in order of (sequence, start).
    queues: Vec<VecDeque<Commit>>,
    /// Bytes by path slot.
    totals: Vec<Bytes>,
    total: Bytes,
    commits: usize,
    /// Connection credit that the commits will use.
    reserved: Bytes,
    /// By stream slot.
    holds: Vec<Holds>,
    next_sequence: u64,
}

/// What the commits hold of one stream.
#[derive(Clone, Debug, Default)]
struct Holds {
    key: Option<StreamKey>,
    /// Disjoint, in order of start.
    spans: VecDeque<Held>,
    bytes: Bytes,
    /// Path slot and sequence of a planned bare FIN.
    fin: Option<(u8, u64)>,
    /// Every pending byte below this is held.
    solid_below: Offset,
    /// Connection credit that the held bytes will use.
    reserved: Bytes,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    span: Span,
    path: u8,
    sequence: u64,
}

impl Holds {
    fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.fin.is_none()
    }

    /// Index of the first held span that ends after `at`.
    fn after(&self, at: Offset) -> usize {
        self.spans.partition_point(|held| held.span.end <= at)
    }

    fn end(&self) -> Offset {
        self.spans.back().map_or(Offset::ZERO, |held| held.span.end)
    }
}

impl Ledger {
    /// No commits.
    pub fn new() -> Self {
        Ledger::default()
    }

    /// True if nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.commits == 0
    }

    /// Bytes planned over all paths.
    pub fn total(&self) -> Bytes {
        self.total
    }

    /// Bytes planned by path slot; slots beyond the end have none.
    pub fn totals(&self) -> &[Bytes] {
        &self.totals
    }

    /// Bytes planned for one path.
    pub fn committed(&self, path: PathKey) -> Bytes {
        self.totals.get(path.index()).copied().unwrap_or_default()
    }

    /// Connection credit that the commits will use: over all streams, held end less `high_sent`.
    pub fn reserved(&self) -> Bytes {
        self.reserved
    }

    /// Bytes of a stream that paths hold.
    pub fn held(&self, stream: StreamKey) -> Bytes {
        self.holds_of(stream).map_or(Bytes::ZERO, |holds| holds.bytes)
    }

    /// True if a path holds a stream's bare FIN.
    pub fn holds_fin(&self, stream: StreamKey) -> bool {
        self.holds_of(stream).is_some_and(|holds| holds.fin.is_some())
    }

    /// True if a path holds anything of a stream.
    pub fn holds_any(&self, stream: StreamKey) -> bool {
        self.holds_of(stream).is_some_and(|holds| !holds.is_empty())
    }

    /// End of the highest byte of a stream that a path holds; zero if none is held.
    pub fn held_end(&self, stream: StreamKey) -> Offset {
        self.holds_of(stream).map_or(Offset::ZERO, Holds::end)
    }

    /// True if something of a stream is pending that no path holds.
    pub fn leaves_something(&self, stream: &StreamView) -> bool {
        match self.holds_of(stream.key) {
            Some(holds) => {
                stream.sendable > holds.bytes || (stream.bare_fin && holds.fin.is_none())
            }
            None => stream.is_ready(),
        }
    }

    /// How far the highest offset of a stream may go with `credit` left on the connection, without
    /// touching what is reserved.
    pub fn credit_end(&self, stream: &StreamView, credit: Bytes) -> Offset {
        let reached = stream.high_sent.max(self.held_end(stream.key));
        reached.advanced(credit.saturating_sub(self.reserved))
    }

    /// Plans `span` of a stream for `path`. The span must be pending and unheld; an empty one is a
    /// bare FIN. A span that continues the newest commit joins it.
    pub fn commit(&mut self, path: PathKey, stream: &StreamView, span: Span) {
        let slot = path.index();
        if self.queues.len() <= slot {
            self.queues.resize_with(slot + 1, VecDeque::new);
            self.totals.resize(slot + 1, Bytes::ZERO);
        }
        let key = stream.key;
        if self.holds.len() <= key.index() {
            self.holds.resize_with(key.index() + 1, Holds::default);
        }
        let holds = &mut self.holds[key.index()];
        holds.key = Some(key);
        if holds.is_empty() {
            holds.solid_below = Offset::ZERO;
        }
        if span.is_empty() {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            holds.fin = Some((path.slot, sequence));
            self.queues[slot].push_back(Commit { sequence, stream: key, span });
            self.commits += 1;
            return;
        }
        let at = holds.after(span.start);
        let newest = self.next_sequence.wrapping_sub(1);
        let joined = match (self.queues[slot].back_mut(), at.checked_sub(1)) {
            (Some(last), Some(before))
                if last.sequence == newest
                    && last.stream == key
                    && last.span.end == span.start
                    && !last.span.is_empty()
                    && holds.spans[before].sequence == newest =>
            {
                last.span.end = span.end;
                holds.spans[before].span.end = span.end;
                true
            }
            _ => false,
        };
        if !joined {
            let sequence = self.next_sequence;
            self.next_sequence += 1;
            self.queues[slot].push_back(Commit { sequence, stream: key, span });
            holds.spans.insert(at, Held { span, path: path.slot, sequence });
            self.commits += 1;
        }
        holds.bytes += span.len();
        self.totals[slot] += span.len();
        self.total += span.len();
        self.settle(key, stream.high_sent);
    }

    /// Recomputes the credit reserved for a stream: to be called when its `high_sent` moved.
    pub fn settle(&mut self, stream: StreamKey, high_sent: Offset) {
        let Some(holds) = self.holds_mut(stream) else { return };
        let reserved = holds.end().since(high_sent);
        let before = std::mem::replace(&mut holds.reserved, reserved);
        self.reserved = self.reserved.saturating_sub(before) + reserved;
    }

    /// Frees whatever is held of `span`, by which path ever, and returns how many bytes that was.
    /// For bytes that were sent, and for those that an acknowledgement settled. Call
    /// [`settle`](Self::settle) after it.
    pub fn release(&mut self, stream: StreamKey, span: Span) -> Bytes {
        let mut freed = Bytes::ZERO;
        let Some(mut at) = self.holds_of(stream).map(|holds| holds.after(span.start)) else {
            return freed;
        };
        while let Some(held) = self.holds_of(stream).and_then(|holds| holds.spans.get(at)).copied()
        {
            let Some(part) = held.span.intersection(span) else { break };
            freed += part.len();
            self.cut(stream, at, held, part);
            // What is left before the part keeps its index.
            at += usize::from(held.span.start < part.start);
        }
        freed
    }

    /// Frees a stream's planned bare FIN; `true` if there was one.
    pub fn release_fin(&mut self, stream: StreamKey) -> bool {
        let Some(holds) = self.holds_mut(stream) else { return false };
        let Some((path, sequence)) = holds.fin.take() else { return false };
        if let Some(queue) = self.queues.get_mut(usize::from(path)) {
            let at = queue.partition_point(|commit| commit.sequence < sequence);
            queue.remove(at);
            self.commits -= 1;
        }
        true
    }

    /// Takes `part` out of the held span at index `at` and out of its commit.
    fn cut(&mut self, stream: StreamKey, at: usize, held: Held, part: Span) {
        let path = usize::from(held.path);
        let left = Span::new(held.span.start, part.start);
        let right = Span::new(part.end, held.span.end);
        let Some(queue) = self.queues.get_mut(path) else { return };
        let place = queue.partition_point(|commit| {
            (commit.sequence, commit.span.start) < (held.sequence, held.span.start)
        });
        let commit = |span| Commit { sequence: held.sequence, stream, span };
        match (left.is_empty(), right.is_empty()) {
            (true, true) => {
                queue.remove(place);
                self.commits -= 1;
            }
            (false, true) => queue[place] = commit(left),
            (true, false) => queue[place] = commit(right),
            (false, false) => {
                queue[place] = commit(left);
                queue.insert(place + 1, commit(right));
                self.commits += 1;
            }
        }
        self.totals[path] -= part.len();
        self.total -= part.len();
        let Some(holds) = self.holds_mut(stream) else { return };
        match (left.is_empty(), right.is_empty()) {
            (true, true) => {
                holds.spans.remove(at);
            }
            (false, true) => holds.spans[at].span = left,
            (true, false) => holds.spans[at].span = right,
            (false, false) => {
                holds.spans[at].span = left;
                holds.spans.insert(at + 1, Held { span: right, ..held });
            }
        }
        holds.bytes -= part.len();
        holds.solid_below = holds.solid_below.min(part.start);
    }

    /// Bytes of a stream from `from` on may be pending again and unheld: to be called when lost
    /// bytes are requeued.
    pub fn reopen(&mut self, stream: StreamKey, from: Offset) {
        if let Some(holds) = self.holds_mut(stream) {
            holds.solid_below = holds.solid_below.min(from);
        }
    }

    /// The commit to send first on `path`.
    pub fn front(&self, path: PathKey) -> Option<Commit> {
        self.queues.get(path.index())?.front().copied()
    }

    /// The commit of least sequence among the paths that `takes` accepts.
    pub fn first_on(
        &self,
        paths: &Paths,
        mut takes: impl FnMut(PathKey) -> bool,
    ) -> Option<(PathKey, Commit)> {
        let mut first: Option<(PathKey, Commit)> = None;
        for (slot, queue) in (0u8..).zip(&self.queues) {
            let Some(&commit) = queue.front() else { continue };
            if first.is_some_and(|(_, other)| other.sequence < commit.sequence) {
                continue;
            }
            let Some(path) = paths.by_slot(slot).map(|view| view.key) else { continue };
            if takes(path) {
                first = Some((path, commit));
            }
        }
        first
    }

    /// Takes back the newest commit over all paths. Call [`settle`](Self::settle) after it.
    pub fn pop_newest(&mut self) -> Option<Commit> {
        let newest = |queue: &VecDeque<Commit>| queue.back().map(|commit| commit.sequence);
        let slot = (0..self.queues.len())
            .filter(|&slot| !self.queues[slot].is_empty())
            .max_by_key(|&slot| newest(&self.queues[slot]))?;
        self.pop_back(slot)
    }

    /// Takes back the last `len` bytes of the newest commit over all paths, or all of it if that is
    /// less. Call [`settle`](Self::settle) after it.
    pub fn pop_newest_tail(&mut self, len: Bytes) -> Option<Commit> {
        let commit = self.newest()?;
        if commit.span.len() <= len {
            return self.pop_newest();
        }
        let span = Span::new(Offset(commit.span.end.0 - len.0), commit.span.end);
        self.release(commit.stream, span);
        Some(Commit { span, ..commit })
    }

    fn newest(&self) -> Option<Commit> {
        let backs = self.queues.iter().filter_map(|queue| queue.back());
        backs.max_by_key(|commit| commit.sequence).copied()
    }

    /// Takes back the newest commit of one path. Call [`settle`](Self::settle) after it.
    pub fn pop_newest_of(&mut self, path: PathKey) -> Option<Commit> {
        self.pop_back(path.index())
    }

    /// Takes back a commit of a stream. Call [`settle`](Self::settle) after it.
    pub fn pop_of_stream(&mut self, stream: StreamKey) -> Option<Commit> {
        let holds = self.holds_of(stream)?;
        if let Some((_, sequence)) = holds.fin {
            self.release_fin(stream);
            return Some(Commit { sequence, stream, span: Span::default() });
        }
        let held = *holds.spans.back()?;
        self.release(stream, held.span);
        Some(Commit { sequence: held.sequence, stream, span: held.span })
    }

    fn pop_back(&mut self, slot: usize) -> Option<Commit> {
        let commit = *self.queues.get(slot)?.back()?;
        if commit.span.is_empty() {
            self.release_fin(commit.stream);
        } else {
            self.release(commit.stream, commit.span);
        }
        Some(commit)
    }

    /// The lowest pending run of a stream that no path holds, cut where a held span begins.
    /// Remembers how far all was held, so that the next lookup starts there.
    pub fn lowest_unheld(&mut self, stream: StreamKey, table: &dyn StreamTable) -> Option<Run> {
        let Some(holds) = self.holds_mut(stream).filter(|holds| !holds.is_empty()) else {
            return table.pending_from(stream, Offset::ZERO);
        };
        let mut at = holds.solid_below;
        loop {
            let run = table.pending_from(stream, at)?;
            if run.span.is_empty() {
                return holds.fin.is_none().then_some(run);
            }
            holds.solid_below = run.span.start;
            let next = holds.spans.get(holds.after(run.span.start)).map(|held| held.span);
            match next {
                Some(held) if held.start <= run.span.start => at = held.end,
                Some(held) => {
                    let end = run.span.end.min(held.start);
                    return Some(Run { span: Span::new(run.span.start, end), ..run });
                }
                None => return Some(run),
            }
        }
    }

    /// The highest pending run of a stream that no path holds, cut where a held span ends.
    pub fn highest_unheld(&self, stream: StreamKey, table: &dyn StreamTable) -> Option<Run> {
        let mut at = Offset(u64::MAX);
        loop {
            let run = table.pending_before(stream, at).filter(|run| !run.span.is_empty())?;
            let Some(holds) = self.holds_of(stream) else { return Some(run) };
            let before = holds.spans.partition_point(|held| held.span.start < run.span.end);
            match before.checked_sub(1).map(|index| holds.spans[index].span) {
                Some(held) if held.end >= run.span.end => at = held.start,
                Some(held) if held.end > run.span.start => {
                    return Some(Run { span: Span::new(held.end, run.span.end), ..run });
                }
                _ => return Some(run),
            }
        }
    }

    /// The lowest lost run of a stream that no path holds.
    pub fn lowest_lost(&self, stream: &StreamView, table: &dyn StreamTable) -> Option<Run> {
        let mut at = Offset::ZERO;
        loop {
            let run = table.pending_from(stream.key, at)?;
            if run.span.is_empty() || run.span.start >= stream.high_sent {
                return None;
            }
            if matches!(run.class, Class::Lost { .. }) {
                match self.holder(stream.key, run.span.start) {
                    Some(held) => at = held.end,
                    None => return Some(self.cut_at_held(stream.key, run)),
                }
            } else {
                at = run.span.end;
            }
        }
    }

    fn holder(&self, stream: StreamKey, at: Offset) -> Option<Span> {
        let holds = self.holds_of(stream)?;
        holds.spans.get(holds.after(at)).map(|held| held.span).filter(|span| span.contains(at))
    }

    fn cut_at_held(&self, stream: StreamKey, run: Run) -> Run {
        let held = self
            .holds_of(stream)
            .and_then(|holds| holds.spans.get(holds.after(run.span.start)))
            .map(|held| held.span.start);
        match held {
            Some(start) => {
                let end = run.span.end.min(start);
                Run { span: Span::new(run.span.start, end), ..run }
            }
            None => run,
        }
    }

    fn holds_of(&self, stream: StreamKey) -> Option<&Holds> {
        self.holds.get(stream.index()).filter(|holds| holds.key == Some(stream))
    }

    fn holds_mut(&mut self, stream: StreamKey) -> Option<&mut Holds> {
        self.holds.get_mut(stream.index()).filter(|holds| holds.key == Some(stream))
    }

    /// Forgets a stream that closed, whose commits were taken back before, so that its slot may
    /// serve another.
    pub fn forget(&mut self, stream: StreamKey) {
        self.settle(stream, Offset(u64::MAX));
        if let Some(holds) = self.holds_mut(stream).filter(|holds| holds.is_empty()) {
            holds.key = None;
            holds.solid_below = Offset::ZERO;
        }
    }
}

#[cfg(test)]
mod tests;
