//! Octets, in any chunks, to frames.

use bytes::{Buf, BytesMut};

use super::{
    DEFAULT_FRAME_SIZE, ErrorCode, Frame, FrameError, FrameStreamId, Header, Settings,
    StreamPriority, flag, kind,
};

/// Most CONTINUATION frames of one header block; our choice. More would only serve to make work.
pub const MAX_CONTINUATIONS: u32 = 32;

/// Reads the frames of one direction of the control stream.
///
/// [Push](FrameDecoder::push) octets as they come, then [take](FrameDecoder::next_frame) frames until
/// there is none. Besides what was pushed and not taken, at most one frame and one header block are
/// held. After an error the decoder must not be used again.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    /// Octets of an unknown frame that are still to be dropped.
    skip: usize,
    /// A header block whose end has not come.
    partial: Option<PartialHeaders>,
    settings_seen: bool,
    /// Whether the peer may promise responses.
    takes_promises: bool,
    max_frame_size: u32,
    max_block: usize,
}

#[derive(Debug)]
struct PartialHeaders {
    stream: FrameStreamId,
    of: BlockOf,
    block: BytesMut,
    continuations: u32,
}

/// What a header block is the head of.
#[derive(Clone, Copy, Debug)]
enum BlockOf {
    Message { priority: Option<StreamPriority>, end_stream: bool },
    Promise(FrameStreamId),
}

impl FrameDecoder {
    /// A decoder for frames of at most [`DEFAULT_FRAME_SIZE`] and header blocks of at most `max_block`
    /// octets.
    pub fn new(max_block: usize) -> Self {
        FrameDecoder {
            buffer: BytesMut::new(),
            skip: 0,
            partial: None,
            settings_seen: false,
            takes_promises: false,
            // https://www.rfc-editor.org/rfc/rfc9113#section-4.2
            //# All implementations MUST be capable of receiving and minimally processing frames
            //# up to 2^14 octets in length, plus the 9-octet frame header (Section 4.1).
            max_frame_size: DEFAULT_FRAME_SIZE,
            max_block,
        }
    }

    /// The same decoder, at a client that takes pushed responses: PUSH_PROMISE frames are read.
    #[must_use]
    pub fn with_promises(self) -> Self {
        FrameDecoder { takes_promises: true, ..self }
    }

    /// Appends what came next.
    pub fn push(&mut self, octets: &[u8]) {
        let (_, octets) = octets.split_at(self.drop_skipped(octets.len()));
        self.buffer.extend_from_slice(octets);
    }

