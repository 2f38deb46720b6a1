//! Stream identifiers as frames carry them.

use std::fmt;

use quipu_base::{Role, StreamDirection, StreamId};
use thiserror::Error;

/// An HTTP/2 stream identifier: 31 bits. A [`Numbering`] says which of them name requests and which
/// pushed responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameStreamId(u32);

/// Which numbers name requests and which pushed responses; all others name nodes of the dependency tree
/// that never carry data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Numbering {
    /// Multiples of four: the identifiers of QUIC's bidirectional streams that a client opens. Pushed
    /// responses have the even numbers between, 2, 6, …: each is one below the identifier of the
    /// unidirectional QUIC stream of the server, 3, 7, …, that carries the body. Those identifiers
    /// themselves are odd, as are the groups of browsers.
    #[default]
    Quic,
    /// Odd numbers, as over a byte stream; pushed responses have even ones. A client of ours begins at
    /// 15, so that the groups of browsers, which have odd numbers up to 13, come before.
    /// <https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1>
    ByteStream,
}

/// Why a number is no HTTP/2 stream identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StreamIdError {
    /// The number has more than 31 bits.
    #[error("stream identifier {0} is not below 2^31")]
    TooLarge(u64),
}

impl FrameStreamId {
    /// The connection in a frame's header; the root of the tree as a parent.
    pub const ZERO: FrameStreamId = FrameStreamId(0);
    /// The largest identifier.
    pub const MAX: FrameStreamId = FrameStreamId(Self::MASK);

    const MASK: u32 = (1 << 31) - 1;

    /// The low 31 bits of `value`: the bit above is reserved and ignored.
    /// <https://www.rfc-editor.org/rfc/rfc7540#section-4.1>
    pub const fn from_wire(value: u32) -> Self {
        // https://www.rfc-editor.org/rfc/rfc9113#section-4.1
        //# The semantics of this bit are undefined, and the bit MUST remain unset (0x00) when
        //# sending and MUST be ignored when receiving.
        FrameStreamId(value & Self::MASK)
    }

    /// The number, below 2^31.
    pub const fn value(self) -> u32 {
        self.0
    }

    /// True for 0.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The stream of the request that this names; `None` for the control stream's number and for
    /// numbers that a client cannot open.
    pub fn request(self, numbering: Numbering) -> Option<StreamId> {
        let stream = StreamId(u64::from(self.0));
        let is_request = match numbering {
            Numbering::Quic => {
                let by_client = stream.initiator() == Role::Client;
                let both_ways = stream.direction() == StreamDirection::Bidirectional;
                by_client && both_ways && self.0 != 0
            }
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
            //# Streams initiated by a client MUST use odd-numbered stream identifiers; those
            //# initiated by the server MUST use even-numbered stream identifiers.
            Numbering::ByteStream => self.0 % 2 == 1,
        };
        is_request.then_some(stream)
    }

    /// The stream of the pushed response that this names; `None` for numbers that a server cannot
    /// promise.
    pub fn pushed(self, numbering: Numbering) -> Option<StreamId> {
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
        //# Streams initiated by a client MUST use odd-numbered stream identifiers; those
        //# initiated by the server MUST use even-numbered stream identifiers.
        match numbering {
            Numbering::Quic => (self.0 % 4 == 2).then(|| StreamId(u64::from(self.0) + 1)),
            Numbering::ByteStream => {
                (self.0 != 0 && self.0.is_multiple_of(2)).then(|| StreamId(u64::from(self.0)))
            }
        }
    }

    /// The stream of the request or pushed response that this names.
    pub fn stream(self, numbering: Numbering) -> Option<StreamId> {
        self.request(numbering).or_else(|| self.pushed(numbering))
    }

    /// The identifier that frames have for `stream`, of a request or a pushed response.
    ///
    /// # Errors
    /// If the number has more than 31 bits.
    pub fn of(stream: StreamId, numbering: Numbering) -> Result<Self, StreamIdError> {
        let of_server = stream.initiator() == Role::Server;
        let one_way = stream.direction() == StreamDirection::Unidirectional;
        let is_pushed = numbering == Numbering::Quic && of_server && one_way;
        FrameStreamId::try_from(stream.0 - u64::from(is_pushed))
    }
}

impl Numbering {
    /// The stream of a client's first request.
    pub const fn first(self) -> StreamId {
        match self {
            Numbering::Quic => StreamId(4),
            Numbering::ByteStream => StreamId(15),
        }
    }

    /// The stream of the request after that on `stream`.
    pub const fn next(self, stream: StreamId) -> StreamId {
        let step = match self {
            // https://www.rfc-editor.org/rfc/rfc9000#section-2.1
            Numbering::Quic => 4,
            Numbering::ByteStream => 2,
        };
        StreamId(stream.0.saturating_add(step))
    }
}

impl TryFrom<u64> for FrameStreamId {
    type Error = StreamIdError;

    fn try_from(value: u64) -> Result<Self, StreamIdError> {
        u32::try_from(value)
            .ok()
            .filter(|&value| value <= Self::MASK)
            .map(FrameStreamId)
            .ok_or(StreamIdError::TooLarge(value))
    }
}

impl TryFrom<StreamId> for FrameStreamId {
    type Error = StreamIdError;

    fn try_from(stream: StreamId) -> Result<Self, StreamIdError> {
        FrameStreamId::try_from(stream.0)
    }
}

impl fmt::Display for FrameStreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_clients_bidirectional_streams() {
        for (value, request) in
            [(0, None), (3, None), (4, Some(StreamId(4))), (6, None), (8, Some(StreamId(8)))]
        {
            assert_eq!(FrameStreamId::from_wire(value).request(Numbering::Quic), request);
        }
    }

    #[test]
    fn over_a_byte_stream_requests_are_odd_and_begin_behind_the_groups() {
        let numbering = Numbering::ByteStream;
        let request = |value: u32| FrameStreamId::from_wire(value).request(numbering);
        assert_eq!([0, 4, 1, 15].map(request), [None, None, Some(StreamId(1)), Some(StreamId(15))]);
        assert_eq!(numbering.next(numbering.first()), StreamId(17));
    }

    #[test]
    fn pushed_responses_have_even_numbers_that_are_no_requests() {
        for (numbering, known) in [
            (Numbering::Quic, [(2, Some(3)), (4, None), (6, Some(7)), (7, None)]),
            (Numbering::ByteStream, [(0, None), (2, Some(2)), (4, Some(4)), (7, None)]),
        ] {
            for (value, stream) in known {
                let id = FrameStreamId::from_wire(value);
                assert_eq!(id.pushed(numbering), stream.map(StreamId), "{value}");
            }
            for value in 1..100 {
                let id = FrameStreamId::from_wire(value);
                let streams = [id.request(numbering), id.pushed(numbering)];
                assert!(streams.contains(&None), "{value}");
                if let Some(stream) = id.stream(numbering) {
                    assert_eq!(FrameStreamId::of(stream, numbering), Ok(id));
                }
            }
        }
    }

    #[test]
    fn identifiers_have_31_bits() {
        assert_eq!(FrameStreamId::from_wire(u32::MAX), FrameStreamId::MAX);
        let too_large = 1 << 31;
        assert_eq!(FrameStreamId::try_from(too_large), Err(StreamIdError::TooLarge(too_large)));
        assert_eq!(FrameStreamId::try_from(too_large - 1), Ok(FrameStreamId::MAX));
    }
}
