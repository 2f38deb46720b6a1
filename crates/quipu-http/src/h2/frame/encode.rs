//! Frames to octets.

use super::{ErrorCode, FrameStreamId, Header, Settings, StreamPriority, flag, kind};

/// Appends a SETTINGS frame with the settings that `settings` states.
pub fn encode_settings(settings: &Settings, out: &mut Vec<u8>) {
    let length = settings.entries().count() * Settings::ENTRY_LEN;
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
    //# The stream identifier for a SETTINGS frame MUST be zero (0x00).
    header(length, kind::SETTINGS, 0, FrameStreamId::ZERO, out);
    for (identifier, value) in settings.entries() {
        out.extend_from_slice(&identifier.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of the peer's settings.
pub fn encode_settings_ack(out: &mut Vec<u8>) {
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.5
    //# When this bit is set, the frame payload of the SETTINGS frame MUST be empty.
    header(0, kind::SETTINGS, flag::ACK, FrameStreamId::ZERO, out);
}

/// Appends a HEADERS frame with `block`, and CONTINUATION frames where it has more than `max_frame_size`
/// payload octets (at least 16,384).
pub fn encode_headers(
    stream: FrameStreamId,
    priority: Option<StreamPriority>,
    end_stream: bool,
    block: &[u8],
    max_frame_size: u32,
    out: &mut Vec<u8>,
) {
    let priority_len = priority.map_or(0, |_| StreamPriority::LEN);
    // https://www.rfc-editor.org/rfc/rfc9113#section-4.1
    //# Values greater than 2^14 (16,384) MUST NOT be sent unless the receiver has set a larger
    //# value for SETTINGS_MAX_FRAME_SIZE.
    let (first, rest) = block.split_at(block.len().min(max_frame_size as usize - priority_len));
    let mut flags = 0;
    if end_stream {
        flags |= flag::END_STREAM;
    }
    if priority.is_some() {
        flags |= flag::PRIORITY;
    }
    if rest.is_empty() {
        flags |= flag::END_HEADERS;
    }
    header(priority_len + first.len(), kind::HEADERS, flags, stream, out);
    if let Some(priority) = priority {
        priority.encode(out);
    }
    out.extend_from_slice(first);
    continuations(stream, rest, max_frame_size, out);
}

/// Appends the rest of a header block in CONTINUATION frames.
fn continuations(stream: FrameStreamId, mut rest: &[u8], max_frame_size: u32, out: &mut Vec<u8>) {
    // https://www.rfc-editor.org/rfc/rfc9113#section-4.3
    //# Field blocks MUST be transmitted as a contiguous sequence of frames, with no interleaved
    //# frames of any other type or from any other stream.
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.2
    //# A HEADERS frame without the END_HEADERS flag set MUST be followed by a CONTINUATION frame
    //# for the same stream.
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.10
    //# If the END_HEADERS flag is not set, this frame MUST be followed by another CONTINUATION
    //# frame. CONTINUATION frames MUST be associated with a stream. A CONTINUATION frame MUST be
    //# preceded by a HEADERS, PUSH_PROMISE or CONTINUATION frame without the END_HEADERS flag
    //# set.
    // https://www.rfc-editor.org/rfc/rfc9113#section-8.1
    //# Other frames (from any stream) MUST NOT occur between the HEADERS frame and any
    //# CONTINUATION frames that might follow.
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.len().min(max_frame_size as usize));
        let flags = if after.is_empty() { flag::END_HEADERS } else { 0 };
        header(part.len(), kind::CONTINUATION, flags, stream, out);
        out.extend_from_slice(part);
        rest = after;
    }
}

/// Appends a PUSH_PROMISE frame on the request `stream` with `block`, and CONTINUATION frames where it has
/// more than `max_frame_size` payload octets (at least 16,384).
pub fn encode_push_promise(
    stream: FrameStreamId,
    promised: FrameStreamId,
    block: &[u8],
    max_frame_size: u32,
    out: &mut Vec<u8>,
) {
    let number = promised.value().to_be_bytes();
    let (first, rest) = block.split_at(block.len().min(max_frame_size as usize - number.len()));
    let flags = if rest.is_empty() { flag::END_HEADERS } else { 0 };
    header(number.len() + first.len(), kind::PUSH_PROMISE, flags, stream, out);
    out.extend_from_slice(&number);
    out.extend_from_slice(first);
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.6
    //# A PUSH_PROMISE frame without the END_HEADERS flag set MUST be followed by a CONTINUATION
    //# frame for the same stream.
    continuations(stream, rest, max_frame_size, out);
}

/// Appends a PRIORITY frame for the node `stream`, which must not be zero.
pub fn encode_priority(stream: FrameStreamId, priority: StreamPriority, out: &mut Vec<u8>) {
    header(StreamPriority::LEN, kind::PRIORITY, 0, stream, out);
    priority.encode(out);
}

/// Appends a PRIORITY_UPDATE frame for the request `stream`, which must not be zero, with the value of a
/// `priority` field.
pub fn encode_priority_update(stream: FrameStreamId, value: &str, out: &mut Vec<u8>) {
    // https://www.rfc-editor.org/rfc/rfc9218#section-7.1
    //# The Stream Identifier field (see Section 5.1.1 of [HTTP/2]) in the PRIORITY_UPDATE frame
    //# header MUST be zero (0x0).
    header(4 + value.len(), kind::PRIORITY_UPDATE, 0, FrameStreamId::ZERO, out);
    out.extend_from_slice(&stream.value().to_be_bytes());
    out.extend_from_slice(value.as_bytes());
}

/// Appends a GOAWAY frame without debug data.
pub fn encode_go_away(last_stream: FrameStreamId, code: ErrorCode, out: &mut Vec<u8>) {
    header(8, kind::GO_AWAY, 0, FrameStreamId::ZERO, out);
    out.extend_from_slice(&last_stream.value().to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends the header of a DATA frame; `length` octets of a body are to follow.
pub fn encode_data_header(
    stream: FrameStreamId,
    length: usize,
    end_stream: bool,
    out: &mut Vec<u8>,
) {
    let flags = if end_stream { flag::END_STREAM } else { 0 };
    header(length, kind::DATA, flags, stream, out);
}

/// Appends a RST_STREAM frame for `stream`, which must not be zero.
pub fn encode_reset(stream: FrameStreamId, code: ErrorCode, out: &mut Vec<u8>) {
    header(4, kind::RST_STREAM, 0, stream, out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends a WINDOW_UPDATE frame: `increment` octets more, 1 to 2^31 - 1, on a stream or, for zero, the
/// connection.
pub fn encode_window_update(stream: FrameStreamId, increment: u32, out: &mut Vec<u8>) {
    header(4, kind::WINDOW_UPDATE, 0, stream, out);
    out.extend_from_slice(&increment.to_be_bytes());
}

/// Appends the answer to a PING frame with `octets`.
pub fn encode_ping_ack(octets: [u8; 8], out: &mut Vec<u8>) {
    // https://www.rfc-editor.org/rfc/rfc9113#section-6.7
    //# In addition to the frame header, PING frames MUST contain 8 octets of opaque data in the
    //# frame payload. An endpoint MUST set this flag in PING responses.
    header(octets.len(), kind::PING, flag::ACK, FrameStreamId::ZERO, out);
    out.extend_from_slice(&octets);
}

fn header(length: usize, kind: u8, flags: u8, stream: FrameStreamId, out: &mut Vec<u8>) {
    Header { length, kind, flags, stream }.encode(out);
}