    /// Octets that were pushed and belong to frames not yet taken.
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// The next frame, `None` if it is not complete.
    ///
    /// # Errors
    /// The peer broke the protocol: [`FrameError::code`] closes the connection.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameError> {
        while let Some(header) = self.peek_header() {
            self.check(&header)?;
            // https://www.rfc-editor.org/rfc/rfc9113#section-4.1
            //# Implementations MUST ignore and discard frames of unknown types.
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.5
            //# Implementations MUST discard frames that have unknown or unsupported types.
            if !kind::is_known(header.kind) {
                self.buffer.advance(Header::LEN);
                self.skip = header.length;
                let held = self.drop_skipped(self.buffer.len());
                self.buffer.advance(held);
                continue;
            }
            if self.buffer.len() < Header::LEN + header.length {
                return Ok(None);
            }
            self.buffer.advance(Header::LEN);
            let payload = self.buffer.split_to(header.length);
            if let Some(frame) = self.frame(&header, payload)? {
                return Ok(Some(frame));
            }
        }
        Ok(None)
    }

    /// How many of `available` octets belong to a frame that is being dropped.
    fn drop_skipped(&mut self, available: usize) -> usize {
        let dropped = self.skip.min(available);
        self.skip -= dropped;
        dropped
    }

    fn peek_header(&self) -> Option<Header> {
        self.buffer.first_chunk().copied().map(Header::decode)
    }

    /// What can be said of a frame by its header; before its payload is waited for.
    fn check(&mut self, header: &Header) -> Result<(), FrameError> {
        let kind = kind::name(header.kind);
        if header.length > self.max_frame_size as usize {
            return Err(FrameError::TooLarge {
                kind,
                length: header.length,
                limit: self.max_frame_size,
            });
        }
        // https://www.rfc-editor.org/rfc/rfc7540#section-3.5
        // The SETTINGS frame of each end comes first.
        if !self.settings_seen {
            if header.kind != kind::SETTINGS || header.has(flag::ACK) {
                return Err(FrameError::NotSettings { kind });
            }
            self.settings_seen = true;
        }
        let expected = self.partial.as_ref().map(|partial| partial.stream);
        let continues = (header.kind == kind::CONTINUATION).then_some(header.stream);
        // https://www.rfc-editor.org/rfc/rfc9113#section-5.5
        //# However, extension frames that appear in the middle of a field block (Section 4.3) are
        //# not permitted; these MUST be treated as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.2
        //# A receiver MUST treat the receipt of any other type of frame or a frame on a different
        //# stream as a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# A receiver MUST treat the receipt of any other type of frame or a frame on a different
        //# stream as a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.10
        //# A receiver MUST treat the receipt of any other type of frame or a frame on a different
        //# stream as a connection error (Section 5.4.1) of type PROTOCOL_ERROR. If a CONTINUATION
        //# frame is received with a Stream Identifier field of 0x00, the recipient MUST respond
        //# with a connection error (Section 5.4.1) of type PROTOCOL_ERROR. A recipient that
        //# observes violation of this rule MUST respond with a connection error (Section 5.4.1)
        //# of type PROTOCOL_ERROR.
        if expected != continues {
            return Err(FrameError::Continuation { kind, stream: header.stream });
        }
        let on_connection = match header.kind {
            kind::SETTINGS | kind::GO_AWAY | kind::PRIORITY_UPDATE => true,
            kind::HEADERS | kind::PRIORITY => false,
            kind::PUSH_PROMISE if self.takes_promises => false,
            kind::DATA
            | kind::RST_STREAM
            | kind::PUSH_PROMISE
            | kind::PING
            // https://www.rfc-editor.org/rfc/rfc9113#section-5.1
            //# In the absence of more specific rules, implementations SHOULD treat the receipt of
            //# a frame that is not expressly permitted in the description of a state as a
            //# connection error (Section 5.4.1) of type PROTOCOL_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.5.2
            //# A client that has both set this parameter to 0 and had it acknowledged MUST treat
            //# the receipt of a PUSH_PROMISE frame as a connection error (Section 5.4.1) of type
            //# PROTOCOL_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
            //# An endpoint that has set this setting and has received acknowledgment MUST treat
            //# the receipt of a PUSH_PROMISE frame as a connection error (Section 5.4.1) of type
            //# PROTOCOL_ERROR.
            // https://www.rfc-editor.org/rfc/rfc9113#section-8.4
            //# Thus, servers MUST treat the receipt of a PUSH_PROMISE frame as a connection error
            //# (Section 5.4.1) of type PROTOCOL_ERROR.
            | kind::WINDOW_UPDATE => return Err(FrameError::Unexpected { kind }),
            _ => return Ok(()),
        };
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.2
        //# If a HEADERS frame is received whose Stream Identifier field is 0x00, the recipient
        //# MUST respond with a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.3
        //# If a PRIORITY frame is received with a stream identifier of 0x00, the recipient MUST
        //# respond with a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# If the Stream Identifier field specifies the value 0x00, a recipient MUST respond with
        //# a connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
        //# If an endpoint receives a SETTINGS frame whose Stream Identifier field is anything
        //# other than 0x00, the endpoint MUST respond with a connection error (Section 5.4.1) of
        //# type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.8
        //# An endpoint MUST treat a GOAWAY frame with a stream identifier other than 0x00 as a
        //# connection error (Section 5.4.1) of type PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
        //# Receiving a PRIORITY_UPDATE frame with a field of any other value MUST be treated as a
        //# connection error of type PROTOCOL_ERROR.
        if on_connection != header.stream.is_zero() {
            let expected = if on_connection { "only 0 is valid" } else { "0 is not valid" };
            return Err(FrameError::Stream { kind, stream: header.stream, expected });
        }
        Ok(())
    }

    /// `None` for a part of a header block.
    fn frame(&mut self, header: &Header, payload: BytesMut) -> Result<Option<Frame>, FrameError> {
        let frame = match header.kind {
            kind::SETTINGS => settings(header, &payload)?,
            kind::HEADERS => return self.headers(header, payload),
            kind::PUSH_PROMISE => return self.push_promise(header, payload),
            kind::CONTINUATION => return self.continuation(header, payload),
            kind::PRIORITY => priority(header, &payload)?,
            kind::PRIORITY_UPDATE => priority_update(payload)?,
            // Only GOAWAY is left by `check`.
            _ => go_away(&payload)?,
        };
        Ok(Some(frame))
    }

    fn headers(
        &mut self,
        header: &Header,
        mut block: BytesMut,
    ) -> Result<Option<Frame>, FrameError> {
        let kind = "HEADERS";
        let too_short = too_short(kind, block.len());
        strip_padding(kind, header, &mut block)?;
        let mut priority = None;
        if header.has(flag::PRIORITY) {
            let &octets = block.first_chunk().ok_or(too_short)?;
            priority = Some(StreamPriority::decode(octets));
            block.advance(StreamPriority::LEN);
        }
        let of = BlockOf::Message { priority, end_stream: header.has(flag::END_STREAM) };
        self.partial = Some(PartialHeaders { stream: header.stream, of, block, continuations: 0 });
        self.complete_headers(header.flags)
    }

    /// <https://www.rfc-editor.org/rfc/rfc9113#section-6.6>
    fn push_promise(
        &mut self,
        header: &Header,
        mut block: BytesMut,
    ) -> Result<Option<Frame>, FrameError> {
        let kind = "PUSH_PROMISE";
        let too_short = too_short(kind, block.len());
        strip_padding(kind, header, &mut block)?;
        let &octets = block.first_chunk().ok_or(too_short)?;
        block.advance(octets.len());
        let promised = FrameStreamId::from_wire(u32::from_be_bytes(octets));
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# A receiver MUST treat the receipt of a PUSH_PROMISE that promises an illegal stream
        //# identifier (Section 5.1.1) as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        if promised.is_zero() {
            let expected = "it cannot be promised";
            return Err(FrameError::Stream { kind, stream: promised, expected });
        }
        let of = BlockOf::Promise(promised);
        self.partial = Some(PartialHeaders { stream: header.stream, of, block, continuations: 0 });
        self.complete_headers(header.flags)
    }

    fn continuation(
        &mut self,
        header: &Header,
        payload: BytesMut,
    ) -> Result<Option<Frame>, FrameError> {
        if let Some(partial) = &mut self.partial {
            partial.continuations += 1;
            if partial.continuations > MAX_CONTINUATIONS {
                return Err(FrameError::BlockTooLarge { limit: self.max_block });
            }
            partial.block.unsplit(payload);
        }
        self.complete_headers(header.flags)
    }

    fn complete_headers(&mut self, flags: u8) -> Result<Option<Frame>, FrameError> {
        let limit = self.max_block;
        if self.partial.as_ref().is_some_and(|partial| partial.block.len() > limit) {
            return Err(FrameError::BlockTooLarge { limit });
        }
        if flags & flag::END_HEADERS == 0 {
            return Ok(None);
        }
        Ok(self.partial.take().map(|PartialHeaders { stream, of, block, .. }| {
            let block = block.freeze();
            match of {
                BlockOf::Message { priority, end_stream } => {
                    Frame::Headers { stream, priority, end_stream, block }
                }
                BlockOf::Promise(promised) => Frame::PushPromise { stream, promised, block },
            }
        }))
    }
}

