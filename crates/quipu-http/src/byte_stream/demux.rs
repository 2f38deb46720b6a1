//! Octets, in any chunks, to what the mux does itself and what the control stream carries.
//!
//! Frames of other types than the mux's own pass through as they are; so do all frames before the
//! first SETTINGS frame and inside a header block, for [`FrameDecoder`](crate::h2::frame::FrameDecoder)
//! to refuse.

use crate::h2::frame::{DEFAULT_FRAME_SIZE, FrameError, Header, flag, kind};
use crate::h2::{ErrorCode, FrameStreamId};

/// What a client sends first. <https://www.rfc-editor.org/rfc/rfc9113#section-3.4>
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A part of what came.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Octets of frames that the control stream carries.
    Control(&'a [u8]),
    /// A PUSH_PROMISE frame among them promises a stream.
    Promise { promised: FrameStreamId },
    /// A HEADERS frame comes next among them.
    Head { stream: FrameStreamId, end_stream: bool },
    /// A DATA frame begins; so many octets count against credit.
    DataFrame { stream: FrameStreamId, length: u64 },
    /// Octets of a body.
    Data { stream: FrameStreamId, octets: &'a [u8] },
    /// Octets that count against credit and are none of a body.
    Padding { stream: FrameStreamId, length: u64 },
    /// The body is complete.
    End { stream: FrameStreamId },
    /// RST_STREAM.
    Reset { stream: FrameStreamId, code: ErrorCode },
    /// WINDOW_UPDATE by 1 to 2^31 - 1 octets; zero is the connection.
    WindowUpdate { stream: FrameStreamId, increment: u32 },
    /// PING that asks for an answer.
    Ping([u8; 8]),
}

/// Where pieces go.
type Sink<'a> = &'a mut dyn FnMut(Piece<'_>) -> Result<(), FrameError>;

/// Takes apart what one end receives. After an error it must not be used again.
#[derive(Debug)]
pub(super) struct Demux {
    state: State,
    /// Whether SETTINGS came, which must be first.
    settings_seen: bool,
    /// Whether a header block is not complete.
    in_block: bool,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many octets of the preface came.
    Preface(usize),
    Header(Gathered<{ Header::LEN }>),
    /// So many octets of a control stream's frame are to come.
    Control(usize),
    /// The front of a PUSH_PROMISE frame, up to the number that it promises.
    Promise(Header, Gathered<5>),
    /// The length of the padding is to come.
    PadLength(Header),
    Data {
        stream: FrameStreamId,
        left: usize,
        padding: usize,
        end_stream: bool,
    },
    Padding {
        stream: FrameStreamId,
        left: usize,
        end_stream: bool,
    },
    /// The payload of a small frame.
    Small(Header, Gathered<8>),
}

/// The first octets of something short.
#[derive(Clone, Copy, Debug)]
struct Gathered<const N: usize> {
    octets: [u8; N],
    len: usize,
}

impl<const N: usize> Gathered<N> {
    const NONE: Self = Gathered { octets: [0; N], len: 0 };

    /// Takes from the front of `octets` until there are `wanted`; returns the rest.
    fn fill<'a>(&mut self, wanted: usize, octets: &'a [u8]) -> &'a [u8] {
        let take = wanted.min(N).saturating_sub(self.len).min(octets.len());
        let (front, rest) = octets.split_at(take);
        self.octets[self.len..self.len + take].copy_from_slice(front);
        self.len += take;
        rest
    }
}

impl Demux {
    /// What a server receives, with the client's preface, or a client.
    pub(super) fn new(with_preface: bool) -> Self {
        let state = if with_preface { State::Preface(0) } else { State::Header(Gathered::NONE) };
        Demux { state, settings_seen: false, in_block: false }
    }

    /// Takes what came next apart.
    ///
    /// # Errors
    /// The peer broke the rules, or `sink` says so.
    pub(super) fn push(&mut self, mut octets: &[u8], sink: Sink<'_>) -> Result<(), FrameError> {
        while !octets.is_empty() {
            (self.state, octets) = self.step(octets, sink)?;
        }
        Ok(())
    }

