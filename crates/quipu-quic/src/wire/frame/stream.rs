//! STREAM and CRYPTO frames, fitted to the space that a packet has left.
//!
//! The sender first asks for a layout, which says how many bytes of data the frame takes; then it
//! writes the layout's header and copies that many bytes after it, from wherever they lie.

use quipu_base::{Offset, StreamId};

use super::{FrameType, Stream};
use crate::wire::{NoSpace, Writer, varint};

/// The type of a STREAM frame with these fields.
pub(super) const fn frame_type(offset: Offset, fin: bool, has_length: bool) -> FrameType {
    let mut value = FrameType::STREAM.0;
    if offset.0 != 0 {
        value |= FrameType::STREAM_OFFSET;
    }
    if has_length {
        value |= FrameType::STREAM_LENGTH;
    }
    if fin {
        value |= FrameType::STREAM_FIN;
    }
    FrameType(value)
}

/// How a STREAM frame uses the space in a packet.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.8>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLayout {
    stream: StreamId,
    offset: Offset,
    data_length: usize,
    fills_packet: bool,
}

impl StreamLayout {
    /// The layout of a frame with as much as fits of the `available` bytes at `offset` of
    /// `stream`, in `space` bytes; `None` if not one byte fits, or, if there are none, not the
    /// header.
    ///
    /// The Length field is left out where the data reach the packet's end, or would with that
    /// field: see [`StreamLayout::fills_packet`].
    #[inline]
    pub fn new(
        stream: StreamId,
        offset: Offset,
        available: usize,
        space: usize,
    ) -> Option<StreamLayout> {
        let bare = Self::bare_header(stream, offset);
        let room = space.checked_sub(bare)?;
        let with_length = varint::size(available as u64) + available;
        if with_length <= room {
            return Some(Self { stream, offset, data_length: available, fills_packet: false });
        }
        let data_length = available.min(room);
        if data_length == 0 {
            return None;
        }
        Some(Self { stream, offset, data_length, fills_packet: true })
    }

    /// Bytes of data that the frame takes.
    pub const fn data_length(&self) -> usize {
        self.data_length
    }

    /// True if the frame has no Length field and so reaches to the end of the packet: nothing,
    /// not even padding, may follow it.
    pub const fn fills_packet(&self) -> bool {
        self.fills_packet
    }

    /// Bytes of the whole frame.
    pub const fn size(&self) -> usize {
        let length_field =
            if self.fills_packet { 0 } else { varint::size(self.data_length as u64) };
        Self::bare_header(self.stream, self.offset) + length_field + self.data_length
    }

    /// Writes everything before the data, after which [`StreamLayout::data_length`] bytes of data
    /// have to follow. `fin`: the stream ends behind them.
    ///
    /// # Errors
    /// [`NoSpace`] if header and data do not fit.
    #[inline]
    pub fn write_header(&self, writer: &mut Writer<'_>, fin: bool) -> Result<(), NoSpace> {
        writer.ensure(self.size())?;
        writer.put_varint(frame_type(self.offset, fin, !self.fills_packet).0)?;
        writer.put_varint(self.stream.0)?;
        if self.offset.0 != 0 {
            writer.put_varint(self.offset.0)?;
        }
        if !self.fills_packet {
            writer.put_varint(self.data_length as u64)?;
        }
        Ok(())
    }

    /// Bytes of the header without Length field.
    const fn bare_header(stream: StreamId, offset: Offset) -> usize {
        let offset = if offset.0 == 0 { 0 } else { varint::size(offset.0) };
        1 + varint::size(stream.0) + offset
    }
}

/// Bytes of a STREAM frame with Length field.
pub(super) const fn size(frame: &Stream<'_>) -> usize {
    let length = frame.data.len();
    StreamLayout::bare_header(frame.stream, frame.offset) + varint::size(length as u64) + length
}

/// Writes a STREAM frame with Length field.
pub(super) fn write(frame: &Stream<'_>, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
    let layout = StreamLayout {
        stream: frame.stream,
        offset: frame.offset,
        data_length: frame.data.len(),
        fills_packet: false,
    };
    layout.write_header(writer, frame.fin)?;
    writer.put_bytes(frame.data)
}

/// How a CRYPTO frame uses the space in a packet. It always has a Length field.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.6>
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CryptoLayout {
    offset: Offset,
    data_length: usize,
}

impl CryptoLayout {
    /// The layout of a frame with as much as fits of the `available` bytes at `offset`, in `space`
    /// bytes; `None` if not one byte fits or there are none.
    pub fn new(offset: Offset, available: usize, space: usize) -> Option<CryptoLayout> {
        let room = space.checked_sub(1 + varint::size(offset.0))?;
        // A longer Length field leaves less room but states more.
        let data_length = [(1, 63), (2, (1 << 14) - 1), (4, (1 << 30) - 1)]
            .into_iter()
            .filter_map(|(field, most)| Some(room.checked_sub(field)?.min(most).min(available)))
            .max()
            .filter(|length| *length > 0)?;
        Some(CryptoLayout { offset, data_length })
    }

    /// Bytes of data that the frame takes, at least 1.
    pub const fn data_length(&self) -> usize {
        self.data_length
    }

    /// Bytes of the whole frame.
    pub const fn size(&self) -> usize {
        1 + varint::size(self.offset.0) + varint::size(self.data_length as u64) + self.data_length
    }

    /// Writes everything before the data, after which [`CryptoLayout::data_length`] bytes of data
    /// have to follow.
    ///
    /// # Errors
    /// [`NoSpace`] if header and data do not fit.
    pub fn write_header(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.ensure(self.size())?;
        writer.put_varint(FrameType::CRYPTO.0)?;
        writer.put_varint(self.offset.0)?;
        writer.put_varint(self.data_length as u64)
    }
}
