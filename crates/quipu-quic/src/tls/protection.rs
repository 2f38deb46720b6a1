//! Applying keys to a packet: the steps around header protection, in their order.
//!
//! Sending: write header and payload, leave room for the tag, [`seal`]. Receiving:
//! [`unprotect`], find the full packet number and the key, [`open`].
//!
//! <https://www.rfc-editor.org/rfc/rfc9001#section-5.4.1>

use quipu_base::{PacketNumber, PathId};

use super::key::{DirectionKeys, HeaderKey, OpenError, PacketKey, SealError};
use crate::wire::TruncatedPacketNumber;
use crate::wire::header::{
    self, HeaderLayout, KEY_PHASE_BIT, LONG_FORM, LONG_RESERVED_BITS, PACKET_NUMBER_LENGTH_BITS,
    SHORT_RESERVED_BITS, SPIN_BIT,
};

/// What a header says once its protection is removed. Nothing of it is authentic until the
/// payload has opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnprotectedHeader {
    /// The packet number as sent.
    pub packet_number: TruncatedPacketNumber,
    /// Bytes of the header, packet number included: the payload begins there.
    pub header_length: usize,
    /// Which of two successive sets of keys sealed the packet; false in a long header.
    pub key_phase: bool,
    /// The latency spin bit; false in a long header.
    pub spin: bool,
    /// True if the reserved bits are zero. Otherwise, and if the payload opens, the peer broke the
    /// protocol. <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>
    pub reserved_bits_clear: bool,
}

/// Seals the packet that takes all of `packet`: header of `layout`, payload of at least
/// [`HeaderLayout::min_payload`] bytes, and room for the tag. Fills in the Length field of a long
/// header, encrypts the payload, then protects the header.
///
/// # Errors
/// [`SealError`] if the packet is too short for its parts, or too long for its Length field.
#[inline]
pub fn seal(
    packet: &mut [u8],
    layout: &HeaderLayout,
    path: PathId,
    number: PacketNumber,
    keys: &DirectionKeys,
) -> Result<(), SealError> {
    let packet_length = packet.len();
    header::set_length(packet, layout, packet_length).map_err(|_| SealError)?;
    let (header, payload) = packet.split_at_mut_checked(layout.header_length()).ok_or(SealError)?;
    keys.packet.seal(path, number, header, payload)?;

    // https://www.rfc-editor.org/rfc/rfc9001#section-5.4.2
    let sample_at = layout.packet_number_at + TruncatedPacketNumber::MAX_LENGTH;
    let (head, tail) = packet.split_at_mut_checked(sample_at).ok_or(SealError)?;
    let sample = tail.get(..keys.header.sample_length()).ok_or(SealError)?;
    let (first, rest) = head.split_first_mut().ok_or(SealError)?;
    let number =
        rest.get_mut(layout.packet_number_at - 1..layout.header_length() - 1).ok_or(SealError)?;
    keys.header.protect(sample, first, number)
}

/// Removes header protection in place. `packet` is the whole packet; `packet_number_at` is that of
/// its [`PartialHeader`](crate::wire::PartialHeader).
///
/// # Errors
/// [`OpenError`] if the packet is too short to hold a sample; it is dropped.
#[inline]
pub fn unprotect(
    packet: &mut [u8],
    packet_number_at: usize,
    key: &dyn HeaderKey,
) -> Result<UnprotectedHeader, OpenError> {
    let sample_at = packet_number_at + TruncatedPacketNumber::MAX_LENGTH;
    // https://www.rfc-editor.org/rfc/rfc9000#section-10.3
    //# Endpoints MUST discard packets that are too small to be valid QUIC packets.
    let (head, tail) = packet.split_at_mut_checked(sample_at).ok_or(OpenError)?;
    // https://www.rfc-editor.org/rfc/rfc9001#section-5.4.2
    //# An endpoint MUST discard packets that are not long enough to contain a complete sample.
    let sample = tail.get(..key.sample_length()).ok_or(OpenError)?;
    let (first, rest) = head.split_first_mut().ok_or(OpenError)?;
    let number_from = packet_number_at.checked_sub(1).ok_or(OpenError)?;
    let number = rest.get_mut(number_from..).ok_or(OpenError)?;
    key.unprotect(sample, first, number)?;

    let first = *first;
    let length = usize::from(first & PACKET_NUMBER_LENGTH_BITS) + 1;
    let packet_number =
        number.get(..length).and_then(TruncatedPacketNumber::from_bytes).ok_or(OpenError)?;
    let short = first & LONG_FORM == 0;
    let reserved = if short { SHORT_RESERVED_BITS } else { LONG_RESERVED_BITS };
    Ok(UnprotectedHeader {
        packet_number,
        header_length: packet_number_at + length,
        key_phase: short && first & KEY_PHASE_BIT != 0,
        spin: short && first & SPIN_BIT != 0,
        reserved_bits_clear: first & reserved == 0,
    })
}

/// Opens the payload of the packet that takes all of `packet`, in place, and returns the
/// plaintext. `header_length` is that of [`UnprotectedHeader`], `number` the expanded packet
/// number.
///
/// # Errors
/// [`OpenError`] if the packet does not authenticate; it is dropped.
#[inline]
pub fn open<'a>(
    packet: &'a mut [u8],
    header_length: usize,
    path: PathId,
    number: PacketNumber,
    key: &dyn PacketKey,
) -> Result<&'a mut [u8], OpenError> {
    let (header, payload) = packet.split_at_mut_checked(header_length).ok_or(OpenError)?;
    let length = key.open(path, number, header, payload)?;
    payload.get_mut(..length).ok_or(OpenError)
}

#[cfg(test)]
mod tests;
