//! ACK and PATH_ACK: ranges of packet numbers, decoded while they are walked.
//! <https://www.rfc-editor.org/rfc/rfc9000#section-19.3>

use quipu_base::{PacketNumber, PathId};

use super::FrameType;
use crate::wire::{EndedEarly, NoSpace, Reader, Writer, varint};

/// Packet numbers without a gap, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AckRange {
    /// The smallest.
    pub first: PacketNumber,
    /// The largest, not below `first`.
    pub last: PacketNumber,
}

impl AckRange {
    /// The packet numbers from `first` to `last`, both included.
    pub const fn new(first: PacketNumber, last: PacketNumber) -> Self {
        AckRange { first, last }
    }

    /// True if `number` is one of them.
    pub const fn contains(&self, number: PacketNumber) -> bool {
        self.first.0 <= number.0 && number.0 <= self.last.0
    }

    /// How many packet numbers less one, as frames carry it.
    const fn length_field(&self) -> u64 {
        self.last.0.saturating_sub(self.first.0)
    }
}

/// Packets received with each ECN mark in a packet number space, from its start.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-19.3.2>
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets with ECT(0).
    pub ect0: u64,
    /// Packets with ECT(1).
    pub ect1: u64,
    /// Packets with ECN-CE.
    pub ce: u64,
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// The path whose packets it acknowledges; `None` for an ACK frame of RFC 9000, which means
    /// path 0.
    pub path: Option<PathId>,
    /// Time that the receiver held the largest packet, in microseconds shifted right by the
    /// sender's `ack_delay_exponent`.
    pub delay: u64,
    /// What was received.
    pub ranges: AckRanges<'a>,
    /// The ECN counts, if the frame has them.
    pub ecn: Option<EcnCounts>,
}

impl Ack<'_> {
    /// The largest packet number acknowledged.
    pub const fn largest(&self) -> PacketNumber {
        self.ranges.largest
    }

    /// One of four.
    pub const fn frame_type(&self) -> FrameType {
        frame_type(self.path.is_some(), self.ecn.is_some())
    }
}

const fn frame_type(names_path: bool, ecn: bool) -> FrameType {
    match (names_path, ecn) {
        (false, false) => FrameType::ACK,
        (false, true) => FrameType::ACK_ECN,
        (true, false) => FrameType::PATH_ACK,
        (true, true) => FrameType::PATH_ACK_ECN,
    }
}

/// The ranges of a received acknowledgement, in descending order, at least one.
///
/// They were checked when the frame was read: no packet number is below zero, and there are as
/// many ranges as the frame says. Each takes at least two of its bytes, but for the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckRanges<'a> {
    largest: PacketNumber,
    first_length: u64,
    additional: &'a [u8],
}

impl<'a> AckRanges<'a> {
    /// The ranges, from the largest packet numbers to the smallest, with at least one number
    /// missing between two of them.
    pub fn iter(&self) -> AckRangeIter<'a> {
        AckRangeIter {
            next: Some(AckRange {
                first: PacketNumber(self.largest.0.saturating_sub(self.first_length)),
                last: self.largest,
            }),
            additional: Reader::new(self.additional),
        }
    }
}

impl<'a> IntoIterator for AckRanges<'a> {
    type Item = AckRange;
    type IntoIter = AckRangeIter<'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Walks the ranges of an acknowledgement.
#[derive(Clone, Debug)]
pub struct AckRangeIter<'a> {
    next: Option<AckRange>,
    additional: Reader<'a>,
}

impl Iterator for AckRangeIter<'_> {
    type Item = AckRange;

    #[inline]
    fn next(&mut self) -> Option<AckRange> {
        let range = self.next?;
        self.next = next_range(&mut self.additional, range.first).ok().flatten();
        Some(range)
    }
}

/// Takes the range below the one that starts at `previous_first`; `None` if it would lie below
/// zero.
#[inline]
fn next_range(
    reader: &mut Reader<'_>,
    previous_first: PacketNumber,
) -> Result<Option<AckRange>, EndedEarly> {
    let gap = reader.varint()?;
    let length = reader.varint()?;
    let last = previous_first.0.checked_sub(gap + 2);
    Ok(last.and_then(|last| {
        let first = last.checked_sub(length)?;
        Some(AckRange { first: PacketNumber(first), last: PacketNumber(last) })
    }))
}

/// Why an acknowledgement is refused.
pub(super) enum AckFault {
    /// The bytes ended.
    EndedEarly,
    /// A range lies below packet number zero.
    NegativePacketNumber,
    /// The path ID has more than 32 bits.
    PathId(u64),
}

impl From<EndedEarly> for AckFault {
    fn from(_: EndedEarly) -> Self {
        AckFault::EndedEarly
    }
}

