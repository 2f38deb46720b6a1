//! Type and length of a frame, read octet by octet if need be.

use super::put_varint;
use crate::transport::{ReadState, StreamError, StreamTransport};
use quipu_base::StreamId;
use quipu_quic::wire::Reader;

/// What each frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Its type.
    pub kind: u64,
    /// Octets that follow.
    pub length: u64,
}

impl FrameHeader {
    /// Appends it.
    pub fn encode(self, out: &mut Vec<u8>) {
        put_varint(self.kind, out);
        put_varint(self.length, out);
    }

    /// Octets that it takes itself.
    pub const fn size(self) -> usize {
        quipu_quic::wire::varint::size(self.kind) + quipu_quic::wire::varint::size(self.length)
    }
}

/// Octets that a header takes at most.
const LONGEST: usize = 16;

/// A number of variable-length integers as they come.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeaderReader {
    octets: [u8; LONGEST],
    len: usize,
    ended: bool,
}

/// How a reading went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderState<T> {
    /// It is complete.
    Complete(T),
    /// More must come.
    Blocked,
    /// The stream ended; whether inside a header.
    Ended {
        /// Some of it had come.
        inside: bool,
    },
}

impl HeaderReader {
    /// Whether the stream ended with what was read.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// Reads a frame's header.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn frame<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
    ) -> Result<HeaderState<FrameHeader>, StreamError> {
        self.read(transport, stream, 2).map(|state| match state {
            HeaderState::Complete([kind, length]) => {
                HeaderState::Complete(FrameHeader { kind, length })
            }
            HeaderState::Blocked => HeaderState::Blocked,
            HeaderState::Ended { inside } => HeaderState::Ended { inside },
        })
    }

    /// Reads one integer: what a unidirectional stream begins with.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn integer<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
    ) -> Result<HeaderState<u64>, StreamError> {
        self.read(transport, stream, 1).map(|state| match state {
            HeaderState::Complete([value, _]) => HeaderState::Complete(value),
            HeaderState::Blocked => HeaderState::Blocked,
            HeaderState::Ended { inside } => HeaderState::Ended { inside },
        })
    }

    /// Reads `count` integers (1 or 2), and not an octet more.
    fn read<T: StreamTransport>(
        &mut self,
        transport: &mut T,
        stream: StreamId,
        count: usize,
    ) -> Result<HeaderState<[u64; 2]>, StreamError> {
        loop {
            let mut values = [0; 2];
            let missing = {
                let mut reader = Reader::new(&self.octets[..self.len]);
                let mut read = 0;
                while read < count
                    && let Ok(value) = reader.varint()
                {
                    values[read] = value;
                    read += 1;
                }
                if read == count {
                    self.len = 0;
                    return Ok(HeaderState::Complete(values));
                }
                // Of the integer at hand: its first octet says how long it is; each later one has an octet.
                let begun = reader.rest();
                let own = begun.first().map_or(1, |first| 1 << (first >> 6));
                own - begun.len() + (count - read - 1)
            };
            if self.ended {
                return Ok(HeaderState::Ended { inside: self.len > 0 });
            }
            let (octets, len) = (&mut self.octets, &mut self.len);
            let before = *len;
            let state = transport.read_at_most(stream, missing as u64, &mut |part| {
                // Never more than was asked for.
                if let Some(room) = octets.get_mut(*len..*len + part.len()) {
                    room.copy_from_slice(part);
                    *len += part.len();
                }
            })?;
            self.ended = state == ReadState::Finished;
            if !self.ended && self.len == before {
                return Ok(HeaderState::Blocked);
            }
        }
    }
}
