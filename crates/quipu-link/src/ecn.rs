//! The two bits of explicit congestion notification, as IP carries them.
//!
//! <https://www.rfc-editor.org/rfc/rfc3168#section-5>

/// The sender knows nothing of congestion marks.
pub const NOT_ECT: u8 = 0b00;
/// ECN-capable transport, ECT(1).
pub const ECT_1: u8 = 0b01;
/// ECN-capable transport, ECT(0).
pub const ECT_0: u8 = 0b10;
/// Congestion Experienced: an ECN-capable datagram found a long queue.
pub const CE: u8 = 0b11;

/// Whether a link may mark a datagram with `bits` that has no mark yet.
pub(crate) const fn can_be_marked(bits: u8) -> bool {
    matches!(bits, ECT_0 | ECT_1)
}