/// Reads what follows the type.
#[inline]
pub(super) fn read<'a>(
    reader: &mut Reader<'a>,
    names_path: bool,
    ecn: bool,
) -> Result<Ack<'a>, AckFault> {
    let path = if names_path {
        let path = reader.varint()?;
        Some(PathId(u32::try_from(path).map_err(|_| AckFault::PathId(path))?))
    } else {
        None
    };
    let largest = PacketNumber(reader.varint()?);
    let delay = reader.varint()?;
    let additional_count = reader.varint()?;
    let first_length = reader.varint()?;
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.3.1
    //# If any computed packet number is negative, an endpoint MUST generate a connection error of
    //# type FRAME_ENCODING_ERROR.
    let mut first = largest.0.checked_sub(first_length).ok_or(AckFault::NegativePacketNumber)?;
    let from_here = reader.rest();
    for _ in 0..additional_count {
        let range = next_range(reader, PacketNumber(first))?;
        first = range.ok_or(AckFault::NegativePacketNumber)?.first.0;
    }
    let taken = from_here.len() - reader.remaining();
    let additional = from_here.get(..taken).unwrap_or_default();
    // https://www.rfc-editor.org/rfc/rfc9000#section-19.3
    //# QUIC implementations MUST properly handle both types, and, if they have enabled ECN for
    //# packets they send, they SHOULD use the information in the ECN section to manage their
    //# congestion state.
    let ecn = if ecn {
        Some(EcnCounts { ect0: reader.varint()?, ect1: reader.varint()?, ce: reader.varint()? })
    } else {
        None
    };
    Ok(Ack { path, delay, ranges: AckRanges { largest, first_length, additional }, ecn })
}

/// Bytes that an acknowledgement with one range takes.
fn size_of_first(
    path: Option<PathId>,
    delay: u64,
    first: AckRange,
    ecn: Option<EcnCounts>,
) -> usize {
    let path = path.map_or(0, |path| varint::size(u64::from(path.0)));
    let ecn =
        ecn.map_or(0, |ecn| varint::size(ecn.ect0) + varint::size(ecn.ect1) + varint::size(ecn.ce));
    // Type and count take a byte each while the count is below 64.
    1 + path
        + varint::size(first.last.0)
        + varint::size(delay)
        + 1
        + varint::size(first.length_field())
        + ecn
}

/// The two fields that state `range` below a range that starts at `previous_first`.
fn additional_fields(previous_first: PacketNumber, range: AckRange) -> (u64, u64) {
    (previous_first.0.saturating_sub(range.last.0.saturating_add(2)), range.length_field())
}

/// Writes an acknowledgement of as many of `ranges` as fit, and returns how many these are, at
/// least 1.
///
/// `path`: `None` writes an ACK frame, for the packets of path 0 without multipath and of the
/// Initial and Handshake spaces. `delay`: microseconds shifted right by our `ack_delay_exponent`.
/// `ranges`: in descending order, with at least one number missing between two of them; the
/// iterator is walked twice. Nothing is written if there is no range.
///
/// # Errors
/// [`NoSpace`] if not even the first range fits.
pub fn write_ack<I>(
    writer: &mut Writer<'_>,
    path: Option<PathId>,
    delay: u64,
    ranges: I,
    ecn: Option<EcnCounts>,
) -> Result<usize, NoSpace>
where
    I: IntoIterator<Item = AckRange>,
    I::IntoIter: Clone,
{
    let mut ranges = ranges.into_iter();
    let Some(first) = ranges.next() else { return Ok(0) };
    let mut size = size_of_first(path, delay, first, ecn);
    writer.ensure(size)?;

    let mut additional_count = 0u64;
    let mut previous_first = first.first;
    for range in ranges.clone() {
        let (gap, length) = additional_fields(previous_first, range);
        let count_growth = varint::size(additional_count + 1) - varint::size(additional_count);
        size += varint::size(gap) + varint::size(length) + count_growth;
        if writer.ensure(size).is_err() {
            break;
        }
        additional_count += 1;
        previous_first = range.first;
    }

    writer.put_varint(frame_type(path.is_some(), ecn.is_some()).0)?;
    if let Some(path) = path {
        writer.put_varint(u64::from(path.0))?;
    }
    writer.put_varint(first.last.0)?;
    writer.put_varint(delay)?;
    writer.put_varint(additional_count)?;
    writer.put_varint(first.length_field())?;
    let mut previous_first = first.first;
    let mut written = 1;
    for range in ranges {
        if written > additional_count {
            break;
        }
        let (gap, length) = additional_fields(previous_first, range);
        writer.put_varint(gap)?;
        writer.put_varint(length)?;
        previous_first = range.first;
        written += 1;
    }
    if let Some(ecn) = ecn {
        writer.put_varint(ecn.ect0)?;
        writer.put_varint(ecn.ect1)?;
        writer.put_varint(ecn.ce)?;
    }
    Ok(usize::try_from(written).unwrap_or(usize::MAX))
}

/// Bytes that [`write_ack`] takes for all of `ack`'s ranges.
pub(super) fn size(ack: &Ack<'_>) -> usize {
    let mut ranges = ack.ranges.iter();
    let Some(first) = ranges.next() else { return 0 };
    let mut count = 0;
    let mut additional = 0;
    let mut previous_first = first.first;
    for range in ranges {
        let (gap, length) = additional_fields(previous_first, range);
        additional += varint::size(gap) + varint::size(length);
        previous_first = range.first;
        count += 1;
    }
    size_of_first(ack.path, ack.delay, first, ack.ecn) + additional + varint::size(count) - 1
}
