//! Frames as objects.

use quipu_base::{Duration, PathId, StreamDirection};
use quipu_quic::error::ErrorCode;
use quipu_quic::wire::frame::{Ack, FrameType, NewConnectionId, ReturnPaths, Stream};
use quipu_quic::wire::{Frame, FrameError, Frames};

use crate::Form;
use crate::json::Json;

/// What a frame's fields need to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Context {
    pub(crate) form: Form,
    /// The path whose file this is, in the form of version 0.3.
    pub(crate) path: PathId,
    /// By which the delays of acknowledgements are shifted.
    pub(crate) ack_delay_exponent: u8,
}

/// Writes the frames of a packet as its list `frames`.
pub(crate) fn write_all(json: &mut Json, frames: Frames<'_>, context: Context) {
    begin_list!(json, "frames");
    for frame in frames {
        match frame {
            Ok(frame) => {
                json.begin_item();
                write(json, &frame, context);
                json.end();
            }
            Err(error) => {
                write_fault(json, &error, context.form);
                break;
            }
        }
    }
    json.end_list();
}

/// A frame that could not be read; nothing after it can be.
fn write_fault(json: &mut Json, error: &FrameError, form: Form) {
    json.begin_item();
    write_unknown(json, error.frame_type, form);
    json.end();
}

fn write_unknown(json: &mut Json, frame_type: FrameType, form: Form) {
    word!(json, "frame_type", "unknown");
    json.number(form.pick("frame_type_bytes", "frame_type_value"), frame_type.0);
}

fn write(json: &mut Json, frame: &Frame<'_>, context: Context) {
    let form = context.form;
    match *frame {
        Frame::Padding { length } => {
            word!(json, "frame_type", "padding");
            match form {
                Form::Current => raw(json, "length", length),
                Form::Version03 => number!(json, "payload_length", length as u64),
            }
        }
        Frame::Ping => word!(json, "frame_type", "ping"),
        Frame::Ack(ref ack) => write_ack(json, ack, context),
        Frame::ResetStream { stream, error_code, final_size } => {
            word!(json, "frame_type", "reset_stream");
            number!(json, "stream_id", stream.0);
            application_error(json, error_code, form);
            number!(json, "final_size", final_size.0);
        }
        Frame::StopSending { stream, error_code } => {
            word!(json, "frame_type", "stop_sending");
            number!(json, "stream_id", stream.0);
            application_error(json, error_code, form);
        }
        Frame::Crypto { offset, data } => {
            word!(json, "frame_type", "crypto");
            number!(json, "offset", offset.0);
            data_length(json, data.len(), form);
        }
        Frame::NewToken { token } => {
            word!(json, "frame_type", "new_token");
            begin!(json, "token");
            raw(json, "length", token.len());
            json.end();
        }
        Frame::Stream(ref stream) => write_stream(json, stream, form),
        Frame::MaxData { maximum } => {
            word!(json, "frame_type", "max_data");
            number!(json, "maximum", maximum.0);
        }
        Frame::MaxStreamData { stream, maximum } => {
            word!(json, "frame_type", "max_stream_data");
            number!(json, "stream_id", stream.0);
            number!(json, "maximum", maximum.0);
        }
        Frame::MaxStreams { direction, maximum } => {
            word!(json, "frame_type", "max_streams");
            json.word("stream_type", stream_type(direction));
            number!(json, "maximum", maximum);
        }
        Frame::DataBlocked { limit } => {
            word!(json, "frame_type", "data_blocked");
            number!(json, "limit", limit.0);
        }
        Frame::StreamDataBlocked { stream, limit } => {
            word!(json, "frame_type", "stream_data_blocked");
            number!(json, "stream_id", stream.0);
            number!(json, "limit", limit.0);
        }
        Frame::StreamsBlocked { direction, limit } => {
            word!(json, "frame_type", "streams_blocked");
            json.word("stream_type", stream_type(direction));
            number!(json, "limit", limit);
        }
        Frame::NewConnectionId(ref new) => write_new_connection_id(json, new),
        Frame::RetireConnectionId { path, sequence } => {
            of_path(json, path, "retire_connection_id", "path_retire_connection_id");
            number!(json, "sequence_number", sequence);
        }
        Frame::PathChallenge { data } => {
            word!(json, "frame_type", "path_challenge");
            json.hex("data", &data);
        }
        Frame::PathResponse { data } => {
            word!(json, "frame_type", "path_response");
            json.hex("data", &data);
        }
        Frame::ConnectionClose { error_code, frame_type, reason } => {
            word!(json, "frame_type", "connection_close");
            word!(json, "error_space", "transport");
            transport_error(json, form.pick("error", "error_code"), error_code, form);
            json.text("reason", &String::from_utf8_lossy(reason));
            number!(json, "trigger_frame_type", frame_type.0);
        }
        Frame::ApplicationClose { error_code, reason } => {
            word!(json, "frame_type", "connection_close");
            word!(json, "error_space", "application");
            application_error(json, error_code, form);
            json.text("reason", &String::from_utf8_lossy(reason));
        }
        Frame::HandshakeDone => word!(json, "frame_type", "handshake_done"),
        // Neither version knows them.
        Frame::AckFrequency(_) | Frame::ImmediateAck => {
            write_unknown(json, frame.frame_type(), form);
        }
        Frame::Datagram { data, .. } => write_datagram(json, data.len(), form),
        Frame::PathAbandon { path, error_code } => {
            word!(json, "frame_type", "path_abandon");
            number!(json, "path_id", u64::from(path.0));
            number!(json, "error_code", error_code);
        }
        Frame::PathStatusBackup { path, sequence } => {
            word!(json, "frame_type", "path_status_backup");
            number!(json, "path_id", u64::from(path.0));
            number!(json, "sequence_number", sequence);
        }
        Frame::PathStatusAvailable { path, sequence } => {
            word!(json, "frame_type", "path_status_available");
            number!(json, "path_id", u64::from(path.0));
            number!(json, "sequence_number", sequence);
        }
        Frame::MaxPathId { maximum } => {
            word!(json, "frame_type", "max_path_id");
            number!(json, "maximum_path_id", u64::from(maximum.0));
        }
        Frame::PathsBlocked { maximum } => {
            word!(json, "frame_type", "paths_blocked");
            number!(json, "maximum_path_id", u64::from(maximum.0));
        }
        Frame::PathCidsBlocked { path, next_sequence } => {
            word!(json, "frame_type", "path_cids_blocked");
            number!(json, "path_id", u64::from(path.0));
            number!(json, "next_sequence_number", next_sequence);
        }
        Frame::ReturnPaths(ref advice) => write_return_paths(json, advice),
    }
}