/// A frame of `length` octets whose flags or type announce more.
fn too_short(kind: &'static str, length: usize) -> FrameError {
    FrameError::Length { kind, length, expected: "its flags announce more octets" }
}

/// Takes padding and its length from the payload of a frame, if its flags say that there is some.
fn strip_padding(
    kind: &'static str,
    header: &Header,
    payload: &mut BytesMut,
) -> Result<(), FrameError> {
    if !header.has(flag::PADDED) {
        return Ok(());
    }
    let length = payload.len();
    let &padding = payload.first().ok_or(too_short(kind, length))?;
    let end = length
        .checked_sub(usize::from(padding))
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.2
        //# If the length of the padding is the length of the frame payload or greater,
        //# the recipient MUST treat this as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
        //# If the length of the padding is the length of the frame payload or greater,
        //# the recipient MUST treat this as a connection error (Section 5.4.1) of type
        //# PROTOCOL_ERROR.
        .filter(|&end| end > 0)
        .ok_or(FrameError::Padding { kind, padding, length })?;
    payload.truncate(end);
    payload.advance(1);
    Ok(())
}

fn settings(header: &Header, payload: &[u8]) -> Result<Frame, FrameError> {
    if !header.has(flag::ACK) {
        return Ok(Frame::Settings(Settings::decode(payload)?));
    }
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
    //# Receipt of a SETTINGS frame with the ACK flag set and a length field value other than 0
    //# MUST be treated as a connection error (Section 5.4.1) of type FRAME_SIZE_ERROR.
    if payload.is_empty() {
        return Ok(Frame::SettingsAck);
    }
    let length = payload.len();
    Err(FrameError::Length { kind: "SETTINGS", length, expected: "an acknowledgement has 0" })
}

