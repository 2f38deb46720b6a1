//! Ids as newtypes: a path is never mistaken for a stream.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A path identifier of [RFC 10069](https://www.rfc-editor.org/rfc/rfc10069#section-2.1), at most 2^32 - 1.
/// Path 0 is the path of the handshake.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct PathId(pub u32);

/// A stream identifier, below 2^62. The two low bits tell initiator and direction.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-2.1>
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct StreamId(pub u64);

/// A packet number, below 2^62, counted per packet number space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PacketNumber(pub u64);

/// A position in a stream: bytes from its start, below 2^62.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

/// Which end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The end that opened the connection.
    Client,
    /// The end that accepted it.
    Server,
}

/// Whether both ends may send on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StreamDirection {
    /// Both ends send.
    Bidirectional,
    /// Only the initiator sends.
    Unidirectional,
}

impl PathId {
    /// The path of the handshake.
    pub const ZERO: PathId = PathId(0);
}

impl StreamId {
    /// The `index`-th stream (from zero) that `initiator` opens in `direction`.
    pub const fn new(initiator: Role, direction: StreamDirection, index: u64) -> Self {
        let initiator_bit = match initiator {
            Role::Client => 0,
            Role::Server => 1,
        };
        let direction_bit = match direction {
            StreamDirection::Bidirectional => 0,
            StreamDirection::Unidirectional => 2,
        };
        StreamId(index << 2 | direction_bit | initiator_bit)
    }

    /// Who opened the stream.
    pub const fn initiator(self) -> Role {
        if self.0 & 1 == 0 { Role::Client } else { Role::Server }
    }

    /// Whether both ends may send.
    pub const fn direction(self) -> StreamDirection {
        if self.0 & 2 == 0 {
            StreamDirection::Bidirectional
        } else {
            StreamDirection::Unidirectional
        }
    }

    /// Position among the streams of the same initiator and direction, from zero.
    pub const fn index(self) -> u64 {
        self.0 >> 2
    }
}

impl PacketNumber {
    /// The next packet number.
    pub const fn next(self) -> PacketNumber {
        PacketNumber(self.0 + 1)
    }
}

impl Offset {
    /// The start of the stream.
    pub const ZERO: Offset = Offset(0);

    /// The position `bytes` further on, saturating.
    pub const fn advanced(self, bytes: crate::Bytes) -> Offset {
        Offset(self.0.saturating_add(bytes.0))
    }

    /// Bytes from `earlier` to here; zero if `earlier` lies behind.
    pub const fn since(self, earlier: Offset) -> crate::Bytes {
        crate::Bytes(self.0.saturating_sub(earlier.0))
    }
}

impl Role {
    /// The other end.
    pub const fn peer(self) -> Role {
        match self {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        }
    }

    /// True for the client.
    pub const fn is_client(self) -> bool {
        matches!(self, Role::Client)
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "path {}", self.0)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}

impl fmt::Display for PacketNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "packet {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_ids_carry_initiator_direction_and_index() {
        let stream = StreamId::new(Role::Server, StreamDirection::Unidirectional, 5);
        assert_eq!(stream, StreamId(23));
        assert_eq!(stream.initiator(), Role::Server);
        assert_eq!(stream.direction(), StreamDirection::Unidirectional);
        assert_eq!(stream.index(), 5);
        assert_eq!(StreamId(8).initiator(), Role::Client);
        assert_eq!(StreamId(8).direction(), StreamDirection::Bidirectional);
    }
}
