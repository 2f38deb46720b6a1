//! Writing frames.

use quipu_base::PathId;

use super::{AckFrequency, Frame, NewConnectionId, ack, stream};
use crate::wire::{NoSpace, ResetToken, Writer, varint};

impl Frame<'_> {
    /// Bytes that [`Frame::write`] takes.
    pub fn size(&self) -> usize {
        let fields = match self {
            Frame::Padding { length } => return *length,
            Frame::Ack(ack) => return ack::size(ack),
            Frame::Stream(frame) => return stream::size(frame),
            Frame::ReturnPaths(frame) => return frame.size(),
            Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => 0,
            Frame::ResetStream { stream, error_code, final_size } => {
                sizes([stream.0, *error_code, final_size.0])
            }
            Frame::StopSending { stream, error_code } => sizes([stream.0, *error_code]),
            Frame::Crypto { offset, data } => varint::size(offset.0) + prefixed(data),
            Frame::NewToken { token } => prefixed(token),
            Frame::MaxData { maximum } => varint::size(maximum.0),
            Frame::MaxStreamData { stream, maximum } => sizes([stream.0, maximum.0]),
            Frame::MaxStreams { maximum, .. } => varint::size(*maximum),
            Frame::DataBlocked { limit } => varint::size(limit.0),
            Frame::StreamDataBlocked { stream, limit } => sizes([stream.0, limit.0]),
            Frame::StreamsBlocked { limit, .. } => varint::size(*limit),
            Frame::NewConnectionId(issued) => new_connection_id_fields(issued),
            Frame::RetireConnectionId { path, sequence } => {
                optional_path(*path) + varint::size(*sequence)
            }
            Frame::PathChallenge { data } | Frame::PathResponse { data } => data.len(),
            Frame::ConnectionClose { error_code, frame_type, reason } => {
                sizes([*error_code, frame_type.0]) + prefixed(reason)
            }
            Frame::ApplicationClose { error_code, reason } => {
                varint::size(*error_code) + prefixed(reason)
            }
            Frame::Datagram { data, has_length: true } => prefixed(data),
            Frame::Datagram { data, has_length: false } => data.len(),
            Frame::AckFrequency(request) => sizes(request.fields()),
            Frame::PathAbandon { path, error_code } => sizes([u64::from(path.0), *error_code]),
            Frame::PathStatusBackup { path, sequence }
            | Frame::PathStatusAvailable { path, sequence } => {
                sizes([u64::from(path.0), *sequence])
            }
            Frame::MaxPathId { maximum } | Frame::PathsBlocked { maximum } => {
                varint::size(u64::from(maximum.0))
            }
            Frame::PathCidsBlocked { path, next_sequence } => {
                sizes([u64::from(path.0), *next_sequence])
            }
        };
        varint::size(self.frame_type().0) + fields
    }

    /// Writes the frame whole. A STREAM frame is written with its Length field.
    ///
    /// # Errors
    /// [`NoSpace`] if the frame does not fit; nothing is written then.
    pub fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.ensure(self.size())?;
        match self {
            Frame::Padding { length } => return writer.put_zeros(*length),
            Frame::Ack(ack) => {
                ack::write_ack(writer, ack.path, ack.delay, ack.ranges, ack.ecn)?;
                return Ok(());
            }
            Frame::Stream(frame) => return stream::write(frame, writer),
            Frame::ReturnPaths(frame) => return frame.write(writer),
            // https://www.rfc-editor.org/rfc/rfc9000#section-12.4
            //# To ensure simple and efficient implementations of frame parsing, a frame type MUST
            //# use the shortest possible encoding.
            _ => writer.put_varint(self.frame_type().0)?,
        }
        self.write_fields(writer)
    }

    fn write_fields(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        match self {
            // `write` has written these whole.
            Frame::Padding { .. } | Frame::Ack(_) | Frame::Stream(_) | Frame::ReturnPaths(_) => {
                Ok(())
            }
            Frame::Ping | Frame::HandshakeDone | Frame::ImmediateAck => Ok(()),
            Frame::ResetStream { stream, error_code, final_size } => {
                put(writer, [stream.0, *error_code, final_size.0])
            }
            Frame::StopSending { stream, error_code } => put(writer, [stream.0, *error_code]),
            Frame::Crypto { offset, data } => {
                writer.put_varint(offset.0)?;
                writer.put_length_prefixed(data)
            }
            Frame::NewToken { token } => writer.put_length_prefixed(token),
            Frame::MaxData { maximum } => writer.put_varint(maximum.0),
            Frame::MaxStreamData { stream, maximum } => put(writer, [stream.0, maximum.0]),
            Frame::MaxStreams { maximum, .. } => writer.put_varint(*maximum),
            Frame::DataBlocked { limit } => writer.put_varint(limit.0),
            Frame::StreamDataBlocked { stream, limit } => put(writer, [stream.0, limit.0]),
            Frame::StreamsBlocked { limit, .. } => writer.put_varint(*limit),
            Frame::NewConnectionId(issued) => put_new_connection_id(writer, issued),
            Frame::RetireConnectionId { path, sequence } => {
                put_optional_path(writer, *path)?;
                writer.put_varint(*sequence)
            }
            Frame::PathChallenge { data } | Frame::PathResponse { data } => writer.put_array(*data),
            Frame::ConnectionClose { error_code, frame_type, reason } => {
                put(writer, [*error_code, frame_type.0])?;
                writer.put_length_prefixed(reason)
            }
            Frame::ApplicationClose { error_code, reason } => {
                writer.put_varint(*error_code)?;
                writer.put_length_prefixed(reason)
            }
            Frame::Datagram { data, has_length: true } => writer.put_length_prefixed(data),
            Frame::Datagram { data, has_length: false } => writer.put_bytes(data),
            Frame::AckFrequency(request) => put(writer, request.fields()),
            Frame::PathAbandon { path, error_code } => {
                put(writer, [u64::from(path.0), *error_code])
            }
            Frame::PathStatusBackup { path, sequence }
            | Frame::PathStatusAvailable { path, sequence } => {
                put(writer, [u64::from(path.0), *sequence])
            }
            Frame::MaxPathId { maximum } | Frame::PathsBlocked { maximum } => {
                writer.put_varint(u64::from(maximum.0))
            }
            Frame::PathCidsBlocked { path, next_sequence } => {
                put(writer, [u64::from(path.0), *next_sequence])
            }
        }
    }

    /// Writes a CONNECTION_CLOSE frame of either kind, its reason cut to what fits; every other
    /// frame as [`Frame::write`] does.
    ///
    /// # Errors
    /// [`NoSpace`] if the frame does not fit without a reason.
    pub fn write_shortened(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        let excess = self.size().saturating_sub(writer.remaining());
        let cut = |reason: &mut &[u8]| {
            *reason = reason.get(..reason.len().saturating_sub(excess)).unwrap_or_default();
        };
        let mut frame = *self;
        match &mut frame {
            Frame::ConnectionClose { reason, .. } | Frame::ApplicationClose { reason, .. } => {
                cut(reason);
            }
            _ => {}
        }
        frame.write(writer)
    }
}

