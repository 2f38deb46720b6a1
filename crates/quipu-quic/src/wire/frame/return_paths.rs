//! Our private extension: the data sender names the path on which acknowledgements return.
//!
//! The one place where it is written down:
//!
//! - Transport parameter 0x20717501 (`ack_return_paths`), empty. An endpoint that sends it accepts
//!   the frame below. Both code points are from the range that RFC 9000 leaves to provisional use,
//!   <https://www.rfc-editor.org/rfc/rfc9000#section-22.1>.
//! - Frame 0x20717501 (ACK_RETURN_PATHS), in 1-RTT packets only, ack-eliciting, sent again if
//!   lost:
//!
//!   ```text
//!   ACK_RETURN_PATHS Frame {
//!     Type (i) = 0x20717501,
//!     Sequence (i),
//!     Pair Count (i),
//!     Pair (..) ...,
//!   }
//!   Pair { Data Path Identifier (i), Return Path Identifier (i) }
//!   ```
//!
//!   The receiver sends its PATH_ACK frames for the data path on the return path. A frame whose
//!   Sequence is not above one already seen is ignored, as are pairs with a path that is not in
//!   use; a data path that no pair names keeps its route. A path ID above 2^32 - 1 is a
//!   FRAME_ENCODING_ERROR. An endpoint that did not send the parameter takes the frame for a
//!   PROTOCOL_VIOLATION.
//! - The extension is in use if both ends sent the parameter and multipath is negotiated: only then
//!   is the frame sent, and acknowledgements are copied for probing.
//! - Probing: a receiver may send one PATH_ACK on several paths. The data sender takes from the
//!   times at which the copies come how the return paths' delays differ. The frame needs no mark
//!   for that.
//!
//! The idea is that of MobileH2's CHANGE_RETURN_PATH; the encoding is our choice.

use quipu_base::PathId;

use super::FrameType;
use crate::wire::{EndedEarly, NoSpace, Reader, Writer, varint};

/// The pairs of an ACK_RETURN_PATHS frame, decoded while they are walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnPaths<'a> {
    /// Number of this statement: an older one is ignored.
    pub sequence: u64,
    count: u64,
    pairs: &'a [u8],
}

/// Why a frame is refused.
pub(super) enum ReturnPathsFault {
    /// The bytes ended.
    EndedEarly,
    /// The path ID has more than 32 bits.
    PathId(u64),
}

impl From<EndedEarly> for ReturnPathsFault {
    fn from(_: EndedEarly) -> Self {
        ReturnPathsFault::EndedEarly
    }
}

impl<'a> ReturnPaths<'a> {
    /// The pairs of data path and return path, each at least two bytes of the frame.
    pub fn pairs(&self) -> impl Iterator<Item = (PathId, PathId)> + 'a {
        let mut reader = Reader::new(self.pairs);
        std::iter::from_fn(move || Some((path(&mut reader).ok()?, path(&mut reader).ok()?)))
    }

    /// Reads what follows the type.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Self, ReturnPathsFault> {
        let sequence = reader.varint()?;
        let count = reader.varint()?;
        let from_here = reader.rest();
        for _ in 0..count {
            path(reader)?;
            path(reader)?;
        }
        let taken = from_here.len() - reader.remaining();
        Ok(ReturnPaths { sequence, count, pairs: from_here.get(..taken).unwrap_or_default() })
    }

    pub(super) fn size(&self) -> usize {
        FIXED + varint::size(self.sequence) + varint::size(self.count) + self.pairs.len()
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.ensure(self.size())?;
        writer.put_varint(FrameType::ACK_RETURN_PATHS.0)?;
        writer.put_varint(self.sequence)?;
        writer.put_varint(self.count)?;
        writer.put_bytes(self.pairs)
    }
}

/// Bytes of the type.
const FIXED: usize = varint::size(FrameType::ACK_RETURN_PATHS.0);

fn path(reader: &mut Reader<'_>) -> Result<PathId, ReturnPathsFault> {
    let value = reader.varint()?;
    Ok(PathId(u32::try_from(value).map_err(|_| ReturnPathsFault::PathId(value))?))
}

/// Writes an ACK_RETURN_PATHS frame of these pairs of data path and return path.
///
/// # Errors
/// [`NoSpace`] if the frame does not fit.
pub fn write_return_paths(
    writer: &mut Writer<'_>,
    sequence: u64,
    pairs: &[(PathId, PathId)],
) -> Result<(), NoSpace> {
    let size_of = |path: PathId| varint::size(u64::from(path.0));
    let size: usize = pairs.iter().map(|(data, back)| size_of(*data) + size_of(*back)).sum();
    let count = pairs.len() as u64;
    writer.ensure(FIXED + varint::size(sequence) + varint::size(count) + size)?;
    writer.put_varint(FrameType::ACK_RETURN_PATHS.0)?;
    writer.put_varint(sequence)?;
    writer.put_varint(count)?;
    for (data, back) in pairs {
        writer.put_varint(u64::from(data.0))?;
        writer.put_varint(u64::from(back.0))?;
    }
    Ok(())
}
