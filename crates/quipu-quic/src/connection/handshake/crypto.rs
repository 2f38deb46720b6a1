//! CRYPTO streams: the bytes of TLS messages, one stream per level, both ways.

use quipu_base::Offset;
use quipu_policy::Span;

use crate::error::{ErrorCode, TransportError};
use crate::range_map::RangeMap;
use crate::range_set::RangeSet;

/// How far beyond the next byte in order a level takes bytes.
// https://www.rfc-editor.org/rfc/rfc9000#section-7.5
//# Implementations MUST support buffering at least 4096 bytes of data
//# received in out-of-order CRYPTO frames.
const MAX_BUFFERED: u64 = 64 * 1024;

/// Pieces out of order that a level keeps. Our choice: more than a flight of [`MAX_BUFFERED`] has
/// datagrams, and more than a ClientHello has that is cut up against middleboxes; few enough that
/// a search among them costs nothing.
const MAX_PIECES: usize = 64;

/// Bytes that were read may lie among those that wait, at most this many more than the latter.
const SLACK: usize = 4096;

/// What is to be sent at one level. Messages are small: what the peer does not have is kept.
#[derive(Debug, Default)]
pub(crate) struct CryptoSend {
    /// Bytes from `start` on; the peer has all before.
    data: Vec<u8>,
    start: u64,
    pending: RangeSet,
    /// What the peer has beyond `start`.
    acked: RangeSet,
}

/// The peer has all bytes before this offset.
impl From<u64> for CryptoSend {
    fn from(start: u64) -> Self {
        CryptoSend { start, ..CryptoSend::default() }
    }
}

impl CryptoSend {
    /// How many bytes there were, if the peer has them all.
    pub(crate) fn done(&self) -> Option<u64> {
        self.data.is_empty().then_some(self.start)
    }

    /// Appends the TLS bytes that `write` appends: how many, and what it returned.
    pub(crate) fn write_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> (usize, R) {
        let (from, length) = (self.end(), self.data.len());
        let returned = write(&mut self.data);
        self.pending.insert(from..self.end());
        (self.data.len().saturating_sub(length), returned)
    }

    /// True if something waits.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next bytes to send, at most `max`: where they start, and they.
    pub(crate) fn next(&self, max: usize) -> Option<(Offset, &[u8])> {
        let range = self.pending.first()?;
        let end = range.end.min(range.start.saturating_add(max as u64));
        let (from, to) = (range.start.checked_sub(self.start)?, end.checked_sub(self.start)?);
        Some((Offset(range.start), self.data.get(from as usize..to as usize)?))
    }

    /// A stretch was written into a packet.
    pub(crate) fn on_sent(&mut self, span: Span) {
        self.pending.remove(span.start.0..span.end.0);
    }

    pub(crate) fn on_acked(&mut self, span: Span) {
        self.pending.remove(span.start.0..span.end.0);
        self.acked.insert(span.start.0.max(self.start)..span.end.0.max(self.start));
        if let Some(done) = self.acked.first().filter(|range| range.start == self.start) {
            self.data.drain(..((done.end - self.start) as usize).min(self.data.len()));
            self.start = done.end;
            self.acked.remove(done);
        }
        if self.data.is_empty() {
            *self = CryptoSend::from(self.start);
        }
    }

    /// A stretch was lost: what nobody acknowledged is pending again.
    pub(crate) fn on_lost(&mut self, span: Span) {
        self.pending.insert(span.start.0.max(self.start)..span.end.0.max(self.start));
        for range in self.acked.iter() {
            self.pending.remove(range);
        }
    }

    fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }
}

/// What came at one level. Costs memory in proportion to the bytes that came, and a search among
/// [`MAX_PIECES`] for each frame, however a peer cuts its messages up.
#[derive(Debug, Default)]
pub(crate) struct CryptoReceive {
    /// Which bytes came and were not read. The value says where in `bytes` they lie: what to add,
    /// wrapping, to an offset.
    came: RangeMap<u64>,
    bytes: Vec<u8>,
    /// How many of `bytes` were not read.
    held: usize,
    /// Bytes before this offset were read.
    read: u64,
    /// TLS reads at a later level now.
    over: bool,
}

