//! Cursors: received bytes are read and packets written through these two, never by index.

use thiserror::Error;

use super::varint;

/// The bytes ended before the value that was to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("ended early")]
pub struct EndedEarly;

/// What was to be written does not fit into the space that is left; nothing of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no space left in the packet")]
pub struct NoSpace;

/// Reads received bytes from front to back.
///
/// A read that fails takes nothing.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// Number of bytes not yet read.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// True if every byte was read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes not yet read; they stay unread.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Takes all bytes that are left.
    pub const fn take_rest(&mut self) -> &'a [u8] {
        let rest = self.rest;
        self.rest = &[];
        rest
    }

    /// Takes one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, EndedEarly> {
        let (&first, rest) = self.rest.split_first().ok_or(EndedEarly)?;
        self.rest = rest;
        Ok(first)
    }

    /// Takes two bytes as an integer in network byte order.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, EndedEarly> {
        self.array().map(u16::from_be_bytes)
    }

    /// Takes four bytes as an integer in network byte order.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, EndedEarly> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], EndedEarly> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(EndedEarly)?;
        self.rest = rest;
        Ok(*head)
    }

    /// Takes `length` bytes without copying them.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], EndedEarly> {
        let (head, rest) = self.rest.split_at_checked(length).ok_or(EndedEarly)?;
        self.rest = rest;
        Ok(head)
    }

    /// Takes a variable-length integer, below 2^62.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-16>
    #[inline]
    pub fn varint(&mut self) -> Result<u64, EndedEarly> {
        let (&first, rest) = self.rest.split_first().ok_or(EndedEarly)?;
        if first < 0x40 {
            self.rest = rest;
            return Ok(u64::from(first));
        }
        self.long_varint(first)
    }

    #[inline]
    fn long_varint(&mut self, first: u8) -> Result<u64, EndedEarly> {
        Ok(match first >> 6 {
            1 => u64::from(self.u16()? & 0x3fff),
            2 => u64::from(self.u32()? & 0x3fff_ffff),
            _ => u64::from_be_bytes(self.array()?) & varint::MAX,
        })
    }

    /// Takes a variable-length integer and that many bytes after it.
    #[inline]
    pub fn length_prefixed(&mut self) -> Result<&'a [u8], EndedEarly> {
        let mut ahead = *self;
        let length = usize::try_from(ahead.varint()?).map_err(|_| EndedEarly)?;
        let bytes = ahead.bytes(length)?;
        *self = ahead;
        Ok(bytes)
    }
}

/// Writes into a packet's buffer from front to back.
///
/// A write that fails with [`NoSpace`] has written nothing.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut [u8],
    position: usize,
}

impl<'a> Writer<'a> {
    /// A writer at the start of `buffer`.
    pub const fn new(buffer: &'a mut [u8]) -> Self {
        Writer { buffer, position: 0 }
    }

    /// Number of bytes written.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Number of bytes that still fit.
    pub const fn remaining(&self) -> usize {
        self.buffer.len() - self.position
    }