impl AckFrequency {
    fn fields(&self) -> [u64; 4] {
        [self.sequence, self.threshold, self.max_delay, self.reordering]
    }
}

fn sizes<const N: usize>(values: [u64; N]) -> usize {
    values.into_iter().map(varint::size).sum()
}

fn put<const N: usize>(writer: &mut Writer<'_>, values: [u64; N]) -> Result<(), NoSpace> {
    values.into_iter().try_for_each(|value| writer.put_varint(value))
}

fn prefixed(bytes: &[u8]) -> usize {
    varint::size(bytes.len() as u64) + bytes.len()
}

fn optional_path(path: Option<PathId>) -> usize {
    path.map_or(0, |path| varint::size(u64::from(path.0)))
}

fn put_optional_path(writer: &mut Writer<'_>, path: Option<PathId>) -> Result<(), NoSpace> {
    path.map_or(Ok(()), |path| writer.put_varint(u64::from(path.0)))
}

fn new_connection_id_fields(issued: &NewConnectionId) -> usize {
    optional_path(issued.path)
        + sizes([issued.sequence, issued.retire_prior_to])
        + 1
        + issued.id.length()
        + ResetToken::LENGTH
}

fn put_new_connection_id(writer: &mut Writer<'_>, issued: &NewConnectionId) -> Result<(), NoSpace> {
    put_optional_path(writer, issued.path)?;
    put(writer, [issued.sequence, issued.retire_prior_to])?;
    // At most 20, so it is its own varint.
    writer.put_length_prefixed(issued.id.as_bytes())?;
    writer.put_array(*issued.reset_token.as_bytes())
}