fn priority(header: &Header, payload: &[u8]) -> Result<Frame, FrameError> {
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.3
    //# A PRIORITY frame with a length other than 5 octets MUST be treated as a stream error
    //# (Section 5.4.2) of type FRAME_SIZE_ERROR.
    let &octets = <&[u8; StreamPriority::LEN]>::try_from(payload).map_err(|_| {
        FrameError::Length { kind: "PRIORITY", length: payload.len(), expected: "5 are valid" }
    })?;
    Ok(Frame::Priority { stream: header.stream, priority: StreamPriority::decode(octets) })
}

/// <https://www.rfc-editor.org/rfc/rfc9218#section-7.1>
fn priority_update(mut payload: BytesMut) -> Result<Frame, FrameError> {
    let kind = "PRIORITY_UPDATE";
    let length = payload.len();
    let &octets = payload.first_chunk().ok_or(FrameError::Length {
        kind,
        length,
        expected: "at least 4 are valid",
    })?;
    let stream = FrameStreamId::from_wire(u32::from_be_bytes(octets));
    // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
    //# If a PRIORITY_UPDATE frame is received with a prioritized stream ID of 0x0, the recipient
    //# MUST respond with a connection error of type PROTOCOL_ERROR.
    if stream.is_zero() {
        return Err(FrameError::Stream { kind, stream, expected: "it cannot be prioritised" });
    }
    payload.advance(octets.len());
    Ok(Frame::PriorityUpdate { stream, value: payload.freeze() })
}

fn go_away(payload: &[u8]) -> Result<Frame, FrameError> {
    let Some((&[a, b, c, d, e, f, g, h], _debug_data)) = payload.split_first_chunk() else {
        let length = payload.len();
        return Err(FrameError::Length {
            kind: "GOAWAY",
            length,
            expected: "at least 8 are valid",
        });
    };
    Ok(Frame::GoAway {
        last_stream: FrameStreamId::from_wire(u32::from_be_bytes([a, b, c, d])),
        code: ErrorCode(u32::from_be_bytes([e, f, g, h])),
    })
}