/// All bytes before this offset were read.
impl From<u64> for CryptoReceive {
    fn from(read: u64) -> Self {
        CryptoReceive { read, ..CryptoReceive::default() }
    }
}

impl CryptoReceive {
    /// How many bytes came, if all were read and more may come.
    pub(crate) fn done(&self) -> Option<u64> {
        (self.held == 0 && !self.over).then_some(self.read)
    }

    /// Takes the bytes of a CRYPTO frame. Of bytes that come more than once, the first are kept.
    pub(crate) fn on_frame(&mut self, offset: u64, bytes: &[u8]) -> Result<(), TransportError> {
        let end = offset.saturating_add(bytes.len() as u64);
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        //# If the packet is from a previously installed encryption level, it MUST NOT contain
        //# data that extends past the end of previously received data in that flow.
        //# Implementations MUST treat any violations of this requirement as a connection error of
        //# type PROTOCOL_VIOLATION.
        if self.over && end > self.read {
            return Err(TransportError::protocol_violation("TLS bytes at a level that is over"));
        }
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.5
        //# If an endpoint does not expand its buffer, it MUST close the connection with a
        //# CRYPTO_BUFFER_EXCEEDED error code.
        if end > self.read + MAX_BUFFERED {
            return Err(exceeded("TLS bytes too far out of order"));
        }
        let mut at = offset.max(self.read);
        while at < end {
            let next = self.came.from(at).filter(|piece| piece.start < end);
            let missing = next.map_or(end, |piece| piece.start);
            if at < missing {
                let bytes = bytes.get((at - offset) as usize..(missing - offset) as usize);
                self.came.set(at, missing, (self.bytes.len() as u64).wrapping_sub(at));
                self.bytes.extend_from_slice(bytes.unwrap_or_default());
                self.held += (missing - at) as usize;
                at = missing;
            } else {
                at = next.map_or(end, |piece| piece.end);
            }
        }
        if self.came.len() > MAX_PIECES {
            return Err(exceeded("TLS bytes out of order in too many pieces"));
        }
        Ok(())
    }

    /// Bytes that are next in order, if any are: as many as lie together.
    pub(crate) fn next(&self) -> Option<&[u8]> {
        let piece = self.came.first().filter(|piece| piece.start == self.read)?;
        let at = piece.start.wrapping_add(piece.value) as usize;
        self.bytes.get(at..at + (piece.end - piece.start) as usize)
    }

    /// The bytes of [`CryptoReceive::next`] were read.
    pub(crate) fn advance(&mut self) {
        let Some(piece) = self.came.first().filter(|piece| piece.start == self.read) else {
            return;
        };
        self.read = piece.end;
        self.held -= (piece.end - piece.start) as usize;
        self.came.pop_first();
        if self.came.is_empty() {
            self.bytes = Vec::new();
        } else if self.bytes.len() > 2 * self.held + SLACK {
            self.compact();
        }
    }

    /// TLS will read nothing more at this level.
    pub(crate) fn close(&mut self) -> Result<(), TransportError> {
        self.over = true;
        // https://www.rfc-editor.org/rfc/rfc9001#section-4.1.3
        //# When TLS provides keys for a higher encryption level, if there is data from a previous
        //# encryption level that TLS has not consumed, this MUST be treated as a connection error
        //# of type PROTOCOL_VIOLATION.
        if self.held > 0 {
            return Err(TransportError::protocol_violation("TLS bytes left behind at a level"));
        }
        Ok(())
    }

    /// Lets go of the bytes that were read.
    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.held);
        let mut came = RangeMap::new();
        for piece in self.came.iter() {
            let at = piece.start.wrapping_add(piece.value) as usize;
            let length = (piece.end - piece.start) as usize;
            let moved = (bytes.len() as u64).wrapping_sub(piece.start);
            came.set(piece.start, piece.end, moved);
            bytes.extend_from_slice(self.bytes.get(at..at + length).unwrap_or_default());
        }
        (self.came, self.bytes) = (came, bytes);
    }
}

fn exceeded(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::CRYPTO_BUFFER_EXCEEDED, reason)
}

#[cfg(test)]
mod tests;