    /// Takes at least one octet from the front.
    fn step<'a>(
        &mut self,
        octets: &'a [u8],
        sink: Sink<'_>,
    ) -> Result<(State, &'a [u8]), FrameError> {
        let state = match self.state {
            State::Preface(seen) => {
                let (front, rest) = octets.split_at(octets.len().min(PREFACE.len() - seen));
                // https://www.rfc-editor.org/rfc/rfc9113#section-3.4
                //# Clients and servers MUST treat an invalid connection preface as a connection
                //# error (Section 5.4.1) of type PROTOCOL_ERROR.
                if !PREFACE[seen..].starts_with(front) {
                    return Err(FrameError::NotPreface);
                }
                let seen = seen + front.len();
                let complete = seen == PREFACE.len();
                let header = State::Header(Gathered::NONE);
                return Ok((if complete { header } else { State::Preface(seen) }, rest));
            }
            State::Header(mut gathered) => {
                let rest = gathered.fill(Header::LEN, octets);
                let complete = gathered.len == Header::LEN;
                let header = State::Header(gathered);
                let state = if complete { self.begin(gathered.octets, sink)? } else { header };
                return Ok((state, rest));
            }
            State::Control(left) => {
                let (front, rest) = octets.split_at(octets.len().min(left));
                sink(Piece::Control(front))?;
                return Ok((Self::control(left - front.len()), rest));
            }
            State::Promise(header, mut gathered) => {
                let wanted = Self::promise_front(&header);
                let rest = gathered.fill(wanted, octets);
                sink(Piece::Control(&octets[..octets.len() - rest.len()]))?;
                if gathered.len < wanted {
                    return Ok((State::Promise(header, gathered), rest));
                }
                let [.., a, b, c, d] = gathered.octets;
                let [e, ..] = gathered.octets;
                let number = if wanted == 5 { [a, b, c, d] } else { [e, a, b, c] };
                let promised = FrameStreamId::from_wire(u32::from_be_bytes(number));
                sink(Piece::Promise { promised })?;
                return Ok((Self::control(header.length - wanted), rest));
            }
            State::PadLength(header) => {
                let (&[padding], rest) = octets.split_first_chunk().unwrap_or((&[0], octets));
                let body = (header.length - 1).checked_sub(usize::from(padding));
                // https://www.rfc-editor.org/rfc/rfc9113#section-6.1
                //# If the length of the padding is the length of the frame payload or greater,
                //# the recipient MUST treat this as a connection error (Section 5.4.1) of type
                //# PROTOCOL_ERROR.
                let Some(left) = body else {
                    let length = header.length;
                    return Err(FrameError::Padding { kind: "DATA", padding, length });
                };
                let stream = header.stream;
                let padding = usize::from(padding);
                sink(Piece::Padding { stream, length: 1 + padding as u64 })?;
                let end_stream = header.has(flag::END_STREAM);
                (State::Data { stream, left, padding, end_stream }, rest)
            }
            State::Data { stream, left, padding, end_stream } => {
                let (front, rest) = octets.split_at(octets.len().min(left));
                if !front.is_empty() {
                    sink(Piece::Data { stream, octets: front })?;
                }
                (State::Data { stream, left: left - front.len(), padding, end_stream }, rest)
            }
            State::Padding { stream, left, end_stream } => {
                let (front, rest) = octets.split_at(octets.len().min(left));
                (State::Padding { stream, left: left - front.len(), end_stream }, rest)
            }
            State::Small(header, mut gathered) => {
                let rest = gathered.fill(header.length, octets);
                if gathered.len < header.length {
                    return Ok((State::Small(header, gathered), rest));
                }
                Self::small(&header, gathered.octets, sink)?;
                return Ok((State::Header(Gathered::NONE), rest));
            }
        };
        let (state, rest) = state;
        Ok((Self::settle(state, sink)?, rest))
    }

    /// Goes on from a part of a DATA frame of which nothing is left.
    fn settle(state: State, sink: Sink<'_>) -> Result<State, FrameError> {
        let (stream, end_stream) = match state {
            State::Data { stream, left: 0, padding: 0, end_stream }
            | State::Padding { stream, left: 0, end_stream } => (stream, end_stream),
            State::Data { stream, left: 0, padding, end_stream } => {
                return Ok(State::Padding { stream, left: padding, end_stream });
            }
            other => return Ok(other),
        };
        if end_stream {
            sink(Piece::End { stream })?;
        }
        Ok(State::Header(Gathered::NONE))
    }

    /// So many octets of a frame of the control stream are to come.
    fn control(left: usize) -> State {
        if left == 0 { State::Header(Gathered::NONE) } else { State::Control(left) }
    }

    /// A frame's header is complete.
    fn begin(&mut self, octets: [u8; Header::LEN], sink: Sink<'_>) -> Result<State, FrameError> {
        let header = Header::decode(octets);
        let is_own =
            matches!(header.kind, kind::DATA | kind::RST_STREAM | kind::PING | kind::WINDOW_UPDATE);
        if is_own && self.settings_seen && !self.in_block {
            return Self::begin_own(header, sink);
        }
        self.settings_seen = true;
        if matches!(header.kind, kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION) {
            self.in_block = !header.has(flag::END_HEADERS);
        }
        if header.kind == kind::HEADERS {
            let (stream, end_stream) = (header.stream, header.has(flag::END_STREAM));
            sink(Piece::Head { stream, end_stream })?;
        }
        sink(Piece::Control(&octets))?;
        if header.kind == kind::PUSH_PROMISE && header.length >= Self::promise_front(&header) {
            return Ok(State::Promise(header, Gathered::NONE));
        }
        Ok(Self::control(header.length))
    }

    /// Octets of a PUSH_PROMISE frame up to the end of the number that it promises: four, and one before
    /// them that tells the padding.
    fn promise_front(header: &Header) -> usize {
        4 + usize::from(header.has(flag::PADDED))
    }

    /// A frame of the mux itself.
    fn begin_own(header: Header, sink: Sink<'_>) -> Result<State, FrameError> {
        let Header { length, stream, .. } = header;
        let kind = kind::name(header.kind);
        let misplaced = |expected| Err(FrameError::Stream { kind, stream, expected });
        let exactly = |wanted: usize, expected| {
            if length == wanted {
                Ok(State::Small(header, Gathered::NONE))
            } else {
                Err(FrameError::Length { kind, length, expected })
            }
        };
        match header.kind {
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
            //# If a PING frame is received with a Stream Identifier field value other than 0x00,
            //# the recipient MUST respond with a connection error (Section 5.4.1) of type
            //# PROTOCOL_ERROR.
            kind::PING if !stream.is_zero() => misplaced("only 0 is valid"),
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
            //# Receipt of a PING frame with a length field value other than 8 MUST be treated as
            //# a connection error (Section 5.4.1) of type FRAME_SIZE_ERROR.
            kind::PING => exactly(8, "8 are valid"),
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.9
            //# A WINDOW_UPDATE frame with a length other than 4 octets MUST be treated as a
            //# connection error (Section 5.4.1) of type FRAME_SIZE_ERROR.
            kind::WINDOW_UPDATE => exactly(4, "4 are valid"),
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.1
            //# If a DATA frame is received whose Stream Identifier field is 0x00, the recipient
            //# MUST respond with a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
            //# If a RST_STREAM frame is received with a stream identifier of 0x00, the recipient
            //# MUST treat this as a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
            _ if stream.is_zero() => misplaced("0 is not valid"),
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.4
            //# A RST_STREAM frame with a length other than 4 octets MUST be treated as a
            //# connection error (Section 5.4.1) of type FRAME_SIZE_ERROR.
            kind::RST_STREAM => exactly(4, "4 are valid"),
            _ => Self::begin_data(header, sink),
        }
    }

    fn begin_data(header: Header, sink: Sink<'_>) -> Result<State, FrameError> {
        let Header { length, stream, .. } = header;
        let limit = DEFAULT_FRAME_SIZE;
        if length > limit as usize {
            return Err(FrameError::TooLarge { kind: "DATA", length, limit });
        }
        sink(Piece::DataFrame { stream, length: length as u64 })?;
        if !header.has(flag::PADDED) {
            let end_stream = header.has(flag::END_STREAM);
            return Self::settle(
                State::Data { stream, left: length, padding: 0, end_stream },
                sink,
            );
        }
        if length == 0 {
            let expected = "its flags announce more octets";
            return Err(FrameError::Length { kind: "DATA", length, expected });
        }
        Ok(State::PadLength(header))
    }

    /// The payload of a small frame is complete.
    fn small(header: &Header, payload: [u8; 8], sink: Sink<'_>) -> Result<(), FrameError> {
        let [a, b, c, d, ..] = payload;
        let (stream, value) = (header.stream, u32::from_be_bytes([a, b, c, d]));
        match header.kind {
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
            //# An endpoint MUST NOT respond to PING frames containing this flag.
            kind::PING if header.has(flag::ACK) => Ok(()),
            kind::PING => sink(Piece::Ping(payload)),
            kind::RST_STREAM => sink(Piece::Reset { stream, code: ErrorCode(value) }),
            // Only WINDOW_UPDATE is left; the highest bit is reserved.
            _ => match value & !(1 << 31) {
                // https://www.rfc-editor.org/rfc/rfc9113#section-6.9
                //# A receiver MUST treat the receipt of a WINDOW_UPDATE frame with a flow-control
                //# window increment of 0 as a stream error (Section 5.4.2) of type
                //# PROTOCOL_ERROR; errors on the connection flow-control window MUST be treated
                //# as a connection error (Section 5.4.1).
                0 => Err(FrameError::NoIncrement { stream }),
                increment => sink(Piece::WindowUpdate { stream, increment }),
            },
        }
    }
}

#[cfg(test)]
mod tests;
