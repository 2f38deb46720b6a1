//! CRYPTO streams: the bytes of TLS messages, one stream per level, both ways.

use std::ops::Range;

use quipu_base::Offset;
use quipu_policy::Span;

use crate::error::{ErrorCode, TransportError};
use crate::range_set::RangeSet;

/// Bytes that may wait out of order at a level.
// https://www.rfc-editor.org/rfc/rfc9000#section-7.5
//# Implementations MUST support buffering at least 4096 bytes of data
//# received in out-of-order CRYPTO frames.
const MAX_BUFFERED: u64 = 64 * 1024;

/// What is to be sent at one level. Messages are small, so all of it is kept.
#[derive(Debug, Default)]
pub(crate) struct CryptoSend {
    data: Vec<u8>,
    pending: RangeSet,
    acked: RangeSet,
}

impl CryptoSend {
    /// Appends TLS bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let start = self.data.len() as u64;
        self.data.extend_from_slice(bytes);
        self.pending.insert(start..self.data.len() as u64);
    }

    /// True if something waits.
    pub(crate) fn is_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The next bytes to send, at most `max`: where they start, and they.
    pub(crate) fn next(&self, max: usize) -> Option<(Offset, &[u8])> {
        let range = self.pending.first()?;
        let start = range.start;
        let end = range.end.min(start.saturating_add(max as u64));
        let bytes = self.data.get(start as usize..end as usize)?;
        Some((Offset(start), bytes))
    }

    /// A stretch was written into a packet.
    pub(crate) fn on_sent(&mut self, span: Span) {
        self.pending.remove(span.start.0..span.end.0);
    }

    pub(crate) fn on_acked(&mut self, span: Span) {
        self.acked.insert(span.start.0..span.end.0);
        self.pending.remove(span.start.0..span.end.0);
    }

    /// A stretch was lost: what nobody acknowledged is pending again.
    pub(crate) fn on_lost(&mut self, span: Span) {
        self.pending.insert(span.start.0..span.end.0);
        for range in self.acked.iter() {
            self.pending.remove(range);
        }
    }
}

/// What came at one level.
#[derive(Debug, Default)]
pub(crate) struct CryptoReceive {
    /// Bytes from `read` on; those not in `received` are void.
    data: Vec<u8>,
    received: RangeSet,
    read: u64,
}

impl CryptoReceive {
    /// Takes the bytes of a CRYPTO frame.
    pub(crate) fn on_frame(&mut self, offset: u64, bytes: &[u8]) -> Result<(), TransportError> {
        let end = offset.saturating_add(bytes.len() as u64);
        // https://www.rfc-editor.org/rfc/rfc9000#section-7.5
        //# If an endpoint does not expand its buffer, it MUST close the connection with a
        //# CRYPTO_BUFFER_EXCEEDED error code.
        if end > self.read + MAX_BUFFERED {
            return Err(TransportError::new(
                ErrorCode::CRYPTO_BUFFER_EXCEEDED,
                "more TLS bytes out of order than are kept",
            ));
        }
        let skip = self.read.saturating_sub(offset);
        let Some(bytes) = bytes.get(skip.min(bytes.len() as u64) as usize..) else {
            return Ok(());
        };
        let start = offset.max(self.read);
        if bytes.is_empty() || start >= end {
            return Ok(());
        }
        let at = (start - self.read) as usize;
        if self.data.len() < at + bytes.len() {
            self.data.resize(at + bytes.len(), 0);
        }
        if let Some(place) = self.data.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.received.insert(start..end);
        Ok(())
    }

    /// Takes out what is next in order.
    pub(crate) fn read(&mut self) -> Option<Vec<u8>> {
        let Range { start, end } = self.received.first()?;
        if start != self.read {
            return None;
        }
        let rest = self.data.split_off(((end - start) as usize).min(self.data.len()));
        let ready = std::mem::replace(&mut self.data, rest);
        self.received.remove(start..end);
        self.read = end;
        Some(ready)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_in_order_whatever_the_order_of_frames() {
        let mut receive = CryptoReceive::default();
        receive.on_frame(4, b"efgh").unwrap();
        assert_eq!(receive.read(), None);
        receive.on_frame(0, b"abcd").unwrap();
        assert_eq!(receive.read().as_deref(), Some(b"abcdefgh".as_slice()));
        receive.on_frame(2, b"cdefghij").unwrap();
        assert_eq!(receive.read().as_deref(), Some(b"ij".as_slice()));
    }

    #[test]
    fn a_peer_cannot_make_the_buffer_grow_without_end() {
        let mut receive = CryptoReceive::default();
        assert!(receive.on_frame(MAX_BUFFERED, b"x").is_err());
        assert!(receive.on_frame(u64::MAX - 1, b"xyz").is_err());
    }

    #[test]
    fn lost_bytes_are_sent_again_unless_acknowledged() {
        let mut send = CryptoSend::default();
        send.write(b"0123456789");
        let span = |a, b| Span::new(Offset(a), Offset(b));
        send.on_sent(span(0, 10));
        assert!(!send.is_pending());
        send.on_acked(span(4, 6));
        send.on_lost(span(0, 10));
        assert_eq!(send.next(100), Some((Offset(0), b"0123".as_slice())));
        send.on_sent(span(0, 4));
        assert_eq!(send.next(2), Some((Offset(6), b"67".as_slice())));
    }
}
