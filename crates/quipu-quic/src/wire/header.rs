//! Packet headers, read in two steps and written in one.
//!
//! A datagram holds one or more packets. [`Packet::parse`] reads of the next one what lies open:
//! form, connection IDs, token, and where the packet ends. [`PartialHeader`] is then the ground on
//! which [`crate::tls::protection`] removes header protection and opens the payload. Writers leave
//! a [`HeaderLayout`], on which the same module seals.
//!
//! <https://www.rfc-editor.org/rfc/rfc9000#section-17>

mod read;
mod write;

pub use read::{HeaderError, Packet, PartialHeader};
pub(crate) use write::set_length;
pub use write::{
    HeaderLayout, LongHeader, LongKind, ShortHeader, write_retry, write_version_negotiation,
};

use std::fmt;

pub use crate::kinds::PacketKind;

/// First byte: set in long headers.
pub(crate) const LONG_FORM: u8 = 0x80;
/// First byte: set in every packet of QUIC v1 and v2 but Version Negotiation.
pub(crate) const FIXED_BIT: u8 = 0x40;
/// First byte of a short header: the spin bit.
pub(crate) const SPIN_BIT: u8 = 0x20;
/// First byte of a short header: the key phase.
pub(crate) const KEY_PHASE_BIT: u8 = 0x04;
/// First byte of a long header: bits that are zero once protection is removed.
pub(crate) const LONG_RESERVED_BITS: u8 = 0x0c;
/// First byte of a short header: bits that are zero once protection is removed.
pub(crate) const SHORT_RESERVED_BITS: u8 = 0x18;
/// First byte: the length of the packet number less one.
pub(crate) const PACKET_NUMBER_LENGTH_BITS: u8 = 0x03;

/// Length of the integrity tag of a Retry packet in bytes.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2.5>
pub const RETRY_TAG_LENGTH: usize = 16;

/// The smallest UDP payload, in bytes, that carries an Initial packet.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-14.1>
pub const MIN_INITIAL_DATAGRAM: usize = 1200;

/// A version of QUIC.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u32);

impl Version {
    /// What a Version Negotiation packet carries.
    pub const NEGOTIATION: Version = Version(0);
    /// QUIC v1. <https://www.rfc-editor.org/rfc/rfc9000#section-15>
    pub const V1: Version = Version(1);
    /// QUIC v2, which differs from v1 in numbers and labels alone.
    /// <https://www.rfc-editor.org/rfc/rfc9369#section-3.1>
    pub const V2: Version = Version(0x6b33_43cf);
    /// The versions that this crate speaks, oldest first. Each is compatible with each: a first
    /// flight of one is read as one of another.
    /// <https://www.rfc-editor.org/rfc/rfc9369#section-4>
    pub const KNOWN: [Version; 2] = [Version::V1, Version::V2];

    /// True for the versions that this crate speaks.
    pub const fn is_known(self) -> bool {
        self.0 == Self::V1.0 || self.0 == Self::V2.0
    }

    /// True for versions that exist to exercise version negotiation, and are never spoken.
    /// <https://www.rfc-editor.org/rfc/rfc9000#section-15>
    pub const fn is_reserved(self) -> bool {
        self.0 & 0x0f0f_0f0f == 0x0a0a_0a0a
    }

    /// The two type bits of a long header for what has these in QUIC v1.
    /// <https://www.rfc-editor.org/rfc/rfc9369#section-3.2>
    pub(crate) const fn type_bits(self, of_v1: u8) -> u8 {
        if self.0 == Self::V2.0 { (of_v1 + 1) & 0b11 } else { of_v1 }
    }
}

/// The type bits of long headers in QUIC v1.
/// <https://www.rfc-editor.org/rfc/rfc9000#section-17.2>
pub(crate) mod type_bits {
    pub(crate) const INITIAL: u8 = 0;
    pub(crate) const ZERO_RTT: u8 = 1;
    pub(crate) const HANDSHAKE: u8 = 2;
    pub(crate) const RETRY: u8 = 3;
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({:#x})", self.0)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "version {:#x}", self.0)
    }
}

#[cfg(test)]
mod tests;