    /// The bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.buffer.get(..self.position).unwrap_or_default()
    }

    /// The bytes written so far, open for change.
    pub fn written_mut(&mut self) -> &mut [u8] {
        self.buffer.get_mut(..self.position).unwrap_or_default()
    }

    /// Takes the next `length` bytes of the buffer, to be filled by the caller; they count as
    /// written and hold what the buffer held before.
    #[inline]
    pub fn reserve(&mut self, length: usize) -> Result<&mut [u8], NoSpace> {
        let end = self.position.checked_add(length).ok_or(NoSpace)?;
        let reserved = self.buffer.get_mut(self.position..end).ok_or(NoSpace)?;
        self.position = end;
        Ok(reserved)
    }

    /// Fails if fewer than `length` bytes fit.
    #[inline]
    pub const fn ensure(&self, length: usize) -> Result<(), NoSpace> {
        if length <= self.remaining() { Ok(()) } else { Err(NoSpace) }
    }

    /// Moves back to `position`, dropping what was written after it. A position ahead of the
    /// writer's changes nothing.
    pub fn rewind(&mut self, position: usize) {
        self.position = self.position.min(position);
    }

    /// Writes one byte.
    #[inline]
    pub fn put_u8(&mut self, value: u8) -> Result<(), NoSpace> {
        self.put_array([value])
    }

    /// Writes two bytes in network byte order.
    #[inline]
    pub fn put_u16(&mut self, value: u16) -> Result<(), NoSpace> {
        self.put_array(value.to_be_bytes())
    }

    /// Writes four bytes in network byte order.
    #[inline]
    pub fn put_u32(&mut self, value: u32) -> Result<(), NoSpace> {
        self.put_array(value.to_be_bytes())
    }

    /// Writes `N` bytes.
    #[inline]
    pub fn put_array<const N: usize>(&mut self, value: [u8; N]) -> Result<(), NoSpace> {
        let tail = self.buffer.get_mut(self.position..).ok_or(NoSpace)?;
        *tail.first_chunk_mut::<N>().ok_or(NoSpace)? = value;
        self.position += N;
        Ok(())
    }

    /// Writes `bytes`.
    #[inline]
    pub fn put_bytes(&mut self, bytes: &[u8]) -> Result<(), NoSpace> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes `length` zero bytes.
    pub fn put_zeros(&mut self, length: usize) -> Result<(), NoSpace> {
        self.reserve(length)?.fill(0);
        Ok(())
    }

    /// Writes a variable-length integer in its shortest form. Values from 2^62 on cannot be
    /// stated: they are a fault of the caller and are written as 2^62 - 1.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-16>
    #[inline]
    pub fn put_varint(&mut self, value: u64) -> Result<(), NoSpace> {
        debug_assert!(value <= varint::MAX, "{value} does not fit into a varint");
        if value < 1 << 6 {
            self.put_array([value as u8])
        } else if value < 1 << 14 {
            self.put_array((value as u16 | 0x4000).to_be_bytes())
        } else if value < 1 << 30 {
            self.put_array((value as u32 | 0x8000_0000).to_be_bytes())
        } else {
            self.put_array((value.min(varint::MAX) | 0xc000_0000_0000_0000).to_be_bytes())
        }
    }

    /// Writes the length of `bytes` as a variable-length integer, then `bytes`.
    #[inline]
    pub fn put_length_prefixed(&mut self, bytes: &[u8]) -> Result<(), NoSpace> {
        let length = bytes.len() as u64;
        self.ensure(varint::size(length) + bytes.len())?;
        self.put_varint(length)?;
        self.put_bytes(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_past_the_end_fails_and_takes_nothing() {
        let mut reader = Reader::new(&[0x40]);
        assert_eq!(reader.varint(), Err(EndedEarly));
        assert_eq!(reader.u16(), Err(EndedEarly));
        assert_eq!(reader.bytes(2), Err(EndedEarly));
        assert_eq!(reader.remaining(), 1);

        let mut reader = Reader::new(&[3, 1, 2]);
        assert_eq!(reader.length_prefixed(), Err(EndedEarly));
        assert_eq!(reader.rest(), &[3, 1, 2]);
    }

    #[test]
    fn a_write_that_does_not_fit_fails_and_writes_nothing() {
        let mut buffer = [0u8; 3];
        let mut writer = Writer::new(&mut buffer);
        writer.put_u8(7).unwrap();
        assert_eq!(writer.put_u32(1), Err(NoSpace));
        assert_eq!(writer.put_length_prefixed(&[1, 2]), Err(NoSpace));
        assert_eq!(writer.put_varint(1 << 20), Err(NoSpace));
        assert_eq!(writer.written(), &[7]);
        writer.put_u16(0x0102).unwrap();
        assert_eq!(writer.remaining(), 0);
        assert_eq!(writer.written(), &[7, 1, 2]);
    }

    #[test]
    fn rewinding_drops_what_was_written_after_the_position() {
        let mut buffer = [0u8; 8];
        let mut writer = Writer::new(&mut buffer);
        writer.put_u32(1).unwrap();
        writer.rewind(2);
        writer.rewind(6);
        assert_eq!(writer.position(), 2);
    }
}