/// A frame that may name a path, and has another name then.
fn of_path(json: &mut Json, path: Option<PathId>, without: &'static str, with: &'static str) {
    match path {
        None => json.word("frame_type", without),
        Some(path) => {
            json.word("frame_type", with);
            number!(json, "path_id", u64::from(path.0));
        }
    }
}

fn write_ack(json: &mut Json, ack: &Ack<'_>, context: Context) {
    // A tool that knows one path per file finds the acknowledgements of its packets.
    match ack.path {
        Some(path) if context.form == Form::Version03 && path == context.path => {
            word!(json, "frame_type", "ack");
        }
        path => of_path(json, path, "ack", "path_ack"),
    }
    let shift = u32::from(context.ack_delay_exponent);
    let micros = ack.delay.checked_shl(shift).filter(|micros| micros >> shift == ack.delay);
    json.millis("ack_delay", Duration::from_micros(micros.unwrap_or(u64::MAX)));
    begin_list!(json, "acked_ranges");
    for range in ack.ranges.iter() {
        json.range(range.first.0, range.last.0);
    }
    json.end_list();
    if let Some(ecn) = ack.ecn {
        number!(json, "ect1", ecn.ect1);
        number!(json, "ect0", ecn.ect0);
        number!(json, "ce", ecn.ce);
    }
}

#[inline]
fn write_stream(json: &mut Json, stream: &Stream<'_>, form: Form) {
    word!(json, "frame_type", "stream");
    number!(json, "stream_id", stream.stream.0);
    number!(json, "offset", stream.offset.0);
    if stream.fin {
        json.boolean("fin", true);
    }
    data_length(json, stream.data.len(), form);
}

fn write_datagram(json: &mut Json, length: usize, form: Form) {
    match form {
        Form::Current => {
            word!(json, "frame_type", "datagram");
            raw(json, "payload_length", length);
        }
        // Version 0.3 does not know it.
        Form::Version03 => {
            write_unknown(json, FrameType::DATAGRAM, form);
            raw(json, "payload_length", length);
        }
    }
}

fn write_new_connection_id(json: &mut Json, new: &NewConnectionId) {
    of_path(json, new.path, "new_connection_id", "path_new_connection_id");
    number!(json, "sequence_number", new.sequence);
    number!(json, "retire_prior_to", new.retire_prior_to);
    json.hex("connection_id", new.id.as_bytes());
}

fn write_return_paths(json: &mut Json, advice: &ReturnPaths<'_>) {
    word!(json, "frame_type", "ack_return_paths");
    number!(json, "sequence_number", advice.sequence);
    begin_list!(json, "pairs");
    for (data, back) in advice.pairs() {
        json.begin_item();
        number!(json, "data_path_id", u64::from(data.0));
        number!(json, "return_path_id", u64::from(back.0));
        json.end();
    }
    json.end_list();
}

/// Bytes of data that a frame carries.
#[inline(always)]
fn data_length(json: &mut Json, length: usize, form: Form) {
    match form {
        Form::Current => raw(json, "payload_length", length),
        Form::Version03 => number!(json, "length", length as u64),
    }
}

/// A `RawInfo` of one length.
#[inline(always)]
pub(crate) fn raw(json: &mut Json, which: &'static str, length: usize) {
    begin!(json, "raw");
    json.number(which, length as u64);
    json.end();
}

/// A code of the application, which has no name here.
fn application_error(json: &mut Json, code: u64, form: Form) {
    match form {
        Form::Current => {
            word!(json, "error", "unknown");
            number!(json, "error_code", code);
        }
        // Version 0.3 has 32 bits for it.
        Form::Version03 => number!(json, "error_code", code.min(u64::from(u32::MAX))),
    }
}

/// A code of the transport by its name in qlog.
pub(crate) fn transport_error(json: &mut Json, name: &'static str, code: u64, form: Form) {
    let error = ErrorCode(code);
    if error.alert().is_some() {
        json.text(name, &format!("crypto_error_0x{code:03x}"));
    } else if let Some(known) = error.name().filter(|_| code <= ErrorCode::NO_VIABLE_PATH.0) {
        json.text(name, &known.to_ascii_lowercase());
    } else {
        match form {
            Form::Current => {
                json.word(name, "unknown");
                number!(json, "error_code", code);
            }
            Form::Version03 => json.number(name, code.min(u64::from(u32::MAX))),
        }
    }
}

/// A stream's kind in qlog.
pub(crate) fn stream_type(direction: StreamDirection) -> &'static str {
    match direction {
        StreamDirection::Bidirectional => "bidirectional",
        StreamDirection::Unidirectional => "unidirectional",
    }
}

#[cfg(test)]
mod tests;
